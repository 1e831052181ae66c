"""Options of catalogs in which a table is registered after a commit: Hudi's keys of its HiveSyncTool.

A catalog may have options of its own beside them (glue.py); `SyncOptions.of` gives those that one catalog takes.
Source: Hudi's documented keys (HiveSyncConfig, HoodieSyncConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.model.options.catalogs.bigquery import BigQueryOptions
from pyhudi.model.options.catalogs.glue import GlueOptions
from pyhudi.model.options.declare import Values, computed, key_of, names_of, option, own_specs, parse, part, row
from pyhudi.model.options.spec import Kind

__all__ = [
    "EXTRACTORS",
    "SyncOptions",
    "check_sync_library",
    "key_of_sync",
    "sync_options",
]

_TOOL = "hoodie.meta.sync.client.tool.class"
# Hudi's class → our name of the catalog; the name → packages that its client needs, and the extra that brings them.
_CATALOG_OF = {"HiveSyncTool": "hive", "AwsGlueCatalogSyncTool": "glue", "BigQuerySyncTool": "bigquery"}
_PACKAGES_OF: Mapping[str, tuple[str, ...]] = {"hive": ("pymetastore", "thrift"), "glue": ("boto3",), "bigquery": ()}
_TABLE_PROPERTIES = "hoodie.datasource.hive_sync.table_properties"
_SERDE_PROPERTIES = "hoodie.datasource.hive_sync.serde_properties"
_EXTRACTOR = "hoodie.datasource.hive_sync.partition_extractor_class"
_PACKAGES = ("org.apache.hudi.hive", "org.apache.hudi.sync.common.model.partextractor", "")
# Of Hudi's PartitionValueExtractor classes.
EXTRACTORS = (
    "MultiPartKeysValueExtractor",
    "SlashEncodedDayPartitionValueExtractor",
    "SlashEncodedHourPartitionValueExtractor",
    "SinglePartPartitionValueExtractor",
    "HiveStylePartitionValueExtractor",
    "NonPartitionedExtractor",
)
_ENABLE_ROW = row(
    "hoodie.datasource.hive_sync.enable",
    False,
    "Register the table at a Hive metastore after each commit (docs/catalogs.md).",
)
_META_ENABLE_ROW = row(
    "hoodie.datasource.meta.sync.enable",
    False,
    "The same, by the classes of `hoodie.meta.sync.client.tool.class`.",
)
_TOOL_ROW = row(
    _TOOL,
    None,
    "Hudi's classes that register the table: `org.apache.hudi.hive.HiveSyncTool`, "
    "`org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool`, `org.apache.hudi.gcp.bigquery.BigQuerySyncTool`, or several. "
    "Naming one turns its sync on, unless "
    "`hoodie.datasource.hive_sync.enable` or `hoodie.datasource.meta.sync.enable` is false.",
    Kind.NAMES,
)


def _extractor(text: str) -> str:
    """The bare name of an extractor. Raises ConfigError for another class."""
    package, _, name = text.rpartition(".")
    if package not in _PACKAGES or name not in EXTRACTORS:
        raise ConfigError(
            f"{_EXTRACTOR}={text}: expected {', '.join(EXTRACTORS)}, alone or in org.apache.hudi.hive; other Java "
            "classes can't be used. See docs/catalogs.md."
        )
    return name


def _properties(option_key: str, text: str) -> Mapping[str, str]:
    """Hudi's form of a map: lines of key=value."""
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    wrong = [key for key, equals, _ in pairs if not (equals and key.strip())]
    if wrong:
        raise ConfigError(f"{option_key}: expected lines of key=value, found {wrong[0]!r:.100}. See docs/catalogs.md.")
    return {key.strip(): value.strip() for key, _, value in pairs}


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """`catalogs`: those in which each commit registers the table. `database`, `table`: None for those of the table's
    own properties. `has_partition_fields`: the call names the partition columns, or says that there are none.
    `catalog`: whose options these are. `named_catalogs`: those that the options turn on, or say where they are.
    """

    catalogs: tuple[str, ...] = computed(tuple, _ENABLE_ROW, _META_ENABLE_ROW, _TOOL_ROW)
    mode: str = option(
        "hoodie.datasource.hive_sync.mode",
        "hms",
        "Interface to a Hive metastore: hms, by Thrift.",
        choices=("hms",),
        later=("jdbc", "hiveql", "glue"),
    )
    uris: str = option(
        "hoodie.datasource.hive_sync.metastore.uris",
        "thrift://localhost:9083",
        "The metastore's address; of several, separated by commas, the first that answers is used.",
    )
    database: str | None = option(
        "hoodie.datasource.hive_sync.database",
        None,
        "The database. Unset: `hoodie.database.name` of the table, or `default`.",
        Kind.TEXT,
    )
    table: str | None = option(
        "hoodie.datasource.hive_sync.table", None, "The table's name there. Unset: `hoodie.table.name`.", Kind.TEXT
    )
    auto_create_database: bool = option(
        "hoodie.datasource.hive_sync.auto_create_database", True, "Create a missing database."
    )
    partition_fields: tuple[str, ...] = option(
        "hoodie.datasource.hive_sync.partition_fields",
        (),
        "The partition columns there; empty: none. Unset: the partition fields of the table.",
        may_be_empty=True,
    )
    extractor: str | None = option(
        _EXTRACTOR,
        None,
        "Hudi's class that reads values from a partition path: MultiPartKeysValueExtractor, "
        "SinglePartPartitionValueExtractor, HiveStylePartitionValueExtractor, SlashEncodedDayPartitionValueExtractor, "
        "SlashEncodedHourPartitionValueExtractor or NonPartitionedExtractor. Unset: by the number of partition fields, "
        "and whether paths are in Hive style.",
        Kind.TEXT,
        convert=_extractor,
    )
    strategy: str = option(
        "hoodie.datasource.hive_sync.table.strategy",
        "ALL",
        "Merge-on-read tables: ALL registers both views under separate names; RO and RT register one of them under the "
        "plain name.",
        choices=("ALL", "RO", "RT"),
    )
    skips_ro_suffix: bool = option(
        "hoodie.datasource.hive_sync.skip_ro_suffix",
        False,
        "The read-optimised view of a merge-on-read table has the plain name; the snapshot is only under the name with "
        "`_rt`.",
    )
    has_plain_snapshot: bool = option(
        "hoodie.meta.sync.sync_snapshot_with_table_name",
        True,
        "The snapshot of a merge-on-read table is registered under the plain name, too.",
    )
    supports_timestamp: bool = option(
        "hoodie.datasource.hive_sync.support_timestamp",
        False,
        "Timestamps are `timestamp` in Hive; else `bigint`. Spark sees timestamps in either case.",
    )
    table_properties: Mapping[str, str] = option(
        _TABLE_PROPERTIES,
        {},
        "Properties for the table, lines of `key=value`. Later ones are added and replaced, none is removed.",
        Kind.TEXT,
        "",
        partial(_properties, _TABLE_PROPERTIES),
    )
    serde_properties: Mapping[str, str] = option(
        _SERDE_PROPERTIES,
        {},
        "The same for the serde.",
        Kind.TEXT,
        "",
        partial(_properties, _SERDE_PROPERTIES),
    )
    is_datasource: bool = option(
        "hoodie.datasource.hive_sync.sync_as_datasource",
        True,
        "Spark finds the table as one of its data source hudi, with Spark's schema in the properties.",
    )
    schema_characters: int = option(
        "hoodie.datasource.hive_sync.schema_string_length_thresh",
        4000,
        "Maximum number of characters of a property; Spark's schema is split into several properties.",
        minimum=1,
    )
    spark_version: str | None = option(
        "hoodie.meta_sync.spark.version",
        None,
        "Stored as `spark.sql.create.version`. Unset: the session's version; without a session the property is left "
        "out.",
        Kind.TEXT,
    )
    is_managed: bool = option(
        "hoodie.datasource.hive_sync.create_managed_table",
        False,
        "A new table is a managed one: dropping it in Hive deletes its files.",
    )
    omits_meta_columns: bool = option(
        "hoodie.datasource.hive_sync.omit_metadata_fields", False, "Leave out the `_hoodie_` columns."
    )
    has_comments: bool = option(
        "hoodie.datasource.hive_sync.sync_comment", False, "The comments of columns are registered, too."
    )
    batch: int = option(
        "hoodie.datasource.hive_sync.batch_num",
        1000,
        "Number of partitions sent per call; to Glue no more than it takes.",
        minimum=1,
    )
    recreates: bool = option(
        "hoodie.datasource.hive_sync.recreate_table_on_error",
        False,
        "A registered table that can't be altered as needed is dropped and recreated; files are kept.",
    )
    is_incremental: bool = option(
        "hoodie.meta.sync.incremental",
        True,
        "Compare only partitions that commits have changed since the last sync. `false`: compare all partitions and "
        "their locations.",
    )
    touches_partitions: bool = option(
        "hoodie.meta.sync.touch.partitions.enabled",
        False,
        "Alter partitions that were written to even if their entries don't change, so that watchers of the catalog are "
        "notified.",
    )
    is_conditional: bool = option(
        "hoodie.datasource.meta_sync.condition.sync",
        False,
        "Don't update the time of the last sync if neither columns nor partitions changed.",
    )
    glue: GlueOptions = part(GlueOptions)
    bigquery: BigQueryOptions = part(BigQueryOptions)
    has_partition_fields: bool = False
    catalog: str = "hive"
    named_catalogs: tuple[str, ...] = ()

    def of(self, catalog: str) -> SyncOptions:
        """The options as a catalog takes them: with its own in the place of those of HiveSyncTool."""
        if catalog != "glue":
            return self
        glue = self.glue
        return replace(
            self,
            catalog=catalog,
            database=glue.database or self.database,
            table=glue.table or self.table,
            recreates=glue.recreates,
        )

    def key_of(self, name: str) -> str:
        """The key of the option of a field, the catalog's own if it has one."""
        is_glues = self.catalog == "glue" and name in own_specs(GlueOptions)
        return key_of(GlueOptions if is_glues else SyncOptions, name)


def key_of_sync(name: str) -> str:
    """The key of the option of a field."""
    return key_of(SyncOptions, name)


def sync_options(values: Values) -> SyncOptions:
    """The options of a call.

    Raises: ConfigError for unsupported classes, MissingLibrary if a requested sync can't run.
    """
    catalogs = _catalogs(values)
    for catalog in catalogs:
        check_sync_library(f"A sync to {catalog} after each commit", catalog)
    places = {"hive": key_of_sync("uris"), "glue": key_of(GlueOptions, "database")}
    return replace(
        parse(SyncOptions, values),
        catalogs=catalogs,
        has_partition_fields=values.is_given(key_of_sync("partition_fields")),
        named_catalogs=tuple(name for name, key in places.items() if name in catalogs or values.is_given(key)),
    )


def _catalogs(values: Values) -> tuple[str, ...]:
    """The catalogs in which each commit registers the table."""
    has_hive = values.flag(_ENABLE_ROW)
    is_on = has_hive or values.flag(_META_ENABLE_ROW)
    if not is_on and values.is_given(_ENABLE_ROW.key, _META_ENABLE_ROW.key):
        return ()
    names = [tool.strip().rpartition(".")[2] for tool in names_of(values.texts.get(_TOOL, ""))]
    other = next((name for name in names if name not in _CATALOG_OF), None)
    if other is not None:
        raise ConfigError(
            f"{_TOOL}={values.texts[_TOOL]}: this release registers tables by {' and '.join(_CATALOG_OF)}, not by "
            f"{other}. Nothing was written."
        )
    named = [_CATALOG_OF[name] for name in names]
    return tuple(dict.fromkeys([*named, *(["hive"] if has_hive or (is_on and not named) else [])]))


def check_sync_library(what: str, catalog: str) -> None:
    """Raise MissingLibrary without the client of a catalog."""
    packages = _PACKAGES_OF[catalog]
    if any(find_spec(package) is None for package in packages):
        raise MissingLibrary(f'{what} needs {packages[0]}, which is not installed: pip install "pyhudi[{catalog}]".')
