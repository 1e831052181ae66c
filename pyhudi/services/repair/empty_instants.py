"""Instants with empty or damaged files, as a power cut or a full disk leaves them.

    pending, its plan can't be read       undone, or taken off the timeline, when its writer is dead
    completed clean or rollback           its file is written anew, without content: what it did stays done
    completed write without data files    likewise: an empty commit
    completed write with data files       stays: its rows count; `table.rollback(time)` would take them back

A file is written anew, not deleted, since the metadata table believes only instants that are complete.
Source: docs/repairs.md, "Empty instants"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.damaged_plans import has_damaged_plan
from pyhudi.actions.undo.rollback import undo
from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.timeline.clean_plans import encode_clean_metadata
from pyhudi.formats.timeline.instant_files import decode_commit, decode_rollback_metadata, encode_commit
from pyhudi.formats.timeline.instant_files import encode_rollback_metadata as encode_rollback
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import instant_of
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanMetadata, RollbackMetadata
from pyhudi.services.repair.orphans import data_files
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.timeline.listing import instant_path
from pyhudi.timeline.read import TimelineReader
from pyhudi.transaction.instants import drop

__all__ = ["empty_instants", "find_empty_instants"]

_RUN = "table.repair.empty_instants(dry_run=False)"
_UNDO, _DROP, _WRITE = "undo it", "take it off the timeline", "write it anew, without content"


def empty_instants(
    context: ActionContext, *, dry_run: bool = True, actions: frozenset[ActionKind] | None = None
) -> RepairResult:
    """Find instants whose files are empty or damaged, and mend them.

    Args:    dry_run: only return them. actions: only these; None: all.
    """
    root = context.meta.storage.root
    if dry_run:
        return RepairResult(root, "empty_instants", tuple(d.item for d in _find(context, actions)), run=_RUN)
    with context.locked():
        context = context.reloaded()
        damaged = _find(context, actions)
        for one in damaged:
            if one.item.action == _DROP:
                drop(one.instant, context.meta)
            elif one.item.action == _WRITE:
                path = instant_path(one.instant, context.meta.config)
                modified_ms = getattr(context.meta.storage.stat(path), "modified_ms", None)
                context.meta.storage.write(path, _empty_body(one.instant, context.meta))
                if modified_ms is not None:  # in layout 1 it is the completion time
                    context.meta.storage.set_modified(path, modified_ms)
                context.meta.storage.sync([path])
    for one in damaged:
        if one.item.action == _UNDO:
            undo(one.instant, context.reloaded())
    items = tuple(one.item for one in damaged)
    return RepairResult(root, "empty_instants", items, any(item.action for item in items), run=_RUN)


def find_empty_instants(context: ActionContext) -> tuple[RepairItem, ...]:
    """What `empty_instants` finds."""
    return tuple(one.item for one in _find(context, None))


@dataclass(frozen=True, slots=True)
class _Damaged:
    instant: Instant
    item: RepairItem


def _find(context: ActionContext, actions: frozenset[ActionKind] | None) -> list[_Damaged]:
    meta = context.meta
    damaged: list[_Damaged] = []
    writes: list[Instant] = []
    for instant in meta.timeline:
        if actions is not None and instant.action not in actions:
            continue
        name = f"{instant.requested_time}.{instant.action.value}"
        if not instant.is_completed:
            if _has_no_plan(instant, meta) and context.is_dead(instant.requested_time):
                action = _UNDO if instant.action.is_write else _DROP
                damaged.append(
                    _Damaged(instant, RepairItem(name, "its plan can't be read, its writer is dead", action))
                )
        elif instant.action in _BODIES and not _is_readable(instant, meta):
            if instant.action.is_write:
                writes.append(instant)
            else:
                can_write = instant.action in (ActionKind.CLEAN, ActionKind.ROLLBACK)
                item = RepairItem(name, "its completed file can't be read", _WRITE if can_write else "")
                damaged.append(_Damaged(instant, item))
    if writes:
        files = Counter(instant_of(entry.name) for entry in data_files(meta.storage))
        for instant in writes:
            name, count = f"{instant.requested_time}.{instant.action.value}", files[instant.requested_time]
            problem = "its completed file can't be read"
            if count:
                problem += f"; {count:,} data files are of it, whose rows count"
            damaged.append(_Damaged(instant, RepairItem(name, problem, "" if count else _WRITE)))
    return damaged


def _has_no_plan(instant: Instant, meta: MetaClient) -> bool:
    """Is the plan of a pending instant damaged, or that of a clean empty?"""
    is_damaged = has_damaged_plan(instant, meta)
    return is_damaged or (instant.action is ActionKind.CLEAN and meta.reader.clean_plan(instant) is None)


_BODIES: Mapping[ActionKind, Callable[[bytes], object]] = {
    ActionKind.COMMIT: decode_commit,
    ActionKind.DELTACOMMIT: decode_commit,
    ActionKind.REPLACECOMMIT: decode_commit,
    ActionKind.CLEAN: lambda _: None,
    ActionKind.ROLLBACK: decode_rollback_metadata,
    ActionKind.SAVEPOINT: lambda _: None,
}


def _is_readable(instant: Instant, meta: MetaClient) -> bool:
    reader: TimelineReader = meta.reader
    try:
        body = reader.read_body(instant, State.COMPLETED)
        if not body:
            return False
        if instant.action is ActionKind.CLEAN:
            reader.clean_metadata(instant)
        elif instant.action is ActionKind.SAVEPOINT:
            reader.savepoint_metadata(instant)
        else:
            _BODIES[instant.action](body)
    except CorruptFile:
        return False
    except PathNotFound:
        return True  # archived, or rolled back, meanwhile
    return True


def _empty_body(instant: Instant, meta: MetaClient) -> bytes:
    """The body of an action that changed nothing. A clean keeps the bound of what can be read: that of its plan."""
    if instant.action is ActionKind.CLEAN:
        earliest, last = "", ""
        try:
            plan = meta.reader.clean_plan(instant)
            if plan is not None:
                earliest, last = plan.earliest_time, plan.last_commit
        except (CorruptFile, PathNotFound):
            pass
        return encode_clean_metadata(CleanMetadata(instant.requested_time, 0, earliest, last, {}))
    if instant.action is ActionKind.ROLLBACK:
        return encode_rollback(RollbackMetadata(instant.requested_time, 0, 0, (), {}))
    schema = meta.commits.latest_schema_json(meta.timeline.up_to(instant.requested_time))
    extra = {} if schema is None else {"schema": schema}
    replaced: dict[str, tuple[str, ...]] | None = {} if instant.action is ActionKind.REPLACECOMMIT else None
    body = CommitMetadata({}, extra, partition_to_replace_file_ids=replaced)
    return encode_commit(body, instant.action, meta.config.table_version)
