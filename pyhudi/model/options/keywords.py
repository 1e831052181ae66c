"""Python names of the options that people type most: `write_hudi(..., record_key="id")`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from pyhudi.errors import ConfigError

__all__ = ["KEYWORDS", "merged_options", "options_from_keywords"]

KEYWORDS: Mapping[str, str] = MappingProxyType(
    {
        "base_file_format": "hoodie.table.base.file.format",
        "bloom_filter": "hoodie.parquet.bloom.filter.enabled",
        "buckets": "hoodie.bucket.index.num.buckets",
        "combine_before_insert": "hoodie.combine.before.insert",
        "combine_before_upsert": "hoodie.combine.before.upsert",
        "compression": "hoodie.parquet.compression.codec",
        "compression_level": "hoodie.pyhudi.compression.level",
        "database_name": "hoodie.database.name",
        "drop_partition_columns": "hoodie.datasource.write.drop.partition.columns",
        "duplicates": "hoodie.datasource.insert.dup.policy",
        "engine": "hoodie.pyhudi.engine",
        "hive_style": "hoodie.datasource.write.hive_style_partitioning",
        "index": "hoodie.index.type",
        "key_generator": "hoodie.datasource.write.keygenerator.class",
        "lock": "hoodie.write.lock.provider",
        "log_block_format": "hoodie.logfile.data.block.format",
        "max_file_size_bytes": "hoodie.parquet.max.file.size",
        "merge_mode": "hoodie.write.record.merge.mode",
        "meta_fields": "hoodie.populate.meta.fields",
        "operation": "hoodie.datasource.write.operation",
        "ordering": "hoodie.table.ordering.fields",
        "partition_by": "hoodie.datasource.write.partitionpath.field",
        "record_key": "hoodie.datasource.write.recordkey.field",
        "small_file_limit_bytes": "hoodie.parquet.small.file.limit",
        "sort_columns": "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        "sort_mode": "hoodie.bulkinsert.sort.mode",
        "table_name": "hoodie.table.name",
        "table_type": "hoodie.datasource.write.table.type",
        "table_version": "hoodie.write.table.version",
        "url_encode": "hoodie.datasource.write.partitionpath.urlencode",
    }
)


def options_from_keywords(keywords: Mapping[str, object]) -> dict[str, object]:
    """Option keys for Python names; keys that are option keys already (`hoodie....`) pass.

    Raises ConfigError for a name that is neither, naming the nearest, and for an option given by both names.
    """
    result: dict[str, object] = {}
    for name, value in keywords.items():
        key = name if "." in name else KEYWORDS.get(name)
        if key is None:
            raise ConfigError(
                f"Unknown argument {name!r}.{_nearest(name)} Or give Hudi's own key, as in **{{'hoodie....': ...}}."
            )
        if key in result:
            raise ConfigError(f"{name!r} and {key!r} are the same option; leave one of them out.")
        result[key] = value
    return result


def _nearest(name: str) -> str:
    near = get_close_matches(name, KEYWORDS, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(KEYWORDS)}."


def merged_options(options: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """`options` by key and `keywords` by Python name as one mapping by key. Raises ConfigError for one given twice."""
    given = options_from_keywords({name: value for name, value in keywords.items() if value is not None})
    for key, value in (options or {}).items():
        if key in given and given[key] != value:
            raise ConfigError(f"{key} is given twice, as {value!r} in options and as {given[key]!r} by name.")
    return {**(options or {}), **given}
