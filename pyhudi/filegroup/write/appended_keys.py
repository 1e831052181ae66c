"""The keys that an append to a merge-on-read slice adds and removes: input of a record index.

Most cases are simple: rows with keys of the base file change nothing, and a delete that always wins removes its key.
Some are uncertain: rows with keys that a log file has deleted, deletes that may lose by their ordering value, rows that
the slice may or may not have (buckets), and all decisions of a user's merger. For those keys the merged slice is read
as it was before and as it is now. Source: docs/formats/merging.md, "Two versions of a key", "Deletes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.read.keys import slice_keys
from pyhudi.filegroup.read.log_blocks import blocks_to_merge
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.merge.combine import deletes_of, single_array
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.model.filenames import LogFileName
from pyhudi.model.keys import DELETE_FLAG_COLUMN, RECORD_KEY

__all__ = ["AppendedKeys"]

_NO_KEYS = pa.nulls(0, pa.string())


@dataclass(frozen=True, slots=True)
class AppendedKeys:
    """Reports added and removed keys. `reading`: how slices are read; `places_known`: the index finds keys in base
    files, so their rows are known. Picklable.
    """

    reading: SliceSpec
    places_known: bool

    def reported(
        self, spec: WriteSpec, file_slice: FileSlice, incoming: pa.Table, statuses: Sequence[WriteStatus]
    ) -> list[WriteStatus]:
        """The statuses of an append to `file_slice`; the first one reports the added and removed keys of `incoming`."""
        if not statuses:
            return []
        keys, deletes = single_array(incoming.column(RECORD_KEY)), deletes_of(incoming)
        if file_slice.base_file is None and not file_slice.log_files:
            added, removed = keys.filter(pa.array(~deletes)), _NO_KEYS
        else:
            added, removed = self._changed(spec, file_slice, keys, deletes, statuses)
        other_statuses = (replace(status, new_keys=_NO_KEYS, removed_keys=_NO_KEYS) for status in statuses[1:])
        return [replace(statuses[0], new_keys=added, removed_keys=removed), *other_statuses]

    def _changed(
        self,
        spec: WriteSpec,
        file_slice: FileSlice,
        keys: pa.Array,
        deletes: npt.NDArray[np.bool_],
        statuses: Sequence[WriteStatus],
    ) -> tuple[pa.Array, pa.Array]:
        ended = keys.filter(pa.array(deletes))
        rules = spec.merging
        judged = rules.by_ordering or rules.needs_pairs
        doubtful = pa.concat_arrays(
            [self._perhaps_dead(file_slice, keys.filter(pa.array(~deletes))), ended if judged else _NO_KEYS]
        )
        certain = _NO_KEYS if judged else ended
        if not len(doubtful):
            return _NO_KEYS, certain
        after = replace(file_slice, log_files=(*file_slice.log_files, *map(_log_file, statuses)))
        counts = _BeforeOrOfWrite(self.reading.blocks.is_committed, spec.instant_time)
        reading = replace(self.reading, blocks=replace(self.reading.blocks, is_committed=counts))
        was, is_now = _alive(self.reading, file_slice, doubtful), _alive(reading, after, doubtful)
        return _without(is_now, was), pa.concat_arrays([certain, _without(was, is_now)])

    def _perhaps_dead(self, file_slice: FileSlice, keys: pa.Array) -> pa.Array:
        """The keys that the slice may have lacked before, or may lack now."""
        rules, logs = self.reading.merge, file_slice.log_files
        if rules.merger is not None or not self.places_known or file_slice.base_file is None:
            return keys
        if not logs or not len(keys):
            return _NO_KEYS
        if rules.delete_field is not None or DELETE_FLAG_COLUMN in self.reading.schema.names:
            return keys  # other writers may have put deletes into a data block
        blocks = blocks_to_merge(self.reading.storage, logs, self.reading.blocks)
        deleted = [single_array(_column(block.deletes().keys)) for block in blocks if block.is_delete]
        return keys.filter(pc.is_in(keys, value_set=pa.concat_arrays([_NO_KEYS, *deleted])))


@dataclass(frozen=True, slots=True)
class _BeforeOrOfWrite:
    """True for instants that count before a write, and for the write's instant."""

    before: Callable[[str], bool]
    instant_time: str

    def __call__(self, instant_time: str) -> bool:
        return instant_time == self.instant_time or self.before(instant_time)


def _column(rows: pa.RecordBatch) -> pa.ChunkedArray:
    return pa.chunked_array([rows.column(RECORD_KEY).cast(pa.string())])


def _alive(reading: SliceSpec, file_slice: FileSlice, keys_in_question: pa.Array) -> pa.Array:
    alive = [keys.filter(pc.is_in(keys, value_set=keys_in_question)) for keys in slice_keys(reading, file_slice)]
    return pc.unique(pa.concat_arrays([_NO_KEYS, *alive]))


def _without(keys: pa.Array, excluded: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=excluded)))


def _log_file(status: WriteStatus) -> LogFile:
    """The log file of a status."""
    stat = status.stat
    assert stat.path is not None
    name = LogFileName.parse(stat.path.rpartition("/")[2])
    assert name is not None, stat.path
    return LogFile(
        stat.path,
        stat.partition_path or "",
        name.file_id,
        name.instant_time,
        name.version,
        name.write_token,
        stat.file_size_in_bytes,
    )
