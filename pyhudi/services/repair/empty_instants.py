"""Instants with empty or damaged files, as a power cut or a full disk leaves them.

    pending, its plan can't be read       undone, or removed from the timeline, if its writer is dead
    completed clean or rollback           its file is rewritten without content; its effect is kept
    completed write that replaced files   its file is rewritten if other files show which groups it replaced; otherwise
                                          it is kept: an empty file would bring the replaced rows back
    completed write without data files    becomes an empty commit, unless it may have changed the schema
    completed write with data files       is kept: its rows count; `table.rollback(time)` would remove them

A file is rewritten, not deleted, because the metadata table trusts only completed instants.
Source: docs/repairs.md, "Empty instants"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.damaged_plans import has_damaged_plan
from pyhudi.actions.undo.rollback import undo
from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.timeline.clean_plans import encode_clean_metadata
from pyhudi.formats.timeline.instant_files import decode_commit, decode_rollback_metadata, encode_commit
from pyhudi.formats.timeline.instant_files import encode_rollback_metadata as encode_rollback
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.filenames import LogFileName, instant_of
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanMetadata, RollbackMetadata
from pyhudi.services.repair.orphans import data_files
from pyhudi.services.repair.replaced_groups import replacing_body
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.timeline.commits import has_table_schema
from pyhudi.timeline.listing import instant_path
from pyhudi.timeline.read import TimelineReader
from pyhudi.transaction.instants import drop

__all__ = ["empty_instants", "find_empty_instants"]

_RUN = "table.maintenance.repair.empty_instants(dry_run=False)"
_UNDO, _DROP, _WRITE = "undo it", "remove it from the timeline", "rewrite it without content"
_SCHEMA_KEYS = ("schema", "latest_schema")


def empty_instants(
    context: ActionContext, *, dry_run: bool = True, actions: frozenset[ActionKind] | None = None
) -> RepairResult:
    """Find instants whose files are empty or damaged, and repair them.

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
            elif one.body is not None:
                path = instant_path(one.instant, context.meta.config)
                modified_ms = getattr(context.meta.storage.stat(path), "modified_ms", None)
                context.meta.storage.write(path, one.body)
                if modified_ms is not None:  # in layout 1 it is the completion time
                    context.meta.storage.set_modified(path, modified_ms)
                context.meta.storage.sync([path])
    for one in damaged:
        if one.item.action == _UNDO:
            undo(one.instant, context.reloaded())
    items = tuple(one.item for one in damaged)
    return RepairResult(root, "empty_instants", items, any(item.action for item in items), run=_RUN)


def find_empty_instants(context: ActionContext) -> tuple[RepairItem, ...]:
    """The damage that `empty_instants` would find."""
    return tuple(one.item for one in _find(context, None))


@dataclass(frozen=True, slots=True)
class _Damaged:
    """A damaged instant. `body`: the new content of its completed file; None if it is not rewritten."""

    instant: Instant
    item: RepairItem
    body: bytes | None = None


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
                damaged.append(_Damaged(instant, item, _without_content(instant, meta) if can_write else None))
    return [*damaged, *_damaged_writes(writes, meta)] if writes else damaged


def _damaged_writes(writes: Sequence[Instant], meta: MetaClient) -> Iterator[_Damaged]:
    files: dict[str, list[FileInfo]] = {instant.requested_time: [] for instant in writes}
    logs_below_8: list[FileInfo] = []
    for entry in data_files(meta.storage):
        time = instant_of(entry.name)
        if time in files:
            files[time].append(entry)
        elif not meta.config.format.has_own_log_files and LogFileName.parse(entry.name) is not None:
            logs_below_8.append(entry)
    for instant in writes:  # the view of the table reads the bodies of all replacecommits
        meta = meta.with_completed(instant, CommitMetadata({}, partition_to_replace_file_ids={}))
    for instant in writes:
        data = files[instant.requested_time]
        if instant.action is ActionKind.DELTACOMMIT:
            data += [entry for entry in logs_below_8 if _has_block_of(entry, instant, meta.storage)]
        item, body = _write_again(instant, data, meta)
        yield _Damaged(instant, item, None if body is None else _encoded(body, instant, meta))


def _write_again(
    instant: Instant, files: Sequence[FileInfo], meta: MetaClient
) -> tuple[RepairItem, CommitMetadata | None]:
    """The damage of a write, and the body of its new file; None if that would hide the write's effect."""
    name = f"{instant.requested_time}.{instant.action.value}"
    problem = "its completed file can't be read"
    if files:
        problem += f"; it has {len(files):,} data files, whose rows count"
    if instant.action is ActionKind.REPLACECOMMIT:
        body = replacing_body(instant, files, meta)
        if body is not None:
            count = sum(map(len, (body.partition_to_replace_file_ids or {}).values()))
            return RepairItem(name, problem, f"rewrite it: it replaced {count:,} file groups"), body
        problem += f"; the groups that it replaced are unknown, so their rows are back. {_way_out(instant, meta)}"
    elif not files and _may_have_changed_schema(instant, meta):
        problem += f"; it may have changed the table's schema. {_way_out(instant, meta)}"
    elif not files:
        return RepairItem(name, problem, _WRITE), CommitMetadata({})
    return RepairItem(name, problem), None


def _way_out(instant: Instant, meta: MetaClient) -> str:
    entry = meta.storage.stat(instant_path(instant, meta.config))
    empties = "" if entry is None or not entry.size_bytes else "empty it, "
    return f"Put its file back from a copy; or {empties}call table.rollback({instant.requested_time!r}) and write again"


def _has_block_of(entry: FileInfo, instant: Instant, storage: Storage) -> bool:
    """True if a log file may have a block of the instant. Below version 8 its name has only the slice's instant."""
    try:
        blocks = [block for block in scan_log(storage, entry.path) if isinstance(block, LogBlock)]
    except CorruptFile:
        return True  # it may have
    return any(block.instant_time == instant.requested_time for block in blocks)


def _may_have_changed_schema(instant: Instant, meta: MetaClient) -> bool:
    """True if a write may be an ALTER TABLE: without rows, and its inflight file names no other operation."""
    try:
        operation = meta.reader.profile(instant).operation_type
    except (CorruptFile, PathNotFound):
        return True
    return operation in (OperationType.UNKNOWN, OperationType.ALTER_SCHEMA)


def _has_no_plan(instant: Instant, meta: MetaClient) -> bool:
    """True if the plan of a pending instant is damaged, or that of a clean is empty."""
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
        return True  # just archived or rolled back
    return True


def _without_content(instant: Instant, meta: MetaClient) -> bytes:
    """The body of a clean or a rollback that changed nothing. A clean keeps its plan's earliest readable instant."""
    if instant.action is ActionKind.ROLLBACK:
        return encode_rollback(RollbackMetadata(instant.requested_time, 0, 0, (), {}))
    earliest, last = "", ""
    try:
        plan = meta.reader.clean_plan(instant)
        if plan is not None:
            earliest, last = plan.earliest_time, plan.last_commit
    except (CorruptFile, PathNotFound):
        pass
    return encode_clean_metadata(CleanMetadata(instant.requested_time, 0, earliest, last, {}))


def _encoded(body: CommitMetadata, instant: Instant, meta: MetaClient) -> bytes:
    """The content of a write's completed file, with the schema of the previous write."""
    before = (i for i in reversed(meta.timeline.up_to(instant.requested_time).commits().instants) if i != instant)
    newest = next(
        (earlier for i in before if has_table_schema(earlier := meta.commits.metadata(i))), CommitMetadata({})
    )
    extra = {key: newest.extra_metadata[key] for key in _SCHEMA_KEYS if key in newest.extra_metadata}
    return encode_commit(replace(body, extra_metadata=extra), instant.action, meta.config.table_version)
