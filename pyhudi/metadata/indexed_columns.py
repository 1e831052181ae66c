"""Which columns of a table have statistics in its metadata table.

    version 8, 9    three meta columns, and those that are named or the first of the table, of types that have bounds
    below           all columns, the five meta columns among them, or exactly those that are named

Source: docs/formats/metadata-table.md, "Indexed columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from pyhudi.formats.column_stats import OLD_DECIMAL, column_type
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.model.keys import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.model.new_table import LATER_KINDS
from pyhudi.model.options.metadata import MetadataOptions

__all__ = ["indexed_columns", "kept_columns", "statistics_partitions"]

_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def indexed_columns(
    schema: pa.Schema, options: MetadataOptions, table_version: int, *, populate_meta_fields: bool = True
) -> tuple[str, ...]:
    """Names of the columns, fields of structs by dotted names, in the order in which Hudi lists them.

    Args: schema: the data columns, as files store them.
    """
    named = options.column_stats_columns
    if table_version < 8:
        return named or ((*META_COLUMNS, *schema.names) if populate_meta_fields else tuple(schema.names))
    wanted = [name for name in named or schema.names if name not in META_COLUMNS]
    found = [name for name in wanted if _is_supported(column_type(schema, name), table_version)]
    if not named:
        found = found[: options.column_stats_columns_max]
    return tuple(dict.fromkeys((*(_ALWAYS if populate_meta_fields else ()), *found)))


def kept_columns(meta: MetaClient, schema: pa.Schema, options: MetadataOptions) -> tuple[str, ...] | None:
    """The columns of which a write to the table reports statistics; None when its metadata table keeps none.

    Those that the index definitions list, and those that the call names: a column that is indexed once stays it, or
    statistics of partitions would tell of its older values only. Where the first columns of the table are listed, which
    it had when nobody named any, those that were added since follow.

    Args:   schema: the data columns, as files store them.
    Raises: CorruptFile for index definitions that can't be read.
    """
    config = meta.config
    name = MetadataKind.COLUMN_STATS.value.prefix
    if name not in (*config.metadata_partitions, *config.metadata_partitions_inflight):
        return None
    version, has_meta = config.table_version, config.populate_meta_fields
    wanted = indexed_columns(schema, options, version, populate_meta_fields=has_meta)
    definition = read_index_definitions(meta.storage).by_name.get(name)
    if definition is None:
        return wanted
    listed = definition.source_fields
    goes_on = listed == wanted[: len(listed)]
    together = (*listed, *(wanted if goes_on or options.column_stats_columns else ()))
    named = replace(options, column_stats_columns=tuple(dict.fromkeys(together)))
    return indexed_columns(schema, named, version, populate_meta_fields=has_meta)


def statistics_partitions(options: MetadataOptions, table_version: int, *, is_partitioned: bool) -> Mapping[str, int]:
    """The partitions with statistics and bloom filters that a new metadata table gets, in the order in which they are
    built: name → number of file groups.
    """
    found: dict[str, int] = {}
    if options.column_stats:
        found[MetadataKind.COLUMN_STATS.value.prefix] = options.column_stats_file_groups
    if options.bloom_filters:
        found[MetadataKind.BLOOM_FILTERS.value.prefix] = options.bloom_filters_file_groups
    if options.column_stats and options.partition_stats and is_partitioned and table_version >= LATER_KINDS:
        found[MetadataKind.PARTITION_STATS.value.prefix] = options.partition_stats_file_groups
    return found


def _is_supported(kind: pa.DataType | None, table_version: int) -> bool:
    if kind is None or pa.types.is_nested(kind):
        return False
    if table_version < 9 and pa.types.is_decimal(kind):
        whole_digits = OLD_DECIMAL.precision - OLD_DECIMAL.scale
        return bool(kind.scale <= OLD_DECIMAL.scale and kind.precision - kind.scale <= whole_digits)
    return True
