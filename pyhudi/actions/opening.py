"""Before anything changes: the metadata table is up to date or there is none, leftovers of dead writers go.

Source: docs/formats/writers.md, "Steps of a write"; docs/formats/metadata-table.md, "Building".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.actions.leftovers import delete_leftovers
from pyhudi.actions.metadata_table import needs_no_change, with_metadata_table
from pyhudi.actions.undo.damaged_plans import drop_damaged_plans
from pyhudi.actions.undo.dead_indexing import clear_dead_indexing
from pyhudi.actions.undo.restore import finish_restores
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.engine.base import Engine
from pyhudi.locks import LockProvider, hold, open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["ready", "table_lock"]


def ready(
    meta: MetaClient,
    engine: Engine,
    options: WriteOptions,
    clock: Clock,
    policy: str | None = None,
) -> tuple[ActionContext, tuple[str, ...]]:
    """The table without leftovers of dead writers, and which instants were undone."""
    lock = table_lock(options, meta.storage, clock)
    if not needs_no_change(meta, options.metadata):
        with hold(lock, options.lock.wait_timeout_s):
            meta = with_metadata_table(meta.reload(), options.metadata)
    context = ActionContext(meta, options, lock, clock, engine)
    dropped = () if policy == "NEVER" else drop_damaged_plans(context)
    context = context.reloaded() if dropped else context
    restored = finish_restores(context)
    context = context.reloaded() if restored else context
    if policy == "NEVER":
        return context, restored
    delete_leftovers(context)
    cleared = clear_dead_indexing(context)
    context = context.reloaded() if cleared else context
    undone = roll_back_failed_writes(context)
    return (context.reloaded() if undone else context), (*dropped, *restored, *undone)


def table_lock(options: WriteOptions, storage: Storage, clock: Clock) -> LockProvider:
    """The table's lock as the options choose it, not yet taken. Raises ConfigError."""
    return open_lock(options.lock, storage, clock)
