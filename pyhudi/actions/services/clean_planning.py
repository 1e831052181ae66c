"""What cleaning may delete: file slices that no allowed query needs. Decisions only; nothing is deleted here.

Allowed are queries of the newest rows, as of every instant since the earliest that is retained, and of savepoints:

    KEEP_LATEST_COMMITS        the N newest commits, but never beyond a pending write
    KEEP_LATEST_BY_HOURS       the commits of the last hours
    by both, of a file group   the newest slice, slices since the earliest instant, and the newest one before it;
                               of a group that was replaced before it: nothing
    KEEP_LATEST_FILE_VERSIONS  the N newest slices of a group; of a replaced group nothing

Slices with savepointed files and those that pending plans read stay. Source: spec, metadata and indexes 5.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyhudi.metadata.stored_slices import SliceRules, StoredPartition, StoredSlice
from pyhudi.model.clean_plan import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant, format_instant_time
from pyhudi.model.options.cleaning import CleaningOptions
from pyhudi.model.timeline import Timeline

__all__ = [
    "Deletion",
    "Retention",
    "deletions",
    "earliest_retained",
    "is_deserted",
    "partitions_of",
    "supersedes",
]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A slice that goes. `reason`: in words, for the one who asks. `superseded`: the instant from which on no query
    reads it.
    """

    partition_path: str
    file_id: str
    base_instant: str
    names: tuple[str, ...]
    reason: str
    superseded: str


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays. `earliest`: instant time, "" for the policy by versions. `replaced`: partition path → file id → the
    instant that took the group out. `saved`: partition path → names of savepointed files. `needed`: group → base
    instant of the oldest slice that a pending plan reads.
    """

    policy: str
    earliest: str = ""
    versions: int = 1
    replaced: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    saved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    needed: Mapping[FileGroupId, str] = field(default_factory=dict)


# ---- since when ------------------------------------------------------------------------------------------------------


def earliest_retained(
    timeline: Timeline, options: CleaningOptions, now: datetime, *, cleaned_before: str = ""
) -> Instant | None:
    """The oldest completed write whose files are all kept. None: nothing can be cleaned by commits or hours.

    Args: now: in the timeline's zone. cleaned_before: what the last clean retained, "" for none.
    """
    completed = timeline.commits().instants
    found = _by_count(completed, options.commits_retained) if options.policy == KEEP_LATEST_COMMITS else None
    if options.policy == KEEP_LATEST_BY_HOURS:
        start = format_instant_time(now - timedelta(hours=options.hours_retained), now.tzinfo)
        found = next((i for i in completed if i.requested_time >= start), None)
    if found is None:
        return None
    pending = next((i.requested_time for i in timeline.pending() if i.action.is_write), None)
    if pending is not None and found.requested_time > pending:
        found = next((i for i in reversed(completed) if i.requested_time < pending), None)
    return None if found is None else _within_steps(found, completed, options, cleaned_before)


def _by_count(completed: Sequence[Instant], retained: int) -> Instant | None:
    return completed[-retained] if len(completed) > retained else None


def _within_steps(found: Instant, completed: Sequence[Instant], options: CleaningOptions, before: str) -> Instant:
    """At most so many commits after what the last clean retained."""
    passed = [i for i in completed if before <= i.requested_time < found.requested_time]
    return passed[options.commits_cleaned_max] if len(passed) > options.commits_cleaned_max else found


# ---- which partitions ------------------------------------------------------------------------------------------------


def partitions_of(bodies: Iterable[CommitMetadata]) -> tuple[str, ...]:
    """Partitions that writes wrote to or took file groups out of."""
    found: dict[str, None] = {}
    for body in bodies:
        found |= dict.fromkeys((*body.partition_to_write_stats, *(body.partition_to_replace_file_ids or {})))
    return tuple(found)


def supersedes(body: CommitMetadata) -> bool:
    """Did a write leave something behind that can be cleaned some day: an older version of a file, a replaced group?"""
    if body.partition_to_replace_file_ids:
        return True
    return any(stat.log_version is None and stat.prev_commit not in (None, "null") for stat in body.stats())


# ---- which slices ----------------------------------------------------------------------------------------------------


def deletions(partition: StoredPartition, rules: SliceRules, keep: Retention) -> Iterator[Deletion]:
    """The slices of one partition that go."""
    saved = keep.saved.get(partition.path, frozenset())
    replaced = keep.replaced.get(partition.path, {})
    for file_id in partition.file_ids:
        if partition.is_single(file_id) and file_id not in replaced:
            continue
        group = FileGroupId(partition.path, file_id)
        slices = rules.slices(partition, file_id)
        needed = keep.needed.get(group)
        newer = dict(zip((s.base_instant for s in slices[1:]), (s.base_instant for s in slices), strict=False))
        for file_slice, reason in _of_group(slices, replaced.get(file_id), needed, keep):
            is_needed = needed is not None and file_slice.base_instant >= needed
            if not is_needed and saved.isdisjoint(file_slice.names):
                names = tuple(file_slice.names)
                end = newer.get(file_slice.base_instant) or replaced[file_id]
                yield Deletion(partition.path, file_id, file_slice.base_instant, names, reason, end)


def _of_group(
    slices: Sequence[StoredSlice], replaced: str | None, needed: str | None, keep: Retention
) -> Iterator[tuple[StoredSlice, str]]:
    """Slices that the policy does not keep, newest first."""
    by_versions = keep.policy == KEEP_LATEST_FILE_VERSIONS
    if replaced is not None:
        if by_versions or replaced < keep.earliest:
            yield from ((file_slice, f"replaced by {replaced}") for file_slice in slices)
    elif by_versions:
        yield from _by_versions(slices, needed, keep)
    else:
        yield from _by_instant(slices, keep)


def _by_versions(
    slices: Sequence[StoredSlice], needed: str | None, keep: Retention
) -> Iterator[tuple[StoredSlice, str]]:
    free = [s for s in slices if needed is None or s.base_instant < needed]
    kept = keep.versions - (needed is not None)  # what a plan reads counts as one version
    for file_slice in free[max(0, kept) :]:
        yield file_slice, f"{keep.versions} newer versions are kept"


def _by_instant(slices: Sequence[StoredSlice], keep: Retention) -> Iterator[tuple[StoredSlice, str]]:
    start = next((s.base_instant for s in slices if s.base_instant < keep.earliest), None)
    for file_slice in slices[1:]:
        if file_slice.base_instant < keep.earliest and file_slice.base_instant != start:
            yield file_slice, f"reads since {keep.earliest} begin with the version of {start}"


def is_deserted(partition: StoredPartition, going: Iterable[Deletion]) -> bool:
    """Will the partition be without any data file, committed or not? A table without partitions always has its one."""
    return partition.path != "" and sum(len(deletion.names) for deletion in going) == partition.file_count
