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
    path, saved = partition.path, keep.saved.get(partition.path, frozenset())
    replaced = keep.replaced.get(path, {})
    for file_id in partition.file_ids:
        if partition.is_single(file_id) and file_id not in replaced:
            continue
        slices = rules.slices(partition, file_id)
        gone, needed = replaced.get(file_id), keep.needed.get(FileGroupId(path, file_id)) if keep.needed else None
        for n, reason in _of_group(slices, gone, needed, keep):
            going = slices[n]
            if (needed is not None and going.base_instant >= needed) or not saved.isdisjoint(going.names):
                continue
            end = slices[n - 1].base_instant if n else gone
            assert end is not None, "the newest slice of a group goes only with the group"
            yield Deletion(path, file_id, going.base_instant, tuple(going.names), reason, end)


def _of_group(
    slices: Sequence[StoredSlice], replaced: str | None, needed: str | None, keep: Retention
) -> Iterable[tuple[int, str]]:
    """Numbers of the slices, newest first, that the policy does not keep, and why."""
    by_versions = keep.policy == KEEP_LATEST_FILE_VERSIONS
    if replaced is not None:
        return _all(slices, f"replaced by {replaced}") if by_versions or replaced < keep.earliest else ()
    return _by_versions(slices, needed, keep) if by_versions else _by_instant(slices, keep)


def _all(slices: Sequence[StoredSlice], reason: str) -> Iterable[tuple[int, str]]:
    return ((n, reason) for n in range(len(slices)))


def _by_versions(slices: Sequence[StoredSlice], needed: str | None, keep: Retention) -> Iterable[tuple[int, str]]:
    free = [n for n, s in enumerate(slices) if needed is None or s.base_instant < needed]
    kept = keep.versions - (needed is not None)  # what a plan reads counts as one version
    reason = f"{keep.versions} newer versions are kept"
    return ((n, reason) for n in free[max(0, kept) :])


def _by_instant(slices: Sequence[StoredSlice], keep: Retention) -> Iterable[tuple[int, str]]:
    """All after the newest one before the earliest instant: what reads since then begin with."""
    start = next((n for n, s in enumerate(slices) if s.base_instant < keep.earliest), len(slices))
    if start + 1 >= len(slices):
        return ()
    reason = f"reads since {keep.earliest} begin with the version of {slices[start].base_instant}"
    return ((n, reason) for n in range(start + 1, len(slices)))


def is_deserted(partition: StoredPartition, going: Iterable[Deletion]) -> bool:
    """Will the partition be without any data file, committed or not? A table without partitions always has its one."""
    return partition.path != "" and sum(len(deletion.names) for deletion in going) == partition.file_count
