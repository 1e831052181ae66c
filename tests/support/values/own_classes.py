"""A lock provider and an index of the user, with options of their own."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from pyhudi.index.base import Lookup, Tagged
from pyhudi.index.key_lookup import GlobalSimpleIndex
from pyhudi.locks import LockOptions, own_options
from pyhudi.model.options.declare import option
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

LOCK = f"{__name__}:NamedLock"
INDEX = f"{__name__}:WatchedIndex"
SEEN: list[str] = []

_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True, slots=True)
class NamedLockOptions:
    """Options of NamedLock."""

    name: str = option("hoodie.write.lock.named.name", "one for all", "NAMED: name of the lock.")
    tries: int = option("hoodie.write.lock.named.tries", 3, "NAMED: attempts.", minimum=1)


class NamedLock:
    """A lock of this process that has a name."""

    options_class: ClassVar[type] = NamedLockOptions
    default_skew_ms = 1

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        self.options = own_options(settings, NamedLockOptions)
        self._lock = _LOCKS[self.options.name]
        self.is_held = False

    @property
    def owner_note(self) -> str:
        return f"somebody who knows the name {self.options.name!r}"

    def try_acquire(self, timeout_s: float) -> bool:
        if not self.is_held:
            self.is_held = self._lock.acquire(timeout=timeout_s / self.options.tries)
        return self.is_held

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self._lock.release()


@dataclass(frozen=True, slots=True)
class WatchedIndexOptions:
    """Options of WatchedIndex."""

    note: str = option("hoodie.index.watched.note", "-", "WATCHED: what is noted when keys are looked for.")


@dataclass(frozen=True, slots=True)
class WatchedIndex(GlobalSimpleIndex):
    """GLOBAL_SIMPLE, which notes in SEEN that keys were looked for."""

    options_class: ClassVar[type | None] = WatchedIndexOptions

    def tag(self, rows, lookup: Lookup) -> Tagged:  # type: ignore[no-untyped-def]
        SEEN.append(self.settings.own(WatchedIndexOptions).note)
        return GlobalSimpleIndex.tag(self, rows, lookup)
