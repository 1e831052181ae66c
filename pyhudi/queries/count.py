"""Counting the rows of a plan, from footers where they suffice.

    no filter, or one of partition columns    the number of rows in the footer of each file
    a filter that statistics decide           the number of rows in row groups whose rows all pass; others are skipped
    everything else                           the columns of the filter are read, or any column if it has none

Row groups count only in slices without log files: a log row may replace any row of the base file.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from pyhudi.expressions.filters import RowFilter, top_level_columns
from pyhudi.expressions.statistics.ranges import may_match, must_match
from pyhudi.filegroup.read.slice import read_file_slice
from pyhudi.formats.base import open_base_file
from pyhudi.formats.base.ranges import Ranges as FileRanges
from pyhudi.model.keys import RECORD_KEY
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.schema import with_path_values
from pyhudi.queries.snapshot import (
    READ_THREADS,
    base_rows,
    filtered,
    key_filter,
    read_batches,
    read_slice,
    stale_read_if_missing,
    trusted_ranges,
    warn_of,
)
from pyhudi.storage.base import Storage
from pyhudi.warnings import collected_warnings

__all__ = ["count_rows"]


def count_rows(plan: ReadPlan, storage: Storage, *, threads: int = READ_THREADS) -> int:
    """Count the rows that a plan returns.

    Where footers don't suffice, only the columns of the filter are read.
    """
    if plan.changes is not None:
        return sum(batch.num_rows for batch in read_batches(plan, storage, threads=threads))
    needed = top_level_columns(plan.predicate, plan.read_schema)
    columns = pa.schema([field for field in plan.read_schema if field.name in needed] or list(plan.read_schema)[:1])
    plan = replace(plan, schema=columns, read_schema=columns)
    warnings: list[tuple[str, type[Warning]]] = []

    def rows_of(read: ReadSlice) -> int:
        with collected_warnings(warnings), stale_read_if_missing(storage):
            if not plan.keeps_all_rows:
                if not needed or not needed <= read.from_path.keys():
                    return _passing_rows(plan, storage, read)
                if not _passes_by_path(plan, read):
                    return 0
            if read.merges:
                assert plan.merge is not None
                return sum(rows.num_rows for rows in read_file_slice(plan.merge, read.file_slice, [RECORD_KEY]))
            with open_base_file(storage, read.base_file.path) as reader:
                return reader.num_rows

    with ThreadPoolExecutor(threads, thread_name_prefix="hudi-count") as pool:
        rows = sum(pool.map(rows_of, plan.slices))
    warn_of(warnings)
    return rows


def _passing_rows(plan: ReadPlan, storage: Storage, read: ReadSlice) -> int:
    """The rows of a slice that pass the filter; row groups that the statistics decide are not read."""
    if read.merges or key_filter(plan, read) is not None:
        return sum(batch.num_rows for batch in read_slice(plan, storage, read))
    with open_base_file(storage, read.base_file.path) as reader:
        trusted = trusted_ranges(plan, read, reader)
        if trusted is None:
            return sum(batch.num_rows for batch in read_slice(plan, storage, read))

        def passes(ranges: FileRanges) -> bool:
            return must_match(plan.predicate, trusted(ranges))

        def is_undecided(ranges: FileRanges) -> bool:
            return may_match(plan.predicate, trusted(ranges)) and not passes(ranges)

        undecided = filtered(plan, base_rows(plan, read, reader, is_undecided))
        return reader.rows_in_parts(passes) + sum(batch.num_rows for batch in undecided)


def _passes_by_path(plan: ReadPlan, read: ReadSlice) -> bool:
    """True if the rows of a slice pass a filter whose columns have one value in all of them."""
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1)], ["row"])
    row = with_path_values(nothing, read.from_path, plan.read_schema)
    return RowFilter.of(plan.predicate, plan.read_schema).filter(row).num_rows == 1
