"""The types of Python values, to compare with those of a table's columns: a struct has the fields that dicts name.

Given a struct's type, Arrow turns a field that no dict names into null, and drops one that the type lacks. With the
types from here, both are noticed and can be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.redaction import brief

__all__ = ["named_type", "nulls_typed", "typed_nulls"]


def named_type(data_type: pa.DataType, values: Iterable[object]) -> pa.DataType:
    """Return the type with only those fields of structs, at any depth, that some value names.

    A nested part without a value is an untyped null: `typed_nulls` gives it the type of the table. Raises TypeError
    for a name that is not text.
    """
    if not pt.is_nested(data_type):
        return data_type
    present = [value for value in values if value is not None]
    if not present:
        return pa.null()
    if pt.is_struct(data_type):
        return _named_struct(data_type, present)
    if is_list(data_type):
        inner = (item for value in present if isinstance(value, Iterable) for item in value)
        return pa.list_(data_type.value_field.with_type(named_type(data_type.value_type, inner)))
    if pt.is_map(data_type) and pt.is_nested(data_type.item_type):
        pairs = (value.items() if isinstance(value, Mapping) else value for value in present)
        items = (item for entries in pairs for _, item in cast("Iterable[tuple[object, object]]", entries))
        return pa.map_(data_type.key_type, data_type.item_field.with_type(named_type(data_type.item_type, items)))
    return data_type


def _named_struct(data_type: pa.StructType, present: Sequence[object]) -> pa.DataType:
    """Return the struct of the named fields. Arrow reads tuples by position, so they have all fields."""
    dicts = [dict(value) if isinstance(value, Mapping | list) else None for value in present]
    by_name = [value for value in dicts if value is not None]
    if len(by_name) < len(dicts):
        return data_type
    names = dict.fromkeys(name for value in by_name for name in value)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"a struct has the key {brief(odd)}, which is not text")
    inner = {name: [value.get(name) for value in by_name] for name in names}
    typed_names = {field.name for field in data_type.fields}
    fields = [
        field.with_type(named_type(field.type, inner[field.name])) for field in data_type.fields if field.name in names
    ]
    more = [pa.field(name, pa.array(inner[name]).type) for name in names if name not in typed_names]
    return pa.struct([*fields, *(field for field in more if not pt.is_null(field.type))])


def nulls_typed(new: Sequence[pa.Field], old: Sequence[pa.Field]) -> list[pa.Field]:
    """Return incoming fields with untyped nulls replaced by the table's types."""
    old_types = {field.name: field.type for field in old}
    return [
        field.with_type(typed_nulls(field.type, old_types[field.name])) if field.name in old_types else field
        for field in new
    ]


def typed_nulls(new: pa.DataType, old: pa.DataType) -> pa.DataType:
    """Return a type with untyped nulls, at any depth, replaced by the table's types there."""
    if pt.is_null(new):
        return old
    if pt.is_struct(new) and pt.is_struct(old):
        return pa.struct(nulls_typed(new.fields, old.fields))
    if is_list(new) and is_list(old):
        return pa.list_(new.value_field.with_type(typed_nulls(new.value_type, old.value_type)))
    if pt.is_map(new) and pt.is_map(old):
        values = new.item_field.with_type(typed_nulls(new.item_type, old.item_type))
        return pa.map_(typed_nulls(new.key_type, old.key_type), values)
    return new
