"""Policies of cleaning: they choose the file slices that a clean may delete. Nothing is deleted here.

A clean may delete a slice that no allowed query needs. Allowed queries read the newest rows, the rows as of any instant
since the earliest retained one, or the rows of savepoints. Each policy retains:

    KEEP_LATEST_COMMITS        the N newest commits, but never beyond a pending write
    KEEP_LATEST_BY_HOURS       the commits of the last hours
    both                       the newest commit that was exported as another format (exported.py)
    both, in a file group      the newest slice, slices since the earliest instant, and the newest one before it;
                               nothing in a group replaced before it
    KEEP_LATEST_FILE_VERSIONS  the N newest slices of a group; nothing in a replaced group

Slices with savepointed files are kept, as are slices that pending plans read, and by versions those that exports use.

`Deletions` holds the slices that a clean deletes, as columns. There may be a million of them, and most are only
counted.
Source: docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant, format_instant_time
from pyhudi.model.options.retention import CleaningOptions, PartitionFilter
from pyhudi.model.plans import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from pyhudi.model.timeline import Timeline
from pyhudi.view.stored_slices import STORED_SLICES, StoredPartition

__all__ = [
    "Deletion",
    "Deletions",
    "RetentionRules",
    "deletions",
    "earliest_retained",
    "is_allowed",
    "is_emptied",
    "partitions_of",
    "replaced_needed",
    "retained_for_exports",
    "supersedes",
]


_SCHEMA = pa.schema(
    [
        ("partition_path", pa.dictionary(pa.int32(), pa.string())),
        *STORED_SLICES,
        ("reason", pa.string()),
        ("superseded", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A slice to delete. `reason`: a text for the caller. `superseded`: the instant from which on no query reads it."""

    partition_path: str
    file_id: str
    base_instant: str
    names: tuple[str, ...]
    reason: str
    superseded: str


@dataclass(frozen=True, slots=True)
class Deletions(Sequence[Deletion]):
    """Slices to delete, partition by partition. A `Deletion` is made on access."""

    rows: pa.Table = field(default_factory=_SCHEMA.empty_table)

    @classmethod
    def of(cls, partition_path: str, slices: pa.Table, reasons: pa.Array, superseded: pa.Array) -> Deletions:
        """The deletions in a partition. `slices`: rows of STORED_SLICES; the arrays have a value for each of them."""
        paths = pa.DictionaryArray.from_arrays(
            pa.repeat(pa.scalar(0, pa.int32()), len(reasons)), pa.array([partition_path])
        )
        return cls(pa.Table.from_arrays([paths, *slices.columns, reasons, superseded], schema=_SCHEMA))

    @classmethod
    def together(cls, parts: Iterable[Deletions]) -> Deletions:
        """The deletions in several partitions."""
        return cls(pa.concat_tables([_SCHEMA.empty_table(), *(part.rows for part in parts if part)]))

    @property
    def file_count(self) -> int:
        return pc.sum(pc.list_value_length(self.rows.column("names"))).as_py() or 0

    @property
    def last_superseded(self) -> str:
        """The newest `superseded` instant of the slices, "" for none."""
        return pc.max(self.rows.column("superseded")).as_py() or ""

    def names_by_partition(self) -> Iterator[tuple[str, list[str]]]:
        """Partition paths, and names of the files to delete there; a path may occur several times."""
        for batch in self.rows.to_batches():
            if batch.num_rows:
                names = cast("pa.ListArray", batch.column("names"))
                yield batch.column("partition_path")[0].as_py(), cast("list[str]", names.flatten().to_pylist())

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __iter__(self) -> Iterator[Deletion]:
        for batch in self.rows.to_batches():
            yield from _made(batch)

    @overload
    def __getitem__(self, place: int) -> Deletion: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Deletion, ...]: ...

    def __getitem__(self, place: int | slice) -> Deletion | tuple[Deletion, ...]:
        places = range(len(self))[place]
        slices = tuple(_made(self.rows.take([places] if isinstance(places, int) else list(places))))
        return slices[0] if isinstance(places, int) else slices


def _made(rows: pa.Table | pa.RecordBatch) -> Iterator[Deletion]:
    for path, file_id, instant, names, reason, superseded in zip(
        *(column.to_pylist() for column in rows.columns), strict=True
    ):
        yield Deletion(path, file_id, instant, tuple(names), reason, superseded)


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """The files that cleaning retains. `earliest`: instant time, "" for the policy by versions. `replaced`: partition
    path → file id → the replacing instant. `savepointed`: partition path → names of savepointed files. `needed`:
    partition path → file id → base instant of the oldest slice that a pending plan reads.
    """

    policy: str
    earliest: str = ""
    versions: int = 1
    replaced: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    savepointed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    needed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


# ---- the earliest instant --------------------------------------------------------------------------------------------


def earliest_retained(
    timeline: Timeline, options: CleaningOptions, now: datetime, *, cleaned_before: str = ""
) -> Instant | None:
    """The oldest completed write whose files are all kept. None: nothing can be cleaned by commits or hours.

    Args: now: in the timeline's zone. cleaned_before: the earliest instant that the last clean retained, "" for none.
    """
    completed = timeline.commits().instants
    earliest = _by_count(completed, options.commits_retained) if options.policy == KEEP_LATEST_COMMITS else None
    if options.policy == KEEP_LATEST_BY_HOURS:
        start = format_instant_time(now - timedelta(hours=options.hours_retained), now.tzinfo)
        earliest = next((i for i in completed if i.requested_time >= start), None)
    if earliest is None:
        return None
    pending = next((i.requested_time for i in timeline.pending() if i.action.is_write), None)
    if pending is not None and earliest.requested_time > pending:
        earliest = next((i for i in reversed(completed) if i.requested_time < pending), None)
    return None if earliest is None else _within_steps(earliest, completed, options, cleaned_before)


def retained_for_exports(timeline: Timeline, earliest: Instant, exported: str, cleaned_before: str) -> Instant | None:
    """The earliest instant, but not beyond the one that an export has (`exported`; "": there is none)."""
    if not exported or not cleaned_before <= exported < earliest.requested_time:
        return earliest
    return timeline.commits().up_to(exported).last_commit()


def _by_count(completed: Sequence[Instant], retained: int) -> Instant | None:
    return completed[-retained] if len(completed) > retained else None


def _within_steps(earliest: Instant, completed: Sequence[Instant], options: CleaningOptions, before: str) -> Instant:
    """The earliest instant, limited to a number of commits after the one that the last clean retained."""
    passed = [i for i in completed if before <= i.requested_time < earliest.requested_time]
    return passed[options.commits_cleaned_max] if len(passed) > options.commits_cleaned_max else earliest


# ---- which partitions ------------------------------------------------------------------------------------------------


def partitions_of(bodies: Iterable[CommitMetadata]) -> tuple[str, ...]:
    """Partitions that writes wrote to or replaced file groups in."""
    partitions: dict[str, None] = {}
    for body in bodies:
        partitions |= dict.fromkeys((*body.partition_to_write_stats, *(body.partition_to_replace_file_ids or {})))
    return tuple(partitions)


def is_allowed(path: str, partitions: PartitionFilter) -> bool:
    """True if a filter lets a clean cover a partition."""
    if partitions.selected:
        return path in partitions.selected
    return not partitions.regex or re.fullmatch(partitions.regex, path, re.DOTALL) is not None


def supersedes(body: CommitMetadata) -> bool:
    """True if a write left something to clean later: an older version of a file, or a replaced group."""
    if body.partition_to_replace_file_ids:
        return True
    return any(stat.log_version is None and stat.prev_commit not in (None, "null") for stat in body.stats())


def replaced_needed(keep: RetentionRules) -> str:
    """The oldest instant that replaced file groups which pending plans still read; "" for none."""
    groups = ((path, file_id) for path, needed in keep.needed.items() for file_id in needed)
    times = (keep.replaced.get(path, {}).get(file_id) for path, file_id in groups)
    return min((time for time in times if time is not None), default="")


# ---- which slices ----------------------------------------------------------------------------------------------------


def deletions(partition: StoredPartition, keep: RetentionRules) -> Deletions:
    """The slices of one partition to delete."""
    slices = _Slices(partition, keep)
    by_versions = keep.policy == KEEP_LATEST_FILE_VERSIONS
    to_delete = _by_versions(slices, keep) if by_versions else _by_instant(slices, keep)
    if slices.replaced.null_count < len(to_delete):
        with_group = by_versions | _mask(pc.less(slices.replaced, keep.earliest))
        to_delete = np.where(_mask(pc.is_valid(slices.replaced)), with_group, to_delete)
    rows = np.flatnonzero(to_delete & ~(slices.is_needed | slices.is_saved))
    if not len(rows):
        return Deletions()
    if by_versions:
        reasons = pa.repeat(f"{keep.versions} newer versions are kept", len(rows))
    else:
        words = f"reads since {keep.earliest} begin with the version of "
        reasons = _with_instants(words, slices.instants.take(_first_read(slices, keep)[rows]))
    replaced = slices.replaced.take(rows)
    reasons = pc.coalesce(_with_instants("replaced by ", replaced), reasons)
    newer = slices.instants.take(np.maximum(rows - 1, 0))
    superseded = pc.if_else(slices.is_newest[rows], replaced, newer)
    return Deletions.of(partition.path, partition.slices.take(rows), reasons, superseded)


class _Slices:
    """Columns over the slices of a partition, groups one after the other, the newest slice of each first.

    `instants`, `replaced` (the instant that replaced the group), `needed` (the oldest slice of it that a pending plan
    reads): arrays. `is_...`: masks.
    """

    def __init__(self, partition: StoredPartition, keep: RetentionRules) -> None:
        path, file_ids = partition.path, _column(partition.slices, "file_id")
        self.instants = _column(partition.slices, "base_instant")
        self.is_newest = np.diff(file_ids.dictionary_encode().indices.to_numpy(), prepend=-1) != 0
        self.replaced = _looked_up(file_ids, keep.replaced.get(path))
        self.needed = _looked_up(file_ids, keep.needed.get(path))
        self.is_needed = self.is_saved = np.zeros(len(file_ids), dtype=bool)
        if path in keep.needed:
            self.is_needed = _mask(pc.greater_equal(self.instants, self.needed))
        if path in keep.savepointed and len(file_ids):
            names = cast("pa.ListArray", _column(partition.slices, "names"))
            hits = _mask(pc.is_in(names.flatten(), pa.array(keep.savepointed[path], pa.string())))
            self.is_saved = np.logical_or.reduceat(hits, names.offsets.to_numpy()[:-1] - names.offsets[0].as_py())


def _by_versions(slices: _Slices, keep: RetentionRules) -> Mask:
    """All but the newest slices. Those that a plan reads count as one version, and are the newest of a group."""
    counted = np.cumsum(~slices.is_needed)
    newer = counted - 1 - np.maximum.accumulate(np.where(slices.is_newest, counted - ~slices.is_needed, 0))
    versions = np.maximum(keep.versions - _mask(pc.is_valid(slices.needed)), 0)
    to_delete: Mask = newer >= versions
    return to_delete


def _by_instant(slices: _Slices, keep: RetentionRules) -> Mask:
    """All slices older than the newest one before the earliest instant, which reads since then still use."""
    before = np.roll(_mask(pc.less(slices.instants, keep.earliest)), 1)
    to_delete: Mask = ~slices.is_newest & before
    return to_delete


def _first_read(slices: _Slices, keep: RetentionRules) -> npt.NDArray[np.int64]:
    """For each slice deleted by instant: the row of the slice that reads since the earliest instant begin with."""
    is_first = _mask(pc.less(slices.instants, keep.earliest)) & ~_by_instant(slices, keep)
    return np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), 0))


def _with_instants(words: str, instants: pa.Array) -> pa.Array:
    """A text for each instant, null for none. There are few instants."""
    coded = instants.dictionary_encode()
    texts = pa.array([words + instant for instant in cast("list[str]", coded.dictionary.to_pylist())], pa.string())
    return texts.take(coded.indices)


def _looked_up(file_ids: pa.Array, values: Mapping[str, str] | None) -> pa.Array:
    """The values of some groups; null for the others."""
    if not values:
        return pa.nulls(len(file_ids), pa.string())
    places = pc.index_in(file_ids, pa.array(values, pa.string()))
    return pa.array(values.values(), pa.string()).take(places)


def _column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _mask(values: pa.Array) -> Mask:
    """The mask, with nulls as false."""
    filled = pc.fill_null(values, False) if values.null_count else values
    mask: Mask = filled.to_numpy(zero_copy_only=False)
    return mask


def is_emptied(partition: StoredPartition, to_delete: Deletions) -> bool:
    """True if all data files of the partition, committed or not, are deleted. False in a table without partitions."""
    return partition.path != "" and to_delete.file_count == partition.file_count
