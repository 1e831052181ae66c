"""BigQuery: a list of the table's base files beside it, and the SQL statements that create BigQuery's tables over it.

    use_bq_manifest_file=true    .hoodie/absolute-path-manifest/latest-snapshot.csv   paths   one external table
    false                        .hoodie/manifest/latest-snapshot.csv                 names   two of them, and a view

The list is renewed by each sync. The statements are run once, by the user, and again when columns change.
Source: Hudi's ManifestFileWriter, BigQuerySyncTool and BigQuerySchemaResolver; docs/engines.md, "BigQuery".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError, PathNotFound, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER
from pyhudi.model.options.catalogs.bigquery import BigQueryOptions, key_of_bigquery
from pyhudi.model.options.spec import HudiOptionWarning
from pyhudi.queries.schema import read_schema
from pyhudi.sync.definitions import same_place
from pyhudi.sync.files import newest_files
from pyhudi.sync.result import SyncedTable, SyncResult
from pyhudi.warnings import warn_caller

__all__ = ["sync_to_bigquery"]

_PATHS = f"{META_FOLDER}/absolute-path-manifest/latest-snapshot.csv"
_NAMES = f"{META_FOLDER}/manifest/latest-snapshot.csv"
_ROUNDS_MAX = 5  # commits may come faster than files are listed; the next sync catches up
_NUMERIC_SCALE, _NUMERIC_DIGITS = 9, 29  # after the point, and before it


def sync_to_bigquery(meta: MetaClient, options: BigQueryOptions) -> SyncResult:
    """Write the list of base files, and return the statements that create BigQuery's tables.

    Raises: ConfigError for settings that BigQuery does not allow, UnsupportedTable for base files and columns that it
            lacks. After an error the list is unchanged.
    """
    name = _table_name(meta, options)
    statements = tuple(_statements(meta, name, options))
    path = _PATHS if options.uses_manifest else _NAMES
    is_new, is_written = _renewed(meta, path, options)
    for _ in range(_ROUNDS_MAX - 1):
        if meta.is_current():
            break
        meta = meta.reload()  # another sync may have listed more: the last one to write must have seen every commit
        is_written = _renewed(meta, path, options)[1] or is_written
    newest = meta.timeline.last_commit()
    action = "created" if is_new else "changed" if is_written else "unchanged"
    return SyncResult(
        meta.storage.root,
        f"BigQuery, by {path}",
        (SyncedTable(name, action),),
        None if newest is None else newest.requested_time,
        statements=statements,
    )


# ---- the list of files


def _renewed(meta: MetaClient, path: str, options: BigQueryOptions) -> tuple[bool, bool]:
    """Write the list if its lines have changed, in any order. Returns: True if it is new, True if it was written."""
    lines = sorted(_files(meta, options))
    try:
        text = meta.storage.read(path).decode(errors="replace")
        stored = sorted(line for line in text.split("\n") if line)
    except PathNotFound:
        stored = None
    if stored != lines:
        meta.storage.write(path, "".join(f"{line}\n" for line in lines).encode())
    return stored is None, stored != lines


def _files(meta: MetaClient, options: BigQueryOptions) -> Iterator[str]:
    """A line for each base file."""
    for base in newest_files(meta, by_metadata=options.lists_by_metadata).all_base_files():
        if "\n" in base.path:
            raise UnsupportedTable(
                f"{meta.storage.root}: the path {base.path!r} has a line break, and a manifest has one path per line."
            )
        yield meta.storage.full_path(base.path) if options.uses_manifest else base.name


# ---- the statements


def _table_name(meta: MetaClient, options: BigQueryOptions) -> str:
    dataset = options.dataset or meta.config.database_name
    if not dataset:
        raise ConfigError(f"BigQuery's tables are in datasets: name one by {key_of_bigquery('dataset')}.")
    names = [*filter(None, [options.project]), dataset, options.table or meta.config.table_name]
    invalid = next((name for name in names if "`" in name or "\n" in name), None)
    if invalid is not None:
        raise ConfigError(f"BigQuery does not allow the name {invalid!r}. Give another by {key_of_bigquery('table')}.")
    return ".".join(names)


def _statements(meta: MetaClient, name: str, options: BigQueryOptions) -> Iterator[str]:
    _check(meta, options)
    root = _uri(meta)
    if options.uses_manifest:
        yield _manifest_statement(meta, name, f"{root}/{_PATHS}", options)
        return
    versions, manifest = f"`{name}_versions`", f"`{name}_manifest`"
    prefix = options.source_uri_prefix
    columns = [] if prefix is None else [_option("hive_partition_uri_prefix", prefix)]
    yield (
        f"CREATE OR REPLACE EXTERNAL TABLE {manifest} (filename STRING) "
        f'OPTIONS ({_uris(f"{root}/{_NAMES}")}, format="CSV")'
    )
    yield (
        f"CREATE OR REPLACE EXTERNAL TABLE {versions}{' WITH PARTITION COLUMNS' if columns else ''} "
        f'OPTIONS ({", ".join([*columns, _uris(options.source_uri or "")])}, format="PARQUET")'
    )
    yield (
        f"CREATE OR REPLACE VIEW `{name}` AS SELECT * FROM {versions} "
        f"WHERE _hoodie_file_name IN (SELECT filename FROM {manifest})"
    )


def _manifest_statement(meta: MetaClient, name: str, uri: str, options: BigQueryOptions) -> str:
    by_path, prefix = _by_path(meta, options), options.source_uri_prefix
    columns = [_column(field) for field in read_schema(meta, None) if field.name not in by_path]
    clauses = [f"({', '.join(columns)})"]
    settings = ["enable_list_inference=true"]
    if prefix is not None:
        clauses.append("WITH PARTITION COLUMNS")
        needs_filter = "true" if options.requires_filter else "false"
        settings += [_option("hive_partition_uri_prefix", prefix), f"require_hive_partition_filter={needs_filter}"]
    if options.connection is not None:
        clauses.append(f"WITH CONNECTION `{options.connection}`")
    settings += [_uris(uri), 'format="PARQUET"', 'file_set_spec_type="NEW_LINE_DELIMITED_MANIFEST"']
    return f"CREATE OR REPLACE EXTERNAL TABLE `{name}` {' '.join(clauses)} OPTIONS ({', '.join(settings)})"


def _check(meta: MetaClient, options: BigQueryOptions) -> None:
    """Raise for tables and options that BigQuery would refuse, or show without columns."""
    config, prefix, root = meta.config, options.source_uri_prefix, meta.storage.root
    if config.base_file_format != "PARQUET":
        raise UnsupportedTable(
            f"{root}: BigQuery reads Parquet files, and the table's base files are {config.base_file_format}."
        )
    if prefix is not None and not same_place(prefix, _uri(meta)):
        raise ConfigError(
            f"{key_of_bigquery('source_uri_prefix')}={prefix}: the table is at {root}. Nothing was written."
        )
    if prefix is not None and not (config.partition_fields and config.hive_style_partitioning):
        raise ConfigError(
            f"{key_of_bigquery('source_uri_prefix')} takes the partition columns from paths, and those of {root} are "
            "not of the form name=value. Leave it out. Nothing was written."
        )
    if prefix is None and config.dropped_partition_fields:
        raise ConfigError(
            f"{root}: its files leave out {', '.join(config.dropped_partition_fields)}, which only paths have. Give "
            f"{key_of_bigquery('source_uri_prefix')}. Nothing was written."
        )
    if prefix is None and options.requires_filter:
        key = key_of_bigquery("requires_filter")
        raise ConfigError(f"{key}=true needs {key_of_bigquery('source_uri_prefix')}. Nothing was written.")
    if options.uses_manifest:
        if options.source_uri is not None:
            _without_effect("source_uri", "A manifest names the files")
        return
    way_out = f"Give {key_of_bigquery('uses_manifest')}=true. Nothing was written."
    if options.source_uri is None:
        raise ConfigError(f"A view needs {key_of_bigquery('source_uri')}. {way_out}")
    if not config.populate_meta_fields:
        raise ConfigError(f"{root}: a view finds files by _hoodie_file_name, which the rows lack. {way_out}")
    if prefix is not None and not config.drop_partition_columns:
        raise ConfigError(f"{root}: in a view partition columns can't be in paths and in files. {way_out}")
    for name in ("connection", "requires_filter"):
        if getattr(options, name):
            raise ConfigError(f"{key_of_bigquery(name)} is for a manifest. {way_out}")


def _without_effect(name: str, why: str) -> None:
    warn_caller(f"No effect: {key_of_bigquery(name)}. {why}.", HudiOptionWarning)


def _by_path(meta: MetaClient, options: BigQueryOptions) -> Sequence[str]:
    """The columns whose values come from paths."""
    return () if options.source_uri_prefix is None else options.partition_fields or meta.config.partition_fields


def _uri(meta: MetaClient) -> str:
    return meta.storage.full_path("").rstrip("/")


def _uris(uri: str) -> str:
    return f"uris=[{_text(uri)}]"


def _option(name: str, value: str) -> str:
    return f"{name}={_text(value)}"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ---- columns


def _column(field: pa.Field) -> str:
    needs_value = not field.nullable and _items(field.type) is None  # an array is never null there
    return f"`{field.name}` {_type(field.type, field.name)}{' NOT NULL' if needs_value else ''}"


def _struct(fields: Iterable[pa.Field]) -> str:
    return f"STRUCT<{', '.join(_column(field) for field in fields)}>"


def _items(kind: pa.DataType) -> pa.DataType | None:
    """The type of a list's items; None for another type."""
    return kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None


def _type(kind: Any, path: str) -> str:
    types = pa.types
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "INT64"  # as Hudi declares local timestamps
    if types.is_decimal(kind):
        fits = kind.scale <= _NUMERIC_SCALE and kind.precision - kind.scale <= _NUMERIC_DIGITS
        return "NUMERIC" if fits else "BIGNUMERIC"
    items = _items(kind)
    if items is not None:
        if _items(items) is not None:
            raise UnsupportedTable(f"The column {path!r} has arrays in an array, which BigQuery does not support.")
        return f"ARRAY<{_type(items, path)}>"
    if types.is_map(kind):
        key, value = pa.field("key", kind.key_type, False), pa.field("value", kind.item_type, kind.item_field.nullable)
        return f"STRUCT<`key_value` ARRAY<{_struct((key, value))}>>"
    if types.is_struct(kind):
        return _struct(kind)
    for is_kind, name in _SIMPLE:
        if is_kind(kind):
            return name
    raise UnsupportedTable(f"The column {path!r} is {kind}, a type that BigQuery lacks. Nothing was written.")


_SIMPLE = (
    (pa.types.is_integer, "INT64"),
    (pa.types.is_floating, "FLOAT64"),
    (pa.types.is_boolean, "BOOL"),
    (pa.types.is_string, "STRING"),
    (pa.types.is_large_string, "STRING"),
    (pa.types.is_binary, "BYTES"),
    (pa.types.is_fixed_size_binary, "BYTES"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time, "TIME"),
)
