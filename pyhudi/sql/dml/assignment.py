"""The assignment of values of an INSERT's query to columns: assignable types, and fields of structs.

Structs at any depth, also in arrays and maps, follow one rule: by name or by position. The write itself matches fields
by name, so an expression renames the query's fields to the table's where they differ. Both engines understand it.
Source: docs/sql-dml.md, "INSERT"; Spark's SQL reference, "INSERT TABLE", "ANSI Compliance"; tried on Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import cast as cast_

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.errors import ConfigError
from pyhudi.sql.columns import literal, quoted, type_text
from pyhudi.sql.dml.target import cast, may_change

__all__ = ["InsertedValue", "have_same_names"]


def have_same_names(source: pa.DataType, column: pa.DataType) -> bool:
    """True if the structs of both types have the same field names at every depth, in any order and case."""
    if pt.is_struct(source) and pt.is_struct(column):
        fields = {field.name.lower(): field for field in column.fields}
        if sorted(field.name.lower() for field in source.fields) != sorted(fields):
            return False
        return all(have_same_names(field.type, fields[field.name.lower()].type) for field in source.fields)
    if is_list(source) and is_list(column):
        return have_same_names(source.value_type, column.value_type)
    if pt.is_map(source) and pt.is_map(column):
        keys = have_same_names(source.key_type, column.key_type)
        return keys and have_same_names(source.item_type, column.item_type)
    return True


@dataclass(frozen=True, slots=True)
class InsertedValue:
    """A value of a query and the column that gets it.

    `kind`: the value's type; `place`: the column's name, or the path of a field in it; `by_name`: the rule for structs;
    `keys`: the places whose values make keys and partition paths. These values are not cast if that may change them:
    the write refuses values that don't fit the column.
    """

    table: str
    kind: pa.DataType
    column: pa.Field
    place: str
    by_name: bool
    keys: Collection[str] = ()

    def expression(self, value: str) -> str:
        """Convert the value to the column's type. `value`: an expression without operators outside of parentheses.

        Raises: ConfigError for types that Spark's ANSI rules do not assign, such as a text to a number, and for fields
            of a struct that the table's struct lacks.
        """
        self._check()
        if not pt.is_nested(self.kind):
            return self._cast(value)
        if not _is_untyped(self.kind):
            return self._renamed(value, 1)
        typed = self._typed()  # an engine's `array()` and `map()` have no type
        return replace(self, kind=typed)._renamed(f"(CAST({value} AS {type_text(typed, quotes=True)}))", 1)

    def _cast(self, value: str) -> str:
        return (
            value if self.place in self.keys and may_change(self.kind, self.column.type) else cast(value, self.column)
        )

    def _check(self) -> None:
        if pt.is_struct(self.kind) and pt.is_struct(self.column.type):
            for _, inner in self._fields():
                inner._check()
            return
        families = _family(self.kind), _family(self.column.type)
        if families[0] == families[1]:
            for inner in () if self._is_untyped_map() else self._elements():
                inner._check()
            return
        if families[0] == "null" or (families[1] == "text" and families[0] not in ("binary", "list", "map", "struct")):
            return
        raise ConfigError(
            f"INSERT INTO {self.table}: the query gives {self.kind} for the column {self.place}, which is of type "
            f"{self.column.type}; that is no safe assignment. Write CAST(… AS …) if it is meant."
        )

    def _typed(self) -> pa.DataType:
        """The value's type, with the column's type for untyped parts."""
        target: pa.DataType = self.column.type
        if pt.is_null(self.kind) or self._is_untyped_map():
            return target
        if pt.is_struct(self.kind) and pt.is_struct(self.column.type):
            return pa.struct([pa.field(name, inner._typed()) for name, inner in self._fields()])
        typed = [inner._typed() for inner in self._elements()]
        if len(typed) > 1:
            return pa.map_(typed[0], typed[1])
        return pa.list_(typed[0]) if typed else self.kind

    def _is_untyped_map(self) -> bool:
        """True for `map()`, whose keys have the type text in the session."""
        return pt.is_map(self.kind) and pt.is_null(self.kind.item_type)

    def _renamed(self, value: str, depth: int) -> str:
        """Convert the value to the table's field names and types; it is returned unchanged if it has them."""
        if not self._differs():
            return value
        if not pt.is_nested(self.kind):
            return self._cast(value)
        if pt.is_struct(self.kind):
            parts = (
                f"{literal(inner.column.name)}, {inner._renamed(f'{value}.{quoted(name)}', depth)}"
                for name, inner in self._fields()
            )
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({', '.join(parts)}) END"
        element = f"e{depth}"
        if is_list(self.kind):
            (inner,) = self._elements()
            return f"transform({value}, {element} -> {inner._renamed(element, depth + 1)})"
        key, item = self._elements()
        entry = (
            f"named_struct('key', {key._renamed(f'{element}.key', depth + 1)}, "
            f"'value', {item._renamed(f'{element}.value', depth + 1)})"
        )
        return f"map_from_entries(transform(map_entries({value}), {element} -> {entry}))"

    def _differs(self) -> bool:
        """True if a field of a struct has another name, or a value another type, than the table's."""
        if pt.is_struct(self.kind):
            return any(name != inner.column.name or inner._differs() for name, inner in self._fields())
        if pt.is_nested(self.kind):
            return any(inner._differs() for inner in self._elements())
        return not self.kind.equals(self.column.type)

    def _elements(self) -> list[InsertedValue]:
        """The elements of an array, or the keys and values of a map; [] for other types."""
        kind, target = self.kind, self.column.type
        if is_list(kind) and is_list(target):
            return [self._inside(kind.value_type, target.value_field, "element")]
        if pt.is_map(kind) and pt.is_map(target):
            value = self._inside(kind.item_type, target.item_field, "value")
            return [self._inside(kind.key_type, target.key_field, "key"), value]
        return []

    def _fields(self) -> list[tuple[str, InsertedValue]]:
        """The fields of a struct by the query's names, in its order. Raises ConfigError."""
        query_fields = list(cast_("pa.StructType", self.kind).fields)
        fields = list(self.column.type.fields)
        words = [field.name.lower() for field in query_fields]
        twice = [field.name for field in query_fields if words.count(field.name.lower()) > 1]
        if twice:
            raise ConfigError(f"INSERT INTO {self.table}: the struct for {self.place} has the field {twice[0]} twice.")
        if self.by_name:
            return [(field.name, self._inside(field.type, self._field(field.name), None)) for field in query_fields]
        if len(query_fields) != len(fields):
            raise ConfigError(
                f"INSERT INTO {self.table}: the struct for {self.place} has {len(query_fields)} fields "
                f"({', '.join(field.name for field in query_fields)}), the table's has {len(fields)} "
                f"({', '.join(field.name for field in fields)}). Fields go by place here; say BY NAME to name them."
            )
        return [
            (field.name, self._inside(field.type, column, None))
            for field, column in zip(query_fields, fields, strict=True)
        ]

    def _field(self, name: str) -> pa.Field:
        """The table's field of this name in any case. Raises ConfigError with the nearest name."""
        fields: dict[str, pa.Field] = {field.name.lower(): field for field in self.column.type.fields}
        field = fields.get(name.lower())
        if field is None:
            near = get_close_matches(name.lower(), fields, n=1)
            hint = f" Did you mean {fields[near[0]].name!r}?" if near else ""
            raise ConfigError(
                f"INSERT INTO {self.table}: {self.place} has no field {name!r}.{hint} Its fields are "
                f"{', '.join(field.name for field in fields.values())}."
            )
        return field

    def _inside(self, kind: pa.DataType, column: pa.Field, word: str | None) -> InsertedValue:
        place = f"{self.place}.{word or column.name}"
        return InsertedValue(self.table, kind, column, place, self.by_name, self.keys)


def _is_untyped(kind: pa.DataType) -> bool:
    """True if the type is, or contains, the type of NULL."""
    return pt.is_null(kind) or any(_is_untyped(kind.field(place).type) for place in range(kind.num_fields))


_FAMILIES: Mapping[str, Callable[[pa.DataType], bool]] = {
    "null": pt.is_null,
    "boolean": pt.is_boolean,
    "text": is_text,
    "binary": is_bytes,
    "struct": pt.is_struct,
    "map": pt.is_map,
    "list": is_list,
}


def _family(kind: pa.DataType) -> str:
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return "number"
    return next((name for name, matches in _FAMILIES.items() if matches(kind)), "time")
