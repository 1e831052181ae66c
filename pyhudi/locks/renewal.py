"""Renewing a lease from a daemon thread, which dies with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Renewal"]


class Renewal:
    """Calls `renew` every `interval_s` seconds between `start` and `stop`, until it returns False."""

    def __init__(self, renew: Callable[[], bool], interval_s: float) -> None:
        self._renew, self._interval_s = renew, interval_s
        self._stopped: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. The first renewal is one interval away."""
        stopped = threading.Event()
        self._stopped = stopped
        self._thread = threading.Thread(target=self._run, args=(stopped,), name="hudi-lock-renewal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after a renewal that is under way; again does no harm."""
        thread, self._thread = self._thread, None
        if thread is not None and self._stopped is not None:
            self._stopped.set()
            thread.join()

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._interval_s):
            if not self._renew():
                return
