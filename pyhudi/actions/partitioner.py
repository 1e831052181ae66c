"""The assignment of rows to write tasks: updates to their file groups, inserts to small or new ones. Pure.

A *slot* is one write task. Every updated file group gets one slot; a small file that takes inserts shares the slot of
its updates; each new file group gets its own slot. Rows find their slot column-wise (`SlotPlan.slots_of`).

With log files (`LogPlan`) updates of a file group are appended to its newest slice, except for a small file that takes
inserts, which is rewritten.
Source: docs/formats/table-services.md, "Where inserts go".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.timeline.instant_files import workload_profile
from pyhudi.java.hashes import java_string_hash
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice

__all__ = [
    "MAX_RECORD_BYTES",
    "MIN_RECORD_BYTES",
    "LogPlan",
    "RowCount",
    "Sizing",
    "SlotPlan",
    "WriteTask",
    "pick_small_files",
    "plan_slots",
    "profile_of",
    "record_size_bytes",
]


# Bounds for a row's size taken from earlier commits: a forged or odd write stat (one row of 200 MB, or a billion rows
# of 100 MB) would make a file for each row, or a single task. Compressed rows with little more than a key and a
# sequence number take about 10 bytes. A task of rows beyond 1 MiB writes several files, since files are closed by size.
MIN_RECORD_BYTES = 8
MAX_RECORD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of the batch's rows for one file group; `file_id` None means inserts."""

    partition_path: str
    file_id: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class Sizing:
    """Target sizes of files. With `small_file_limit_bytes` <= 0 small files are not filled."""

    small_file_limit_bytes: int
    max_file_size_bytes: int
    record_size_bytes: int
    auto_split: bool = True
    split_rows: int = 500_000

    @property
    def rows_per_new_file(self) -> int:
        rows = self.max_file_size_bytes // max(1, self.record_size_bytes) if self.auto_split else self.split_rows
        return max(1, rows)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The work of one slot. `drop` takes rows that no file needs: deletes of unknown keys."""

    kind: Literal["create", "merge", "append", "drop"]
    partition_path: str = ""
    base_file: BaseFile | None = None  # merge: the file to rewrite
    file_id: str | None = None  # create: None lets the writer name file groups and roll over to further ones
    file_slice: FileSlice | None = None  # append: the slice that gets log files
    is_new_group: bool = False  # append: the file group begins with these log files

    @property
    def updated_file(self) -> tuple[str, str] | None:
        """File id and base instant of the changed file group, None when it is new."""
        if self.base_file is not None:
            return self.base_file.file_id, self.base_file.instant_time
        if self.file_slice is not None and not self.is_new_group:
            return self.file_slice.group.file_id, self.file_slice.base_instant
        return None


@dataclass(frozen=True, slots=True)
class LogPlan:
    """Input of the planning for a merge-on-read table.

    `slices`: by partition path the slices that take log files. `compacting`: file groups of pending compactions, which
    must not be rewritten. `new_slice_instant`: base instant of slices that begin with a log file; None: inserts into a
    bucket without a file group make a base file.
    """

    slices: Mapping[str, Sequence[FileSlice]]
    compacting: frozenset[FileGroupId] = frozenset()
    small_files_max: int = 1
    new_slice_instant: str | None = None

    def small_files(
        self, partition_path: str, limit_bytes: int, closed: Container[FileGroupId] = frozenset()
    ) -> tuple[BaseFile, ...]:
        """The base files that may be rewritten to take inserts: small ones in slices without log files."""
        free = (
            s.base_file
            for s in self.slices.get(partition_path, ())
            if s.base_file is not None and not s.log_files and s.group not in self.compacting and s.group not in closed
        )
        return pick_small_files(free, limit_bytes)[: self.small_files_max]


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """Tasks by slot number, and how rows find them."""

    tasks: tuple[WriteTask, ...]
    updates: Mapping[tuple[str, str], int]  # (partition path, file id) → slot
    inserts: Mapping[str, tuple[tuple[float, int], ...]]  # partition path → (cumulative share of the inserts, slot)
    drop_slot: int | None = field(default=None)

    def slots_of(
        self, keys: pa.Array, partitions: pa.Array, locations: pa.Array, updated: pa.Array | None = None
    ) -> pa.Array:
        """The slot of each row: int32 array.

        Args: keys, partitions: strings. locations: file ids, null = insert. updated: the slots of rows that are no
            inserts; None: they are looked up in `updates`.
        """
        slots = np.full(len(keys), -1, dtype=np.int32)
        if updated is not None:
            slots = pc.fill_null(updated, -1).to_numpy(zero_copy_only=False).copy()
        elif self.updates:
            names = pa.array([_joined(*group) for group in self.updates], pa.string())
            numbers = np.fromiter(self.updates.values(), dtype=np.int32, count=len(self.updates))
            rows = pc.binary_join_element_wise(partitions, locations, _SEPARATOR)
            position = pc.index_in(rows, value_set=names)
            is_update = position.is_valid().to_numpy(zero_copy_only=False)
            slots[is_update] = numbers[position.drop_null().to_numpy()]
        is_insert = pc.is_null(locations).to_numpy(zero_copy_only=False)
        if self.drop_slot is not None:
            slots[is_insert] = self.drop_slot
        elif is_insert.any():
            self._spread_inserts(slots, is_insert, keys, partitions)
        if (slots < 0).any():
            row = int(np.flatnonzero(slots < 0)[0])
            raise AssertionError(f"no slot for a row of partition {partitions[row]} at {locations[row]}")
        return pa.array(slots, pa.int32())

    def _spread_inserts(
        self, slots: npt.NDArray[np.int32], is_insert: npt.NDArray[np.bool_], keys: pa.Array, partitions: pa.Array
    ) -> None:
        for partition in cast("list[str]", pc.unique(partitions.filter(pa.array(is_insert))).to_pylist()):
            rows = np.flatnonzero(is_insert & pc.equal(partitions, partition).to_numpy(zero_copy_only=False))
            targets = self.inserts[partition]
            if len(targets) == 1:
                slots[rows] = targets[0][1]
                continue
            shares = np.array([share for share, _ in targets])
            numbers = np.array([slot for _, slot in targets], dtype=np.int32)
            # By hash of the key: all rows of a key go to one slot, where one of them wins.
            position = np.searchsorted(shares, _unit_hash(keys.take(pa.array(rows))), side="right")
            slots[rows] = numbers[np.minimum(position, len(numbers) - 1)]


_SEPARATOR = "\x00"


def _joined(partition_path: str, file_id: str) -> str:
    return f"{partition_path}{_SEPARATOR}{file_id}"


def _unit_hash(keys: pa.Array) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each key. Java's hash has poor high bits, so it is mixed by multiplication."""
    mixed = java_string_hash(keys).astype(np.int64).astype(np.uint32) * np.uint32(2654435769)
    return (mixed ^ (mixed >> np.uint32(15))).astype(np.uint32) / np.float64(1 << 32)


def plan_slots(
    counts: Iterable[RowCount],
    base_files: Mapping[str, Sequence[BaseFile]],
    sizing: Sizing,
    *,
    new_file_id: Callable[[str], str] | None = None,
    drop_inserts: bool = False,
    logs: LogPlan | None = None,
    closed: Container[FileGroupId] = frozenset(),
) -> SlotPlan:
    """Slots for a batch.

    Args:    counts: rows by file group; `base_files`: latest base files of every partition that occurs in `counts`;
             new_file_id: makes the whole file id from a location without base file (bucket index); drop_inserts: rows
                 without location are deletes of unknown keys; logs: for a merge-on-read table; closed: file groups that
                 take no inserts, whatever their size.
    Returns: the plan, deterministic for its input. Engines begin with the first slots, which take longest.
    """
    task_numbers = _known_groups(base_files, logs)
    tasks: list[WriteTask] = []
    updates: dict[tuple[str, str], int] = {}
    inserts: dict[str, tuple[tuple[float, int], ...]] = {}
    ordered = sorted(counts, key=lambda count: (count.partition_path, count.file_id or ""))
    for count in ordered:
        if count.file_id is None:
            continue
        group = (count.partition_path, count.file_id)
        updates[group] = len(tasks)
        if group in task_numbers:
            tasks.append(task_numbers[group])
        elif drop_inserts:
            tasks.append(WriteTask("drop", count.partition_path))
        else:
            assert new_file_id is not None, f"location {count.file_id} in {count.partition_path!r} is no file group"
            tasks.append(_new_group(count.partition_path, new_file_id(count.file_id), logs))
    drop_slot = None
    for count in ordered:
        if count.file_id is not None:
            continue
        if drop_inserts:
            if drop_slot is None:
                drop_slot = len(tasks)
                tasks.append(WriteTask("drop"))
        else:
            path = count.partition_path
            files = _small_files(path, base_files, sizing.small_file_limit_bytes, logs, closed)
            inserts[path] = _place_inserts(count, files, sizing, tasks, updates)
    return _longest_first(SlotPlan(tuple(tasks), updates, inserts, drop_slot), ordered, sizing)


def _longest_first(plan: SlotPlan, counts: Sequence[RowCount], sizing: Sizing) -> SlotPlan:
    """The plan with its slots by descending bytes to write, then in their former order: a long task that starts last
    leaves all other processors idle.
    """
    rows = np.zeros(len(plan.tasks))
    for count in counts:
        if count.file_id is not None:
            rows[plan.updates[count.partition_path, count.file_id]] += count.rows
        else:
            before = 0.0
            for share, slot in plan.inserts.get(count.partition_path, ()):
                rows[slot] += (share - before) * count.rows
                before = share
    rewritten = [0 if task.base_file is None else task.base_file.size_bytes for task in plan.tasks]
    order = np.argsort(-(rows * sizing.record_size_bytes + np.array(rewritten)), kind="stable")
    place = {int(slot): number for number, slot in enumerate(order)}
    return SlotPlan(
        tuple(plan.tasks[slot] for slot in order),
        {group: place[slot] for group, slot in plan.updates.items()},
        {path: tuple((share, place[slot]) for share, slot in targets) for path, targets in plan.inserts.items()},
        None if plan.drop_slot is None else place[plan.drop_slot],
    )


def _known_groups(
    base_files: Mapping[str, Sequence[BaseFile]], logs: LogPlan | None
) -> dict[tuple[str, str], WriteTask]:
    """The task that updates each file group."""
    if logs is None:
        return {
            (file.partition_path, file.file_id): WriteTask("merge", file.partition_path, base_file=file)
            for files in base_files.values()
            for file in files
        }
    return {
        (s.group.partition_path, s.group.file_id): WriteTask("append", s.group.partition_path, file_slice=s)
        for slices in logs.slices.values()
        for s in slices
    }


def _small_files(
    partition_path: str,
    base_files: Mapping[str, Sequence[BaseFile]],
    limit_bytes: int,
    logs: LogPlan | None,
    closed: Container[FileGroupId],
) -> tuple[BaseFile, ...]:
    """The base files of a partition that take inserts."""
    if logs is not None:
        return logs.small_files(partition_path, limit_bytes, closed)
    return pick_small_files((f for f in base_files.get(partition_path, ()) if f.group not in closed), limit_bytes)


def _new_group(partition_path: str, file_id: str, logs: LogPlan | None) -> WriteTask:
    if logs is None or logs.new_slice_instant is None:
        return WriteTask("create", partition_path, file_id=file_id)
    empty = FileSlice(FileGroupId(partition_path, file_id), logs.new_slice_instant, None)
    return WriteTask("append", partition_path, file_slice=empty, is_new_group=True)


def _place_inserts(
    count: RowCount,
    files: Sequence[BaseFile],
    sizing: Sizing,
    tasks: list[WriteTask],
    updates: dict[tuple[str, str], int],
) -> tuple[tuple[float, int], ...]:
    """Fill small files first, new file groups take the rest: (cumulative share, slot) for one partition."""
    shares: list[tuple[int, int]] = []  # rows, slot
    unplaced = count.rows
    for file in files:
        room = (sizing.max_file_size_bytes - file.size_bytes) // max(1, sizing.record_size_bytes)
        if room <= 0 or unplaced <= 0:
            continue
        group = (file.partition_path, file.file_id)
        rewrite = WriteTask("merge", file.partition_path, base_file=file)
        if group in updates:
            tasks[updates[group]] = rewrite  # otherwise its updates would go to a log file
        else:
            updates[group] = len(tasks)
            tasks.append(rewrite)
        shares.append((min(room, unplaced), updates[group]))
        unplaced -= min(room, unplaced)
    while unplaced > 0:
        rows = min(unplaced, sizing.rows_per_new_file)
        shares.append((rows, len(tasks)))
        tasks.append(WriteTask("create", count.partition_path))
        unplaced -= rows
    total, ends, cumulative = sum(rows for rows, _ in shares), [], 0
    for rows, slot in shares:
        cumulative += rows
        ends.append((cumulative / total, slot))
    return tuple(ends)


def pick_small_files(base_files: Iterable[BaseFile], limit_bytes: int) -> tuple[BaseFile, ...]:
    """Base files that can still take inserts, smallest first; none when `limit_bytes` <= 0."""
    small = (file for file in base_files if file.size_bytes < limit_bytes)
    return tuple(sorted(small, key=lambda file: (file.size_bytes, file.file_id)))


def record_size_bytes(
    commits_newest_first: Iterable[CommitMetadata], threshold_bytes: float, default_bytes: int
) -> int:
    """Bytes of one row on disk: from the newest commit that wrote more than `threshold_bytes`, else the default.

    Sizes from commits are limited to MIN_RECORD_BYTES and MAX_RECORD_BYTES; the caller's default is not.
    """
    for commit in commits_newest_first:
        stats = [stat for stat in commit.stats() if stat.log_version is None]  # log files store rows in other forms
        written_bytes = sum(stat.total_write_bytes for stat in stats)
        rows = sum(stat.num_writes for stat in stats)
        if rows > 0 and written_bytes > threshold_bytes:
            return min(max(-(-written_bytes // rows), MIN_RECORD_BYTES), MAX_RECORD_BYTES)
    return default_bytes


def profile_of(counts: Iterable[RowCount], plan: SlotPlan, operation: str) -> CommitMetadata:
    """Body of the inflight file: per partition the inserts, then each updated file group (docs/formats/timeline.md,
    "Bodies").
    """
    inserts: dict[str, int] = {}
    updates: dict[str, dict[str, tuple[str, int]]] = {}
    for count in counts:
        slot = None if count.file_id is None else plan.updates.get((count.partition_path, count.file_id))
        task = WriteTask("drop") if count.file_id is None and plan.drop_slot is not None else WriteTask("create")
        if slot is not None:
            task = plan.tasks[slot]
        changed = task.updated_file
        if changed is not None:
            touched = updates.setdefault(count.partition_path, {})
            touched[changed[0]] = (changed[1], count.rows)
        elif task.kind in ("create", "append"):
            inserts[count.partition_path] = inserts.get(count.partition_path, 0) + count.rows
    return workload_profile(inserts, updates, operation)
