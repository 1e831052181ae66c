"""The properties of a new table, with their checksum.

`new_table_properties` gives the keys that Hudi's DataFrame writer stores, version by version. The checksum in
`hoodie.properties` hashes the table's name only (`table_checksum`).

Source: docs/formats/table-config.md, "New tables", "Checksum"; docs/formats/merging.md, "What properties say",
"Mode of a table", "Payload classes".
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import ConfigError
from pyhudi.model.buckets import TableBuckets
from pyhudi.model.change_logs import CDC_ENABLED, DATA_BEFORE_AFTER, LOGGING_MODE
from pyhudi.model.keys import KEY_GENERATOR_CLASSES, USER_PROVIDED, key_generator_type
from pyhudi.model.merge_mode import (
    BUILT_IN_STRATEGY_IDS,
    CUSTOM,
    DEFAULT_PAYLOAD,
    DEPRECATED_PAYLOADS,
    EVENT_TIME_ORDERING,
    EVENT_TIME_STRATEGY_ID,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY_ID,
    PAYLOADS,
    STRATEGY_IDS,
    infer_merge_mode,
    mode_of_payload,
    payload_class_name,
)
from pyhudi.model.table_format import TableFormat

__all__ = [
    "CHECKSUM_KEY",
    "CREATE_SCHEMA",
    "WRITABLE_VERSIONS",
    "NewTable",
    "has_valid_checksum",
    "new_table_properties",
    "table_checksum",
]


CREATE_SCHEMA = "hoodie.table.create.schema"


CHECKSUM_KEY = "hoodie.table.checksum"


def table_checksum(properties: Mapping[str, str]) -> str:
    """The correct checksum: CRC-32 of `<database>.<table>` in decimal, or of `.<table>` without a database."""
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return str(zlib.crc32(name.encode("utf-8", "replace")))  # half a surrogate pair is "?", as in Java


def has_valid_checksum(properties: Mapping[str, str]) -> bool:
    """True if the checksum exists and is correct."""
    return properties.get(CHECKSUM_KEY) == table_checksum(properties)


WRITABLE_VERSIONS = (6, 8, 9)

_EXTRACTORS = "org.apache.hudi.hive."
_SLASH_DATES_KEY = "hoodie.datasource.write.slash.separated.date.partitioning"
_CONSISTENT_TIMESTAMPS_KEY = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


@dataclass(frozen=True, slots=True)
class NewTable:
    """The settings of a new table.

    `record_key_fields`: () for keys that Hudi generates. `partition_fields`: with their types for CUSTOM
    ("region:SIMPLE"). `key_generator`: a type, or the name of a user's class. `keygen_properties`: settings of the key
    generator under their full keys. `create_schema`: Avro JSON without meta columns, for a table made before its rows.
    """

    table_name: str
    table_type: str = "COPY_ON_WRITE"
    table_version: int = 9
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    key_generator: str = "SIMPLE"
    hive_style: bool = False
    url_encode: bool = False
    slash_dates: bool = False
    drop_partition_columns: bool = False
    populate_meta_fields: bool = True
    base_file_format: str = "PARQUET"
    database_name: str | None = None
    timezone: str = "LOCAL"
    keygen_properties: Mapping[str, str] = field(default_factory=dict)
    consistent_timestamps: bool = False
    record_merge_mode: str | None = None
    payload_class: str | None = None
    merge_strategy_id: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    create_schema: str | None = None
    cdc_enabled: bool = False
    cdc_logging_mode: str = DATA_BEFORE_AFTER
    buckets: TableBuckets | None = None


def new_table_properties(table: NewTable) -> dict[str, str]:
    """All of `hoodie.properties` for a new table, checksum included.

    Raises ConfigError for a version that this release does not write, an unknown table type or zone, contradictory
    merge settings, and several ordering fields below version 9.
    """
    _check(table)
    version, table_format = table.table_version, TableFormat(table.table_version)
    properties = {
        "hoodie.table.name": table.table_name,
        "hoodie.table.type": table.table_type,
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": str(table_format.layout.version),
        "hoodie.archivelog.folder": "history" if table_format.layout.has_history_tree else "archived",
        "hoodie.table.base.file.format": table.base_file_format.upper(),
        "hoodie.table.timeline.timezone": table.timezone,
        CDC_ENABLED: _flag(table.cdc_enabled),
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.populate.meta.fields": _flag(table.populate_meta_fields),
        "hoodie.table.partition.fields": ",".join(_stored_partition_fields(table)),
        "hoodie.datasource.write.hive_style_partitioning": _flag(table.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": _flag(table.url_encode),
        "hoodie.datasource.write.drop.partition.columns": _flag(table.drop_partition_columns),
    }
    if table.cdc_enabled:
        properties[LOGGING_MODE] = table.cdc_logging_mode.upper()
    if table_format.stores_initial_version:
        properties["hoodie.table.initial.version"] = str(version)
        properties["hoodie.timeline.path"] = "timeline"
        properties["hoodie.timeline.history.path"] = "history"
        properties["hoodie.table.multiple.base.file.formats.enable"] = "false"
    if table_format.stores_partition_extractor:
        properties["hoodie.table.format"] = "native"
        properties["hoodie.table.partition_extractor_class"] = _EXTRACTORS + _partition_extractor(table)
    if table.database_name or not table_format.leaves_out_empty_database:
        properties["hoodie.database.name"] = table.database_name or ""
    if table.record_key_fields:
        properties["hoodie.table.recordkey.fields"] = ",".join(table.record_key_fields)
    if table.ordering_fields:
        has_many = table_format.has_many_ordering_fields
        properties["hoodie.table.ordering.fields" if has_many else "hoodie.table.precombine.field"] = ",".join(
            table.ordering_fields
        )
    if table.buckets is not None:
        properties |= table.buckets.properties()
    if table.create_schema:
        properties[CREATE_SCHEMA] = table.create_schema
    properties |= _key_generator(table)
    properties |= _merging(table)
    properties[CHECKSUM_KEY] = table_checksum(properties)
    return properties


def _check(table: NewTable) -> None:
    if not table.table_name.strip():
        raise ConfigError("The table needs a name: give hoodie.table.name.")
    if table.table_version not in WRITABLE_VERSIONS:
        raise ConfigError(
            f"hoodie.write.table.version is {table.table_version}; this release of PyHudi makes tables of version "
            f"{', '.join(map(str, WRITABLE_VERSIONS))}."
        )
    if table.table_type not in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        raise ConfigError(f"The table type is {table.table_type!r}; expected COPY_ON_WRITE or MERGE_ON_READ.")
    if table.timezone not in ("LOCAL", "UTC"):
        raise ConfigError(f"hoodie.table.timeline.timezone is {table.timezone!r}; expected LOCAL or UTC.")
    if len(table.ordering_fields) > 1 and not TableFormat(table.table_version).has_many_ordering_fields:
        raise ConfigError(
            f"A table of version {table.table_version} has one ordering field, but {', '.join(table.ordering_fields)} "
            f"were given. Give one, or make the table with hoodie.write.table.version=9."
        )


def _stored_partition_fields(table: NewTable) -> tuple[str, ...]:
    """The partition fields to store; types of the custom key generator only from version 8 on."""
    if TableFormat(table.table_version).stores_field_types:
        return table.partition_fields
    return tuple(entry.partition(":")[0] for entry in table.partition_fields)


def _partition_extractor(table: NewTable) -> str:
    """Hive's class for reading partition values, by which Apache Hudi detects slash-separated dates."""
    if not table.partition_fields:
        return "NonPartitionedExtractor"
    if len(table.partition_fields) > 1:
        return "MultiPartKeysValueExtractor"
    if table.slash_dates:
        return "SlashEncodedDayPartitionValueExtractor"
    return "HiveStylePartitionValueExtractor" if table.hive_style else "SinglePartPartitionValueExtractor"


def _key_generator(table: NewTable) -> dict[str, str]:
    kind = key_generator_type(table.key_generator)
    is_built_in = kind in KEY_GENERATOR_CLASSES
    properties: dict[str, str] = {}
    table_format = TableFormat(table.table_version)
    if table_format.stores_key_generator_type:
        properties["hoodie.table.keygenerator.type"] = kind if is_built_in else USER_PROVIDED
    if not (table_format.stores_key_generator_type and is_built_in):
        properties["hoodie.table.keygenerator.class"] = KEY_GENERATOR_CLASSES.get(kind, table.key_generator)
    if kind == "TIMESTAMP":
        # Version 6 keeps the formats and zones but not the type of the input.
        properties |= {
            key: value
            for key, value in table.keygen_properties.items()
            if table_format.stores_field_types or not key.endswith(".timestamp.type")
        }
    # Otherwise only the extractor class, in version 9 with one partition field, indicates it.
    if table.slash_dates and not (table_format.stores_partition_extractor and len(table.partition_fields) == 1):
        properties[_SLASH_DATES_KEY] = "true"
    if table.consistent_timestamps:
        # Hudi does not store it, so a later write without the option would give every row a second key.
        properties[_CONSISTENT_TIMESTAMPS_KEY] = "true"
    return properties


def _merging(table: NewTable) -> dict[str, str]:
    if TableFormat(table.table_version).merges_by_stored_mode:
        return _merging_of_version_9(table)
    mode = infer_merge_mode(
        table_version=table.table_version,
        is_merge_on_read=table.table_type == "MERGE_ON_READ",
        mode=table.record_merge_mode,
        payload_class=table.payload_class,
        strategy_id=table.merge_strategy_id,
        has_ordering=bool(table.ordering_fields),
    )
    if not TableFormat(table.table_version).stores_merging:
        if table.merge_strategy_id is not None and table.merge_strategy_id.lower() not in BUILT_IN_STRATEGY_IDS:
            raise ConfigError(
                f"hoodie.record.merge.strategy.id is {table.merge_strategy_id}, but from a table of version "
                f"{table.table_version} Hudi 1.x would merge by its payload class instead. Make the table with "
                f"hoodie.write.table.version=8 or 9."
            )
        if table.table_type == "COPY_ON_WRITE":
            return {}  # 0.x uses the payload class of each write
        return merging_of_version_6_logs(table.payload_class, table.record_merge_mode and mode, table.merge_strategy_id)
    payload = PAYLOADS.get(mode, DEFAULT_PAYLOAD)
    if table.payload_class is not None and mode in (CUSTOM, mode_of_payload(table.payload_class)):
        payload = table.payload_class
    return {
        "hoodie.record.merge.mode": mode,
        "hoodie.compaction.payload.class": payload,
        "hoodie.record.merge.strategy.id": STRATEGY_IDS.get(mode) or table.merge_strategy_id or PAYLOAD_STRATEGY_ID,
    }


def merging_of_version_6_logs(payload: str | None, mode: str | None, strategy_id: str | None = None) -> dict[str, str]:
    """The merge properties of a merge-on-read table below version 8. A copy-on-write table stores none."""
    if payload is None and mode == EVENT_TIME_ORDERING:
        payload = DEFAULT_PAYLOAD
    return {
        "hoodie.compaction.payload.class": payload or OVERWRITE_PAYLOAD,
        # This id with every payload class: the payload class counts.
        "hoodie.compaction.record.merger.strategy": strategy_id or EVENT_TIME_STRATEGY_ID,
    }


def _merging_of_version_9(table: NewTable) -> dict[str, str]:
    """The merge properties of version 9: the mode; a deprecated payload class becomes properties, any other payload
    class is stored with the mode CUSTOM.
    """
    payload = table.payload_class
    markers = _delete_markers(table)
    if payload is not None and payload_class_name(payload) in DEPRECATED_PAYLOADS:
        mode, extras = DEPRECATED_PAYLOADS[payload_class_name(payload)]
        if table.record_merge_mode is not None and table.record_merge_mode.upper() != mode:
            raise ConfigError(
                f"hoodie.record.merge.mode is {table.record_merge_mode}, but the payload class {payload} means {mode}. "
                f"Leave one of them out."
            )
        return {"hoodie.record.merge.mode": mode, "hoodie.table.legacy.payload.class": payload, **markers, **extras}
    mode = infer_merge_mode(
        table_version=9,
        is_merge_on_read=table.table_type == "MERGE_ON_READ",
        mode=table.record_merge_mode,
        payload_class=payload,
        strategy_id=table.merge_strategy_id,
        has_ordering=bool(table.ordering_fields),
    )
    properties = {"hoodie.record.merge.mode": mode, **markers}
    if mode == CUSTOM:
        properties["hoodie.record.merge.strategy.id"] = table.merge_strategy_id or PAYLOAD_STRATEGY_ID
        if payload is not None:
            properties["hoodie.compaction.payload.class"] = payload
    return properties


def _delete_markers(table: NewTable) -> dict[str, str]:
    """The properties with the texts that mark deletes; before version 9 each write names them."""
    if table.delete_field is None or table.delete_marker is None:
        return {}
    prefix = "hoodie.record.merge.property.hoodie.payload.delete."
    return {f"{prefix}field": table.delete_field, f"{prefix}marker": table.delete_marker}


def _flag(value: bool) -> str:
    return "true" if value else "false"
