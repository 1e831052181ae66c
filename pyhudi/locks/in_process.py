"""Lock provider IN_PROCESS: one lock per table in this process. For a table with a single writing process."""

from __future__ import annotations

import os
import threading
from collections import defaultdict

from pyhudi.interrupts import uninterrupted
from pyhudi.locks.base import LockOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["InProcessLock"]

_SLICE_S = 0.1  # how long Ctrl-C waits while we wait for the lock


class _TableLock:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder = ""


_TABLES: defaultdict[str, _TableLock] = defaultdict(_TableLock)
_TABLES_LOCK = threading.Lock()


class InProcessLock:
    """A handle on the lock of the table at `storage.root`."""

    default_skew_ms = 1  # one process, one clock

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        with _TABLES_LOCK:
            self._table = _TABLES[_name_of(storage)]
        self._held = False

    @property
    def is_held(self) -> bool:
        return self._held

    @property
    def owner_note(self) -> str:
        holder = self._table.holder
        return f"thread {holder!r} of this process" if holder else "nobody"

    def try_acquire(self, timeout_s: float) -> bool:
        left_s = max(0.0, timeout_s)
        while not self._taken_within(min(left_s, _SLICE_S)):
            left_s -= _SLICE_S
            if left_s <= 0:
                return False
        return True

    def _taken_within(self, wait_s: float) -> bool:
        with uninterrupted():  # the lock is either taken and recorded, or not taken
            is_acquired = self._table.lock.acquire(timeout=wait_s)
            if is_acquired:
                self._table.holder = threading.current_thread().name
                self._held = True
            return is_acquired

    def release(self) -> None:
        if self._held:
            self._held = False
            self._table.holder = ""
            self._table.lock.release()


def _name_of(storage: Storage) -> str:
    """Return one name for a table, whichever spelling of its path or link to it a writer uses."""
    scheme, _, path = storage.full_path("").partition(":")
    return os.path.realpath(path) if scheme == "file" else f"{scheme}:{path}"
