"""Heartbeat: a writer's sign of life, a file that is recreated periodically.

Only the file's age counts for Hudi, whose files are empty. Ours hold a note of their process, so that a writer on this
machine that was killed or has stopped beating counts as dead at once instead of after two missed beats.
Source: docs/formats/writers.md, "Heartbeats".
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.errors import CorruptFile, PathNotFound, StorageError
from pyhudi.interrupts import uninterrupted
from pyhudi.locks.process import is_of_this_process, is_surely_dead, note_of_this_process, token_of
from pyhudi.locks.renewal import Renewal
from pyhudi.model.filenames import heartbeat_path
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.local import with_sync

__all__ = ["DEFAULT_INTERVAL_MS", "DEFAULT_MISSES", "Heartbeat", "is_expired"]

DEFAULT_INTERVAL_MS = 60_000
DEFAULT_MISSES = 2

_NOTE_BYTES_MAX = 64 << 10
_NUMBERS = itertools.count()
_BEATING: set[str] = set()  # tokens of this process's active heartbeats


class Heartbeat:
    """The heartbeat of one instant's writer.

    `start` beats once and then every `interval_ms` from a daemon thread, which dies with the process; `stop` ends it
    and removes the file. A beat that the store refuses is repeated at the next interval; `is_expired` decides on the
    result.
    """

    def __init__(
        self, storage: Storage, instant_time: str, clock: Clock, interval_ms: int = DEFAULT_INTERVAL_MS
    ) -> None:
        self._storage = with_sync(storage, False)  # it need not outlast a power cut, which ends its writer
        self._clock, self._interval_ms = clock, interval_ms
        self.instant_time = instant_time
        self._path = heartbeat_path(instant_time)
        self._token = f"{os.getpid()}-{next(_NUMBERS)}"
        self._beating = Renewal(self._beat_again, interval_ms / 1000, f"hudi-heartbeat-{instant_time}")

    def start(self) -> None:
        """Beat now, then periodically in the background."""
        self.beat()
        self._beating.start()

    @contextmanager
    def beating(self, is_on: bool) -> Iterator[None]:
        """Start beating before the block, if `is_on`; stop if the block fails, else keep beating."""
        try:
            if is_on:
                self.start()
            yield
        except BaseException:
            with suppress(Exception):  # the original error says more
                self.stop()
            raise

    def beat(self) -> None:
        """Beat once."""
        _BEATING.add(self._token)
        self._storage.write(self._path, note_of_this_process(self._token))
        self._storage.set_modified(self._path, self._clock.now_ms())

    def stop(self) -> None:
        """End the beating and remove the file; a second call does no harm."""
        with uninterrupted():  # Ctrl-C must not leave the thread running
            self._beating.stop()
            _BEATING.discard(self._token)  # even if the file can't be removed
            self._storage.delete(self._path)

    def is_expired(self, misses: int = DEFAULT_MISSES) -> bool:
        """True when other writers may consider this one dead: it must not complete."""
        info = self._storage.stat(self._path)
        return info is None or _is_late(info.modified_ms, self._clock.now_ms(), self._interval_ms, misses)

    def _beat_again(self) -> bool:
        with suppress(StorageError):  # a store that refuses now may accept the next beat
            self.beat()
        return True


def is_expired(
    storage: Storage,
    instant_time: str,
    now_ms: int,
    interval_ms: int = DEFAULT_INTERVAL_MS,
    misses: int = DEFAULT_MISSES,
) -> bool:
    """True if the writer of an instant is dead: it missed more than `misses` beats, has no file, or is known to have
    ended.
    """
    path = heartbeat_path(instant_time)
    info = storage.stat(path)
    if info is None or _is_late(info.modified_ms, now_ms, interval_ms, misses):
        return True
    try:
        note = storage.read(path, _NOTE_BYTES_MAX)
    except PathNotFound:
        return True
    except CorruptFile:
        return False  # too large to be our note
    return is_surely_dead(note) or (is_of_this_process(note) and token_of(note) not in _BEATING)


def _is_late(modified_ms: int, now_ms: int, interval_ms: int, misses: int) -> bool:
    return now_ms - modified_ms > interval_ms * misses
