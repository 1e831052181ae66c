"""TableContext: the table at one moment, its lock, the clock and the options, which every change of a table needs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

from pyhudi.listeners.locks import with_lock_metrics
from pyhudi.locks import LockProvider, hold
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage.clock import Clock
from pyhudi.timeline.heartbeat import Heartbeat, is_expired

__all__ = ["ContextT", "TableContext"]

ContextT = TypeVar("ContextT", bound="TableContext")


@dataclass(frozen=True, slots=True)
class TableContext:
    """A table at one moment, and the means to change it. Frozen: `reloaded` returns a newer one."""

    meta: MetaClient
    options: WriteOptions
    lock: LockProvider
    clock: Clock

    def reloaded(self: ContextT) -> ContextT:
        """This context with the table as it is now."""
        return replace(self, meta=self.meta.reload())

    def locked(self) -> AbstractContextManager[None]:
        """Hold the table's lock for a `with` block. Raises LockTimeout."""
        held = hold(self.lock, self.options.lock.wait_timeout_s)
        return (
            with_lock_metrics(held, self.options, self.meta.config.table_name, self.clock)
            if self.options.metrics.has_locks
            else held
        )

    def heartbeat(self, instant_time: str) -> Heartbeat:
        """Return the heartbeat of an instant's writer, not started yet."""
        return Heartbeat(self.meta.storage, instant_time, self.clock, self.options.heartbeat_interval_ms)

    def is_dead(self, instant_time: str) -> bool:
        """True if the heartbeat of an instant's writer has stopped. Without a heartbeat, the writer counts as dead."""
        options, now_ms = self.options, self.clock.now_ms()
        return is_expired(
            self.meta.storage, instant_time, now_ms, options.heartbeat_interval_ms, options.heartbeat_misses
        )
