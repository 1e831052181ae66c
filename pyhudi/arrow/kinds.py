"""Kinds of Arrow types, in any physical form (plain, large, view, fixed size).

Source: Arrow columnar format.
"""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

import pyarrow as pa
import pyarrow.types as pt

__all__ = ["LIST_ARRAYS", "AnyList", "has_struct", "is_bytes", "is_list", "is_text", "plain_type", "value_type"]

AnyList: TypeAlias = pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
LIST_ARRAYS = (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray, pa.ListViewArray, pa.LargeListViewArray)


def is_list(data_type: pa.DataType) -> TypeGuard[AnyList]:
    """True for a list of any kind. Maps are not lists."""
    return bool(
        pt.is_list(data_type)
        or pt.is_large_list(data_type)
        or pt.is_fixed_size_list(data_type)
        or pt.is_list_view(data_type)
        or pt.is_large_list_view(data_type)
    )


def is_text(data_type: pa.DataType) -> bool:
    """True for a string type of any kind. Dictionaries of strings are not string types."""
    return bool(pt.is_string(data_type) or pt.is_large_string(data_type) or data_type.equals(pa.string_view()))


def has_struct(data_type: pa.DataType) -> bool:
    """True for a struct, and for a list or map that contains one."""
    if pt.is_map(data_type):
        return has_struct(data_type.key_type) or has_struct(data_type.item_type)
    return bool(pt.is_struct(data_type) or (is_list(data_type) and has_struct(data_type.value_type)))


def is_bytes(data_type: pa.DataType) -> bool:
    """True for a binary type of any kind, fixed size included."""
    return bool(
        pt.is_binary(data_type)
        or pt.is_large_binary(data_type)
        or pt.is_fixed_size_binary(data_type)
        or data_type.equals(pa.binary_view())
    )


def value_type(data_type: pa.DataType) -> pa.DataType:
    """Return the value type of a dictionary or of runs, else the type itself."""
    while pt.is_dictionary(data_type) or pt.is_run_end_encoded(data_type):
        data_type = data_type.value_type
    return data_type


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type with the same values in a form that every Arrow kernel accepts.

    Views become large text or bytes. Runs, and dictionaries of views, become their values. This holds at any depth.
    """
    if data_type.equals(pa.string_view()):
        return pa.large_string()
    if data_type.equals(pa.binary_view()):
        return pa.large_binary()
    if pt.is_run_end_encoded(data_type):
        return plain_type(value_type(data_type))
    if pt.is_dictionary(data_type):
        plain = plain_type(data_type.value_type)
        return data_type if plain.equals(data_type.value_type) else plain
    if pt.is_struct(data_type):
        return pa.struct([_plain_field(field) for field in data_type.fields])
    if pt.is_map(data_type):
        return pa.map_(plain_type(value_type(data_type.key_type)), _plain_field(data_type.item_field))
    if is_list(data_type):
        inner = _plain_field(data_type.value_field)
        return data_type if inner.type.equals(data_type.value_type) else pa.list_(inner)
    return data_type


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))
