"""Checks of the metadata table's statistics and bloom filters, and the common terms of all its checks.

`column_stats`, `partition_stats` and `bloom_filters` compare the records of one partition of the metadata table with
the rows and files that they describe. Every check of the metadata table takes a `Compared`, the part of the table to
check, and yields a `Difference` for each error.
Source: docs/formats/metadata-table.md, "Statistics", "Statistics of partitions", "Bloom filters", "Records";
docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.stats import bloom_filters_of_files
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import SIMPLE
from pyhudi.lazy_property import lazy_property
from pyhudi.metadata.keys import bloom_filter_key, column_stats_key, stored_partition
from pyhudi.metadata.partitions.stats_columns import bounds, columns_with_stats
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.metadata import DEFAULT_METADATA
from pyhudi.queries.plan import ReadPlan, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.result import Result
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["KEYS_SHOWN", "Compared", "Difference", "bloom_filters", "column_stats", "partition_stats"]


KEYS_SHOWN = 5  # in one difference, which also has their number


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Result):
    """One error in the metadata table. `partition`: of the metadata table."""

    partition: str
    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Compared:
    """A metadata table, and the newest slices of the file groups with which it is compared. `is_whole`: they are all
    of the table. `merger_classes`: the caller's mergers.
    """

    table: MetadataTable
    view: FileSystemView
    slices: Sequence[FileSlice]
    is_whole: bool
    merger_classes: Sequence[str] = ()

    @lazy_property
    def groups(self) -> frozenset[FileGroupId]:
        """The file groups of the slices."""
        return frozenset(file_slice.group for file_slice in self.slices)

    def plan(self, columns: Sequence[str], groups: Collection[FileGroupId] | None = None) -> ReadPlan:
        """The plan that reads their rows without the metadata table. `groups`: other file groups than those compared.

        Partition columns have the values that the files hold, as in the metadata table. A query shows the path's, which
        differ where a row stayed in its partition (`update.partition.path=false`).
        """
        query = Query(columns=columns, use_metadata=False, merger_classes=self.merger_classes)
        plan = plan_snapshot(self.table.data, query)
        read_groups = None if groups is None and self.is_whole else self.groups if groups is None else groups
        slices = (read for read in plan.slices if read_groups is None or read.file_slice.group in read_groups)
        return replace(plan, slices=tuple(replace(read, parsed_path_values=()) for read in slices))


_PAYLOAD = MetadataKind.COLUMN_STATS.payloads[0]
_BOUNDS = ("minValue", "maxValue")
_FILTERS_AT_ONCE = 64  # a filter of 10,000 keys has some 70 kB


# ---- column statistics -----------------------------------------------------------------------------------------------


def column_stats(compared: Compared, partition: str) -> Iterator[Difference]:
    """Counts that differ from the rows of base files, and bounds that do not enclose them."""
    base_files = [file_slice.base_file for file_slice in compared.slices if file_slice.base_file is not None]
    stats = _stats(compared, partition, base_files)
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(pc.struct_field(stats, "fileName").to_pylist()):
        rows.setdefault(str(name), []).append(row)
    for base_file in base_files:
        if base_file.name not in rows:
            yield Difference(partition, base_file.path, "statistics", "no record")
            continue
        with open_base_file(compared.table.data.storage, base_file.path) as reader:
            columns = {field.name: field.type for field in reader.schema}
            for row in rows[base_file.name]:
                name = stats[row]["columnName"].as_py()
                if name in columns:
                    yield from _one_column(partition, stats.slice(row, 1), base_file, reader.column(name))


def _stats(compared: Compared, partition: str, base_files: Sequence[BaseFile]) -> pa.Array:
    """All statistics, or those of the base files of a sample."""
    table = compared.table
    if compared.is_whole:
        return table.records(partition).column(_PAYLOAD).combine_chunks()
    columns = columns_with_stats(table.data, table.data.stored_schema(), DEFAULT_METADATA) or ()
    keys = [
        column_stats_key(column, stored_partition(base_file.group.partition_path), base_file.name)
        for base_file in base_files
        for column in columns
    ]
    return table.lookup(partition, keys).column(_PAYLOAD).combine_chunks()


def _one_column(partition: str, stats: pa.Array, base_file: BaseFile, values: pa.ChunkedArray) -> Iterator[Difference]:
    record = stats[0].as_py()
    where = f"{base_file.path}, column {record['columnName']!r}"
    for name, count in (("valueCount", len(values)), ("nullCount", values.null_count)):
        if record[name] != count:
            yield Difference(partition, where, f"{name} {count}", f"{record[name]}")
    yield from _outside(partition, where, stats, values)


def _outside(partition: str, where: str, stats: pa.Array, values: pa.Array | pa.ChunkedArray) -> Iterator[Difference]:
    """A difference if values are outside the bounds of the only record; none if it has no bounds."""
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return  # real Hudi then writes 0.0 for both bounds, and readers must not use them
    has_type = stats.type.get_field_index("valueType") >= 0 and stats[0]["valueType"].is_valid
    least, greatest = (bounds(pc.struct_field(stats, name), values.type, has_type)[0] for name in _BOUNDS)
    if least.is_valid and greatest.is_valid:
        inside = pc.and_(pc.greater_equal(values, least), pc.less_equal(values, greatest))
        if not pc.all(inside, min_count=0).as_py():
            extremes = pc.min_max(values)
            yield Difference(partition, where, f"bounds around {extremes}", f"{least} to {greatest}")


# ---- statistics of partitions ----------------------------------------------------------------------------------------


def partition_stats(compared: Compared, partition: str) -> Iterator[Difference]:
    """Bounds that queries use and that do not enclose the rows of their partition. They may be too wide: real Hudi, and
    PyHudi with it, leaves them as they are after compactions.
    """
    stats = compared.table.records(partition).column(_PAYLOAD).combine_chunks()
    stats = stats.filter(pc.fill_null(pc.struct_field(stats, "isTightBound"), False))
    names = pc.struct_field(stats, "columnName")
    data = compared.table.data
    table_names = {*(META_COLUMNS if data.config.populate_meta_fields else ()), *data.table_schema().names}
    plan = compared.plan([name for name in map(str, pc.unique(names).to_pylist()) if name in table_names])
    of_path: dict[str, list[int]] = {}
    for row, path in enumerate(pc.struct_field(stats, "fileName").to_pylist()):
        of_path.setdefault(str(path), []).append(row)
    for path, rows in of_path.items():
        slices = tuple(read for read in plan.slices if read.file_slice.group.partition_path == path)
        wrong_rows: set[int] = set()
        for batch in read_batches(replace(plan, slices=slices), compared.table.data.storage) if slices else ():
            batch_names = set(batch.schema.names)
            for row in rows:
                name = str(names[row].as_py())
                if row in wrong_rows or name not in batch_names:
                    continue
                where = f"{path or '.'}, column {name!r}"
                for difference in _outside(partition, where, stats.slice(row, 1), batch.column(name)):
                    wrong_rows.add(row)
                    yield difference


# ---- bloom filters ---------------------------------------------------------------------------------------------------


def bloom_filters(compared: Compared, partition: str) -> Iterator[Difference]:
    """Filters that differ from those of the files' footers, and missing ones."""
    table = compared.table
    base_files = {
        file_slice.base_file.path: file_slice.base_file
        for file_slice in compared.slices
        if file_slice.base_file is not None
    }
    for start in range(0, len(base_files), _FILTERS_AT_ONCE):
        paths = list(base_files)[start : start + _FILTERS_AT_ONCE]
        keys = {
            path: bloom_filter_key(stored_partition(base_files[path].group.partition_path), base_files[path].name)
            for path in paths
        }
        records = table.lookup(partition, keys.values())
        payloads = records.column(MetadataKind.BLOOM_FILTERS.payloads[0]).to_pylist()
        payload_of_key = dict(zip(records.column("key").to_pylist(), payloads, strict=True))
        for path, footer in bloom_filters_of_files(table.data.storage, paths):
            stored = payload_of_key.get(keys[path])
            stored_filter = None if stored is None else (stored["type"], bytes(stored["bloomFilter"]))
            text = footer.bloom_base64
            expected = None if text is None else (footer.bloom_type or SIMPLE, text.encode())
            if stored_filter != expected:
                yield Difference(partition, path, _filter(expected), _filter(stored_filter))


def _filter(stored: tuple[str, bytes] | None) -> str:
    return "no filter" if stored is None else f"a filter of type {stored[0]} with {len(stored[1]):,} characters"
