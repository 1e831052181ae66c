"""Rows of JSON: an array of objects, or one object per line. All rows decide the columns and their types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain, islice
from typing import TextIO

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.redaction import brief
from pyhudi.schema.projection import project
from pyhudi.table.column_values import type_in
from pyhudi.table.row_files.text_values import NamedFloat, column_of_json, has_decimals

__all__ = ["json_rows", "one_schema"]

_BLOCK_ROWS = 65_536  # as Python values in memory at once


def json_rows(text: TextIO, schema: pa.Schema | None, place: str) -> pa.Table:
    """The rows of a file. `schema`: of the table; None without one. `place`: the file's name, for errors.

    Raises: ConfigError for text that is no JSON; SchemaMismatch for a column without one type.
    """
    is_exact = schema is not None and any(has_decimals(field.type) for field in schema)
    number = Decimal if is_exact else None
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=number, parse_constant=NamedFloat)
    blocks = [_columns(block, schema) for block in _blocks(_rows(text, decoder, place))]
    columns = one_schema([block.schema for block in blocks], place)
    return pa.concat_tables(project(block, columns) for block in blocks)


def one_schema(schemas: Iterable[pa.Schema], place: str) -> pa.Schema:
    """The columns of all schemas, each with a type that holds the values of all. Raises SchemaMismatch."""
    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"{place} has a column without one type: {error}. Nothing was written.") from error


def _blocks(rows: Iterator[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    """The rows in blocks; one empty block without rows."""
    yield list(islice(rows, _BLOCK_ROWS))
    while block := list(islice(rows, _BLOCK_ROWS)):
        yield block


def _columns(rows: list[Mapping[str, object]], schema: pa.Schema | None) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [column_of_json(name, [row.get(name) for row in rows], type_in(schema, name)) for name in names]
    return pa.Table.from_arrays(columns, names=names)


def _rows(text: TextIO, decoder: json.JSONDecoder, place: str) -> Iterator[Mapping[str, object]]:
    lines = ((number, line) for number, line in enumerate(text, 1) if line.strip())
    start, first = next(lines, (0, ""))
    if first.lstrip().startswith("["):
        rows = _decoded(decoder, first + text.read(), place)
        for at, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
            yield _row(row, f"{place}, element {at}")
        return
    for number, line in chain([(start, first)] if first else (), lines):
        where = f"{place}, line {number}"
        yield _row(_decoded(decoder, line, where), where)


def _decoded(decoder: json.JSONDecoder, text: str, where: str) -> object:
    try:
        return decoder.decode(text)
    except ValueError as error:
        raise ConfigError(f"{where}: no JSON: {error}. Give an array of objects, or one object per line.") from error
    except RecursionError as error:
        raise ConfigError(f"{where}: JSON that is nested too deeply.") from error


def _row(row: object, where: str) -> Mapping[str, object]:
    if not isinstance(row, Mapping):
        raise ConfigError(f'{where}: a row is an object such as {{"id": 1}}, found {brief(row)}.')
    return row


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has the name {next(one for one in names if names.count(one) > 1)!r} twice")
    return values
