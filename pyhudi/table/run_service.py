"""How table services are called: open the table, prepare it, run the service.

A service is a function of an ActionContext; it is no writer, so it undoes nobody else's failed writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create import check_files_writable
from pyhudi.actions.opening import ready, table_lock
from pyhudi.engine.base import Engine
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock

__all__ = ["admit_writable", "serve"]

Result = TypeVar("Result")
_SYSTEM_CLOCK = SystemClock()


def admit_writable(context: ActionContext) -> None:
    """Raises UnsupportedTable for a table whose files this release can't write."""
    check_files_writable(context.meta.config)


def serve(
    table: Storage | str | os.PathLike[str],
    service: Callable[[ActionContext], Result],
    options: WriteOptions,
    engine: Engine,
    *,
    dry_run: bool = False,
    admit: Callable[[ActionContext], None] = admit_writable,
    clock: Clock = _SYSTEM_CLOCK,
) -> Result:
    """Call a table service.

    Args:
        dry_run: the service only looks, so nothing is done to make the table ready.
        admit: raises for a table that the service is not for, before anything is done to it.
    Raises: what the service raises, UnsupportedTable for a table that this release can't write.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    found = ActionContext(meta, engine, options, table_lock(options, storage, clock), clock)
    admit(found)
    if dry_run:
        return service(found)
    context, _ = ready(meta, engine, options, clock, "NEVER")
    return service(context)
