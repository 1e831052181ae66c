"""Skipping partitions and files that a query need not open, by the statistics of the metadata table.

`PartitionStatistics` skips whole partitions, `ColumnStatistics` single files. `stored_ranges` turns the statistics of
files into ranges in the column's type.

A file is read if its range is uncertain: for columns without statistics in one of a slice's files, for columns whose
value comes from the path, and for tables with a schema history. The range of a slice covers all its files together,
because a merged row may take one column from the base file and another from a log file.

Statistics of whole partitions are used first. Only their bounds count, and only for columns without floats. A file that
lacks a column is not in these statistics, and in real Hudi neither are the values that a not-a-number hides. The
statistics describe the newest state, so only queries of that state use them. On merge-on-read tables below version 9 no
query does: Hudi 1.0 omits base files from them while a compaction is pending.
Source: docs/formats/metadata-table.md, "Bounds", "Keys", "Statistics of partitions", "Statistics"; docs/reading.md,
"The metadata table".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.columns import resolve, resolve_operand
from pyhudi.expressions.predicates import Column, Operand, Predicate, column_of, columns_of
from pyhudi.expressions.statistics.range_columns import NOT_COMPARABLE, RangeColumns, python_values, which_may_match
from pyhudi.expressions.statistics.ranges import ValueRange, may_match
from pyhudi.formats.base.parquet_calendar import FIRST_SAFE_DAY
from pyhudi.lazy_property import lazy_property
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import column_stats_prefix, file_keys, partition_stats_key, stored_partition
from pyhudi.metadata.partitions.stats_columns import bounds
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.expressions import depends_on_zone, expression_indexes, in_any_zone
from pyhudi.queries.skip.skipper import Answer, SkipRequest, path_columns

__all__ = [
    "ColumnStatistics",
    "FileRanges",
    "PartitionStatistics",
    "load_file_ranges",
    "partitions_that_may_match",
    "stored_bounds",
    "stored_ranges",
]


_LEAST_SAFE = pa.scalar(FIRST_SAFE_DAY, pa.date32())
_TIMESTAMP_KINDS = {"ms": (15, 18), "us": (16, 19), "ns": (17, 20)}  # unit → ordinals of value types


def stored_ranges(stats: pa.Array, data_type: pa.DataType) -> RangeColumns:
    """The ranges in statistics of files (structs), as far as they can be trusted; unknown without counts.

    Raises: CorruptFile.
    """
    low, high = (stored_bounds(stats, name, data_type) for name in ("minValue", "maxValue"))
    floating = pa.types.is_floating(data_type)
    if floating:
        # Apache Hudi writes zeros for a column with NaN, which bounds no other values.
        unreliable = pc.or_kleene(
            pc.and_(pc.equal(low, 0.0), pc.equal(high, 0.0)), pc.or_kleene(pc.is_nan(low), pc.is_nan(high))
        )
        none = pa.scalar(None, data_type)
        low, high = (pc.if_else(pc.fill_null(unreliable, False), none, bound) for bound in (low, high))
    count, nulls = (pc.struct_field(stats, name) for name in ("valueCount", "nullCount"))
    has_counts = pc.and_(count.is_valid(), nulls.is_valid())
    may_be_null, only_null = (
        pc.if_else(has_counts, flags, pa.scalar(None, pa.bool_()))
        for flags in (pc.greater(nulls, 0), pc.equal(nulls, count))
    )
    return RangeColumns(low, high, may_be_null, only_null, may_be_nan=floating)


def stored_bounds(stats: pa.Array, name: str, data_type: pa.DataType) -> pa.Array:
    """`minValue` or `maxValue` of statistics; null if there is none, or if it is in another unit than the column.

    Dates and times before 1900 are null, too: Hudi takes them from the footers of files that Spark or a bootstrap
    wrote, and the statistics don't name the calendar (`formats/base/parquet_calendar.py`).
    """
    least = _LEAST_SAFE.cast(data_type) if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type) else None
    bounds = _bounds(stats, name, data_type)
    return bounds if least is None else pc.if_else(pc.less(bounds, least), pa.scalar(None, data_type), bounds)


def _bounds(stats: pa.Array, name: str, data_type: pa.DataType) -> pa.Array:
    wrapped, kinds = pc.struct_field(stats, name), _value_types(stats)
    trusted = _trusted(stats, kinds, data_type)
    parts, places, row_count = [pa.nulls(0, data_type)], np.full(len(stats), -1), 0
    for has_value_type in (True, False):
        rows = pc.and_(trusted, pc.equal(kinds.is_valid(), has_value_type)).to_numpy(zero_copy_only=False).nonzero()[0]
        if len(rows) == len(stats):
            return bounds(wrapped, data_type, has_value_type)
        parts.append(bounds(wrapped.take(pa.array(rows)), data_type, has_value_type))
        places[rows] = np.arange(row_count, row_count + len(rows))
        row_count += len(rows)
    return pa.concat_arrays(parts).take(pa.array(places, mask=places < 0))


def _value_types(stats: pa.Array) -> pa.Array:
    """Ordinals of the values' types; null in statistics of versions before 9."""
    if stats.type.get_field_index("valueType") < 0:
        return pa.nulls(len(stats), pa.int32())
    return pc.struct_field(stats, ["valueType", "typeOrdinal"])


def _trusted(stats: pa.Array, kinds: pa.Array, data_type: pa.DataType) -> pa.Array:
    """A mask of the bounds in the unit, or the scale, of the column's type. Files may be older than the type."""
    everywhere = pa.repeat(pa.scalar(True), len(stats))
    if pa.types.is_timestamp(data_type):
        kinds_of_unit = pa.array(_TIMESTAMP_KINDS.get(data_type.unit, ()), pa.int32())
        # Before version 9 the unit is not stored: Spark's has always been the microsecond.
        untyped = pa.repeat(pa.scalar(data_type.unit == "us"), len(stats))
        return pc.if_else(kinds.is_valid(), pc.is_in(kinds, kinds_of_unit), untyped)
    if pa.types.is_decimal(data_type) and kinds.null_count < len(kinds):
        info = pc.struct_field(stats, ["valueType", "additionalInfo"])
        same_scale = pc.match_substring_regex(info, f",{data_type.scale}$")
        return pc.if_else(kinds.is_valid(), pc.fill_null(same_scale, False), everywhere)
    return everywhere


_PARTITION = MetadataKind.COLUMN_STATS.value.prefix
_OF_PARTITIONS = MetadataKind.PARTITION_STATS.value.prefix
_PARTITIONS_BY_PREFIX = (
    64  # up to this number partitions are looked up one by one; for more, all statistics of the column are read
)


@dataclass(frozen=True, slots=True)
class _StoredRanges:
    """Ranges of one column, or of a function of it, by key of the statistics."""

    column: str
    keys: pa.Array
    ranges: RangeColumns

    def of_files(self, files: pa.Array) -> RangeColumns:
        """The ranges of files, by the ends of their keys."""
        keys = pc.binary_join_element_wise(column_stats_prefix(self.column), files, "")
        return self.ranges.take(pc.index_in(keys, self.keys))


@dataclass(frozen=True)
class FileRanges:
    """Ranges of the columns of one predicate, and of functions of columns, in the files of a table."""

    predicate: Predicate
    stored: Mapping[Operand, _StoredRanges]

    def which_may_match(
        self, reads: Sequence[ReadSlice], from_path: Mapping[str, Collection[str]]
    ) -> npt.NDArray[np.bool_]:
        """A mask of the slices that can have a row that passes. `from_path`: see `path_columns`."""
        may = np.ones(len(reads), np.bool_)
        several = np.array([read.merges and bool(read.file_slice.log_files) for read in reads], np.bool_)
        alone = [read for read, is_several in zip(reads, several.tolist(), strict=True) if not is_several]
        if alone:
            may[~several] = self._of_base_files(alone, from_path)
        if several.any():
            merged = [read for read in reads if read.merges and read.file_slice.log_files]
            may[several] = [self._may_match(read, from_path) for read in merged]
        return may

    def _of_base_files(
        self, reads: Sequence[ReadSlice], from_path: Mapping[str, Collection[str]]
    ) -> npt.NDArray[np.bool_]:
        """Like `which_may_match`, for slices that are read from their base files alone."""
        paths = [read.file_slice.group.partition_path for read in reads]
        names = [read.base_file.name for read in reads]
        files = pa.array(file_keys(map(stored_partition, paths), names), pa.string())
        ranges = dict[Operand, RangeColumns]()
        for operand, stored in self.stored.items():
            column = column_of(operand).path[0]
            hidden = {path for path, columns in from_path.items() if column in columns}
            ranges[operand] = stored.of_files(files)
            if hidden:
                ranges[operand] = ranges[operand].unknown_where(np.array([path in hidden for path in paths], np.bool_))
        try:
            return which_may_match(self.predicate, ranges, len(reads))
        except NOT_COMPARABLE:
            return np.array([self._may_match(read, from_path) for read in reads], np.bool_)

    def _may_match(self, read: ReadSlice, from_path: Mapping[str, Collection[str]]) -> bool:
        """True if a slice, with all of its files, can have a row that passes."""
        file_slice, partition = read.file_slice, read.file_slice.group.partition_path
        names = [file_slice.base_file.name] if file_slice.base_file is not None else []
        names += [log.name for log in file_slice.log_files] if read.merges else []
        files = file_keys([stored_partition(partition)] * len(names), names)

        def ranges(operand: Operand) -> ValueRange | None:
            by_key = self._by_key.get(operand)
            if by_key is None or column_of(operand).path[0] in from_path[partition]:
                return None
            prefix = column_stats_prefix(".".join(column_of(operand).path))
            return _together([by_key.get(prefix + file) for file in files])

        return may_match(self.predicate, ranges)

    @lazy_property
    def _by_key(self) -> Mapping[Operand, Mapping[str, ValueRange | None]]:
        """The ranges as objects, for slices of several files and for values that Arrow can't compare."""
        return {
            operand: dict(zip(cast("list[str]", stored.keys.to_pylist()), stored.ranges.to_ranges(), strict=True))
            for operand, stored in self.stored.items()
        }


def load_file_ranges(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, partitions: Sequence[str]
) -> FileRanges | None:
    """Statistics of the predicate's columns; None if they can't skip any file.

    Args:    predicate: bound to `schema`; partitions: paths of the partitions to read.
    Raises:  CorruptFile, MetadataTableDamaged.
    """
    columns = columns_of(predicate) if _PARTITION in table.partitions else ()
    indexes = expression_indexes(table, predicate)
    if not columns and not indexes:
        return None
    stored: dict[Operand, _StoredRanges] = {
        column: _stored(_records(table, _PARTITION, column, partitions), column, data_type)
        for column, data_type in _resolved(columns, schema)
    }
    for call, index in indexes.items():
        column_type, result = resolve(call.column, schema)[1], resolve_operand(call, schema)[1]
        of_call = _stored(_records(table, index, call.column, partitions), call.column, result)
        if depends_on_zone(call, column_type):
            of_call = replace(of_call, ranges=of_call.ranges.with_each(partial(in_any_zone, call, column_type)))
        stored[call] = of_call
    return FileRanges(predicate, stored)


class ColumnStatistics:
    """Skips files by the ranges of their columns, and of functions of columns that have an expression index."""

    name = "column statistics"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        from_path = path_columns(slices)
        ranges = load_file_ranges(request.table, request.predicate, request.schema, tuple(from_path))
        return None if ranges is None else Answer(ranges.which_may_match(slices, from_path).tolist())


class PartitionStatistics:
    """Skips all files of a partition by the ranges of its columns."""

    name = "statistics of partitions"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        if not request.is_newest:
            return None
        from_path = path_columns(slices)
        paths = partitions_that_may_match(request.table, request.predicate, request.schema, from_path)
        return None if paths is None else Answer([read.file_slice.group.partition_path in paths for read in slices])


def partitions_that_may_match(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, from_path: Mapping[str, Collection[str]]
) -> frozenset[str] | None:
    """The partitions that can now have a row that passes; None if their statistics skip none.

    Args:   predicate: bound to `schema`; from_path: see `path_columns`, for all partitions to check.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    columns, config = columns_of(predicate), table.data.config
    if _OF_PARTITIONS not in table.partitions or not columns:
        return None
    if config.is_merge_on_read and not config.format.counts_logs_in_partition_stats:
        return None
    by_column = {
        column: _partition_ranges(table, column, data_type, tuple(from_path))
        for column, data_type in _resolved(columns, schema)
        if not pa.types.is_floating(data_type)
    }
    if len(_matching(predicate, by_column, from_path)) == len(from_path):
        return None
    # A column that writes no longer index has outdated ranges.
    indexed = _indexed(table)
    by_column = {column: ranges for column, ranges in by_column.items() if ".".join(column.path) in indexed}
    paths = _matching(predicate, by_column, from_path)
    # A write that this query does not see may have narrowed a range.
    return paths if len(paths) < len(from_path) and table.data.is_current() else None


def _matching(
    predicate: Predicate,
    by_column: Mapping[Column, Mapping[str, ValueRange]],
    from_path: Mapping[str, Collection[str]],
) -> frozenset[str]:
    def ranges(path: str, column: Operand) -> ValueRange | None:
        by_path = by_column.get(column) if isinstance(column, Column) else None
        return None if by_path is None or column_of(column).path[0] in from_path[path] else by_path.get(path)

    return frozenset(path for path in from_path if may_match(predicate, partial(ranges, path)))


def _indexed(table: MetadataTable) -> frozenset[str]:
    """The columns whose statistics writes update."""
    definition = read_index_definitions(table.data.storage).by_name.get(_PARTITION)
    return frozenset(() if definition is None else definition.source_fields)


def _partition_ranges(
    table: MetadataTable, column: Column, data_type: pa.DataType, partitions: Sequence[str]
) -> Mapping[str, ValueRange]:
    """Partition path → range of the column's values that are not null."""
    name = ".".join(column.path)
    paths = {partition_stats_key(name, path): path for path in partitions}
    few = len(partitions) <= _PARTITIONS_BY_PREFIX
    read = (
        table.lookup(_OF_PARTITIONS, paths) if few else table.with_prefixes(_OF_PARTITIONS, [column_stats_prefix(name)])
    )
    if not read.num_rows:
        return {}
    stats = read.column(MetadataKind.PARTITION_STATS.payloads[0]).combine_chunks()
    lows, highs = (python_values(stored_bounds(stats, bound, data_type)) for bound in ("minValue", "maxValue"))
    tight = pc.struct_field(stats, "isTightBound").to_pylist()
    rows = zip(read.column("key").to_pylist(), lows, highs, tight, strict=True)
    return {
        paths[str(key)]: ValueRange(low, high)
        for key, low, high, is_tight in rows
        if key in paths and is_tight and low is not None and high is not None
    }


def _resolved(columns: Iterable[Column], schema: pa.Schema) -> Iterable[tuple[Column, pa.DataType]]:
    """The columns that the schema has, with their types."""
    for column in columns:
        try:
            yield column, resolve(column, schema)[1]
        except ConfigError:
            continue


def _records(table: MetadataTable, index: str, column: Column, partitions: Sequence[str]) -> pa.Table:
    """The statistics of a column in a partition of the metadata table, for the files in these partitions."""
    name = ".".join(column.path)
    few = len(partitions) <= _PARTITIONS_BY_PREFIX
    within = [stored_partition(path) for path in partitions] if few else [None]
    return table.with_prefixes(index, [column_stats_prefix(name, partition) for partition in within])


def _stored(records: pa.Table, column: Column, data_type: pa.DataType) -> _StoredRanges:
    name = ".".join(column.path)
    if not records.num_rows:
        return _StoredRanges(name, pa.array([], pa.string()), RangeColumns.nothing(data_type))
    stats = records.column(MetadataKind.COLUMN_STATS.payloads[0]).combine_chunks()
    keys = records.column("key").combine_chunks()
    return _StoredRanges(name, keys, stored_ranges(stats, data_type))


def _together(ranges: Sequence[ValueRange | None]) -> ValueRange | None:
    """The range of the rows of several files; None if one of them has none."""
    if not ranges:
        return None
    joined: ValueRange | None = None
    for one in ranges:
        if one is None:
            return None
        joined = one if joined is None else _both(joined, one)
    return joined


def _both(one: ValueRange, other: ValueRange) -> ValueRange:
    may_be_null = one.may_be_null or other.may_be_null
    if one.only_null or other.only_null:
        with_values = other if one.only_null else one
        return replace(with_values, may_be_null=True)
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return ValueRange(low, high, may_be_null, may_be_nan=one.may_be_nan or other.may_be_nan)
