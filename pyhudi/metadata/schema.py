"""Avro schemas of the metadata table's records, one per table version that has one.

Source: docs/formats/metadata-table.md, "Records", "Bounds".
"""

from __future__ import annotations

import json
from functools import cache
from typing import cast

import pyarrow as pa

from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.formats.timeline.bodies import AvroObject, AvroType
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.model.keys import META_COLUMNS

__all__ = [
    "of_schema",
    "one_field_schema",
    "record_fields",
    "record_schema",
    "stored_fields",
    "stored_record_schema",
]

_MODEL = "org.apache.hudi.avro.model"
_STRING: AvroObject = {"type": "string", "avro.java.string": "String"}
_DECIMAL: AvroObject = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_TIME: AvroObject = {"type": "long", "logicalType": "time-micros"}
# The union of bounds, in its order; LocalDate came with version 8, an array with 9.
_WRAPPERS: tuple[tuple[str, AvroType], ...] = (
    ("BooleanWrapper", "boolean"),
    ("IntWrapper", "int"),
    ("LongWrapper", "long"),
    ("FloatWrapper", "float"),
    ("DoubleWrapper", "double"),
    ("BytesWrapper", "bytes"),
    ("StringWrapper", _STRING),
    ("DateWrapper", "int"),
    ("DecimalWrapper", _DECIMAL),
    ("TimeMicrosWrapper", _TIME),
    ("TimestampMicrosWrapper", "long"),
    ("LocalDateWrapper", "int"),
)


@cache
def record_schema(table_version: int) -> str:
    """Avro JSON of a metadata record without meta columns, as commits of the metadata table carry it."""
    return _text(_fields(table_version))


@cache
def stored_record_schema(table_version: int) -> str:
    """The same with the five meta columns, which come first in files."""
    return _text([*(_optional(name, "string") for name in META_COLUMNS), *_fields(table_version)])


@cache
def stored_fields(table_version: int) -> tuple[str, ...]:
    """Names of the fields of a record in a file, meta columns first."""
    return (*META_COLUMNS, *(str(field["name"]) for field in _fields(table_version)))


@cache
def one_field_schema(table_version: int, name: str) -> str:
    """Avro JSON of a record of one of the fields alone: it is encoded as within a whole record."""
    return _text([field for field in _fields(table_version) if field["name"] == name])


@cache
def record_fields(table_version: int, kind: MetadataKind) -> pa.Schema:
    """Arrow columns of the records of one kind: `key`, `type` and the kind's payloads, unions as structs."""
    schema = without_meta(arrow_from_avro(stored_record_schema(table_version), unions=True))
    return pa.schema([schema.field(name) for name in ("key", "type", *kind.payloads)])


def of_schema(records: pa.Table, schema: pa.Schema) -> pa.Table:
    """The records with these columns; files of other releases may have another form of the same."""
    return pa.Table.from_arrays([_as(records.column(field.name), field.type) for field in schema], schema=schema)


def _as(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Arrow refuses some casts that change nothing."""
    return column if column.type == wanted else column.cast(wanted)


def _text(fields: list[AvroObject]) -> str:
    record = {"type": "record", "name": "HoodieMetadataRecord", "namespace": _MODEL, "fields": fields}
    return json.dumps(record, separators=(",", ":"))


def _fields(table_version: int) -> list[AvroObject]:
    file_info = _record("HoodieMetadataFileInfo", [_field("size", "long"), _field("isDeleted", "boolean")])
    files: AvroObject = {"type": "map", "values": file_info, "avro.java.string": "String"}
    fields = [
        _field("key", _STRING),
        _field("type", "int"),
        _field("filesystemMetadata", ["null", files]),
        _optional("BloomFilterMetadata", _bloom_filter()),
        _optional("ColumnStatsMetadata", _column_stats(table_version)),
        _optional("recordIndexMetadata", _record_index(table_version)),
    ]
    if table_version >= 8:
        is_deleted = _record("HoodieSecondaryIndexInfo", [_field("isDeleted", "boolean")])
        fields.append(_optional("SecondaryIndexMetadata", is_deleted))
    return fields


def _bloom_filter() -> AvroObject:
    fields = [_field("type", _STRING), _field("timestamp", _STRING)]
    fields += [_field("bloomFilter", "bytes"), _field("isDeleted", "boolean")]
    return _record("HoodieMetadataBloomFilter", fields)


def _column_stats(table_version: int) -> AvroObject:
    wrappers = _WRAPPERS if table_version >= 8 else _WRAPPERS[:-1]
    names: list[AvroType] = [name for name, _ in wrappers]
    defined: list[AvroType] = [_record(name, [_field("value", avro)]) for name, avro in wrappers]
    if table_version >= 9:
        items: AvroObject = {"type": "array", "items": ["null", *names]}
        defined.append(_record("ArrayWrapper", [_optional("wrappedValues", items)]))
        names = [*names, "ArrayWrapper"]
    fields = [
        _optional("fileName", _STRING),
        _optional("columnName", _STRING),
        _optional("minValue", *defined),
        _optional("maxValue", *names),
        *(_optional(name, "long") for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        _field("isDeleted", "boolean"),
    ]
    if table_version >= 8:
        fields.append({**_field("isTightBound", "boolean"), "default": False})
    if table_version >= 9:
        value_type = [_field("typeOrdinal", "int"), _optional("additionalInfo", _STRING)]
        fields.append(_optional("valueType", _record("HoodieValueTypeInfo", value_type)))
    return _record("HoodieMetadataColumnStats", fields)


def _record_index(table_version: int) -> AvroObject:
    fields = [
        _optional("partitionName", _STRING),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _STRING),
        _optional("instantTime", "long"),
        {**_field("fileIdEncoding", "int"), "default": 0},
    ]
    return _record("HoodieRecordIndexInfo", [*fields, _optional("position", "long")] if table_version >= 8 else fields)


def _record(name: str, fields: list[AvroObject]) -> AvroObject:
    return cast("AvroObject", {"type": "record", "name": name, "fields": fields})


def _field(name: str, avro: AvroType) -> AvroObject:
    return cast("AvroObject", {"name": name, "type": avro})


def _optional(name: str, *avro: AvroType) -> AvroObject:
    return cast("AvroObject", {"name": name, "type": ["null", *avro], "default": None})
