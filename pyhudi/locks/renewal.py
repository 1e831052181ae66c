"""Renewing a lease, or a sign of life, from a daemon thread, which dies with the process.

Most locks are held for less than the time to their first renewal, and most writes end before their second sign of life.
Starting a thread for each would cost more than the rest of the lock. So one thread per process waits for all of them,
and only a renewal that becomes due gets its own thread: a hanging store delays no other renewal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from pyhudi.storage.clock import SystemClock

__all__ = ["Renewal"]

_CLOCK = SystemClock()


class Renewal:
    """Calls `renew` every `interval_s` seconds between `start` and `stop`, until it returns False."""

    def __init__(self, renew: Callable[[], bool], interval_s: float, name: str = "hudi-lock-renewal") -> None:
        self._renew, self._interval_s, self._name = renew, interval_s, name
        self._stopped: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()  # between the thread that waits and the one that stops

    def start(self) -> None:
        """Begin. The first renewal is after one interval."""
        self._stopped = threading.Event()
        _waiting().add(self, self._interval_s)

    def stop(self) -> None:
        """End, after a running renewal finishes; calling it again does no harm."""
        if self._stopped is None:
            return
        with self._mutex:
            self._stopped.set()
            thread, self._thread = self._thread, None
        _waiting().discard(self)
        if thread is not None:
            thread.join()

    def begin(self) -> None:
        """Renew for the first time and then at each interval, in a new thread; called when the first is due."""
        with self._mutex:
            if self._stopped is not None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, args=(self._stopped,), name=self._name, daemon=True)
                self._thread.start()

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.is_set() and self._renew():
            stopped.wait(self._interval_s)


class _Waiting:
    """The renewals of a process that are not due yet, and the thread that waits for the first of them."""

    def __init__(self) -> None:
        self._due_s: dict[Renewal, float] = {}
        self._changed = threading.Condition()
        self._wakes_s = 0.0  # when the thread next wakes by itself
        threading.Thread(target=self._run, name="hudi-renewals", daemon=True).start()

    def add(self, renewal: Renewal, interval_s: float) -> None:
        with self._changed:
            due_s = _CLOCK.monotonic_s() + interval_s
            self._due_s[renewal] = due_s
            if due_s < self._wakes_s:
                self._changed.notify()

    def discard(self, renewal: Renewal) -> None:
        with self._changed:
            self._due_s.pop(renewal, None)

    def _run(self) -> None:
        while True:
            for renewal in self._next():
                renewal.begin()

    def _next(self) -> list[Renewal]:
        """Wait until renewals may be due, and take them out."""
        with self._changed:
            due_s = min(self._due_s.values(), default=float("inf"))
            now_s = _CLOCK.monotonic_s()
            if due_s > now_s:
                self._wakes_s = min(due_s, now_s + threading.TIMEOUT_MAX)
                self._changed.wait(self._wakes_s - now_s)
                self._wakes_s = 0.0
            now_s = _CLOCK.monotonic_s()
            due = [renewal for renewal, at_s in self._due_s.items() if at_s <= now_s]
            for renewal in due:
                del self._due_s[renewal]
            return due


_process: _Waiting | None = None
_process_mutex = threading.Lock()


def _waiting() -> _Waiting:
    """Return the instance of this process."""
    global _process
    with _process_mutex:
        if _process is None:
            _process = _Waiting()
        return _process


def _forget() -> None:
    """Start again in a fork, which has none of its parent's threads."""
    global _process, _process_mutex
    _process, _process_mutex = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
