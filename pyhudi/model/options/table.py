"""Options of a table, of its record keys and partition paths, and of steps between table versions.

`TableOptions` defines a table, except for its keys (`KeyOptions`) and its merge rules (`merging.py`). `VersionOptions`
defines which checks steps between table versions skip.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.model.change_logs import CDC_ENABLED, DATA_BEFORE_AFTER, LOGGING_MODE, LOGGING_MODES
from pyhudi.model.options.declare import Values, computed, option, parse, row
from pyhudi.model.options.spec import Kind

__all__ = [
    "BASE_FILE_FORMAT",
    "KEYGEN_CLASS",
    "KEYGEN_TYPE",
    "PARTITION_FIELDS",
    "RECORD_KEY",
    "TABLE_NAME",
    "KeyOptions",
    "TableOptions",
    "VersionOptions",
    "key_options",
]


TABLE_NAME = "hoodie.table.name"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class TableOptions:
    """Settings stored in the table; those of an existing table win."""

    table_name: str | None = option(
        TABLE_NAME,
        None,
        "Name of the table. When the first write creates it without one, that of its folder.",
        aliases=("hoodie.datasource.write.table.name",),
        keyword="table_name",
    )
    database_name: str | None = option(
        "hoodie.database.name", None, "Database name that the table stores.", keyword="database_name"
    )
    table_type: str = option(
        "hoodie.datasource.write.table.type",
        "COPY_ON_WRITE",
        "Table type.",
        aliases=("hoodie.datasource.write.storage.type", "hoodie.table.type"),
        choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
        keyword="table_type",
    )
    table_version: int = option(
        "hoodie.write.table.version",
        9,
        "Version of a new table: 6 (Hudi 0.14 and 0.15), 8 (Hudi 1.0) or 9 (Hudi 1.1 and 1.2). A table keeps its "
        "version.",
        aliases=("hoodie.table.version",),
        choices=("6", "8", "9"),
        keyword="table_version",
    )
    base_file_format: str = option(
        BASE_FILE_FORMAT,
        "PARQUET",
        "Format of base files.",
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
        choices=("PARQUET", "ORC"),
        later=("HFILE", "LANCE"),
        keyword="base_file_format",
    )
    populate_meta_fields: bool = option(
        "hoodie.populate.meta.fields",
        True,
        "Store the five meta columns. `false`: virtual keys.",
        keyword="meta_fields",
    )
    cdc_enabled: bool = option(
        CDC_ENABLED,
        False,
        "Writes log the change of each row, for queries of changes. Can only be set when the table is created.",
        keyword="cdc",
    )
    cdc_logging_mode: str = option(
        LOGGING_MODE,
        DATA_BEFORE_AFTER,
        "Contents of change logs: the key of a row, also the row before the change, or the row before and after. "
        "Queries of changes look up the rest in base files.",
        choices=LOGGING_MODES,
        keyword="cdc_logging_mode",
    )
    timezone: str = option(
        "hoodie.table.timeline.timezone", "LOCAL", "Zone of instant times in a new table.", choices=("LOCAL", "UTC")
    )


@dataclass(frozen=True, slots=True)
class VersionOptions:
    """Options of `HudiTable.maintenance.upgrade` and `HudiTable.maintenance.downgrade`."""

    skip_default_partition_validation: bool = option(
        "hoodie.skip.default.partition.validation",
        False,
        "An upgrade from version 4 accepts a partition named `default`.",
    )
    complex_key_validation: bool = option(
        "hoodie.write.complex.keygen.validation.enable",
        True,
        "Steps between versions 8 and 9 refuse tables with the generator COMPLEX and one key field. Writes don't "
        "check.",
    )


RECORD_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"

_CLASS = row(
    KEYGEN_CLASS,
    None,
    "Key generator by Hudi's class name, or your own class as `module:Class`.",
    aliases=("hoodie.table.keygenerator.class",),
    keyword="key_generator",
)
_TIMEBASED = tuple(
    row(
        f"hoodie.keygen.timebased.{name}",
        default,
        doc,
        aliases=(f"hoodie.streamer.keygen.timebased.{name}", f"hoodie.deltastreamer.keygen.timebased.{name}"),
    )
    for name, default, doc in (
        (
            "timestamp.type",
            None,
            "UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING or MIXED.",
        ),
        ("timestamp.scalar.time.unit", "SECONDS", "Unit of a SCALAR timestamp."),
        ("input.dateformat", None, "One or more Joda patterns of text timestamps."),
        ("input.dateformat.list.delimiter.regex", ",", "Regular expression that separates input patterns."),
        ("input.timezone", None, "Zone of text timestamps without a zone."),
        ("output.dateformat", None, "Joda pattern of the partition path."),
        ("output.timezone", None, "Zone of the partition path."),
        ("timezone", None, "Zone of both; wins over the other two."),
    )
)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class KeyOptions:
    """`partition_fields`: as configured, with ":TYPE" after fields of the custom key generator. `keygen_options`:
    options of key generators, the user's included, by key.
    """

    record_key_fields: tuple[str, ...] = option(
        RECORD_KEY,
        (),
        "Fields of the record key; nested fields with dots. Unset: keys are generated.",
        aliases=("hoodie.table.recordkey.fields",),
        keyword="record_key",
        may_be_empty=True,
    )
    partition_fields: tuple[str, ...] = option(
        PARTITION_FIELDS,
        (),
        "Fields of the partition path; `field:SIMPLE` or `field:TIMESTAMP` for the custom generator.",
        aliases=("hoodie.table.partition.fields",),
        keyword="partition_by",
        may_be_empty=True,
    )
    key_generator: str | None = option(
        KEYGEN_TYPE,
        None,
        "Key generator by name. If neither this nor the class is set, it is inferred from the fields.",
        aliases=("hoodie.table.keygenerator.type",),
        also=(_CLASS,),
    )
    hive_style_partitioning: bool = option(
        "hoodie.datasource.write.hive_style_partitioning",
        False,
        "Partition folders are named `field=value`.",
        keyword="hive_style",
    )
    url_encode_partitioning: bool = option(
        "hoodie.datasource.write.partitionpath.urlencode",
        False,
        "Special characters of partition values are escaped in folder names.",
        keyword="url_encode",
    )
    slash_separated_dates: bool = option(
        "hoodie.datasource.write.slash.separated.date.partitioning",
        False,
        "The date `2024-01-15` becomes the folder `2024/01/15`. Only new tables with one partition field.",
    )
    drop_partition_columns: bool = option(
        "hoodie.datasource.write.drop.partition.columns",
        False,
        "Leave partition columns out of the files.",
        keyword="drop_partition_columns",
    )
    consistent_logical_timestamp: bool = option(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        False,
        "Write timestamps in keys and paths as text instead of epoch numbers.",
    )
    complex_key_new_encoding: bool | None = option(
        "hoodie.write.complex.keygen.new.encoding",
        None,
        "Complex generator with one key field, tables below version 9: keys are plain values instead of `field:value`.",
        kind=Kind.FLAG,
        default_text="false",
    )
    keygen_options: Mapping[str, str] = computed(dict, *_TIMEBASED)


def key_options(values: Values) -> KeyOptions:
    """The options of a write. A generator's class wins over its type."""
    options = parse(KeyOptions, values)
    return replace(
        options,
        key_generator=values.text(_CLASS) or options.key_generator,
        keygen_options={key: text for key, text in values.texts.items() if key.startswith("hoodie.keygen.")},
    )
