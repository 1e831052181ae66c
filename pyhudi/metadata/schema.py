"""Kinds of partitions of the metadata table, names of their file groups, and Avro schemas of their records.

`MetadataKind` says what each kind of partition holds. `record_schema` gives the Avro schema of a table version.

Source: docs/formats/metadata-table.md, "Records", "Bounds", "Partitions".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import cast

import pyarrow as pa

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.formats.timeline.bodies import AvroObject, AvroType
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.model.table_format import TableFormat

__all__ = [
    "MetadataKind",
    "RecordType",
    "file_group_id",
    "keeps_record_index",
    "kind_of",
    "numbered_file_id",
    "of_schema",
    "one_field_schema",
    "partitioned_file_group_id",
    "partitioned_prefix",
    "record_fields",
    "record_schema",
    "stored_fields",
    "stored_record_schema",
]


class RecordType(int, Enum):
    """`type` of a metadata record."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class _Kind:
    prefix: str  # of the partition's name; the whole name where the kind has only one partition
    file_ids: str  # prefix of file ids; "" where it is the partition's name
    payloads: tuple[str, ...]  # fields of the record; one of them holds this kind's data
    has_many: bool = False


class MetadataKind(Enum):
    """Kinds of partitions."""

    FILES = _Kind("files", "files-", ("filesystemMetadata",))
    COLUMN_STATS = _Kind("column_stats", "col-stats-", ("ColumnStatsMetadata",))
    BLOOM_FILTERS = _Kind("bloom_filters", "bloom-filters-", ("BloomFilterMetadata",))
    RECORD_INDEX = _Kind("record_index", "record-index-", ("recordIndexMetadata",))
    PARTITION_STATS = _Kind("partition_stats", "partition-stats-", ("ColumnStatsMetadata",))
    SECONDARY_INDEX = _Kind("secondary_index_", "", ("SecondaryIndexMetadata",), has_many=True)
    EXPRESSION_INDEX = _Kind("expr_index_", "", ("ColumnStatsMetadata", "BloomFilterMetadata"), has_many=True)

    @property
    def payloads(self) -> tuple[str, ...]:
        """Fields of a metadata record; one of them holds the kind's data."""
        return self.value.payloads

    def file_id_prefix(self, partition: str) -> str:
        """The prefix of the file ids in a partition of this kind."""
        return self.value.file_ids or partition.replace("_", "-") + "-"


def kind_of(partition: str) -> MetadataKind:
    """The kind of a partition, by its name. Raises UnsupportedTable for an unknown kind."""
    for kind in MetadataKind:
        if partition == kind.value.prefix or (kind.value.has_many and partition.startswith(kind.value.prefix)):
            return kind
    raise UnsupportedTable(
        f"The metadata table's partition {partition!r} is of no kind that this release of PyHudi knows "
        f"({', '.join(kind.value.prefix for kind in MetadataKind)})."
    )


def keeps_record_index(config: TableConfig) -> bool:
    """True if the table has a record index that every write updates."""
    name = MetadataKind.RECORD_INDEX.value.prefix
    return name in config.metadata_partitions or name in config.metadata_partitions_inflight


def numbered_file_id(prefix: str, number: int) -> str:
    """File id of the n-th file group with this prefix, from 0 on."""
    return f"{prefix}{number:04d}-0"


def file_group_id(partition: str, number: int) -> str:
    """File id of the n-th file group of a partition, from 0 on: `col-stats-0001-0`."""
    return numbered_file_id(kind_of(partition).file_id_prefix(partition), number)


_ESCAPED = re.compile(r'[\x00-\x1f\x7f"#%\'*/:=?\\{\[\]^_-]')


def partitioned_prefix(data_partition: str) -> str:
    """The prefix of a partitioned record index's file ids for a partition of the table."""
    escaped = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", data_partition)
    return f"{MetadataKind.RECORD_INDEX.value.file_ids}{escaped}-"


def partitioned_file_group_id(data_partition: str, number: int) -> str:
    """File id of a partitioned record index's n-th file group for a partition of the table."""
    return numbered_file_id(partitioned_prefix(data_partition), number)


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
    """Avro JSON of a metadata record without meta columns, as in commits of the metadata table."""
    return _text(_fields(table_version))


@cache
def stored_record_schema(table_version: int) -> str:
    """`record_schema` with the five meta columns, which come first in files."""
    return _text([*(_optional(name, "string") for name in META_COLUMNS), *_fields(table_version)])


@cache
def stored_fields(table_version: int) -> tuple[str, ...]:
    """Names of the fields of a record in a file, meta columns first."""
    return (*META_COLUMNS, *(str(field["name"]) for field in _fields(table_version)))


@cache
def one_field_schema(table_version: int, name: str) -> str:
    """Avro JSON of a record with only this field, which is encoded as in a whole record."""
    return _text([field for field in _fields(table_version) if field["name"] == name])


@cache
def record_fields(table_version: int, kind: MetadataKind) -> pa.Schema:
    """Arrow columns of the records of one kind: `key`, `type` and the kind's payloads, unions as structs."""
    schema = without_meta(arrow_from_avro(stored_record_schema(table_version), unions=True))
    return pa.schema([schema.field(name) for name in ("key", "type", *kind.payloads)])


def of_schema(records: pa.Table, schema: pa.Schema) -> pa.Table:
    """The records in these columns, whose form in files of other releases may differ."""
    return pa.Table.from_arrays([_as(records.column(field.name), field.type) for field in schema], schema=schema)


def _as(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """The column as the target type: Arrow refuses some casts that change nothing."""
    return column if column.type == target else column.cast(target)


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
    if TableFormat(table_version).has_secondary_indexes:
        is_deleted = _record("HoodieSecondaryIndexInfo", [_field("isDeleted", "boolean")])
        fields.append(_optional("SecondaryIndexMetadata", is_deleted))
    return fields


def _bloom_filter() -> AvroObject:
    fields = [_field("type", _STRING), _field("timestamp", _STRING)]
    fields += [_field("bloomFilter", "bytes"), _field("isDeleted", "boolean")]
    return _record("HoodieMetadataBloomFilter", fields)


def _column_stats(table_version: int) -> AvroObject:
    wrappers = _WRAPPERS if TableFormat(table_version).has_tight_bounds else _WRAPPERS[:-1]
    names: list[AvroType] = [name for name, _ in wrappers]
    defined: list[AvroType] = [_record(name, [_field("value", avro)]) for name, avro in wrappers]
    if TableFormat(table_version).has_value_types:
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
    if TableFormat(table_version).has_tight_bounds:
        fields.append({**_field("isTightBound", "boolean"), "default": False})
    if TableFormat(table_version).has_value_types:
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
    position = [_optional("position", "long")] if TableFormat(table_version).has_index_positions else []
    return _record("HoodieRecordIndexInfo", [*fields, *position])


def _record(name: str, fields: list[AvroObject]) -> AvroObject:
    return cast("AvroObject", {"type": "record", "name": name, "fields": fields})


def _field(name: str, avro: AvroType) -> AvroObject:
    return cast("AvroObject", {"name": name, "type": avro})


def _optional(name: str, *avro: AvroType) -> AvroObject:
    return cast("AvroObject", {"name": name, "type": ["null", *avro], "default": None})
