"""Functions that make rows from one value: explode, posexplode and inline."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.duckdb import duckdb_expression, quoted_name
from pyhudi.expressions.tree import Expression
from pyhudi.expressions.types import INT, name_of

__all__ = ["generated_rows"]


def generated_rows(name: str, value: Expression) -> tuple[str, pa.Schema]:
    """DuckDB's query for the rows of a generator, and their columns. Raises ConfigError for a value that the generator
    does not take."""
    kind, text = value.type, duckdb_expression(value)
    if name.startswith("inline"):
        return _structs(name, kind, text)
    columns: list[tuple[str, pa.DataType]]
    if pa.types.is_list(kind):
        columns, parts, length = [("col", kind.value_type)], [f"unnest({text})"], f"len({text})"
    elif pa.types.is_map(kind):
        columns = [("key", kind.key_type), ("value", kind.item_type)]
        parts, length = [f"unnest(map_keys({text}))", f"unnest(map_values({text}))"], f"cardinality({text})"
    else:
        raise ConfigError(f"{name} takes an array or a map, found {name_of(kind)}.")
    if name.startswith("posexplode"):
        columns = [("pos", INT), *columns]
        parts = [f"CAST(unnest(range({length})) AS INTEGER)", *parts]
    return f"SELECT {', '.join(parts)}", pa.schema(columns)


def _structs(name: str, kind: pa.DataType, text: str) -> tuple[str, pa.Schema]:
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        raise ConfigError(f"{name} takes an array of structs, found {name_of(kind)}.")
    fields = list(kind.value_type)
    parts = [f"struct_extract_at(q.s, {at + 1}) AS {quoted_name(field.name)}" for at, field in enumerate(fields)]
    query = f"SELECT {', '.join(parts)} FROM (SELECT unnest({text}) AS s) AS q"
    return query, pa.schema([(field.name, field.type) for field in fields])
