"""Files that a query need not open, step by step, by indexes and statistics of the metadata table.

    record index               the file groups that have the keys that the filter wants
    statistics of partitions   all files of a partition whose values can't pass
    secondary indexes          the file groups that have the values that the filter wants
    column statistics          each file whose values can't pass
    bloom filters              each base file without the values that an expression is to have

Each step says how many it left out, and by what (`Scan.explain`). Behind the record index no other step follows: the
files that are left have the rows. Nor do any where a query for keys has one file left.
Source: docs/reading.md, "The metadata table"; docs/architecture.md, "How a read flows".

What queries take from the metadata table, as long as it can be trusted; whatever is wrong with it, they go without.

Source: docs/formats/metadata-table.md, "Is it up to date?"; docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import HudiError, MetadataTableDamaged, PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files, missing_instants
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.predicate import Predicate, calls_of, columns_of
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.expressions import slices_without
from pyhudi.queries.skip.keys import groups_with_keys, groups_with_values, wanted_keys
from pyhudi.queries.skip.statistics import FileRanges, load_file_ranges, partitions_left
from pyhudi.storage.base import FileInfo

__all__ = ["MetadataTableIgnored", "Skipped", "TrustedMetadata", "trusted_metadata", "without_skipped"]


_SHOWN = 3  # instants in a message


class MetadataTableIgnored(UserWarning):
    """The metadata table is damaged or not up to date: folders were listed and files opened instead."""


@dataclass(frozen=True, slots=True)
class TrustedMetadata:
    """A metadata table that has all completed instants."""

    table: MetadataTable

    def files(self) -> Mapping[str, list[FileInfo]] | None:
        """Partition path → its files; None (with a warning) when the records can't be read."""
        try:
            return listed_files(self.table)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def groups_with_values(
        self, predicate: Predicate, schema: pa.Schema, from_path: Collection[str]
    ) -> frozenset[FileGroupId] | None:
        """See the function of this name; None (with a warning) when the records can't be read."""
        try:
            return groups_with_values(self.table, predicate, schema, from_path)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def file_ranges(self, predicate: Predicate, schema: pa.Schema, partitions: Sequence[str]) -> FileRanges | None:
        """See `load_file_ranges`; None (with a warning) when the records can't be read."""
        try:
            return load_file_ranges(self.table, predicate, schema, partitions)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def slices_without(
        self, predicate: Predicate, schema: pa.Schema, slices: Mapping[FileSlice, Collection[str]]
    ) -> frozenset[FileSlice]:
        """See the function of this name; none (with a warning) when the records can't be read."""
        try:
            return slices_without(self.table, predicate, schema, slices)
        except HudiError as error:
            _ignored(self.table.data, error)
            return frozenset()

    def partitions_left(
        self, predicate: Predicate, schema: pa.Schema, from_path: Mapping[str, Collection[str]]
    ) -> frozenset[str] | None:
        """See `data_skipping.partitions_left`; None (with a warning) when the records can't be read."""
        try:
            return partitions_left(self.table, predicate, schema, from_path)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def groups_with_keys(self, keys: frozenset[str]) -> frozenset[FileGroupId] | None:
        """See the function of this name; None (with a warning) when the records can't be read."""
        try:
            return groups_with_keys(self.table, keys)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None


def trusted_metadata(meta: MetaClient) -> TrustedMetadata | None:
    """The table's metadata table, None when it has none; None with a warning when it lacks a completed instant."""
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return None
        missing = missing_instants(table)
        if not missing:
            return TrustedMetadata(table)
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise MetadataTableDamaged(
            f"{meta.storage.root}: the metadata table lacks the instants {', '.join(missing[:_SHOWN])}{more}; "
            f"another writer did not keep it up."
        )
    except HudiError as error:
        _ignored(meta, error)
        return None


def _ignored(meta: MetaClient, error: HudiError) -> None:
    """Warn, unless files went away because the table has moved on: then the read starts again anyway."""
    if isinstance(error, PathNotFound) and not meta.is_current():
        return
    warn_caller(
        f"{error} This query lists folders instead. The next write builds the metadata table anew.",
        MetadataTableIgnored,
    )


_COLUMNS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Skipped:
    """What one step left out. `by`: what told it; `why`: the columns in question; `files`: number of file slices."""

    by: str
    why: str
    files: int

    def __str__(self) -> str:
        return f"{self.files:,} by {self.by} ({self.why})"


def without_skipped(
    slices: Sequence[ReadSlice],
    known: TrustedMetadata,
    predicate: Predicate,
    full: pa.Schema,
    *,
    is_newest: bool,
    by_index: Collection[FileGroupId] | None,
) -> tuple[list[ReadSlice], tuple[Skipped, ...]]:
    """The slices that are left, and what each step left out, in order.

    Args: predicate: bound to `full`; is_newest: the query wants the newest state; by_index: indexes of rows may tell,
        too: all file groups that the table has; None: they may not.
    """
    left, steps = list(slices), list[Skipped]()

    def keep(by: str, why: str, wanted: Callable[[ReadSlice], bool]) -> None:
        keep_only(by, why, [read for read in left if wanted(read)])

    def keep_only(by: str, why: str, kept: Sequence[ReadSlice]) -> None:
        if len(kept) < len(left):
            steps.append(Skipped(by, why, len(left) - len(kept)))
            left[:] = kept

    columns = _shown(predicate)
    keys = wanted_keys(predicate, known.table.data.config, full)
    if keys is not None and len(left) <= 1:
        return left, ()  # to look for keys in one file costs less than to ask whether to
    if keys is not None and by_index is not None:
        groups = known.groups_with_keys(keys)
        if groups is not None and groups <= set(by_index):  # else the index is wrong
            keep("the record index", columns, _is_of(groups))
            return left, tuple(steps)
    from_path = dict[str, Collection[str]]()
    for read in left:
        path = read.file_slice.group.partition_path
        if path not in from_path:
            from_path[path] = read.from_path
    partitions = known.partitions_left(predicate, full, from_path) if is_newest else None
    if partitions is not None:
        keep("statistics of partitions", columns, lambda read: read.file_slice.group.partition_path in partitions)
    if by_index is not None and len(left) > 1:
        with_values = _with_values(left, known, predicate, full)
        if with_values is not None:
            keep("secondary indexes", columns, _is_of(with_values))
    paths = [path for path in from_path if partitions is None or path in partitions]
    ranges = known.file_ranges(predicate, full, paths)
    if ranges is not None:
        may_match = ranges.which_may_match(left, from_path).tolist()
        keep_only("column statistics", columns, [read for read, may in zip(left, may_match, strict=True) if may])
    plain = {read.file_slice: read.from_path for read in left if not read.merges} if calls_of(predicate) else {}
    if plain:
        without = known.slices_without(predicate, full, plain)
        keep("bloom filters of expressions", columns, lambda read: read.file_slice not in without)
    return left, tuple(steps)


def _is_of(groups: Collection[FileGroupId]) -> Callable[[ReadSlice], bool]:
    return lambda read: read.file_slice.group in groups


def _with_values(
    slices: Sequence[ReadSlice], known: TrustedMetadata, predicate: Predicate, full: pa.Schema
) -> frozenset[FileGroupId] | None:
    """The file groups that a secondary index says to have one of the values that the predicate keeps; None when it
    can't be known, or the index names file groups that there are not.
    """
    from_path = {name for read in slices for name in read.from_path}
    groups = known.groups_with_values(predicate, full, from_path)
    there = {read.file_slice.group for read in slices}
    partitions = {group.partition_path for group in there}
    if groups is None or not {group for group in groups if group.partition_path in partitions} <= there:
        return None
    return groups


def _shown(predicate: Predicate) -> str:
    """The columns that the filter asks for."""
    names = sorted({".".join(column.path) for column in columns_of(predicate)})
    more = f" and {len(names) - _COLUMNS_SHOWN} more" if len(names) > _COLUMNS_SHOWN else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:_COLUMNS_SHOWN])}{more}"
