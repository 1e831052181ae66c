"""Rollbacks on request: one write, or all writes after an instant, newest first.

Each is a rollback of its own on the timeline; one that dies is finished by the next writer.
Source: docs/formats/timeline.md, "Rollback".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.checks import check_replaced_files_exist
from pyhudi.actions.undo.dry_run import would_undo
from pyhudi.actions.undo.restore_result import RollbackResult
from pyhudi.actions.undo.rollback import roll_back_failed_writes, rollback, rollback_target
from pyhudi.errors import TableError
from pyhudi.model.instant import Instant

__all__ = ["roll_back"]


def roll_back(
    context: ActionContext, *, instant_time: str | None = None, to: str | None = None, dry_run: bool = False
) -> RollbackResult:
    """Undo a write.

    Args:    instant_time: a pending write, or the newest completed one (None: that). to: undo all completed writes
             after this commit instead. dry_run: only say what would be undone.
    Raises:  TableError; with `to`, either before anything is undone or between two writes.
    """
    root = context.meta.storage.root
    pending = context.meta.timeline.find(instant_time) if instant_time is not None else None
    is_pending = pending is not None and not pending.is_completed
    if dry_run:
        return _looked_at((pending,) if is_pending and pending else _targets(context, instant_time, to), context)
    if is_pending and pending:
        return RollbackResult.of(root, [rollback(context, pending.requested_time)])
    if roll_back_failed_writes(context):
        context = context.reloaded()
    targets = _targets(context, instant_time, to)
    if to is not None:
        check_replaced_files_exist(targets, context)  # before the first one is undone
    bodies = []
    for target in targets:
        bodies.append(rollback(context, target.requested_time))
        context = context.reloaded()
    return RollbackResult.of(root, bodies)


def _looked_at(targets: tuple[Instant, ...], context: ActionContext) -> RollbackResult:
    """What a rollback would undo. Raises what it would raise before it undoes the first write."""
    if targets:
        rollback_target(context, targets[0].requested_time)
    check_replaced_files_exist([target for target in targets if target.is_completed], context)
    return would_undo(targets, context.meta)


def _targets(context: ActionContext, instant_time: str | None, to: str | None) -> tuple[Instant, ...]:
    commits, root = context.meta.timeline.commits(), context.meta.storage.root
    if to is not None:
        if commits.find(to) is None:
            raise TableError(
                f"{root}: there is no completed commit {to} on the active timeline to go back to; it has those from "
                f"{commits.first_time} to {commits.latest_time}."
            )
        return commits.after(to).instants[::-1]
    target = commits.last_commit() if instant_time is None else commits.find(instant_time)
    if target is None:
        raise TableError(f"{root}: there is no write {instant_time or ''} on the active timeline to roll back.")
    return (target,)
