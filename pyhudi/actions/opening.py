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
from pyhudi.errors import UnsupportedTable
from pyhudi.locks import LockProvider, hold, open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import SCHEMA_FOLDER
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["check_no_schema_history", "ready", "table_lock"]


def ready(
    meta: MetaClient,
    engine: Engine,
    options: WriteOptions,
    clock: Clock,
    policy: str | None = None,
    *,
    is_admitted: bool = False,
) -> tuple[ActionContext, tuple[str, ...]]:
    """The table without leftovers of dead writers, and which instants were undone.

    Args:   is_admitted: somebody has looked whether the table may have a schema history.
    """
    if not is_admitted:
        check_no_schema_history(meta)
    lock = table_lock(options, meta.storage, clock)
    if not needs_no_change(meta, options.metadata):
        with hold(lock, options.lock.wait_timeout_s):
            meta = with_metadata_table(meta.reload(), options.metadata)
    context = ActionContext(meta, engine, options, lock, clock)
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


def check_no_schema_history(meta: MetaClient) -> None:
    """Raises UnsupportedTable for a table with a schema history.

    It matches columns by id; a write by name could give rows to the wrong column.
    """
    if any(entry.name.endswith(".schemacommit") for entry in meta.storage.list(SCHEMA_FOLDER)):
        raise UnsupportedTable(
            f"{meta.storage.root}: the table has a schema history (hoodie.schema.on.read.enable, ALTER TABLE); in such "
            "tables this release writes and deletes rows, compacts, and does nothing else. Do this with Apache Hudi."
        )
