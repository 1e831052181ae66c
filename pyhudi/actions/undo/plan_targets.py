"""Which instants a plan that lies on the timeline may undo: it is a file, and anyone may have put it there.

    pending write, its time that of a committed one    refused: files of the committed write bear the same instant
    completed write                                    the newest one only, and not a savepointed one
    gone from the timeline, its files count            left as it is: undone by an earlier attempt, or archived since

Source: docs/formats/timeline.md, "Rollback", "Savepoint and restore"; docs/formats/history.md, "What may be archived".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile, TableError
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import InstantInfo, RestorePlan
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["action_of", "check_is_newest", "check_is_uncommitted", "check_restore"]


def action_of(info: InstantInfo, where: str) -> ActionKind:
    """The action of an instant that a plan names. Raises CorruptFile for one that this release does not know."""
    try:
        return ActionKind(info.action)
    except ValueError:
        raise CorruptFile(
            f"{where} names an action {info.action!r:.100}, which this release does not know. Finish it with Apache "
            f"Hudi."
        ) from None


def check_is_uncommitted(target: Instant, context: ActionContext) -> None:
    """Raise CorruptFile for a pending write with the time of a committed one: undoing it would delete live files.

    The history is looked at only where archiving can have passed the instant, which it never does.
    """
    meta, time = context.meta, target.requested_time
    if target.is_completed or not target.action.is_write:
        return
    saved = {i.requested_time for i in meta.timeline.of([ActionKind.SAVEPOINT])}
    commits = [i.requested_time for i in meta.timeline.commits()]
    first = min((commit for commit in commits if commit not in saved), default=None)
    is_committed = time in commits
    if not is_committed and (first is None or time < first):
        archived = load_archived_timeline(meta.storage, meta.config).times(time, time)
        is_committed = any(i.action.is_write for i in archived)
    if is_committed:
        raise CorruptFile(
            f"{meta.storage.root}: {time} ({target.action.value}) is pending, but a write of the same instant time is "
            f"committed, and its files can't be told apart. Nothing was undone. If nobody is writing it, remove the "
            f"files {time}.*.requested and {time}.*.inflight from {meta.config.timeline_path}."
        )


def check_is_newest(target: Instant, rollback_time: str, context: ActionContext) -> None:
    """Raise TableError for a rollback that was found on the timeline and that no call can have asked for."""
    timeline, root = context.meta.timeline, context.meta.storage.root
    if not target.is_completed:
        return
    later = [i.requested_time for i in timeline.commits() if i.requested_time > target.requested_time]
    saved = any(i.requested_time == target.requested_time for i in timeline.of([ActionKind.SAVEPOINT]))
    if not target.action.is_write or later or saved:
        reason = f"later writes are complete ({', '.join(later[:3])})" if later else "it has a savepoint"
        reason = reason if target.action.is_write else f"it is a {target.action.value}"
        raise TableError(
            f"{root}: the pending rollback {rollback_time} would undo {target.requested_time}, which is complete, but "
            f"{reason}. Nothing was undone. Remove {rollback_time}.rollback.requested and .inflight from "
            f"{context.meta.config.timeline_path} if you don't know where they came from, or else what is in the way."
        )


def check_restore(plan: RestorePlan, restore_time: str, context: ActionContext) -> None:
    """Raise TableError for a restore that was found on the timeline and that no call can have asked for."""
    saved = {i.requested_time for i in context.meta.timeline.completed().of([ActionKind.SAVEPOINT])}
    times = [info.commit_time for info in plan.instants]
    wrong = next((time for time in times if time in saved or time == plan.restore_to), None)
    if wrong is not None:
        reason = "has a savepoint" if wrong in saved else "is what it goes back to"
        raise TableError(
            f"{context.meta.storage.root}: the pending restore {restore_time} would undo {wrong}, which {reason}. "
            f"Nothing was undone. Remove {restore_time}.restore.requested and .inflight from "
            f"{context.meta.config.timeline_path} if you don't know where they came from, or else delete the savepoint."
        )
