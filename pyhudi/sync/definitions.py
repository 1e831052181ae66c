"""The catalog entries of a table: one for a copy-on-write table, up to three for a merge-on-read one.

| merge-on-read | name | reads |
|---|---|---|
| strategy ALL | `T_ro`, `T_rt`, `T` | read-optimised, snapshot, snapshot |
| skip_ro_suffix | `T`, `T_rt` | read-optimised, snapshot |
| strategy RO, RT | `T` | read-optimised; snapshot |

Source: what Hudi's HiveSyncTool registers, property by property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.catalogs.syncing import SyncOptions, key_of_sync
from pyhudi.queries.schema import read_schema
from pyhudi.sync.catalog import CatalogColumn, CatalogTable, FileFormat
from pyhudi.sync.columns import hive_columns, hive_type, spark_schema_text
from pyhudi.sync.partitions import extractor_for

__all__ = ["COMPLETED", "INDEXED", "SPARK_PART", "SYNCED", "Definitions", "definitions_of", "same_place"]

SYNCED = "last_commit_time_sync"
COMPLETED = "last_commit_completion_time_sync"
SPARK_PART = "spark.sql.sources.schema.part."
# For a table in Glue: readers use partition indexes; Athena lists files by the metadata table.
INDEXED = "partition_filtering.enabled"
_LISTED_BY_METADATA = "hudi.metadata-listing-enabled"
_READ_OPTIMIZED = "hoodie.query.as.ro.table"
_WRITER = {"hudi_writer_version": "1.2.0"}  # the Hudi version with these registrations
_PARQUET_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_ORC = FileFormat(
    "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
)
# Base file format → the classes for base files alone, and with log files.
_FORMATS: Mapping[str, tuple[FileFormat, FileFormat]] = {
    "PARQUET": (
        FileFormat("org.apache.hudi.hadoop.HoodieParquetInputFormat", _PARQUET_OUTPUT, _PARQUET_SERDE),
        FileFormat("org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat", _PARQUET_OUTPUT, _PARQUET_SERDE),
    ),
    "ORC": (_ORC, _ORC),
}


@dataclass(frozen=True, slots=True)
class _View:
    """One entry. `is_read_optimized`: a merge-on-read table without its log files."""

    name: str
    has_logs: bool
    is_read_optimized: bool


@dataclass(frozen=True, slots=True)
class Definitions:
    """The tables to register, by name. `location`: of the table; a partition's is below it. `fields`: the partition
    columns in the Hudi table's spelling.
    """

    database: str
    tables: Mapping[str, CatalogTable]
    location: str
    fields: tuple[str, ...]
    extractor: str

    def location_of(self, partition_path: str) -> str:
        """The folder of a partition."""
        return f"{self.location}/{partition_path}" if partition_path else self.location


def definitions_of(meta: MetaClient, options: SyncOptions) -> Definitions:
    """The catalog entries of the table.

    Raises: UnsupportedTable for a table without columns, for base files and columns that a Hive metastore lacks;
            ConfigError for a partition column that is not allowed.
    """
    fields = options.partition_fields if options.has_partition_fields else meta.config.partition_fields
    extractor = options.extractor or extractor_for(fields, meta.config)
    if extractor == "NonPartitionedExtractor":
        fields = ()
    schema = _schema(meta, options)
    keys = _partition_keys(schema, fields, extractor, meta, options)
    columns = hive_columns(schema, timestamps=options.supports_timestamp, comments=options.has_comments)
    names = {key.name for key in keys}
    _check_indexes(names, options)
    others = tuple(column for column in columns if column.name not in names)
    if not others:
        raise UnsupportedTable(
            f"{meta.storage.root}: every column is a partition column, and Hive needs another one. Leave some "
            f"out of {key_of_sync('partition_fields')}."
        )
    root = meta.storage.root.rstrip("/")
    location = root if "://" in root else f"file:{root}"
    properties = _properties(schema, fields, options)
    plain, with_logs = _formats(meta)
    tables = {}
    for view in _views(meta, options):
        serde = {**options.serde_properties, "serialization.format": "1"}
        if options.is_datasource:
            serde |= {"path": root, _READ_OPTIMIZED: "true" if view.is_read_optimized else "false"}
        tables[view.name] = CatalogTable(
            others,
            keys,
            location,
            with_logs if view.has_logs else plain,
            {**serde, "path": root},
            properties,
            is_managed=options.is_managed,
            partition_serde=serde,
        )
    database = options.database or meta.config.database_name or "default"
    return Definitions(database.lower(), tables, location, tuple(fields), extractor)


def same_place(one: str, other: str) -> bool:
    """True if two locations are the same folder, with any spelling of the scheme."""
    return _place(one) == _place(other)


def _place(location: str) -> str:
    scheme, colon, location_path = location.rstrip("/").partition(":")
    if not colon or scheme == "file":
        path = location_path if colon else scheme
        return f"file:/{path.lstrip('/')}"
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}:{location_path}"


def _views(meta: MetaClient, options: SyncOptions) -> Iterator[_View]:
    name = (options.table or meta.config.table_name).lower()
    if not meta.config.is_merge_on_read:
        yield _View(name, has_logs=False, is_read_optimized=False)
    elif options.strategy == "RO":
        yield _View(name, has_logs=False, is_read_optimized=True)
    elif options.strategy == "RT":
        yield _View(name, has_logs=True, is_read_optimized=False)
    else:
        yield _View(name if options.skips_ro_suffix else f"{name}_ro", has_logs=False, is_read_optimized=True)
        yield _View(f"{name}_rt", has_logs=True, is_read_optimized=False)
        if options.has_plain_snapshot and not options.skips_ro_suffix:
            yield _View(name, has_logs=True, is_read_optimized=False)


def _schema(meta: MetaClient, options: SyncOptions) -> pa.Schema:
    data = [field for field in read_schema(meta, None) if field.name not in META_COLUMNS]
    if not data:
        raise UnsupportedTable(f"{meta.storage.root}: the table has no columns yet; write to it, then register it.")
    # Hudi registers meta columns even if the table's files lack them.
    return pa.schema([*(() if options.omits_meta_columns else [pa.field(n, pa.string()) for n in META_COLUMNS]), *data])


def _partition_keys(
    schema: pa.Schema, fields: tuple[str, ...], extractor: str, meta: MetaClient, options: SyncOptions
) -> tuple[CatalogColumn, ...]:
    keys = tuple(CatalogColumn(field.lower(), _key_type(schema, field, extractor, meta, options)) for field in fields)
    nested = next((key for key in keys if "<" in key.type), None)
    if nested is not None:
        raise ConfigError(
            f"The partition column {nested.name!r} is {nested.type}, and Hive's partitions have single values. Name "
            f"others by {key_of_sync('partition_fields')}."
        )
    return keys


def _check_indexes(keys: AbstractSet[str], options: SyncOptions) -> None:
    """Raise ConfigError for a partition index on a column that is no partition column."""
    indexes = options.glue.indexes if options.catalog == "glue" and options.glue.has_indexes else ()
    unknown = next((name for index in indexes for name in index if name not in keys), None)
    if unknown is not None:
        raise ConfigError(
            f"{options.key_of('indexes')} names {unknown!r:.100}, which is none of the partition columns "
            f"({', '.join(sorted(keys))}). Nothing was registered."
        )


def _key_type(schema: pa.Schema, field: str, extractor: str, meta: MetaClient, options: SyncOptions) -> str:
    place = schema.get_field_index(field)
    if place < 0 or field in _formatted(meta):
        return "string"  # its values are dates as text, for any column type
    kind = hive_type(schema.field(place), timestamps=options.supports_timestamp)
    return "string" if extractor.startswith("SlashEncoded") and kind != "date" else kind


def _formatted(meta: MetaClient) -> tuple[str, ...]:
    """The partition fields whose values a key generator formats."""
    config = meta.config
    if config.key_generator == "TIMESTAMP":
        return config.partition_fields
    types = zip(config.partition_fields, config.partition_field_types, strict=False)
    return tuple(field for field, kind in types if kind == "TIMESTAMP")


def _properties(schema: pa.Schema, fields: tuple[str, ...], options: SyncOptions) -> dict[str, str]:
    properties = {**options.table_properties, **_WRITER}
    if options.catalog == "glue":
        properties.setdefault(_LISTED_BY_METADATA, "TRUE" if options.glue.lists_by_metadata else "FALSE")
        if fields and options.glue.has_indexes:
            properties[INDEXED] = "true"
    if not options.is_datasource:
        return properties
    text, size = spark_schema_text(schema, fields), options.schema_characters
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    prefix = "spark.sql.sources."
    properties |= {f"{prefix}provider": "hudi", f"{prefix}schema.numParts": str(len(parts))}
    properties |= {f"{SPARK_PART}{number}": part for number, part in enumerate(parts)}
    if fields:
        properties[f"{prefix}schema.numPartCols"] = str(len(fields))
        properties |= {f"{prefix}schema.partCol.{number}": field for number, field in enumerate(fields)}
    if options.spark_version:
        properties["spark.sql.create.version"] = options.spark_version
    return properties


def _formats(meta: MetaClient) -> tuple[FileFormat, FileFormat]:
    formats = _FORMATS.get(meta.config.base_file_format.upper())
    if formats is None:
        raise UnsupportedTable(
            f"{meta.storage.root}: its base files are {meta.config.base_file_format}, for which Hudi has no Hive "
            f"classes; {', '.join(_FORMATS)} can be registered."
        )
    return formats
