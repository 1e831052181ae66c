"""The partitions `expr_index_<name>`: ranges or filters of a column function's values in each file and partition.

`ExpressionIndexPartition` builds and updates them. `call_of_definition` reads the function call from the index
definition, and `why_no_expression_index` says why this release does not support a definition.

Source: docs/formats/metadata-table.md, "Expression index", "Building", "Writing", "Index definitions".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.arrow.kinds import is_text
from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.expressions.column_functions import call_of, result_type, why_not
from pyhudi.expressions.predicates import Call, Column
from pyhudi.filegroup.stats import ExpressionReading, bloom_filters_of_expression, stats_of_expression
from pyhudi.formats.base import Footer
from pyhudi.formats.stored_ranges import stats_schema
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import EXPRESSION_OPTION, IndexDefinition, read_index_definitions
from pyhudi.metadata.initialization import split_by_group
from pyhudi.metadata.keys import column_stats_prefix, expression_partition_key, stored_partition
from pyhudi.metadata.listing import file_names_after, has_earlier_writes
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.bloom_filters import bloom_filter_deletions, bloom_filters_update
from pyhudi.metadata.partitions.stats_updates import (
    column_stats_deletions,
    column_stats_update,
    partition_stats_deletions,
    partition_stats_update,
)
from pyhudi.metadata.records import concat_records
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import newest_slices
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import COMPACTIONS
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_format import TableFormat

__all__ = ["ExpressionIndexPartition", "call_of_definition", "is_bloom_index", "why_no_expression_index"]


_BY_VALUE_TYPE = 9  # first table version whose indexes are of version V2
_COLUMN_STATS, _BLOOM = MetadataKind.COLUMN_STATS.value.prefix, MetadataKind.BLOOM_FILTERS.value.prefix
_BLOOM_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})  # each filter carries its own


def call_of_definition(definition: IndexDefinition) -> Call:
    """The function call that the index is built on. The definition has one column."""
    (column,) = definition.source_fields
    passed_over = {EXPRESSION_OPTION, *(_BLOOM_OPTIONS if is_bloom_index(definition) else ())}
    options = {name: text for name, text in definition.options.items() if name not in passed_over}
    return call_of(definition.function, Column((column,)), options)


def is_bloom_index(definition: IndexDefinition) -> bool:
    """True if the index holds bloom filters of the values instead of their ranges."""
    return definition.kind == _BLOOM


def why_no_expression_index(data: MetaClient, partition: str, definition: IndexDefinition | None = None) -> str | None:
    """Why this release can't build or update an expression index, as part of a sentence; None when it can.

    Args:   definition: of an index about to be made; None: the table's definition.
    """
    version = data.config.table_version
    if not TableFormat(version).has_expression_indexes:
        first = TableFormat.has_expression_indexes.first
        return f"the table has version {version}, and expression indexes begin with {first}"
    try:
        index = definition or read_index_definitions(data.storage).by_name.get(partition)
        schema = data.stored_schema()
    except HudiError as error:
        return str(error)
    if index is None:
        return f"index.json has no definition of {partition}"
    if index.version != ("V2" if version >= _BY_VALUE_TYPE else None):
        return f"it is of version {index.version}, which tables of version {version} do not have"
    if index.kind not in (_COLUMN_STATS, _BLOOM):
        return f"it is of the type {index.kind!r}; known are {_COLUMN_STATS} and {_BLOOM}"
    if len(index.source_fields) != 1:
        return f"it is of the columns {', '.join(index.source_fields) or 'none'}, and not of one"
    return _why_not_of(index, schema)


def _why_not_of(definition: IndexDefinition, schema: pa.Schema) -> str | None:
    (column,) = definition.source_fields
    if column not in schema.names:
        return f"the table stores no column {column!r}"
    kind, call = schema.field(column).type, call_of_definition(definition)
    why = why_not(call, kind)
    if why is None and is_bloom_index(definition):
        result = result_type(call, kind)
        if not (is_text(result) or pa.types.is_integer(result)):
            return f"it is not known what text Apache Hudi makes of {result} for a bloom filter"
    return why


_PAYLOAD = MetadataKind.COLUMN_STATS.payloads[0]
_Sizes = Mapping[str, Mapping[str, int]]  # partition path → path of a file → its size in bytes


@dataclass(frozen=True, slots=True)
class ExpressionIndexPartition:
    """Builds and updates the partitions `expr_index_<name>`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Write no definition: the call that creates the index writes it."""
        return options.expression_file_groups

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The values of all rows in the newest slices. Raises UnsupportedTable when the index can't be updated."""
        data = table.data
        index = _index(data, partition)
        newest = data.timeline.completed().commits().instants
        instant_time = newest[-1].requested_time if newest else ""
        records = index.build_records(newest_slices(data), instant_time)
        count = groups or options.expression_file_groups
        return split_by_group(partition, records, count, data.config.table_version)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Add the values of new files; delete those of deleted files. Raises UnsupportedTable."""
        index = _index(table.data, partition, commit.stored_schema(table.data))
        return index.update(table, partition, commit)


@dataclass(frozen=True, slots=True)
class _StatsIndex:
    """An index of value ranges, per file and per partition."""

    data: MetaClient
    reading: ExpressionReading

    @property
    def _version(self) -> int:
        return self.data.config.table_version

    @property
    def _column(self) -> str:
        return self.reading.call.column.path[0]

    def build_records(self, slices: Sequence[FileSlice], instant_time: str) -> pa.Table:
        stats = self._stats(_sizes_of(slices))
        names = {path: _names(own) for path, own in _sizes_of(slices).items()}
        stats_of = {path: concat_records([self._nothing(), *own]) for path, own in stats.items()}
        return self._update(stats, self._partitions(stats_of, names)).records

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        change = commit.change
        stats = self._stats(_sizes_written(commit))
        deleted = {path: changed.deleted for path, changed in change.partitions.items() if changed.deleted}
        removed = [column_stats_deletions(self._version, (self._column,), deleted)]
        empty = [path for path, changed in change.partitions.items() if changed.is_partition_deleted]
        after: Mapping[str, Collection[str]] = {}
        if commit.instant.action not in COMPACTIONS and (change.stats or change.groups_replaced):
            after = file_names_after(self.data, change)
        # While the index is being built, it lacks the files that existed before.
        is_known = partition in table.partitions and not has_earlier_writes(self.data, commit.instant)
        filled = [path for path, names in after.items() if names and is_known]
        stats_of = {
            path: concat_records([self._existing_stats(table, partition, path), *stats.get(path, ())])
            for path in filled
        }
        empty += [path for path in after if path not in stats_of]
        removed.append(partition_stats_deletions(self._version, (self._column,), empty, expression_partition_key))
        return self._update(stats, self._partitions(stats_of, after)).joined(removed)

    def _stats(self, sizes: _Sizes) -> Mapping[str, list[pa.Table]]:
        by_path = {path: partition for partition, own in sizes.items() for path in own}
        by_partition: dict[str, list[pa.Table]] = {partition: [] for partition in sizes}
        flat = [(path, size_bytes) for own in sizes.values() for path, size_bytes in own.items()]
        for path, stats in stats_of_expression(self.reading, flat, self._version):
            by_partition[by_path[path]].append(stats)
        return by_partition

    def _nothing(self) -> pa.Table:
        return stats_schema(self._version).empty_table()

    def _existing_stats(self, table: MetadataTable, partition: str, path: str) -> pa.Table:
        """The statistics that the index has of a partition's files."""
        records = table.with_prefixes(partition, [column_stats_prefix(self._column, stored_partition(path))])
        rows = records.column(_PAYLOAD).combine_chunks()
        return pa.Table.from_struct_array(rows) if isinstance(rows, pa.StructArray) else self._nothing()

    def _partitions(self, stats_of: Mapping[str, pa.Table], names: Mapping[str, Collection[str]]) -> PartitionUpdate:
        """The statistics of whole partitions. A log file without statistics has no rows."""
        if not self.data.config.partition_fields:
            return partition_stats_update(self._version, (), {}, expression_partition_key)
        by_path = {}
        for path, stats in stats_of.items():
            known_names = set(stats.column("fileName").to_pylist()) if stats.num_rows else set()
            files = {name for name in names[path] if name in known_names or LogFileName.parse(name) is None}
            by_path[path] = (stats, files)
        filled = {path: one for path, one in by_path.items() if one[0].num_rows}
        update = partition_stats_update(self._version, (self._column,), filled, expression_partition_key)
        return update.joined(
            [
                partition_stats_deletions(
                    self._version, (self._column,), set(by_path) - set(filled), expression_partition_key
                )
            ]
        )

    def _update(self, stats: Mapping[str, Sequence[pa.Table]], partitions: PartitionUpdate) -> PartitionUpdate:
        return column_stats_update(self._version, stats).joined([partitions])


@dataclass(frozen=True, slots=True)
class _BloomIndex:
    """An index of bloom filters of the values, one per base file."""

    data: MetaClient
    reading: ExpressionReading

    def build_records(self, slices: Sequence[FileSlice], instant_time: str) -> pa.Table:
        return self._of(_sizes_of(slices), instant_time).records

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        time = commit.instant.requested_time
        deleted = {
            path: [name for name in changed.deleted if BaseFileName.parse(name) is not None]
            for path, changed in commit.change.partitions.items()
        }
        removed = bloom_filter_deletions(self.data.config.table_version, time, deleted)
        return self._of(_sizes_written(commit), time).joined([removed])

    def _of(self, sizes: _Sizes, instant_time: str) -> PartitionUpdate:
        by_path = {path: partition for partition, own in sizes.items() for path in own}
        base_files = [path for path in by_path if BaseFileName.parse(path.rpartition("/")[2]) is not None]
        footers: dict[str, dict[str, Footer]] = {}
        for path, bloom in bloom_filters_of_expression(self.reading, base_files):
            footer = Footer(bloom_type=bloom.kind, bloom_base64=bloom.to_base64())
            footers.setdefault(by_path[path], {})[path.rpartition("/")[2]] = footer
        return bloom_filters_update(self.data.config.table_version, instant_time, footers)


def _index(data: MetaClient, partition: str, schema: pa.Schema | None = None) -> _StatsIndex | _BloomIndex:
    why = why_no_expression_index(data, partition)
    if why is None:
        definition = read_index_definitions(data.storage).by_name[partition]
        call = call_of_definition(definition)
        kind = (schema or data.stored_schema()).field(call.column.path[0]).type
        why = why_not(call, kind)  # a write may change the column's type
    if why is not None:
        raise UnsupportedTable(
            f"{data.storage.root}: the partition {partition!r} can't be kept up: {why}. Drop the index first."
        )
    reading = ExpressionReading(data.storage, call, kind)
    return _BloomIndex(data, reading) if is_bloom_index(definition) else _StatsIndex(data, reading)


def _sizes_of(slices: Sequence[FileSlice]) -> _Sizes:
    sizes: dict[str, dict[str, int]] = {}
    for one in slices:
        of_partition = sizes.setdefault(one.group.partition_path, {})
        of_partition |= {log.path: log.size_bytes for log in one.log_files if not log.is_missing}
        if one.base_file is not None:
            of_partition[one.base_file.path] = one.base_file.size_bytes
    return sizes


def _sizes_written(commit: TableCommit) -> _Sizes:
    sizes: dict[str, dict[str, int]] = {}
    for stat in commit.change.stats:
        name = None if stat.path is None else LogFileName.parse(stat.path.rpartition("/")[2])
        if stat.path is not None and (name is None or not name.suffix):  # change logs hold no rows of the table
            sizes.setdefault(stat.partition_path or "", {})[stat.path] = stat.file_size_in_bytes
    return sizes


def _names(paths: Collection[str]) -> Collection[str]:
    return {path.rpartition("/")[2] for path in paths}
