"""Change events of Debezium as rows: the columns of the database's table, and Hudi's columns of the event.

    {before, after, source, op, ts_ms}  →  after, of a delete before; _change_operation_type, _event_lsn, …

Values are Avro, JSON beside its schema, or plain JSON, which says no types: decimals, binaries and times without a zone
are refused there, where the table has such columns. Source: Hudi's DebeziumConstants, PostgresDebeziumSource and
MysqlDebeziumSource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.merge.combine import single_array
from pyhudi.schema.projection import project
from pyhudi.streamer.json_messages import Decoded, RowColumns, decode_json, read_in_parts, typed_columns
from pyhudi.streamer.schemas import fetched_schema
from pyhudi.streamer.sources.debezium.types import SentType, of_avro, of_connect, of_json, shaped
from pyhudi.streamer.sources.kafka.formats import AvroValues, Events, EventValues
from pyhudi.streamer.sources.source import SourceSetting

__all__ = ["MYSQL", "POSTGRES", "EventColumns", "event_values"]

_TEXT, _LONG = pa.string(), pa.int64()
_DELETE = "d"
_CHANGES = ("c", "u", "r", _DELETE)
_NO_ROW = {
    "t": "a truncate: its rows are no events. Set skipped.operations=t at the connector, and empty the table yourself",
    "m": "a message of PostgreSQL, which is no row",
}
_PLAIN_HINT = "Send Avro, or JSON with value.converter.schemas.enable=true"


@dataclass(frozen=True, slots=True)
class EventColumns:
    """What the events of a database have: Hudi's columns → the field of `source`, or of the event, and its type."""

    of_event: Mapping[str, tuple[str, pa.DataType]]
    of_source: Mapping[str, tuple[str, pa.DataType]]
    needed: tuple[str, ...]
    sequence: str | None = None

    def added_to(self, rows: pa.Table) -> pa.Table:
        """With the column that is made of others."""
        if self.sequence is None:
            return rows
        file, position = (rows.column(name) for name in self.needed)
        number = pc.replace_substring_regex(file, r"^.*\.", "")
        return rows.append_column(self.sequence, pc.binary_join_element_wise(number, position.cast(_TEXT), "."))


_OF_EVENT: Mapping[str, tuple[str, pa.DataType]] = {
    "_change_operation_type": ("op", _TEXT),
    "_upstream_event_processed_ts_ms": ("ts_ms", _LONG),
}
POSTGRES = EventColumns(
    _OF_EVENT,
    {
        "db_shard_source_partition": ("name", _TEXT),
        "db_schema_source_partition": ("schema", _TEXT),
        "_event_origin_ts_ms": ("ts_ms", _LONG),
        "_event_tx_id": ("txId", _LONG),
        "_event_lsn": ("lsn", _LONG),
        "_event_xmin": ("xmin", _LONG),
    },
    ("_event_lsn",),
)
MYSQL = EventColumns(
    _OF_EVENT,
    {
        "db_shard_source_partition": ("name", _TEXT),
        "_event_origin_ts_ms": ("ts_ms", _LONG),
        "_event_bin_file": ("file", _TEXT),
        "_event_pos": ("pos", _LONG),
        "_event_row": ("row", pa.int32()),
    },
    ("_event_bin_file", "_event_pos"),
    "_event_seq",
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """How events become rows. `held`: the table's columns."""

    database: EventColumns
    held: Mapping[str, pa.DataType]
    types_times: bool

    def of(self, events: pa.Table, sent: SentType | None) -> pa.Table:
        """The rows of events of one schema; `sent`: the type of `after`, None of plain JSON.

        Raises: SchemaMismatch for an event that is no change of a row, and for values without a type.
        """
        missing = {"op", "source"} - set(events.schema.names)
        if missing:
            raise SchemaMismatch(
                f"no change event of Debezium: {', '.join(sorted(missing))} missing. Leave transformations such as "
                "ExtractNewRecordState out at the connector"
            )
        operations = single_array(events.column("op"))
        self._check_operations(operations)
        source = events.column("source")
        columns = {name: _field(events.column(field), kind) for name, (field, kind) in self._of_event(events).items()}
        for name, (field, kind) in self.database.of_source.items():
            columns[name] = _source_field(source, field, kind)
        for name in self.database.needed:
            if columns[name].null_count:
                raise SchemaMismatch(f"the event lacks {self.database.of_source[name][0]} in its source, its order")
        for name, array in self._values(events, pc.equal(operations, _DELETE), sent).items():
            if name not in columns and name != self.database.sequence:
                columns[name] = array
            elif array.null_count < len(array):
                raise SchemaMismatch(f"the column {name!r} of the database has the name of one of Hudi's")
        return self.database.added_to(pa.table(columns))

    def _of_event(self, events: pa.Table) -> Mapping[str, tuple[str, pa.DataType]]:
        return {name: of for name, of in self.database.of_event.items() if of[0] in events.schema.names}

    def _check_operations(self, operations: pa.Array) -> None:
        known = pc.fill_null(pc.is_in(operations, pa.array(_CHANGES)), False)
        if not pc.all(known).as_py():
            first = operations.filter(pc.invert(known))[0].as_py()
            raise SchemaMismatch(f"op={first}: {_NO_ROW.get(first, 'no change of a row')}")

    def _values(self, events: pa.Table, deleted: pa.Array, sent: SentType | None) -> dict[str, pa.Array]:
        """The columns of the database's table, `before` of deletes and `after` of others."""
        sides = {name: _side(events, name) for name in ("before", "after")}
        kinds = [array.type for array in sides.values() if array is not None]
        if not kinds:
            return {}
        kind = kinds[-1] if sent is not None else _common(kinds)
        before, after = (
            pa.nulls(len(deleted), kind) if array is None else _in_type(array, kind) for array in sides.values()
        )
        rows = cast("pa.StructArray", pc.if_else(deleted, before, after))
        columns: dict[str, pa.Array] = {}
        for field, array in zip(kind.fields, rows.flatten(), strict=True):
            held = self.held.get(field.name)
            if sent is None:
                columns[field.name] = _plain(array, field.name, held)
                continue
            of_field = sent.part(field.name)
            assert of_field is not None, field.name
            columns[field.name] = shaped(array, of_field, held, types_times=self.types_times)
        return columns


def event_values(database: EventColumns, setting: SourceSetting) -> EventValues:
    """The format of a pipeline's values. Raises ConfigError."""
    return (
        _JsonEvents(database, setting) if setting.settings.options.debezium.is_json else _AvroEvents(database, setting)
    )


class _AvroEvents(AvroValues):
    """Avro."""

    fields = ("before", "after", "source", "op", "ts_ms")

    def __init__(self, database: EventColumns, setting: SourceSetting) -> None:
        super().__init__(setting)
        self._database = database
        self._types_times = setting.settings.options.debezium.types_times

    def rows_of(self, decoded: pa.Table, schema: str, columns: RowColumns) -> pa.Table:
        """The rows of change events."""
        rows = _Rows(self._database, _held(columns, self._database), self._types_times)
        return rows.of(decoded, _type_of_row(of_avro(checked_schema(schema).record)))


class _Message(msgspec.Struct):
    schema: msgspec.Raw = msgspec.Raw(b"")
    payload: msgspec.Raw = msgspec.Raw(b"")


class _JsonEvents:
    """JSON, beside its schema or plain. A registry's schema says the types of plain JSON."""

    def __init__(self, database: EventColumns, setting: SourceSetting) -> None:
        self._database = database
        self._types_times = setting.settings.options.debezium.types_times
        url = setting.settings.options.schemas.registry_url
        self._registered = None if url is None else of_avro(checked_schema(fetched_schema(url)).record)
        self._sent: dict[bytes, SentType] = {}

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """The rows of all schemas, with the columns of all."""
        refused: dict[int, str] = {}
        rows = _Rows(self._database, _held(columns, self._database), self._types_times)
        tables: list[pa.Table] = []
        order: list[int] = []
        for schema, numbers in self._by_schema(events, refused).items():
            sent = self._sent_type(schema)
            row = None if sent is None else _type_of_row(sent)
            asked = RowColumns(_envelope(row, self._database, rows.held), is_whole=row is not None)
            decoded = decode_json([numbers[number] for number in numbers], asked)
            there = list(numbers)
            refused |= {there[at]: reason for at, reason in decoded.refused}
            there = there if decoded.numbers is None else [there[at] for at in decoded.numbers]
            parts, kept = read_in_parts(
                lambda at, decoded=decoded, row=row: rows.of(  # type: ignore[misc]
                    _from_json(decoded.rows.slice(at[0], len(at)), row), row
                ),
                len(there),
                refused,
                there,
            )
            tables += parts
            order += kept
        if not tables:
            return Decoded(columns.schema.empty_table(), [], sorted(refused.items()))
        joined = typed_columns(tables)
        kept = sorted(order)
        if order != kept:
            joined = joined.take(pa.array(np.argsort(np.array(order), kind="stable")))
        return Decoded(joined, None if len(kept) == len(events.values) else kept, sorted(refused.items()))

    def _by_schema(self, events: Events, refused: dict[int, str]) -> dict[bytes, dict[int, bytes]]:
        """Schema → the numbers of its events → their payloads; plain JSON is under an empty schema."""
        groups: dict[bytes, dict[int, bytes]] = {}
        decoder = msgspec.json.Decoder(_Message)
        for number, value in enumerate(events.values):
            try:
                message = decoder.decode(value)
            except (msgspec.MsgspecError, RecursionError, ValueError) as error:
                refused[number] = f"no JSON of an event: {error}"
                continue
            schema, payload = bytes(message.schema), bytes(message.payload)
            is_plain = not schema or not payload or schema == b"null"
            groups.setdefault(b"" if is_plain else schema, {})[number] = payload if payload else value
        return groups

    def _sent_type(self, schema: bytes) -> SentType | None:
        if not schema:
            return self._registered
        if schema not in self._sent:
            self._sent[schema] = of_connect(msgspec.json.decode(schema, type=dict))
        return self._sent[schema]


def _type_of_row(event: SentType) -> SentType:
    """The type of `after` in that of an event."""
    row = event.part("after")
    if row is None or row.kind != "struct" or event.part("op") is None:
        raise SchemaMismatch("no change event of Debezium: the schema lacks after, or op")
    return row


def _envelope(row: SentType | None, database: EventColumns, held: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of an event in JSON."""
    source = pa.struct([pa.field(name, kind) for name, kind in database.of_source.values()])
    fields = [(name, kind) for name, kind in database.of_event.values()]
    if row is not None:
        sides = row.in_json
    else:
        numbers = [(name, kind) for name, kind in held.items() if pt.is_primitive(kind) and not pt.is_temporal(kind)]
        sides = pa.struct([pa.field(name, kind) for name, kind in numbers if not pt.is_decimal(kind)])
    return pa.schema([("before", sides), ("after", sides), ("source", source), *fields])


def _from_json(events: pa.Table, row: SentType | None) -> pa.Table:
    """Values as Avro would have them."""
    for name in ("before", "after") if row is not None else ():
        assert row is not None
        at = events.schema.get_field_index(name)
        events = events.set_column(at, name, of_json(single_array(events.column(name)), row))
    return events


def _plain(array: pa.Array, name: str, held: pa.DataType | None) -> pa.Array:
    """A value of plain JSON. Raises SchemaMismatch for one whose meaning it does not say."""
    if pt.is_list(array.type):
        return shaped(array, SentType("array"), held, types_times=False)
    if held is None or array.null_count == len(array):
        return array
    if pt.is_decimal(held) or pt.is_binary(held):
        raise SchemaMismatch(f"{name}: plain JSON does not say how it writes decimals and binaries. {_PLAIN_HINT}")
    if pt.is_timestamp(held) and pt.is_integer(array.type):
        raise SchemaMismatch(f"{name}: plain JSON does not say the unit of a time. {_PLAIN_HINT}")
    if pt.is_date32(held) and pt.is_integer(array.type):
        return array.cast(pa.int32()).cast(held)
    return array.cast(held) if pt.is_timestamp(held) or pt.is_date32(held) else array


def _held(columns: RowColumns, database: EventColumns) -> Mapping[str, pa.DataType]:
    """The types of the table's columns that are the database's."""
    ours = {*database.of_event, *database.of_source, database.sequence}
    return {
        field.name: field.type
        for field in columns.schema
        if field.name not in ours and not field.name.startswith("_hoodie_")
    }


def _side(events: pa.Table, name: str) -> pa.StructArray | None:
    if name not in events.schema.names or not pt.is_struct(events.schema.field(name).type):
        return None
    return cast("pa.StructArray", single_array(events.column(name)))


def _common(kinds: Sequence[pa.StructType]) -> pa.StructType:
    """A struct with the fields of all."""
    schemas = [pa.schema(kind.fields) for kind in kinds]
    return pa.struct(list(pa.unify_schemas(schemas, promote_options="permissive")))


def _in_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    named = pa.table({"row": array})
    return single_array(project(named, pa.schema([pa.field("row", kind)])).column(0))


def _field(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return single_array(column).cast(kind)


def _source_field(source: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.Array:
    """A field of `source`; null where the events have none."""
    if not pt.is_struct(source.type) or source.type.get_field_index(name) < 0:
        return pa.nulls(len(source), kind)
    return pc.struct_field(single_array(source), name).cast(kind)
