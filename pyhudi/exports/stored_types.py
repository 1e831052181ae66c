"""A check if readers of other formats read the columns of a file in the table's types.

They find columns by name and convert a stored type to the table's only if it is the same, or a narrower number.
PyHudi's reads convert more (numbers to text, decimals to another scale); other readers do this differently, or not.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["unreadable_column"]

_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)


def unreadable_column(stored: pa.Schema, schema: pa.Schema) -> str | None:
    """The first column of a file whose type others don't read as the table's, as text; None without one. A column that
    the file lacks is null.
    """
    for field in schema:
        at = stored.get_field_index(field.name)
        if at >= 0 and not _reads(stored.field(at).type, field.type):
            return f"column {field.name!r} as {stored.field(at).type}, and the table has {field.type}"
    return None


def _reads(stored: pa.DataType, kind: pa.DataType) -> bool:
    types = pa.types
    if stored.equals(kind):
        return True
    if types.is_dictionary(stored):
        return _reads(stored.value_type, kind)
    if types.is_signed_integer(stored) and types.is_signed_integer(kind):
        return bool(stored.bit_width <= kind.bit_width)
    if types.is_floating(stored) and types.is_floating(kind):
        return bool(stored.bit_width <= kind.bit_width)
    if types.is_timestamp(stored) and types.is_timestamp(kind):
        return (stored.tz is None) == (kind.tz is None)
    if types.is_struct(stored) and types.is_struct(kind):
        return unreadable_column(pa.schema(stored.fields), pa.schema(kind.fields)) is None
    if types.is_map(stored) and types.is_map(kind):
        return _reads(stored.key_type, kind.key_type) and _reads(stored.item_type, kind.item_type)
    if isinstance(stored, _LISTS) and isinstance(kind, _LISTS):
        return _reads(stored.value_type, kind.value_type)
    return any(is_one(stored) and is_one(kind) for is_one in (_is_text, _is_bytes, types.is_date))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))
