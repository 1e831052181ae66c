"""Deliveries to listeners: each listener has a thread of its own, so that a slow one delays no write.

A call waits for a delivery for at most `_PATIENCE_S`, so that a quick listener has finished when the call returns and
its warnings point at the caller. The call doesn't wait for earlier deliveries, nor while a listener pauses before a
retry (`stop_blocking_caller`). A queue holds at most `_QUEUE_LENGTH_MAX` deliveries; at the end of the process they
get `_END_S` to finish.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from pyhudi.warnings import collected_warnings, warn_caller

__all__ = ["Delivery", "stop_blocking_caller", "submit", "wait_for_all", "warn_or_log"]

_log = logging.getLogger("pyhudi.listeners")
_PATIENCE_S = 0.5
_END_S = 30.0
_QUEUE_LENGTH_MAX = 100

CollectedWarnings = list[tuple[str, type[Warning]]]


def warn_or_log(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of a listener's failure. Where warnings are errors, log it: the action itself has succeeded."""
    try:
        warn_caller(message, category)
    except Warning:
        _log.warning("%s", message)


@dataclass(eq=False)
class Delivery:
    """One piece of a listener's work. `is_waited_for`: the call still waits for it and issues its warnings."""

    work: Callable[[], None]
    is_waited_for: bool
    finished: threading.Event = field(default_factory=threading.Event)
    warnings: CollectedWarnings = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def issue_warnings(self, *, may_wait: bool) -> None:
        """Issue the warnings so far, after a short wait if `may_wait`. The listener's thread issues later ones."""
        if self.is_waited_for:
            if may_wait:
                self.finished.wait(_PATIENCE_S)
            self._issue()

    def run(self) -> None:
        """Run the work, in the listener's thread. The work never raises."""
        with collected_warnings(self.warnings):
            self.work()
        self.finished.set()
        if not self.is_waited_for:
            self._issue()

    def _issue(self) -> None:
        with self._lock:
            self.is_waited_for = False
            collected, self.warnings[:] = list(self.warnings), []
        for message, category in collected:
            warn_or_log(message, category)


class _Queue:
    """The deliveries to one listener, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pending: deque[Delivery] = deque()
        self._changed = threading.Condition()
        self._running: Delivery | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], None]) -> Delivery | None:
        with self._changed:
            is_idle = self._running is None and not self._pending
            if len(self._pending) >= _QUEUE_LENGTH_MAX:
                return None
            delivery = Delivery(work, is_idle)
            self._pending.append(delivery)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"hudi-{self.name.lower()}", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return delivery

    def wait_until_idle(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._running is None and not self._pending, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._pending))
                self._running = _current.delivery = self._pending.popleft()
            self._running.run()


class _Current(threading.local):
    delivery: Delivery | None = None


_current = _Current()
_queues: dict[str, _Queue] = {}


def submit(listener: str, work: Callable[[], None]) -> Delivery | None:
    """Queue work, which never raises, for a listener's thread. Returns None, and drops it, if the queue is full."""
    return _queues.setdefault(listener, _Queue(listener)).submit(work)


def stop_blocking_caller() -> None:
    """Let the caller go on. A listener calls this before it pauses."""
    if _current.delivery is not None:
        _current.delivery.finished.set()


def wait_for_all(timeout_s: float = _END_S) -> bool:
    """Wait until all deliveries are done. Returns False if the time ran out before that."""
    idle = [queue.wait_until_idle(timeout_s) for queue in tuple(_queues.values())]
    return all(idle)


def _end() -> None:
    if not wait_for_all():
        _log.warning("The process ends before all listeners of its writes were notified.")


atexit.register(_end)
if hasattr(os, "register_at_fork"):  # a forked child has none of the threads
    os.register_at_fork(after_in_child=_queues.clear)
