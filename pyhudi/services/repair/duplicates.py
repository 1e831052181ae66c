"""Finds keys that occur more than once in a partition or, if keys are unique table-wide, in the table.

Bulk inserts and inserts don't look up keys, and orphaned files that readers count again bring old versions back. All
rows of the file groups that hold such a key are rewritten, each key once, by the table's merge rules: by the ordering
fields, else the newest. One commit replaces the groups. Keys are unique table-wide if the options name a global index,
or the table has a record index that is not partitioned.

Memory holds the keys of one partition, or of the table, and the duplicate rows. More than `_KEYS_AT_ONCE` keys are
processed in shares, by their hashes, and the files are read once for each share.
Source: docs/repairs.md, "Duplicates"; docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.table_keys import is_automatic
from pyhudi.index.chosen import index_class
from pyhudi.java.hashes import xx_hash32
from pyhudi.metadata.index_definitions import is_partitioned_record_index, read_index_definitions
from pyhudi.metadata.schema import MetadataKind
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

_RUN = "table.maintenance.repair.duplicates(dry_run=False)"
_KEY, _SLICE = "key", "slice"
_BETWEEN = "\x1f"
_SEQUENCE_NUMBER = r"_(?P<task>\d{1,18})_(?P<row>\d{1,18})$"
_KEYS_AT_ONCE = 20_000_000
_SHARES = 1 << 12  # one key alone may have more rows than that


def duplicates(
    context: ActionContext, *, dry_run: bool = True, partitions: Sequence[str] | None = None
) -> RepairResult:
    """Find keys with several rows, and keep one row of each in one commit.

    Args:    dry_run: only return them, by partition. partitions: paths of the partitions to search; None: all.
    Raises:  WriteConflict if another write has completed since, or a pending plan rewrites the groups; ConfigError
        for a bucket index whose options are missing; DamagedLog where log files of the groups lack bytes.
    """
    root = context.meta.storage.root
    nothing = RepairResult(root, "duplicates", run=_RUN)
    if is_automatic(context.meta.config) or not context.meta.timeline.commits().instants:
        return nothing
    plan = plan_rows(context)
    repeated = tuple(_find(plan, context, partitions))
    if not repeated:
        return nothing
    items = tuple(one.item() for one in repeated)
    if dry_run:
        return RepairResult(root, "duplicates", items, run=_RUN)
    reads = tuple(read for one in repeated for read in one.reads)
    check_logs([read.file_slice.group for read in reads], FileSystemView.load(context.meta), context)
    key_fields = _key_columns(context)

    def rows() -> Iterator[pa.RecordBatch]:
        for one in repeated:
            yield from _once(one, plan, context.meta.storage, key_fields)

    targets = frozenset(_path(read) for read in reads)
    rewriting = Rewriting(plan, reads, targets, combines=True, everywhere=_is_unique_in_table(context), rows=rows)
    return RepairResult(root, "duplicates", items, True, rewriting.run(context), _RUN)


def _is_unique_in_table(context: ActionContext) -> bool:
    """True if keys are unique table-wide, by a global index in the options or by the table's record index."""
    config, options = context.meta.config, context.options
    if not config.partition_fields or "hoodie.index.type" in options.explicit:
        return bool(config.partition_fields) and index_class(options).is_global
    has_records = MetadataKind.RECORD_INDEX.value.prefix in config.metadata_partitions
    return has_records and not is_partitioned_record_index(read_index_definitions(context.meta.storage))


@dataclass(frozen=True)
class _Repeated:
    """Keys with several rows, of a partition or the table. `reads`: the slices that hold one of them, oldest first."""

    keys: pa.Array
    rows: int
    reads: tuple[ReadSlice, ...]

    def item(self) -> RepairItem:
        groups, paths = len(self.reads), sorted({_path(read) for read in self.reads})
        across = f" of {len(paths):,} partitions ({', '.join(paths[:3])})" if len(paths) > 1 else ""
        files = f"{groups:,} file group{'s' if groups > 1 else ''}{across}"
        problem = f"{len(self.keys):,} keys have {self.rows:,} rows in {files}, such as {self.keys[0].as_py()!r:.60}"
        where = paths[0] if len(paths) == 1 else ""
        return RepairItem(where, problem, f"keep one row of each, drop {self.rows - len(self.keys):,}")


def _path(read: ReadSlice) -> str:
    return read.file_slice.group.partition_path


def _find(plan: ReadPlan, context: ActionContext, partitions: Sequence[str] | None) -> Iterator[_Repeated]:
    """The duplicates of each scope in which keys are unique: a partition, or the table."""
    key_fields, storage = _key_columns(context), context.meta.storage
    narrow = plan_rows(context, key_fields)
    everywhere = _is_unique_in_table(context)
    rooms: dict[str, list[ReadSlice]] = {}
    for read in narrow.slices:
        if partitions is not None and _path(read) not in partitions:
            continue
        rooms.setdefault("" if everywhere else _path(read), []).append(read)
    by_group = {read.file_slice.group: read for read in plan.slices}
    for reads in rooms.values():
        keys, rows, numbers = _double(narrow, reads, storage, key_fields)
        if len(keys):
            groups = [by_group[reads[number].file_slice.group] for number in numbers]
            groups.sort(key=lambda read: read.file_slice.base_instant)
            yield _Repeated(keys, rows, tuple(groups))


def _double(
    plan: ReadPlan, reads: Sequence[ReadSlice], storage: Storage, key_fields: Sequence[str]
) -> tuple[pa.Array, int, list[int]]:
    """The keys with several rows, the number of these rows, and the numbers of the slices that hold one."""
    keys, rows, numbers, shares = list[pa.Array](), 0, set[int](), 1
    share = 0
    while share < shares:
        table = _keys(plan, reads, storage, key_fields, share, shares)
        if table is None:
            share, shares = share * 2, shares * 2  # halve the shares: those before this one are finished
            continue
        counts = table.group_by(_KEY).aggregate([(_SLICE, "count")])
        duplicate_keys = counts.filter(pc.greater(counts.column(f"{_SLICE}_count"), 1)).column(_KEY).combine_chunks()
        with_them = table.filter(pc.is_in(table.column(_KEY), value_set=duplicate_keys))
        keys.append(duplicate_keys)
        rows += len(with_them)
        numbers.update(np.unique(with_them.column(_SLICE).to_numpy()).tolist())
        share += 1
    return pa.concat_arrays(keys), rows, sorted(numbers)


def _keys(
    plan: ReadPlan, reads: Sequence[ReadSlice], storage: Storage, key_fields: Sequence[str], share: int, shares: int
) -> pa.Table | None:
    """Keys of the rows of slices, with the number of the slice that holds them; None if there are too many."""
    tables = [pa.table({_KEY: pa.array([], pa.large_string()), _SLICE: pa.array([], pa.int32())})]
    rows = 0
    for number, read in enumerate(reads):
        for batch in read_slice(plan, storage, read):
            keys = _key_text(batch, key_fields)
            if shares > 1:
                hashes = xx_hash32(keys).astype(np.uint64)
                keys = keys.filter(pa.array(hashes * shares >> 32 == share))
            rows += len(keys)
            if rows > _KEYS_AT_ONCE and shares < _SHARES:
                return None
            tables.append(pa.table({_KEY: keys, _SLICE: pa.array(np.full(len(keys), number, np.int32))}))
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


def _once(one: _Repeated, plan: ReadPlan, storage: Storage, key_fields: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows of the slices; those of duplicate keys come last, oldest first, so that the newest wins a tie."""
    double = []
    for read in one.reads:
        for batch in read_slice(plan, storage, read):
            is_double = pc.is_in(_key_text(batch, key_fields), value_set=one.keys)
            yield batch.filter(pc.invert(is_double))
            double.append(batch.filter(is_double))
    yield from _oldest_first(pa.Table.from_batches(double)).to_batches()


def _oldest_first(rows: pa.Table) -> pa.Table:
    """Rows by commit time, then by the task and the row in the sequence number, `<commit time>_<task>_<row>`, as
    numbers: as text, row 9 would come after row 11. Equal rows keep their order.
    """
    if COMMIT_TIME not in rows.schema.names or COMMIT_SEQNO not in rows.schema.names:
        return rows
    numbers = pc.extract_regex(pc.cast(rows.column(COMMIT_SEQNO), pa.string()), _SEQUENCE_NUMBER)
    by = {COMMIT_TIME: pc.cast(rows.column(COMMIT_TIME), pa.string())}
    for name in ("task", "row"):
        by[name] = pc.fill_null(pc.cast(pc.struct_field(numbers, name), pa.int64()), -1)
    return rows.take(pc.sort_indices(pa.table(by), sort_keys=[(name, "ascending") for name in by]))
