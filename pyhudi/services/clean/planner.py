"""Planning a clean: the timeline is read, partitions are listed, and the policy is applied.

Cleaning covers the partitions that changed between the earliest instant retained by the last clean and that of this
one. It covers all partitions without a last clean, after a savepoint is deleted, or when the last clean skipped
partitions. A clean after a write lists nothing unless one of these changes left something to delete.
Source: docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from pyhudi.actions.action import ActionContext
from pyhudi.errors import PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options.retention import PartitionFilter
from pyhudi.model.plans import (
    KEEP_LATEST_FILE_VERSIONS,
    PARTITION_FILTER,
    READABLE_SINCE,
    REPLACED_NEEDED,
    SAVEPOINTED,
    CleanMetadata,
    CleanPlan,
    RetainedInstant,
    SavepointMetadata,
)
from pyhudi.services.clean.exported import needed_by_exports
from pyhudi.services.clean.policies import (
    Deletions,
    RetentionRules,
    deletions,
    earliest_retained,
    is_allowed,
    is_emptied,
    partitions_of,
    replaced_needed,
    retained_for_exports,
    supersedes,
)
from pyhudi.view.file_system_view import LISTING_THREADS, FileSystemView, Visibility, listed_partitions
from pyhudi.view.stored_slices import SliceRules

__all__ = ["PlannedClean", "commits_since_clean", "last_clean", "plan_clean", "savepoint_bodies", "savepointed_files"]


@dataclass(frozen=True, slots=True)
class PlannedClean:
    """A clean plan with its reasons. `to_delete`: slices; `emptied`: partitions that then have no files."""

    policy: str
    earliest: Instant | None
    to_delete: Deletions = field(default_factory=Deletions)
    emptied: tuple[str, ...] = ()
    last_commit: str = ""
    savepoints: tuple[str, ...] = ()
    partition_filter: str = ""
    replaced_needed: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.to_delete and not self.emptied

    def plan(self) -> CleanPlan:
        """The plan for the timeline."""
        files: dict[str, list[str]] = {path: [] for path in self.emptied}
        for path, names in self.to_delete.names_by_partition():
            files.setdefault(path, []).extend(names)
        first = self.earliest
        return CleanPlan(
            policy=self.policy,
            earliest=None
            if first is None
            else RetainedInstant(first.requested_time, first.action.value, first.state.name),
            last_commit=self.last_commit,
            files={path: tuple(files[path]) for path in sorted(files)},
            partitions=self.emptied,
            extra_metadata=self._extra_metadata(),
        )

    def _extra_metadata(self) -> dict[str, str]:
        extra = {SAVEPOINTED: ",".join(self.savepoints)} if self.savepoints else {}
        if self.earliest is None and self.to_delete:
            extra[READABLE_SINCE] = self.to_delete.last_superseded
        if self.partition_filter:
            extra[PARTITION_FILTER] = self.partition_filter
        if self.replaced_needed:
            extra[REPLACED_NEEDED] = self.replaced_needed
        return extra


def plan_clean(context: ActionContext, *, after_write: bool = False) -> PlannedClean:
    """The plan of a clean of the table as it is now.

    Args:    after_write: list nothing when no write since the last clean left anything to delete.
    Raises:  CorruptFile for commits, savepoints or plans that can't be read: without them nothing is safe to delete.
    """
    meta, options = context.meta, context.options.cleaning
    before = last_clean(meta)
    cleaned_before = before.earliest if before is not None else ""
    now = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc).astimezone(meta.config.timeline_zone)
    earliest = earliest_retained(meta.timeline, options, now, cleaned_before=cleaned_before)
    planned = PlannedClean(options.policy, earliest)
    by_versions = options.policy == KEEP_LATEST_FILE_VERSIONS
    if earliest is None and not by_versions:
        return planned
    savepoints = savepointed_files(meta)
    changes = _changes(meta, "" if by_versions else cleaned_before, None if by_versions else earliest)
    is_first = before is None or (cleaned_before != "" and not _is_active(cleaned_before, meta))
    left_behind = _lost_savepoint(before, savepoints) or _skipped_partitions(before)
    scan_all = by_versions or not options.is_incremental or not cleaned_before or is_first or left_behind
    if after_write and not any(map(supersedes, changes)) and not left_behind:
        return planned
    exported = needed_by_exports(meta, context.options.export.retain_hours, now)
    if earliest is not None:
        earliest = retained_for_exports(meta.timeline, earliest, exported, cleaned_before)
        planned = replace(planned, earliest=earliest)
        if earliest is None:
            return planned
    keep = _retention(context, earliest, savepoints)
    partitions = (options.partitions.selected or None) if scan_all else partitions_of(changes)
    to_delete, emptied, hidden = _scan(meta, partitions, keep, options.partitions, exported if by_versions else "")
    last = meta.timeline.last_commit()
    return replace(
        planned,
        to_delete=to_delete,
        emptied=emptied,
        last_commit="" if last is None else last.requested_time,
        savepoints=tuple(savepoints),
        partition_filter=str(options.partitions) if options.partitions else "",
        replaced_needed=min(filter(None, (replaced_needed(keep), *hidden)), default=""),
    )


def _scan(
    meta: MetaClient, partitions: Iterable[str] | None, keep: RetentionRules, allowed: PartitionFilter, exported: str
) -> tuple[Deletions, tuple[str, ...], frozenset[str]]:
    """Find the slices to delete, the partitions that become empty, and the instants that must not be archived yet: they
    hide some of these slices.

    Args:   exported: the instant whose base files an export uses, where they are to be kept one by one; "" for none.
    """
    rules = SliceRules.of(meta)
    exported_view = Visibility.of(meta, exported) if exported else None
    to_delete: dict[str, Deletions] = {}
    emptied: list[str] = []
    hidden: set[str] = set()
    for path, files in listed_partitions(meta.storage, partitions):
        if not is_allowed(path, allowed):
            continue
        partition = rules.partition(path, files)
        if exported_view is not None:
            view = FileSystemView({path: exported_view.file_groups(path, files)})
            names = keep.savepointed.get(path, frozenset()).union(file.name for file in view.all_base_files())
            replaced = keep.replaced.get(path, {})
            hidden.update(replaced[file.file_id] for file in view.all_base_files() if file.file_id in replaced)
            keep = replace(keep, savepointed={**keep.savepointed, path: names})
        unneeded = to_delete[path] = deletions(partition, keep)
        if is_emptied(partition, unneeded):
            emptied.append(path)
    # Folders are listed in the order of names, and so are the slices of a partition.
    return Deletions.together(to_delete[path] for path in sorted(to_delete)), tuple(sorted(emptied)), frozenset(hidden)


# ---- the timeline ----------------------------------------------------------------------------------------------------


def last_clean(meta: MetaClient) -> CleanMetadata | None:
    """The body of the newest completed clean."""
    cleans = [i for i in meta.timeline.completed() if i.action is ActionKind.CLEAN]
    if not cleans:
        return None
    return meta.reader.clean_metadata(cleans[-1])


def commits_since_clean(meta: MetaClient) -> int:
    """Completed writes after the newest one at the last clean."""
    before = last_clean(meta)
    since = before.last_commit if before is not None else ""
    return sum(instant.requested_time > since for instant in meta.timeline.commits())


def savepointed_files(meta: MetaClient) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Savepoint → partition path → names of the files that it protects. Raises CorruptFile."""
    return {instant.requested_time: metadata.files for instant, metadata in savepoint_bodies(meta)}


def savepoint_bodies(meta: MetaClient) -> Iterator[tuple[Instant, SavepointMetadata]]:
    """The savepoints with their bodies, oldest first, without those that another process is just deleting.

    Raises CorruptFile; PathNotFound for one whose file is missing although it was not deleted.
    """
    for instant in meta.timeline.completed().of([ActionKind.SAVEPOINT]):
        try:
            yield instant, meta.reader.savepoint_metadata(instant)
        except PathNotFound:
            if meta.reload().timeline.find(instant.requested_time, ActionKind.SAVEPOINT) is not None:
                raise


def _changes(meta: MetaClient, since: str, until: Instant | None) -> Sequence[CommitMetadata]:
    """Bodies of the writes that a clean has to consider, read in parallel."""
    instants = [
        instant
        for instant in meta.timeline.commits()
        if instant.requested_time >= since and (until is None or instant.requested_time < until.requested_time)
    ]
    if len(instants) < 3:
        return [meta.commits.metadata(instant) for instant in instants]
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-read") as pool:
        return list(pool.map(meta.commits.metadata, instants))


def _is_active(instant_time: str, meta: MetaClient) -> bool:
    """True if the active timeline reaches back to an instant, savepointed commits before archived ones not counted."""
    since = meta.timeline.active_since
    return since is not None and since <= instant_time


def _lost_savepoint(before: CleanMetadata | None, savepoint_times: Iterable[str]) -> bool:
    """True if a savepoint that protected files until the last clean has been deleted."""
    saved_before = (before.extra_metadata.get(SAVEPOINTED, "") if before is not None else "").split(",")
    return bool({name for name in saved_before if name} - set(savepoint_times))


def _skipped_partitions(before: CleanMetadata | None) -> bool:
    """True if the last clean was limited to some partitions."""
    return before is not None and PARTITION_FILTER in before.extra_metadata


def _retention(
    context: ActionContext, earliest: Instant | None, files_by_savepoint: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> RetentionRules:
    names: dict[str, frozenset[str]] = {}
    for partitions in files_by_savepoint.values():
        for path, files in partitions.items():
            names[path] = names.get(path, frozenset()) | frozenset(files)
    options = context.options.cleaning
    return RetentionRules(
        options.policy,
        "" if earliest is None else earliest.requested_time,
        options.file_versions_retained,
        _replaced(context.meta),
        names,
        _needed(context.meta),
    )


def _replaced(meta: MetaClient) -> dict[str, dict[str, str]]:
    replaced: dict[str, dict[str, str]] = {}
    for instant in meta.timeline.commits():
        if instant.action is ActionKind.REPLACECOMMIT:
            for path, file_ids in (meta.commits.metadata(instant).partition_to_replace_file_ids or {}).items():
                replaced.setdefault(path, {}).update(dict.fromkeys(file_ids, instant.requested_time))
    return replaced


def _needed(meta: MetaClient) -> dict[str, dict[str, str]]:
    """Partition path → file group of a pending plan → the oldest slice of it that a plan reads."""
    needed: dict[str, dict[str, str]] = {}

    def need(group: FileGroupId, base_instant: str) -> None:
        by_file_id = needed.setdefault(group.partition_path, {})
        by_file_id[group.file_id] = min(base_instant, by_file_id.get(group.file_id, base_instant))

    for instant in meta.timeline.pending():
        if instant.action.is_compaction:
            for operation in meta.reader.compaction_plan(instant).operations:
                need(operation.group, operation.base_instant)
        elif (clustering := meta.reader.clustering_plan(instant)) is not None:
            for file_slice in clustering.slices:
                need(file_slice.group, file_slice.base_instant)
    return needed
