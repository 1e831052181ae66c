"""Log block CDC_DATA: changes of rows, laid out as an Avro data block under one of three schemas.

    OP_KEY_ONLY         Record (op, record_key)
    DATA_BEFORE         CDC    (op, record_key, before)
    DATA_BEFORE_AFTER   CDC    (op, ts_ms, before, after)

Source: docs/formats/incremental.md, "Change logs"; docs/formats/log.md, "Block types".
"""

from __future__ import annotations

import json

import pyarrow as pa

from pyhudi.formats.log.blocks import avro_data
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.timeline.bodies import AvroObject
from pyhudi.model.change_logs import AFTER, BEFORE, DATA_BEFORE, LOGGED_KEY, OP, OP_KEY_ONLY, TIME
from pyhudi.model.table_format import TableFormat

__all__ = ["change_block", "change_schema"]


def change_schema(mode: str, table_schema: str, table_version: int) -> str:
    """Return the Avro JSON of a change log's records, byte for byte as Hudi writes it.

    Args:    mode: of LOGGING_MODES; table_schema: Avro JSON of the table without meta columns.
    """
    if mode == OP_KEY_ONLY:
        fields: list[AvroObject] = [{"name": name, "type": ["string", "null"]} for name in (OP, LOGGED_KEY)]
        return _print_schema({"type": "record", "name": "Record", "fields": fields})
    row = json.loads(table_schema)
    namespace = row.pop("namespace")  # the outer record's
    fields = [_field(OP, "string"), _field(LOGGED_KEY if mode == DATA_BEFORE else TIME, "string"), _field(BEFORE, row)]
    if mode != DATA_BEFORE:
        fields.append(_field(AFTER, row["name"]))
    doc = {"doc": ""} if TableFormat(table_version).documents_change_logs else {}
    return _print_schema({"type": "record", "name": "CDC", "namespace": namespace, **doc, "fields": fields})


def change_block(changes: pa.RecordBatch, schema: str, instant_time: str) -> bytes:
    """Return a whole block. Args: changes: the columns of `schema`."""
    header = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: schema}
    return encode_block(BlockType.CDC_DATA, header, avro_data.encode(changes, schema))


def _field(name: str, avro_type: object) -> AvroObject:
    return {"name": name, "type": ["null", avro_type], "doc": "", "default": None}


def _print_schema(schema: AvroObject) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
