"""A write whose new table takes the place of an old one."""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import table_lock
from pyhudi.actions.replacement import aside, replacing
from pyhudi.actions.result import WriteResult
from pyhudi.completed import naming_completed
from pyhudi.engine.base import Engine
from pyhudi.listeners import told_afterwards
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.services.after_write import served
from pyhudi.storage import with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock

__all__ = ["replace_table"]

_SYSTEM_CLOCK = SystemClock()


def replace_table(
    storage: Storage,
    options: WriteOptions,
    engine: Engine,
    build: Callable[[Storage, WriteOptions], WriteResult],
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Put a new table in the place of the old one, which stays until the new one is complete.

    Args:    build: writes the new table to a storage, with these options; it runs no table services.
    Raises:  HudiError; the old table is as it was then, unless the error says that the new one counts.
    """
    storage = with_sync(storage, options.storage_sync)
    with naming_completed():
        with told_afterwards(holds=True), replacing(storage, options, clock) as staged:
            result = build(staged, aside(options))
        meta = MetaClient.load(storage, clock)
        return served(result, ActionContext(meta, options, table_lock(options, meta.storage, clock), clock, engine))
