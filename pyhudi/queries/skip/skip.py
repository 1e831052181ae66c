"""Skipping files that a query need not open, by indexes and statistics of the metadata table.

`skip_slices` calls the skippers one after the other:

    record index               the file groups that have the keys of the filter
    statistics of partitions   all files of a partition whose values can't pass
    secondary indexes          the file groups that have the values of the filter
    column statistics          each file whose values can't pass
    bloom filters              each base file without the values of a function in the filter

`Scan.explain` shows how many files each skipper skips, and why. The record index is final: after its answer no other
skipper is called, because the remaining files have the rows. No skipper looks up keys if only one file is left to read.

A metadata table that is damaged or out of date skips nothing: the caller gets a warning, and the query reads all files
that the folders list.
Source: docs/reading.md, "The metadata table"; docs/architecture.md, "How a table is read";
docs/formats/metadata-table.md, "Is it up to date?".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TypeVar

import pyarrow as pa

from pyhudi.errors import HudiError, MetadataTableDamaged, PathNotFound
from pyhudi.expressions.predicates import Predicate, columns_of
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files, missing_instants
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.expressions import BloomFilters
from pyhudi.queries.skip.keys import RecordIndex, SecondaryIndexes, exact_keys
from pyhudi.queries.skip.skipper import Skipper, SkipRequest
from pyhudi.queries.skip.statistics import ColumnStatistics, PartitionStatistics
from pyhudi.storage.base import FileInfo
from pyhudi.warnings import warn_caller

__all__ = ["SKIPPERS", "MetadataSource", "MetadataTableIgnored", "Skipped", "metadata_source", "skip_slices"]

T = TypeVar("T")

# In the order in which they are called.
SKIPPERS: tuple[Skipper, ...] = (
    RecordIndex(),
    PartitionStatistics(),
    SecondaryIndexes(),
    ColumnStatistics(),
    BloomFilters(),
)
_COLUMNS_SHOWN = 5
_INSTANTS_SHOWN = 3  # in a message


class MetadataTableIgnored(UserWarning):
    """The metadata table is damaged or not up to date: folders were listed and files opened instead."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The slices that one skipper skipped. `by`: its name; `why`: the columns of the filter; `files`: number
    of file slices.
    """

    by: str
    why: str
    files: int

    def __str__(self) -> str:
        return f"{self.files:,} by {self.by} ({self.why})"


@dataclass(frozen=True, slots=True)
class MetadataSource:
    """A metadata table that has all completed instants. Its records may still be damaged."""

    table: MetadataTable

    def read(self, reading: Callable[[], T]) -> T | None:
        """The result of `reading`; None, with a warning, if the metadata table can't be read."""
        try:
            return reading()
        except HudiError as error:
            _warn_ignored(self.table.data, error)
            return None

    def files(self) -> Mapping[str, list[FileInfo]] | None:
        """Partition path → its files; None, with a warning, when they can't be read."""
        return self.read(partial(listed_files, self.table))


def metadata_source(meta: MetaClient) -> MetadataSource | None:
    """The table's metadata table, None when it has none; None with a warning when it lacks a completed instant."""
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return None
        missing = missing_instants(table)
        if not missing:
            return MetadataSource(table)
        more = f" and {len(missing) - _INSTANTS_SHOWN} more" if len(missing) > _INSTANTS_SHOWN else ""
        raise MetadataTableDamaged(
            f"{meta.storage.root}: the metadata table lacks the instants {', '.join(missing[:_INSTANTS_SHOWN])}{more}; "
            f"another writer did not update it."
        )
    except HudiError as error:
        _warn_ignored(meta, error)
        return None


def _warn_ignored(meta: MetaClient, error: HudiError) -> None:
    """Warn, unless files were deleted because the table has changed: then the read starts again anyway."""
    if isinstance(error, PathNotFound) and not meta.is_current():
        return
    warn_caller(
        f"{error} This query lists folders instead. The next write rebuilds the metadata table.",
        MetadataTableIgnored,
    )


def skip_slices(
    slices: Sequence[ReadSlice],
    source: MetadataSource,
    predicate: Predicate,
    schema: pa.Schema,
    *,
    is_newest: bool,
    groups: Collection[FileGroupId] | None,
) -> tuple[list[ReadSlice], tuple[Skipped, ...]]:
    """The slices that a query has to read, and those that each skipper skipped, in order.

    Args: predicate: bound to `schema`; is_newest: the query reads the newest state; groups: all file groups of the
        table, None where indexes of rows must not be used (see `SkipRequest`).
    """
    reads, steps, table = list(slices), list[Skipped](), source.table
    keys = exact_keys(predicate, table.data.config, schema)
    knows_rows = table.knows_newest_rows
    request = SkipRequest(table, predicate, schema, keys, is_newest and knows_rows, groups if knows_rows else None)
    if keys is not None and len(reads) <= 1:
        return reads, ()  # searching one file for keys costs less than a look-up
    for skipper in SKIPPERS:
        answer = source.read(partial(skipper.ask, request, reads))
        if answer is None:
            continue
        remaining = list(compress(reads, answer.may_match))
        if len(remaining) < len(reads):
            steps.append(Skipped(skipper.name, _shown_columns(predicate), len(reads) - len(remaining)))
            reads = remaining
        if answer.is_final:
            break
    return reads, tuple(steps)


def _shown_columns(predicate: Predicate) -> str:
    """The columns of the filter, as `Scan.explain` shows them."""
    names = sorted({".".join(column.path) for column in columns_of(predicate)})
    more = f" and {len(names) - _COLUMNS_SHOWN} more" if len(names) > _COLUMNS_SHOWN else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:_COLUMNS_SHOWN])}{more}"
