"""Heartbeat: a writer's sign of life, an empty file that is recreated again and again.

Source: docs/formats/writers.md, "Heartbeats".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.errors import StorageError
from pyhudi.model.filenames import heartbeat_path
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["DEFAULT_INTERVAL_MS", "DEFAULT_MISSES", "Heartbeat", "is_expired"]

DEFAULT_INTERVAL_MS = 60_000
DEFAULT_MISSES = 2


class Heartbeat:
    """The heartbeat of one instant's writer.

    `start` beats once and then every `interval_ms` from a daemon thread, which dies with the process; `stop` ends it
    and removes the file. A beat that the store refuses is tried again at the next turn: `is_expired` judges the result.
    """

    def __init__(
        self, storage: Storage, instant_time: str, clock: Clock, interval_ms: int = DEFAULT_INTERVAL_MS
    ) -> None:
        self._storage, self._clock, self._interval_ms = storage, clock, interval_ms
        self.instant_time = instant_time
        self._path = heartbeat_path(instant_time)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Beat now, and from now on in the background."""
        self.beat()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name=f"hudi-heartbeat-{self.instant_time}", daemon=True)
        self._thread.start()

    @contextmanager
    def begun(self, wanted: bool) -> Iterator[None]:
        """Beat from before the block on, if `wanted`; a block that fails ends the beating."""
        try:
            if wanted:
                self.start()
            yield
        except BaseException:
            with suppress(StorageError):  # the error that is on its way says more
                self.stop()
            raise

    def beat(self) -> None:
        """One sign of life."""
        self._storage.write(self._path, b"")
        self._storage.set_modified(self._path, self._clock.now_ms())

    def stop(self) -> None:
        """End the beating and remove the file; again does no harm."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._storage.delete(self._path)

    def is_expired(self, misses: int = DEFAULT_MISSES) -> bool:
        """True when other writers may consider this one dead: it must not complete."""
        return is_expired(self._storage, self.instant_time, self._clock.now_ms(), self._interval_ms, misses)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_ms / 1000):
            try:
                self.beat()
            except StorageError:
                continue  # a store that refuses now may take the next beat


def is_expired(
    storage: Storage,
    instant_time: str,
    now_ms: int,
    interval_ms: int = DEFAULT_INTERVAL_MS,
    misses: int = DEFAULT_MISSES,
) -> bool:
    """True when the writer of an instant gave no sign of life for more than `misses` intervals, or has no file."""
    info = storage.stat(heartbeat_path(instant_time))
    return now_ms - (info.modified_ms if info is not None else 0) > interval_ms * misses
