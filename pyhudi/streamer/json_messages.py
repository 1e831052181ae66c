"""JSON messages as columns: Arrow parses all of a batch at once. Unfit messages are found by halving, and set aside.

    all messages joined by line ends ─ pyarrow.json ─ as many rows as messages → the result
                                                    └ else each is parsed alone (msgspec): no JSON, no object → aside
                                                      the others again, in halves, until unfit rows are isolated

Columns of the table have its types. Dates and timestamps are texts, or numbers in the unit of the column. New columns
get the types of JSON: texts remain texts, even if they look like times. Tables with other types (binaries, times of
day, dates inside structs) are parsed by Python values, which is some seven times slower.

A number that its column would change does not fit: 2**53 + 1, or a number of 20 digits, in a column of doubles. Nor
does one with more digits than its decimal has, which Arrow's parser takes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import cast

import msgspec
import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import HudiError, SchemaMismatch
from pyhudi.schema.exact import COUNTS_TO
from pyhudi.schema.projection import project
from pyhudi.table.column_values import type_in
from pyhudi.table.row_files.changed_numbers import check_numbers, is_changed, part_type
from pyhudi.table.row_files.text_values import NamedFloat, column_of_json

__all__ = [
    "NO_JSON",
    "Decoded",
    "RowColumns",
    "decode_json",
    "nullable_columns",
    "read_in_parts",
    "typed_columns",
    "typed_schema",
]

NO_JSON = "no JSON"  # begins the reason of a message that is none
_BLOCK_BYTES = 8 << 20
_REFUSED_MAX = 10_000  # unfit messages that are isolated one by one
_PLAIN = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string())
_NO_FIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError, msgspec.MsgspecError, HudiError, ValueError, TypeError)
_SAMPLED = 100  # messages that decide if times are texts or numbers
_ALONE = 64  # up to this number of messages, unfit parts are parsed one by one
_NOT_NUMBERS = (b"NaN", b"Infinity")
_DECODER = msgspec.json.Decoder(float_hook=Decimal)


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The columns of rows. `is_whole`: exactly these; otherwise rows may have more. `keys`: those of a row's key."""

    schema: pa.Schema
    is_whole: bool = False
    keys: tuple[str, ...] = ()

    def without(self, prefix: str) -> RowColumns:
        """The columns without those whose names begin with the prefix, which the source adds itself."""
        fields = [field for field in self.schema if not field.name.startswith(prefix)]
        return self if len(fields) == len(self.schema) else replace(self, schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class Decoded:
    """`rows`: of the messages with these `numbers`; None: of all. `refused`: number and reason of the others."""

    rows: pa.Table
    numbers: Sequence[int] | None
    refused: Sequence[tuple[int, str]]


def decode_json(messages: Sequence[bytes], columns: RowColumns) -> Decoded:
    """The rows of JSON objects. A field that a message lacks is null.

    Raises: SchemaMismatch when more than some thousand messages don't fit.
    """
    exact = not all(_is_time(field.type) or _is_of_json(field.type) for field in columns.schema)
    parse_rows = _parse_exact if exact else _parse
    if not messages:
        return Decoded(columns.schema.empty_table(), None, ())

    def parse(some: Sequence[bytes], columns: RowColumns) -> pa.Table:
        table = parse_rows(some, columns)
        check_numbers(table, some, _value)
        return _without_untyped(table)

    try:
        return Decoded(parse(messages, columns), None, ())
    except _NO_FIT:
        pass
    refused: dict[int, str] = {}
    good: list[int] = []
    for number, message in enumerate(messages):
        try:
            value = _value(message)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            refused[number] = f"{NO_JSON}: {error}"
            continue
        if isinstance(value, dict):
            good.append(number)
        else:
            refused[number] = f"a row is an object, found {type(value).__name__}"
    lines = [messages[number].strip().replace(b"\r", b" ").replace(b"\n", b" ") for number in good]
    tables, good_numbers = read_in_parts(
        lambda at: parse([lines[one] for one in at], columns), len(lines), refused, good
    )
    rows = typed_columns(tables) if tables else columns.schema.empty_table()
    return Decoded(rows, good_numbers, sorted(refused.items()))


def read_in_parts(
    read: Callable[[Sequence[int]], pa.Table], count: int, refused: dict[int, str], numbers: Sequence[int]
) -> tuple[list[pa.Table], list[int]]:
    """Read rows in parts, by halving; return the parts and the numbers of their rows. The others are added to
    `refused`.

    Args:    read: reads some of `count` rows, by their positions. numbers: position → number.
    Raises:  SchemaMismatch if too many can't be read.
    """
    tables: list[pa.Table] = []
    readable: list[int] = []
    pending_parts = [range(count)] if count else []
    while pending_parts:
        part = pending_parts.pop()
        try:
            tables.append(read(part))
            readable += [numbers[at] for at in part]
        except _NO_FIT as error:
            if len(part) == 1:
                refused[numbers[part[0]]] = str(error.args[0] if error.args else error)[:500]
                if len(refused) > _REFUSED_MAX:
                    raise SchemaMismatch(
                        f"More than {_REFUSED_MAX:,} rows of a batch don't fit the table, the last one because: "
                        f"{error}. The source has another form than the pipeline expects; nothing was written."
                    ) from error
                continue
            step = 1 if len(part) <= _ALONE else (len(part) + 1) // 2
            pending_parts += [part[at : at + step] for at in range(0, len(part), step)][::-1]
    return tables, readable


def typed_columns(tables: Sequence[pa.Table]) -> pa.Table:
    """All parts with the columns of all. Raises SchemaMismatch for a column that no type holds all values of."""
    if len(tables) == 1:
        return tables[0]
    try:
        schemas = [nullable_columns(table.schema) for table in tables]  # another part may lack a column, or a field
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise SchemaMismatch(
            f"Rows of a batch have several types in one column: {error}. Name the columns by a schema provider, or add "
            "the column to the table. Nothing was written."
        ) from error
    return pa.concat_tables([project(table, schema, exact=True) for table in tables])


def nullable_columns(schema: pa.Schema) -> pa.Schema:
    """The columns as nullable: a later schema may lack a column that today's requires."""
    return pa.schema([pa.field(one.name, _nullable(one.type)) for one in schema])


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with nullable struct fields, items and values of maps."""
    if pt.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([pa.field(one.name, _nullable(one.type)) for one in fields])
    if pt.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    return pa.list_(_nullable(kind.value_type)) if is_list(kind) else kind


def _parse(messages: Sequence[bytes], columns: RowColumns) -> pa.Table:
    """Parse all messages by Arrow. Raises errors of _NO_FIT."""
    joined = b"\n".join(messages)
    lines = len(messages) - 1
    # If each message is one line from { to }, as many rows as messages means one row of each: no value has }\n{ in it.
    is_lines = joined.startswith(b"{") and joined.endswith(b"}") and joined.count(b"\n") == lines
    if not is_lines or joined.count(b"}\n{") != lines:
        raise ValueError("not a line each")
    joined.decode()
    parser_schema = _as_read(messages, columns.schema)
    table = _read(joined, parser_schema, columns.is_whole)
    texts = pa.schema([pa.field(field.name, _as_text(field.type)) for field in table.schema])
    if texts.types != table.schema.types:
        table = _read(joined, texts, columns.is_whole)
    if table.num_rows != len(messages):
        raise ValueError(f"{len(messages)} messages, {table.num_rows} rows")
    for at, field in enumerate(columns.schema):
        if _is_time(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type))
    return table


def _as_read(messages: Sequence[bytes], schema: pa.Schema) -> pa.Schema:
    """The columns for Arrow's parser: times as texts or numbers, as in the first messages."""
    kinds: dict[str, pa.DataType] = {}
    times = {
        field.name: pa.int32() if pt.is_date32(field.type) else pa.int64() for field in schema if _is_time(field.type)
    }
    for message in messages[:_SAMPLED] if times else ():
        row = cast("dict[str, object]", _value(message))
        for name in times.keys() - kinds.keys():
            if row.get(name) is not None:
                kinds[name] = times[name] if type(row[name]) is int else pa.string()
        if len(kinds) == len(times):
            break
    fields = [
        (field.name, kinds.get(field.name, pa.string()) if field.name in times else field.type) for field in schema
    ]
    return pa.schema([pa.field(name, kind) for name, kind in fields])


def _read(joined: bytes, schema: pa.Schema, is_whole: bool) -> pa.Table:
    parse = pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if is_whole else "infer")
    try:
        return pajson.read_json(io.BytesIO(joined), pajson.ReadOptions(block_size=_BLOCK_BYTES), parse)
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error) or len(joined) >= 2**31 - 1:
            raise
    return pajson.read_json(io.BytesIO(joined), pajson.ReadOptions(block_size=len(joined) + 1), parse)


def _parse_exact(messages: Sequence[bytes], columns: RowColumns) -> pa.Table:
    """Parse all messages by Python values. Raises errors of _NO_FIT."""
    rows = [row for row in map(_value, messages) if isinstance(row, dict)]
    if len(rows) != len(messages):
        raise ValueError("not an object each")
    names = list(columns.schema.names)
    if not columns.is_whole:
        names += [name for name in dict.fromkeys(name for row in rows for name in row) if name not in names]
    arrays = []
    for name in names:
        kind = type_in(columns.schema, name)
        values = [row.get(name) for row in rows]
        if kind is not None and _is_time(kind) and {type(value) for value in values} <= {int, type(None)}:
            arrays.append(pa.array(values, pa.int32() if pt.is_date32(kind) else pa.int64()).cast(kind))
            continue
        if kind is None or pt.is_nested(kind) or kind in COUNTS_TO:
            values = [_plain(value, kind) for value in values]
        array = column_of_json(name, values, kind)
        if kind is not None:
            array = _in_type(array, name, kind if columns.is_whole else _with_fields(kind, array.type))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=names)


def _in_type(array: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """The column in another type."""
    if array.type == kind:
        return array
    target = pa.schema([pa.field(name, kind)])
    return project(pa.Table.from_arrays([array], names=[name]), target).column(0).combine_chunks()


def _with_fields(kind: pa.DataType, read: pa.DataType) -> pa.DataType:
    """The table's type with the fields that only rows have, at any depth."""
    if pt.is_struct(kind) and pt.is_struct(read):
        known = [one.with_type(_with_fields(one.type, part_type(read, one.name) or one.type)) for one in kind.fields]
        return pa.struct([*known, *(one for one in read.fields if part_type(kind, one.name) is None)])
    if pt.is_list(kind) and pt.is_list(read):
        return pa.list_(kind.value_field.with_type(_with_fields(kind.value_type, read.value_type)))
    if pt.is_map(kind) and pt.is_map(read):
        return pa.map_(kind.key_field, kind.item_field.with_type(_with_fields(kind.item_type, read.item_type)))
    return kind


def _plain(value: object, kind: pa.DataType | None) -> object:
    """A value whose numbers are floats where their column has floats, or no type."""
    if isinstance(value, dict):
        if kind is not None and pt.is_map(kind):
            return {name: _plain(one, kind.item_type) for name, one in value.items()}
        return {name: _plain(one, part_type(kind, name)) for name, one in value.items()}
    if isinstance(value, list):
        item = kind.value_type if kind is not None and pt.is_list(kind) else None
        return value if kind is not None and item is None else [_plain(one, item) for one in value]
    if isinstance(value, Decimal):
        return float(value) if kind is None else value
    is_float = type(value) is int and kind in COUNTS_TO and not is_changed(value, kind)
    return float(cast("int", value)) if is_float else value


def _value(message: bytes) -> object:
    """The value of a message; numbers with a point are decimals. Raises errors of _NO_FIT."""
    try:
        return _DECODER.decode(message)
    except msgspec.MsgspecError:
        if not any(word in message for word in _NOT_NUMBERS):
            raise
        # Arrow's parser takes these words, too.
        return json.loads(message, parse_float=Decimal, parse_constant=NamedFloat)


def _is_of_json(kind: pa.DataType) -> bool:
    """True if Arrow's parser returns this type with JSON's meaning."""
    if pt.is_struct(kind):
        return all(_is_of_json(kind.field(at).type) for at in range(kind.num_fields))
    if pt.is_list(kind):
        return _is_of_json(kind.value_type)
    return kind in _PLAIN or pt.is_decimal128(kind)


def _is_time(kind: pa.DataType) -> bool:
    return pt.is_timestamp(kind) or pt.is_date32(kind)


def _as_text(kind: pa.DataType) -> pa.DataType:
    """A type of Arrow's parser, with texts instead of times that it inferred from texts."""
    if pt.is_timestamp(kind):
        return pa.string()
    if pt.is_struct(kind):
        return pa.struct(
            [pa.field(one.name, _as_text(one.type)) for one in (kind.field(at) for at in range(kind.num_fields))]
        )
    return pa.list_(_as_text(kind.value_type)) if pt.is_list(kind) else kind


def _without_untyped(table: pa.Table) -> pa.Table:
    target = typed_schema(table.schema)
    if target == table.schema:
        return table
    return project(table.select(target.names), target)


def typed_schema(schema: pa.Schema, whole: Collection[str] = ()) -> pa.Schema:
    """The columns without those, and without struct fields, that have no value: a later batch decides their types.

    `whole`: columns that stay as they are.
    """
    fields = [(field.name, field.type if field.name in whole else _typed(field.type)) for field in schema]
    return pa.schema([pa.field(name, kind) for name, kind in fields if kind is not None])


def _typed(kind: pa.DataType) -> pa.DataType | None:
    if pt.is_null(kind):
        return None
    if pt.is_struct(kind):
        parts = [(kind.field(at).name, _typed(kind.field(at).type)) for at in range(kind.num_fields)]
        typed = [pa.field(name, part) for name, part in parts if part is not None]
        return pa.struct(typed) if typed else None
    if pt.is_list(kind):
        item = _typed(kind.value_type)
        return None if item is None else pa.list_(item)
    return kind
