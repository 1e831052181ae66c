"""Reading an array's buffers as another type of the same layout, without a copy.

Files disagree on names and nullability inside nested types (`list<array: int not null>`, `list<element: int>`), while
the bytes are the same. Arrow's own cast refuses some of these or copies.
Source: Arrow columnar format, C data interface.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["as_type", "same_layout"]


def same_layout(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the types differ at most in names of list items and map entries, nullability and field metadata."""
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return source.num_fields == target.num_fields and all(
            ours.name == theirs.name and same_layout(ours.type, theirs.type)
            for ours, theirs in zip(source.fields, target.fields, strict=True)
        )
    if pa.types.is_map(source) and pa.types.is_map(target):
        return same_layout(source.key_type, target.key_type) and same_layout(source.item_type, target.item_type)
    if pa.types.is_list(source) and pa.types.is_list(target):
        return same_layout(source.value_type, target.value_type)
    return bool(source.equals(target))


def as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array's buffers under another type, which the caller knows to have the same layout."""
    if array.type.equals(target, check_metadata=True):
        return array
    return pa.array(_Retyped(array, target))


class _Retyped:
    """An exporter of the C data interface that names another type than its array has."""

    def __init__(self, array: pa.Array, target: pa.DataType) -> None:
        self._array = array
        self._target = target

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._target.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]
