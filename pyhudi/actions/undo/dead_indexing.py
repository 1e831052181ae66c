"""Instants of indexes that nobody builds any more: made under the lock by a process that died, or by a build of Apache
Hudi that failed, which leaves them.

An index that is built while writers go on is listed in the table's properties as being built; its plan waits for the
next builder and stays. Source: docs/formats/metadata-table.md, "Made and dropped by name", "Built while writers go on".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.transaction.instants import drop

__all__ = ["clear_dead_indexing"]


def clear_dead_indexing(context: ActionContext) -> tuple[str, ...]:
    """Delete them; their instant times. The index itself is built, or was never listed."""
    if not any(_is_dead(instant, context) for instant in _pending(context)):
        return ()
    with context.locked():
        now = context.reloaded()  # who builds under the lock has none now
        dead = [instant for instant in _pending(now) if _is_dead(instant, now)]
        for instant in dead:
            drop(instant, now.meta)
    return tuple(instant.requested_time for instant in dead)


def _pending(context: ActionContext) -> tuple[Instant, ...]:
    return tuple(context.meta.timeline.pending().of([ActionKind.INDEXING]))


def _is_dead(instant: Instant, context: ActionContext) -> bool:
    meta = context.meta
    if not context.is_dead(instant.requested_time):
        return False
    try:
        names = meta.reader.index_plan(instant).partitions
    except (CorruptFile, PathNotFound):
        return True  # cut off by a power cut, or gone meanwhile
    return not set(names) & set(meta.config.metadata_partitions_inflight)
