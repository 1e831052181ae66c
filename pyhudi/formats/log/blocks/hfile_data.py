"""Log block HFILE_DATA: a whole HFile in memory, without prefix: record key → row as Avro binary, sorted by key.

As in Hudi, a column `key` (the metadata table has one) is stored as empty text and restored from the HFile's key.
Source: docs/formats/log.md, "HFile data block"; docs/formats/hfile.md, "Two writers", "Entries".
"""

from __future__ import annotations

import io
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.formats.damage import check_inflated, located
from pyhudi.formats.hfile import Entries, HFileReader, HFileWriter
from pyhudi.model.keys import META_COLUMNS

__all__ = ["decode", "encode"]

_RECORD_KEY = META_COLUMNS[2]
_KEY_COLUMN = "key"


def decode(content: bytes, schema: str, columns: Collection[str] | None = None, where: str = "log block") -> pa.Table:
    """Decode the block's rows in the order of their keys, meta columns included.

    Args:    schema: Avro JSON from the block's header; columns: the columns to decode, None for all.
    Raises:  CorruptFile, UnsupportedTable.
    """
    reader = HFileReader(pa.BufferReader(content), where)
    with located(where):
        decoder = AvroDecoder(schema, columns)
    tables: list[pa.Table] = []
    inflated = 0
    for entries in reader.scan():
        inflated += len(entries.content)
        check_inflated(inflated, len(content), where)
        tables.append(_rows(entries, decoder, where))
    if not tables:
        empty = arrow_from_avro(schema).empty_table()
        return empty if columns is None else empty.select([name for name in empty.column_names if name in columns])
    return pa.concat_tables(tables)


def encode(batch: pa.RecordBatch, schema: str) -> bytes:
    """Encode an HFile with these rows. Raises SchemaMismatch for rows without record keys, and for two with one key."""
    keys = batch.column(_RECORD_KEY)
    if keys.null_count:
        raise SchemaMismatch(
            f"{keys.null_count} rows have no record key, as in tables with hoodie.populate.meta.fields=false; log "
            f"blocks of the format hfile need it. Write with hoodie.logfile.data.block.format=parquet or avro."
        )
    order = pc.sort_indices(keys.cast(pa.binary()))
    batch = batch.take(order)
    keys = batch.column(_RECORD_KEY)
    sink = io.BytesIO()
    writer = HFileWriter(sink, info={"schema": schema.encode()})
    values = AvroEncoder(schema).encode(_without_key_column(batch, keys))
    writer.append_columns(keys, values)
    writer.close()
    return sink.getvalue()


def _rows(entries: Entries, decoder: AvroDecoder, where: str) -> pa.Table:
    rows = decoder.decode(entries.content, entries.value_starts, entries.value_ends, where)
    at = rows.schema.get_field_index(_KEY_COLUMN)
    if at < 0 or rows.schema.field(at).type != pa.string():
        return rows
    key_column = rows.column(at)
    empty = pc.equal(key_column, "")
    if not pc.any(empty).as_py():
        return rows
    keys = _texts(entries)
    return rows.set_column(at, rows.schema.field(at), pc.if_else(empty, keys, key_column))


def _texts(entries: Entries) -> pa.Array:
    keys = entries.key_array()
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:  # invalid text is shown as well as possible
        return pa.array([key.decode("utf-8", "replace") for key in entries.keys], pa.string())


def _without_key_column(batch: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
    """Return the batch with an empty column `key`, if that equals the record key."""
    at = batch.schema.get_field_index(_KEY_COLUMN)
    if at < 0 or batch.column(at).type != pa.string() or not batch.column(at).equals(keys):
        return batch
    return batch.set_column(at, batch.schema.field(at), pa.array([""] * len(batch), pa.string()))
