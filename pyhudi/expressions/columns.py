"""The binding of a predicate's columns to a schema: names are resolved, and functions of columns get types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import result_type, why_not
from pyhudi.expressions.predicates import Column, Operand
from pyhudi.redaction import brief, is_text

__all__ = ["resolve", "resolve_operand"]

_COLUMNS_NAMED = 100  # in a message; more would not help


def resolve(column: Column, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType]:
    """Find a column in a schema: the path of names, and its type.

    A top-level column whose name has dots in it wins over a nested path. As in Spark, a name matches in any case if it
    fits only one column; an exact match wins. Raises ConfigError naming the nearest column.
    """
    whole = ".".join(column.path)
    if is_text(whole) and schema.get_field_index(whole) >= 0:
        return (whole,), schema.field(whole).type
    fields: dict[str, pa.DataType] = {field.name: field.type for field in schema}
    kind: pa.DataType | None = None
    path = []
    for name in column.path:
        name = name if name in fields else _in_another_case(name, fields)
        if name not in fields:
            near = get_close_matches(name, list(fields), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " A text is written in single quotes."
            columns = ", ".join([*islice(fields, _COLUMNS_NAMED), *(["..."] if len(fields) > _COLUMNS_NAMED else [])])
            raise ConfigError(
                f"where names the column {brief(whole)}, which the table does not have.{hint} Columns: "
                f"{columns or 'none'}."
            )
        kind = fields[name]
        path.append(name)
        fields = {f.name: f.type for f in kind} if pa.types.is_struct(kind) else {}
    assert kind is not None, column
    return tuple(path), kind


def _in_another_case(name: str, fields: Iterable[str]) -> str:
    """The only one of these names that differs just in case; the name itself if there is none or more than one."""
    matches = [field for field in fields if field.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else name


def resolve_operand(operand: Operand, schema: pa.Schema) -> tuple[Operand, pa.DataType]:
    """Resolve a column, or a function of one, to the schema's path; return it with the type of its values.

    Raises ConfigError for an unknown column, and for a function that can't be computed from it.
    """
    if isinstance(operand, Column):
        path, kind = resolve(operand, schema)
        return Column(path), kind
    path, kind = resolve(operand.column, schema)
    call = replace(operand, column=Column(path))
    why = why_not(call, kind)
    if why is not None:
        raise ConfigError(f"where: {why}.")
    return call, result_type(call, kind)
