"""The choice of instants to archive: the oldest commits beyond the number to keep, up to the first one that is
still needed.

    pending work          its writer checks later instants for conflicts; readers recognise its files by it
    compaction trigger    counts the delta commits since the last compaction
    replaced file groups  a replacecommit hides their files until cleaning has deleted them
    savepoints            restore undoes later instants
    the table's schema    the newest commit that contains it
    time travel           the newest clean, and the one that retained least
    metadata table        instants in its log files that are not in its base files yet

Planning reads only the timeline and the plan of the last clean, or of several cleans if that one skipped partitions.
Source: docs/formats/history.md, "What may be archived".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from pyhudi.actions.action import ActionContext
from pyhudi.errors import HudiError
from pyhudi.formats.timeline.bodies import Body, Fields
from pyhudi.formats.timeline.instant_files import decode_avro_record
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import OperationType
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.model.options import WriteOptions
from pyhudi.model.plans import (
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    PARTITION_FILTER,
    REPLACED_NEEDED,
    SAVEPOINTED,
)
from pyhudi.model.timeline import Timeline
from pyhudi.view.readable_history import readable_since

__all__ = ["ArchiveLimit", "ArchivePlan", "kept_commits", "plan_archive", "select_instants"]

_BY_COMMITS = ("NUM_COMMITS", "NUM_AND_TIME")
_WITHOUT_SCHEMA = (OperationType.COMPACT, OperationType.CLUSTER, OperationType.LOG_COMPACT, OperationType.INDEX)


@dataclass(frozen=True, slots=True, order=True)
class ArchiveLimit:
    """Instants at or after `time` are kept, because of `reason`."""

    time: str
    reason: str


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """`instants`: completed ones to archive, oldest first. `limit`: the limit that keeps further ones, if any."""

    instants: tuple[Instant, ...] = ()
    limit: ArchiveLimit | None = None


def plan_archive(context: ActionContext) -> ArchivePlan:
    """The instants that an archiving run would move off the timeline of `context`."""
    timeline, options = context.meta.timeline, context.options.archiving
    kept_min, kept_max = kept_commits(timeline, context)
    if len(timeline.commits()) <= kept_max:
        return ArchivePlan()
    savepoints = frozenset(i.requested_time for i in timeline.completed().of([ActionKind.SAVEPOINT]))
    limits = sorted(_limits(context, savepoints))
    spared = savepoints if options.beyond_savepoint else frozenset()
    by_version = None if context.meta.config.format.archives_whole_timeline else (kept_min, kept_max)
    return select_instants(timeline, kept_min, limits, spared, _needed_cleans(context), by_version)


def kept_commits(timeline: Timeline, context: ActionContext) -> tuple[int, int]:
    """The number of commits that archiving keeps, and at which it starts: as set, or more if cleaning keeps more."""
    options, cleaning = context.options.archiving, context.options.cleaning
    commits = timeline.commits().instants
    needed = 0
    if cleaning.policy == KEEP_LATEST_COMMITS and len(commits) > cleaning.commits_retained > 0:
        # The commits after the earliest retained one, and two more.
        needed = cleaning.commits_retained - 1 + 2
    elif cleaning.policy == KEEP_LATEST_BY_HOURS and commits:
        zone = context.meta.config.timeline_zone
        newest = parse_instant_time(commits[-1].requested_time, zone)
        retained = timedelta(hours=cleaning.hours_retained)
        needed = sum(newest - parse_instant_time(i.requested_time, zone) <= retained for i in commits) - 1 + 2
    more = max(0, needed - options.commits_kept_min)
    return options.commits_kept_min + more, options.commits_kept_max + more


def select_instants(
    timeline: Timeline,
    kept_min: int,
    limits: Iterable[ArchiveLimit],
    spared: frozenset[str] = frozenset(),
    cleans: frozenset[Instant] = frozenset(),
    per_action: tuple[int, int] | None = None,
) -> ArchivePlan:
    """The oldest commits beyond `kept_min` and before the first limit, with their cleans and rollbacks.

    Args:
        spared: savepointed commits that are kept while later ones are archived. cleans: cleans that are kept.
        per_action: below version 8, (min, max) number of cleans and of rollbacks; otherwise those before the last
            archived commit are archived.
    """
    limit = min(limits, default=None)
    # Hudi counts the spared ones among those kept; with enough savepoints it would archive its newest commit.
    commits = [i for i in timeline.commits() if i.requested_time not in spared]
    beyond = max(0, len(commits) - kept_min)
    to_archive = list(takewhile(lambda i: limit is None or i.requested_time < limit.time, commits[:beyond]))
    held = limit if len(to_archive) < beyond else None
    others = [i for i in _others(timeline, to_archive, limit, per_action) if i not in cleans]
    return ArchivePlan(tuple(sorted([*to_archive, *others])), held)


def _others(
    timeline: Timeline, to_archive: list[Instant], limit: ArchiveLimit | None, per_action: tuple[int, int] | None
) -> Iterator[Instant]:
    """Completed cleans and rollbacks that may be archived."""
    completed = timeline.completed()
    for action in (ActionKind.CLEAN, ActionKind.ROLLBACK):
        instants = completed.of([action]).instants
        if per_action is not None:
            kept_min, kept_max = per_action
            instants = instants[:-kept_min] if len(instants) > kept_max else ()
        elif not to_archive:
            instants = ()
        else:
            instants = tuple(i for i in instants if i.requested_time < to_archive[-1].requested_time)
        for instant in instants:
            if limit is None or instant.requested_time < limit.time:
                yield instant


def _needed_cleans(context: ActionContext) -> frozenset[Instant]:
    """The newest clean, and the one that retained least: together they show how far back the table can be read."""
    cleans = context.meta.timeline.completed().of([ActionKind.CLEAN]).instants
    farthest = max(cleans[:-1], key=lambda i: readable_since(i, context.meta), default=None)
    return frozenset(i for i in (*cleans[-1:], farthest) if i is not None)


# ---- limits ----------------------------------------------------------------------------------------------------------


def _limits(context: ActionContext, savepoints: frozenset[str]) -> Iterator[ArchiveLimit]:
    timeline, options = context.meta.timeline, context.options
    yield from _of_pending(timeline)
    if context.meta.config.is_merge_on_read:
        yield from _of_compaction(timeline, options)
    if savepoints and not options.archiving.beyond_savepoint:
        yield ArchiveLimit(min(savepoints), "a savepoint: delete it, or set hoodie.archive.beyond.savepoint=true")
    plans = tuple(_clean_plans(context))
    cleaned = plans[0] if plans else None
    yield from _of_replaced(timeline, plans[-1] if plans and _covers_all_partitions(plans[-1]) else None)
    earliest = (cleaned or {}).get("earliestInstantToRetain") or {}
    if options.archiving.stops_at_latest_clean and earliest.get("timestamp"):
        yield ArchiveLimit(earliest["timestamp"], "the earliest commit that the latest clean kept")
    if context.meta.config.metadata_partitions:
        yield _of_metadata_table(context)
    yield from _of_schema(context)


def _of_pending(timeline: Timeline) -> Iterator[ArchiveLimit]:
    """The last commit before the first pending instant is kept, too: it lets readers tell pending files from archived
    ones.
    """
    # An incomplete savepoint protects nothing; its writer may have died.
    pending = [i for i in timeline.pending() if i.action is not ActionKind.SAVEPOINT]
    if not pending:
        return
    if any(i.action is ActionKind.RESTORE for i in pending):
        yield ArchiveLimit("", "a restore that is not finished")
        return
    first = pending[0]
    before = [i for i in timeline.commits() if i.requested_time < first.requested_time]
    last = before[-1] if before else first
    yield ArchiveLimit(last.requested_time, f"{first.requested_time} ({first.action.value}), which is pending")


def _of_compaction(timeline: Timeline, options: WriteOptions) -> Iterator[ArchiveLimit]:
    """The delta commits that count for the next compaction, or the last compaction when there are not enough yet."""
    if options.compaction.trigger not in _BY_COMMITS:
        return
    commits = timeline.commits().instants
    compactions = [i for i in commits if i.action is ActionKind.COMMIT]
    since = compactions[-1].requested_time if compactions else ""
    deltas = [i for i in commits if i.action is ActionKind.DELTACOMMIT and i.requested_time > since]
    delta_commits = options.compaction.delta_commits_max
    oldest = deltas[-delta_commits] if len(deltas) >= delta_commits else next(iter([*compactions[-1:], *deltas]), None)
    if oldest is not None:
        yield ArchiveLimit(oldest.requested_time, "the delta commits that the next compaction waits for")


def _of_metadata_table(context: ActionContext) -> ArchiveLimit:
    """Instants that its last compaction may lack: below version 8 their blocks count only while they are active."""
    try:
        table = MetadataTable.open(context.meta)
    except HudiError:
        return ArchiveLimit("", "a metadata table that can't be opened; the next write rebuilds it")
    compactions = [] if table is None else table.meta.timeline.completed().of([ActionKind.COMMIT]).instants
    last = max((i.requested_time for i in compactions), default="")
    return ArchiveLimit(last, "the metadata table, which was not compacted since")


def _of_replaced(timeline: Timeline, cleaned: Body | None) -> Iterator[ArchiveLimit]:
    bound = _cleaned_up_to(timeline, cleaned)
    first = next((i for i in timeline if i.action.is_replacing and i.requested_time >= bound), None)
    if first is not None:
        yield ArchiveLimit(
            first.requested_time,
            f"{first.requested_time}, which replaced file groups that cleaning has not deleted yet",
        )


def _cleaned_up_to(timeline: Timeline, cleaned: Body | None) -> str:
    """The time before which the replaced files of all replacecommits are deleted.

    It is never after the first savepoint or after a pending plan: these may keep replaced files.
    """
    if cleaned is None:
        return ""
    earliest = str((cleaned.get("earliestInstantToRetain") or {}).get("timestamp") or "")
    earliest = earliest or _seen_up_to(timeline, cleaned)
    extra = cleaned.get("extraMetadata") or {}
    earliest = min(earliest, str(extra.get(REPLACED_NEEDED) or earliest))
    first_savepoint = str(extra.get(SAVEPOINTED) or "")
    first_saved = min((time for time in first_savepoint.split(",") if time), default=earliest)
    between = any(i.action.is_replacing and first_saved <= i.requested_time < earliest for i in timeline.completed())
    return first_saved if first_saved < earliest and between else earliest


def _seen_up_to(timeline: Timeline, cleaned: Body) -> str:
    """The same for KEEP_LATEST_FILE_VERSIONS, which spares only replacecommits that completed during the clean."""
    planned, last_commit = str(cleaned["requested_time"]), str(cleaned.get("lastCompletedCommitTimestamp") or "")
    unseen = (
        i.requested_time
        for i in timeline
        if i.action.is_replacing
        and (i.completion_time is None or i.completion_time > planned or i.requested_time > (last_commit or planned))
    )
    return min(planned, min(unseen, default=planned))


def _of_schema(context: ActionContext) -> Iterator[ArchiveLimit]:
    for instant in reversed(context.meta.timeline.commits().instants):
        body = context.meta.commits.metadata(instant)
        if body.schema_json is not None and body.operation_type not in _WITHOUT_SCHEMA:
            yield ArchiveLimit(instant.requested_time, "the newest commit that carries the table's schema")
            return


def _clean_plans(context: ActionContext) -> Iterator[Body]:
    """Plans of completed cleans with their `requested_time`, newest first, up to one that covered all partitions."""
    for clean in reversed(context.meta.timeline.completed().of([ActionKind.CLEAN]).instants):
        body = context.meta.reader.read_body(clean, State.REQUESTED)
        where = f"{context.meta.storage.root}: {clean.requested_time}.clean.requested"
        fields = Fields(decode_avro_record(body, where), where)
        earliest = fields.record("earliestInstantToRetain")
        plan: Body = {
            "requested_time": clean.requested_time,
            "earliestInstantToRetain": None if earliest is None else {"timestamp": earliest.text("timestamp")},
            "lastCompletedCommitTimestamp": fields.text("lastCompletedCommitTimestamp"),
            "extraMetadata": fields.text_map("extraMetadata"),
        }
        yield plan
        if _covers_all_partitions(plan):
            return


def _covers_all_partitions(plan: Body) -> bool:
    """True if a clean covered all partitions with something to clean."""
    return PARTITION_FILTER not in (plan.get("extraMetadata") or {})
