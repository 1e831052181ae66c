"""Fields of structs that a statement sets: `SET s.a = …` makes the whole struct anew.

Source: docs/sql-dml.md, "UPDATE"; Spark's SQL reference, "named_struct".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.column_texts import literal, quoted
from pyhudi.sql.dml.target import cast

__all__ = ["FieldPath", "field_path", "struct_with"]

FieldPath = tuple[str, ...]  # names of fields below a column, each in the table's own letters


def field_path(column: pa.Field, names: Sequence[str], written: str) -> FieldPath:
    """The fields that names below a column mean, in any case.

    Raises: ConfigError for a field that there is not. `written`: how the statement says it, for the error.
    """
    found: list[str] = []
    kind = column.type
    for name in names:
        fields = list(kind.fields) if pa.types.is_struct(kind) else []
        inside = next((field for field in fields if field.name.lower() == name.lower()), None)
        if inside is None:
            there = f"its fields are {', '.join(field.name for field in fields)}" if fields else "it is no struct"
            raise ConfigError(f"SET {written}: {'.'.join((column.name, *found)):.200} has no field {name!r}; {there}.")
        found.append(inside.name)
        kind = inside.type
    return tuple(found)


def struct_with(column: pa.Field, reference: str, values: Mapping[FieldPath, str]) -> str:
    """A struct as an expression: some fields have new values, the others are those of the row.

    Where the row's struct is null a new one is made, whose other fields are null, as Spark does.

    Args:
        reference: the column as an expression.
        values: expressions by field; none of them lies within another.
    """
    return _struct(column.type, reference, (), values)


def _struct(kind: pa.StructType, reference: str, path: FieldPath, values: Mapping[FieldPath, str]) -> str:
    parts = []
    for field in kind.fields:
        inner = (*path, field.name)
        own = f"{reference}.{quoted(field.name)}"
        if inner in values:
            own = cast(values[inner], field)
        elif any(given[: len(inner)] == inner for given in values):
            own = _struct(field.type, own, inner, values)
        parts.append(f"{literal(field.name)}, {own}")
    return f"named_struct({', '.join(parts)})"
