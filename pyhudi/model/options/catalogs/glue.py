"""Options of AWS Glue's Data Catalog, in which a table is registered: those beside the ones of HiveSyncTool.

Source: Hudi's documented keys (GlueCatalogSyncClientConfig, HoodieAWSConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyhudi.errors import ConfigError
from pyhudi.model.options.aws import AwsOptions
from pyhudi.model.options.declare import option, part
from pyhudi.model.options.spec import Kind

__all__ = ["GlueOptions"]

_GLUE = "hoodie.datasource.meta.sync.glue."
_INDEX_FIELDS = f"{_GLUE}partition_index_fields"
_READ_THREADS = f"{_GLUE}all_partitions_read_parallelism"
_TAGS = f"{_GLUE}resource_tags"
_INDEXES_MAX = 3  # of one table at Glue
_SEGMENTS_MAX = 10  # of one listing at Glue


def _indexes(text: str) -> tuple[tuple[str, ...], ...]:
    """The columns of each index: `a;b,b` is an index of a and b, and one of b."""
    indexes = tuple(tuple(name.strip().lower() for name in index.split(";")) for index in text.split(","))
    if len(set(indexes)) > _INDEXES_MAX or not all(all(index) for index in indexes):
        raise ConfigError(
            f"{_INDEX_FIELDS}={text:.200}: expected up to {_INDEXES_MAX} indexes with commas, the columns of one with "
            "semicolons: a;b,b. See docs/catalogs.md."
        )
    return tuple(dict.fromkeys(indexes))


def _segments(text: str) -> int:
    if int(text) > _SEGMENTS_MAX:
        raise ConfigError(f"{_READ_THREADS}: expected 1 to {_SEGMENTS_MAX}, found {text}. See docs/options.md.")
    return int(text)


def _tags(option_key: str, text: str) -> Mapping[str, str]:
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    wrong = [key for key, colon, _ in pairs if not (colon and key.strip())]
    if wrong:
        raise ConfigError(f"{option_key}: expected key:value,key:value; found {wrong[0]!r:.100}. See docs/catalogs.md.")
    return {key.strip(): value.strip() for key, _, value in pairs}


@dataclass(frozen=True, slots=True)
class GlueOptions:
    """`database`, `table`: None for those of HiveSyncTool. `indexes`: none for one of all partition columns."""

    database: str | None = option(
        f"{_GLUE}database_name", None, "Glue: the database. Unset: `hoodie.datasource.hive_sync.database`.", Kind.TEXT
    )
    table: str | None = option(
        f"{_GLUE}table_name", None, "Glue: the table's name. Unset: `hoodie.datasource.hive_sync.table`.", Kind.TEXT
    )
    catalog_id: str | None = option(
        f"{_GLUE}catalogId", None, "Glue: the account that has the catalog. Unset: that of the credentials.", Kind.TEXT
    )
    recreates: bool = option(
        f"{_GLUE}recreate_table_on_error",
        False,
        "Glue: as `hoodie.datasource.hive_sync.recreate_table_on_error`, which is for a Hive metastore alone.",
    )
    skips_archive: bool = option(
        f"{_GLUE}skip_table_archive", True, "Glue: no older version of the table is stored when it is changed."
    )
    lists_by_metadata: bool = option(
        f"{_GLUE}metadata_file_listing",
        False,
        "Glue: Athena takes the list of files from the metadata table (`hudi.metadata-listing-enabled`).",
    )
    all_read_threads: int = option(
        _READ_THREADS,
        1,
        "Glue: so many requests at a time list all partitions; up to 10.",
        convert=_segments,
        minimum=1,
    )
    changed_read_threads: int = option(
        f"{_GLUE}changed_partitions_read_parallelism",
        1,
        "Glue: so many requests at a time ask for partitions that changed.",
        minimum=1,
    )
    change_threads: int = option(
        f"{_GLUE}partition_change_parallelism",
        1,
        "Glue: so many requests at a time add, change and drop partitions.",
        minimum=1,
    )
    has_indexes: bool = option(
        f"{_INDEX_FIELDS}.enable",
        False,
        "Glue: partitions are indexed. false: an index that a sync made is dropped.",
    )
    indexes: tuple[tuple[str, ...], ...] = option(
        _INDEX_FIELDS,
        (),
        "Glue: up to three indexes with commas, the columns of one with semicolons: `a;b,b`. Unset: one of all "
        "partition columns.",
        Kind.TEXT,
        convert=_indexes,
    )
    tags: Mapping[str, str] = option(
        _TAGS,
        {},
        "Glue: tags for databases and tables that a sync makes, `key:value,key:value`.",
        Kind.TEXT,
        "",
        partial(_tags, _TAGS),
    )
    region: str | None = option(
        "hoodie.aws.glue.region", None, "Glue: the region. Unset: that of the environment.", Kind.TEXT
    )
    endpoint_url: str | None = option(
        "hoodie.aws.glue.endpoint", None, "Glue: another endpoint than the region's.", Kind.TEXT
    )
    aws: AwsOptions = part(AwsOptions)
