"""Values that PostgreSQL did not send: a change that leaves a long value as it was has UNAVAILABLE in its place.

    filled_by_batch    from an earlier event of the batch: of the row, or of the row whose key became this one
    filled_by_table    from the stored row, where merging would not fill it

Merging fills from the stored row of the same key alone, before version 9 not among log files, and never within a batch.
So a key that changed takes its values from the row of the old key, which is read. The events have it in a header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.merge.rules import FILL_UNAVAILABLE, merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.merging import PAYLOAD_CLASS
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table import HudiTable

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["UNAVAILABLE", "filled_by_batch", "filled_by_table"]

UNAVAILABLE = "__debezium_unavailable_value"
_STORED_KEY = "_event_stored_key"  # a column between source and write: JSON of the key of the row that has the values
_NOWHERE = "{}"
_OLD_KEY = "__debezium.oldkey"
_DELETE, _UPDATE = "d", "u"
_SOURCE, _PAYLOAD = "PostgresDebeziumSource", "PostgresDebeziumAvroPayload"
_KEYS_A_READ = 20_000


def filled_by_batch(rows: pa.Table, messages: Sequence[Message]) -> pa.Table:
    """The rows of these messages with values of earlier events, by the order of the database."""
    lacking = _lacking(rows)
    if not lacking:
        return rows
    operations: list[Any] = rows.column("_change_operation_type").to_pylist()
    lsns, transactions = rows.column("_event_lsn").to_pylist(), rows.column("_event_tx_id").to_pylist()
    changes = list(zip(lsns, transactions, strict=True))
    keys = [message.key() for message in messages]
    lacks = np.any(list(lacking.values()), axis=0) & (np.array(operations) != _DELETE)
    takes = {name: np.arange(len(rows)) for name in lacking}
    stored: dict[int, str | None] = {}  # row → where its values are: "" in its own stored row
    newest: dict[Any, int | None] = {}  # key → its row in the batch so far; None: deleted
    ended: dict[Any, int | None] = {}  # change → the row that it deleted
    for row in _in_order(operations, changes, keys, lacks):
        key, change = keys[row], changes[row]
        if operations[row] == _DELETE:
            ended[change] = newest.get(key)
            newest[key] = None
            continue
        if lacks[row]:
            updates = operations[row] == _UPDATE
            before = newest.get(key) if updates else ended.get(change)
            if before is not None:
                place = stored.get(before)
            else:
                place = "" if updates and key not in newest else None
            # Without its delete in the batch, nobody knows which row the old key has by now.
            if not updates and change in ended and (before is None or place == ""):
                place = _old_key(messages[row])
            stored[row] = place
            for name, mask in lacking.items():
                if mask[row] and before is not None:
                    takes[name][row] = takes[name][before]
        newest[key] = row
    for name, taken in takes.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), rows.column(name).take(pa.array(taken)))
    left = np.any([*_lacking(rows).values(), np.zeros(len(rows), np.bool_)], axis=0)
    places = [None if not left[row] or stored[row] == "" else stored[row] or _NOWHERE for row in range(len(rows))]
    if not any(places):
        return rows
    return rows.append_column(_STORED_KEY, pa.array(places, pa.string()))


def filled_by_table(
    rows: pa.Table, meta: MetaClient | None, settings: PipelineSettings
) -> tuple[pa.Table, Sequence[str]]:
    """The rows with values of stored ones, and what has to be said. A value that is nowhere stays UNAVAILABLE."""
    if not settings.options.source.endswith(_SOURCE):
        return rows, ()
    places = None
    if _STORED_KEY in rows.schema.names:
        places = rows.column(_STORED_KEY).to_pylist()
        rows = rows.drop_columns([_STORED_KEY])
    lacking = _lacking(rows)
    if not lacking:
        return rows, ()
    lacks = np.any(list(lacking.values()), axis=0)
    merged = np.array([place is None for place in places]) if places is not None else np.ones(len(rows), np.bool_)
    if meta is not None:
        if not _merging_fills(meta, settings):
            merged[:] = False
        rows = _looked_up(rows, np.flatnonzero(lacks & ~merged), places, list(lacking), meta, settings)
        lacking = _lacking(rows)
    else:
        merged[:] = False
    left = int(np.any([*lacking.values(), np.zeros(len(rows), np.bool_)], axis=0)[~merged].sum())
    if not left:
        return rows, ()
    said = f"{left:,} rows have values that PostgreSQL did not send and the table lacks; they hold {UNAVAILABLE}"
    return rows, (said,)


def _lacking(rows: pa.Table) -> dict[str, npt.NDArray[np.bool_]]:
    """The columns with UNAVAILABLE, and where it is."""
    lacking = {}
    for field in rows.schema:
        if pt.is_string(field.type) or pt.is_binary(field.type):
            marker = pa.scalar(UNAVAILABLE).cast(field.type)
            mask = pc.fill_null(pc.equal(rows.column(field.name), marker), False).to_numpy()
            if mask.any():
                lacking[field.name] = mask
    return lacking


def _in_order(
    operations: Sequence[Any], changes: Sequence[Any], keys: Sequence[Any], lacks: npt.NDArray[np.bool_]
) -> list[int]:
    """The rows of the keys that lack values, and of the keys that became them, in the order of the database."""
    at = np.flatnonzero(lacks).tolist()
    wanted = {keys[row] for row in at}
    became = {changes[row] for row in at if operations[row] != _UPDATE}
    if became:
        ends = (row for row, one in enumerate(operations) if one == _DELETE)
        wanted |= {keys[row] for row in ends if changes[row] in became}
    rows = [row for row, key in enumerate(keys) if key in wanted]
    return sorted(rows, key=lambda row: (changes[row][0], operations[row] != _DELETE))


def _old_key(message: Message) -> str | None:
    """The key that the row had before, as JSON."""
    headers: Any = message.headers() or ()
    text = next((value for name, value in headers if name == _OLD_KEY), None)
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else None


def _merging_fills(meta: MetaClient, settings: PipelineSettings) -> bool:
    """Does the write, or the read, fill such values from the stored row of the key?"""
    if not meta.config.format.merges_by_stored_mode:
        return not meta.config.is_merge_on_read and settings.write.get(PAYLOAD_CLASS, "").endswith(_PAYLOAD)
    return merge_rules(meta.config).partial_update_mode == FILL_UNAVAILABLE


def _looked_up(
    rows: pa.Table,
    at: npt.NDArray[np.int64],
    places: Sequence[str | None] | None,
    names: Sequence[str],
    meta: MetaClient,
    settings: PipelineSettings,
) -> pa.Table:
    """The rows, some of them with values of stored rows."""
    schema, keys = meta.table_schema(), list(meta.config.record_key_fields)
    names = [name for name in names if name in schema.names and name not in keys]
    if not len(at) or not names or not keys or any(name not in rows.schema.names for name in keys):
        return rows
    kinds = [schema.field(name).type for name in keys]
    own = [rows.column(name).take(pa.array(at)).cast(kind) for name, kind in zip(keys, kinds, strict=True)]
    wanted = pa.table(own, names=keys)
    elsewhere = [(number, places[row]) for number, row in enumerate(at) if places and places[row] is not None]
    if elsewhere:
        wanted = _with_other_keys(wanted, dict(elsewhere))
    table = HudiTable.open(settings.target, storage_options=settings.store)
    first = wanted.column(keys[0]).unique().drop_null()
    parts = [
        table.scan([*keys, *names], where=pc.field(keys[0]).isin(first.slice(start, _KEYS_A_READ))).to_arrow()
        for start in range(0, len(first), _KEYS_A_READ)
    ]
    if not parts:
        return rows
    stored = pa.concat_tables(parts)
    found = pc.index_in(_key_texts(wanted, keys), _key_texts(stored, keys))
    positions = np.full(len(rows), -1)
    positions[at] = pc.fill_null(found, -1).to_numpy()
    source = pa.array(positions, mask=positions < 0)
    for name in names:
        index, column = rows.schema.get_field_index(name), rows.column(name)
        marker = pa.scalar(UNAVAILABLE).cast(column.type)
        replaced = pc.and_(pc.fill_null(pc.equal(column, marker), False), source.is_valid())
        values = stored.column(name).cast(column.type).take(source)
        rows = rows.set_column(index, rows.schema.field(index), pc.if_else(replaced, values, column))
    return rows


def _with_other_keys(wanted: pa.Table, places: Mapping[int, str | None]) -> pa.Table:
    """With the keys that are given as JSON; null where they are none of the table's."""
    columns = []
    for name, column in zip(wanted.schema.names, wanted.columns, strict=True):
        values = column.to_pylist()
        for number, text in places.items():
            values[number] = _value(text, name, column.type)
        columns.append(pa.array(values, column.type))
    return pa.table(columns, names=wanted.schema.names)


def _value(text: str | None, name: str, kind: pa.DataType) -> object:
    try:
        key = msgspec.json.decode(text or _NOWHERE)
        return pa.scalar(key[name], kind).as_py() if isinstance(key, dict) and name in key else None
    except (msgspec.MsgspecError, pa.ArrowException, ValueError, TypeError):
        return None


def _key_texts(rows: pa.Table, keys: Sequence[str]) -> pa.ChunkedArray:
    """A text of each key; null where a part is."""
    texts = [rows.column(name).cast(pa.string()) for name in keys]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\0")
