"""Files that a query need not open, step by step, by indexes and statistics of the metadata table.

    record index               the file groups that have the keys that the filter wants
    statistics of partitions   all files of a partition whose values can't pass
    secondary indexes          the file groups that have the values that the filter wants
    column statistics          each file whose values can't pass
    bloom filters              each base file without the values that an expression is to have

Each step says how many it left out, and by what (`Scan.explain`). Behind the record index no other step follows: the
files that are left have the rows. Nor do any where a query for keys has one file left.
Source: docs/reading.md, "The metadata table"; docs/architecture.md, "How a read flows".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.model.file_group import FileGroupId
from pyhudi.model.predicate import Predicate, calls_of, columns_of
from pyhudi.queries.key_pruning import wanted_keys
from pyhudi.queries.metadata_use import TrustedMetadata
from pyhudi.queries.read_slice import ReadSlice

__all__ = ["Skipped", "without_skipped"]

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
