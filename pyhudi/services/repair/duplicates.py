"""Duplicates: several rows with one key in a partition, within a file group or across.

Bulk inserts and inserts don't look for keys, and orphans that came to light bring old versions back. All rows of the
file groups that hold such a key are written anew, each key once, by the table's merge rules: by the ordering fields,
else the newest. One commit replaces the groups. Memory holds the keys of one partition, and the double rows.
Source: docs/repairs.md, "Duplicates"; docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.table_keys import is_automatic
from pyhudi.model.keys import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.snapshot import read_slice
from pyhudi.services.plan_files import check_logs
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.services.repair.rewriting import Rewriting, plan_rows
from pyhudi.storage.base import Storage
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["duplicates"]

_RUN = "table.repair.duplicates(dry_run=False)"
_KEY, _SLICE = "key", "slice"
_BETWEEN = "\x1f"


def duplicates(context: ActionContext, *, dry_run: bool = True) -> RepairResult:
    """Find keys with several rows, and keep one row of each in one commit.

    Args:    dry_run: only return them, by partition.
    Raises:  WriteConflict when another write completed meanwhile, or a waiting plan rewrites the groups; ConfigError
        for a bucket index whose options are missing; DamagedLog where log files of the groups lack bytes.
    """
    root = context.meta.storage.root
    nothing = RepairResult(root, "duplicates", run=_RUN)
    if is_automatic(context.meta.config) or not context.meta.timeline.commits().instants:
        return nothing
    plan = plan_rows(context)
    found = tuple(_find(plan, context))
    if not found:
        return nothing
    items = tuple(one.item() for one in found)
    if dry_run:
        return RepairResult(root, "duplicates", items, run=_RUN)
    reads = tuple(read for one in found for read in one.reads)
    check_logs([read.file_slice.group for read in reads], FileSystemView.load(context.meta), context)
    key_fields = _key_columns(context)
    by_partition = {one.partition_path: one for one in found}

    def rows() -> Iterator[pa.RecordBatch]:
        for one in by_partition.values():
            yield from _once(one, plan, context.meta.storage, key_fields)

    targets = frozenset(by_partition)
    time = Rewriting(plan, reads, targets, combines=True, rows=rows).run(context)
    return RepairResult(root, "duplicates", items, True, time, _RUN)


@dataclass(frozen=True)
class _Found:
    """The keys of a partition with several rows. `reads`: the slices that hold one of them, oldest first."""

    partition_path: str
    keys: pa.Array
    rows: int
    reads: tuple[ReadSlice, ...]

    def item(self) -> RepairItem:
        groups = len(self.reads)
        problem = (
            f"{len(self.keys):,} keys have {self.rows:,} rows in {groups:,} file group{'s' if groups > 1 else ''}, "
            f"such as {self.keys[0].as_py()!r:.60}"
        )
        return RepairItem(self.partition_path, problem, f"keep one row of each, {self.rows - len(self.keys):,} go")


def _find(plan: ReadPlan, context: ActionContext) -> Iterator[_Found]:
    """The duplicates of the table, partition by partition."""
    key_fields = _key_columns(context)
    narrow = plan_rows(context, key_fields)
    partitions: dict[str, list[ReadSlice]] = {}
    for read in narrow.slices:
        partitions.setdefault(read.file_slice.group.partition_path, []).append(read)
    by_group = {read.file_slice.group: read for read in plan.slices}
    for path, reads in partitions.items():
        table = _keys(narrow, reads, context.meta.storage, key_fields)
        counts = table.group_by(_KEY).aggregate([(_SLICE, "count")])
        many = counts.filter(pc.greater(counts.column(f"{_SLICE}_count"), 1))
        if not len(many):
            continue
        keys = many.column(_KEY).combine_chunks()
        with_them = table.filter(pc.is_in(table.column(_KEY), value_set=keys))
        numbers = np.unique(with_them.column(_SLICE).to_numpy())
        hit = [by_group[reads[int(number)].file_slice.group] for number in numbers]
        hit.sort(key=lambda read: read.file_slice.base_instant)
        yield _Found(path, keys, len(with_them), tuple(hit))


def _keys(plan: ReadPlan, reads: Sequence[ReadSlice], storage: Storage, key_fields: Sequence[str]) -> pa.Table:
    """Keys of all rows of a partition, with the number of the slice that holds them."""
    tables = [pa.table({_KEY: pa.array([], pa.large_string()), _SLICE: pa.array([], pa.int32())})]
    for number, read in enumerate(reads):
        for batch in read_slice(plan, storage, read):
            slices = pa.array(np.full(batch.num_rows, number, np.int32))
            tables.append(pa.table({_KEY: _key_text(batch, key_fields), _SLICE: slices}))
    return pa.concat_tables(tables)


def _key_columns(context: ActionContext) -> tuple[str, ...]:
    config = context.meta.config
    return (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields


def _key_text(batch: pa.RecordBatch, key_fields: Sequence[str]) -> pa.Array:
    texts = [pc.cast(batch.column(name), pa.large_string()) for name in key_fields]
    if len(texts) == 1:
        return texts[0]
    between = pa.scalar(_BETWEEN, pa.large_string())
    return pc.binary_join_element_wise(*texts, between, null_handling="replace", null_replacement="\x00")


def _once(one: _Found, plan: ReadPlan, storage: Storage, key_fields: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows of the slices; those of the double keys come last, oldest first, so that the newest wins a tie."""
    double = []
    for read in one.reads:
        for batch in read_slice(plan, storage, read):
            is_double = pc.is_in(_key_text(batch, key_fields), value_set=one.keys)
            yield batch.filter(pc.invert(is_double))
            double.append(batch.filter(is_double))
    rows = pa.Table.from_batches(double)
    by: list[tuple[str, Literal["ascending", "descending"]]] = [
        (name, "ascending") for name in (COMMIT_TIME, COMMIT_SEQNO) if name in rows.schema.names
    ]
    yield from (rows.sort_by(by) if by else rows).to_batches()
