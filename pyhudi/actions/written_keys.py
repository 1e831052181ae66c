"""Record keys in written files: keys that two writers insert at once, and keys that a write removes from the table.

Two writers may upsert one new key at the same time. Neither finds it stored, so each would insert it. Hudi's conflict
strategies compare file groups, and new ones never collide, so both rows would stay. A writer that names no concurrency
mode therefore compares keys, too (`check_inserted_keys`): those in files with inserts, its own and those of writes that
completed since it began. Buckets need no such check, since two writers of a key collide in one bucket.

When a write removes file groups from the table, tasks read their keys (`replaced_keys`), and a record index deletes
them.

Source: docs/formats/writers.md, "Conflicts"; docs/compatibility.md, "Sides taken"; docs/formats/table-services.md,
"Replaced file groups"; docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.index_lookup import stored_slices
from pyhudi.errors import WriteConflict
from pyhudi.filegroup.read.keys import SliceKeys, slice_keys
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.formats.base import open_base_file
from pyhudi.index.chosen import index_class
from pyhudi.merge.combine import single_array
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.instant import Instant
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["check_inserted_keys", "replaced_keys"]


_ROWS_MAX = 5_000_000  # of all compared writes; the table's lock is held while they are compared
_MOVES_ROWS = frozenset({OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT})


def check_inserted_keys(
    ours: Instant, stats: Iterable[WriteStat], others: Iterable[tuple[Instant, CommitMetadata]], now: ActionContext
) -> None:
    """Raise WriteConflict when another write has inserted a key that this upsert inserts, too. Hold the lock.

    Args: stats: of the upsert's files; others: writes that completed since it began; now: the table as it is.
    """
    index = index_class(now.options)
    if index.hashes_keys:
        return
    files = _files_with_inserts(stats)
    if not files:
        return
    meta = now.meta
    keygen = None if meta.config.populate_meta_fields else table_keygen(now, PROBE_TIME)
    spec = stored_slices(keygen, now)
    for instant, body in others:
        theirs = () if body.operation_type in _MOVES_ROWS else _files_with_inserts(body.stats())
        comparable = [
            one for one in theirs if index.is_global or any(one.partition_path == f.partition_path for f in files)
        ]
        key = _common_key(files, comparable, spec, is_global=index.is_global) if comparable else None
        if key is not None:
            raise WriteConflict(
                f"{meta.storage.root}: while {ours.action.value} {ours.requested_time} was running, "
                f"{instant.action.value} {instant.requested_time} inserted {key}, which it inserts too. Nothing of "
                f"{ours.requested_time} is visible; write again, it will update that row."
            )


def _files_with_inserts(stats: Iterable[WriteStat]) -> tuple[BaseFile, ...]:
    """Base files with new keys; with such an index log files never get any."""
    files = []
    for stat in stats:
        name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
        if name is not None and stat.path is not None and stat.num_inserts:
            partition = stat.partition_path or ""
            files.append(BaseFile(stat.path, partition, stat.file_id, name.instant_time, stat.file_size_in_bytes))
    return tuple(files)


def _common_key(
    ours: Sequence[BaseFile], theirs: Sequence[BaseFile], spec: SliceSpec, *, is_global: bool
) -> str | None:
    """A description of keys in files of both, None if there are none. Files with disjoint ranges are not read."""
    ranges = {file.path: _KeyRange.of(file, spec) for file in (*ours, *theirs)}
    pairs = [
        (one, other)
        for one in ours
        for other in theirs
        if (is_global or one.partition_path == other.partition_path)
        and one.group != other.group  # writes that share a file group conflict anyway
        and ranges[one.path].overlaps(ranges[other.path])
    ]
    if not pairs:
        return None
    files = {file.path: file for pair in pairs for file in pair}
    if sum(ranges[path].rows for path in files) > _ROWS_MAX:
        return f"keys within the range of this write's, more than {_ROWS_MAX:,} to be compared,"
    keys = {path: _keys(file, spec) for path, file in files.items()}
    for one, other in pairs:
        common = keys[one.path].filter(pc.is_in(keys[one.path], value_set=keys[other.path].combine_chunks()))
        if len(common):
            return f"the key {common[0].as_py()!r:.200} in {other.partition_path!r}"
    return None


class _KeyRange(NamedTuple):
    """The least and the greatest key of a file in the order of UTF-16, b"" if unknown; the number of its rows."""

    least: bytes
    greatest: bytes
    rows: int

    @classmethod
    def of(cls, file: BaseFile, spec: SliceSpec) -> _KeyRange:
        with open_base_file(spec.storage, file.path) as reader:
            footer = reader.footer
            return cls(_utf16(footer.min_key), _utf16(footer.max_key), reader.num_rows)

    def overlaps(self, other: _KeyRange) -> bool:
        if not (self.greatest and other.greatest):
            return True
        return self.least <= other.greatest and other.least <= self.greatest


def _utf16(key: str | None) -> bytes:
    return (key or "").encode("utf-16-be", "surrogatepass")


def _keys(file: BaseFile, spec: SliceSpec) -> pa.ChunkedArray:
    return pa.chunked_array(slice_keys(spec, FileSlice(file.group, file.instant_time, file)), pa.string())


_SHARES = 256  # tasks; with more slices, a task has several


def replaced_keys(groups: Collection[FileGroupId], context: ActionContext) -> Mapping[str, pa.Array]:
    """The keys of the newest slices of these file groups, by partition path.

    Args:    context: with the table as it is before the write completes.
    Raises:  CorruptFile, UnsupportedTable.
    """
    if not groups:
        return {}
    meta = context.meta
    view = FileSystemView.load(meta, partitions=sorted({group.partition_path for group in groups}))
    newest = with_committed_bytes(meta, [s for s in view.all_slices() if s.group in groups])
    numbered = list(enumerate(newest))
    keygen = None if meta.config.populate_meta_fields else table_keygen(context, PROBE_TIME)
    work = SliceKeys(stored_slices(keygen, context))
    shares = [numbered[first::_SHARES] for first in range(min(len(numbered), _SHARES))]
    rows = context.engine.collect(context.engine.fan_out(shares, work, work.schema))
    paths = np.array([file_slice.group.partition_path for file_slice in newest], dtype=np.object_)
    of_keys = paths[rows.column(1).to_numpy()] if len(newest) else paths
    keys = single_array(rows.column(0))
    return {path: keys.filter(pa.array(of_keys == path)) for path in dict.fromkeys(paths.tolist())}
