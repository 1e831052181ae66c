"""Deliveries to listeners: each listener has a thread of its own, so that a slow one delays no write.

A call waits for a delivery for `_PATIENCE_S` at most, so that what a quick listener does is done when the call returns,
and what it warns of is the caller's warning. It does not wait behind others, nor while a listener pauses before it
tries again (`going_on_alone`). At most `_WAITING_MAX` deliveries wait; at the end of the process all have `_END_S`.
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

__all__ = ["Delivery", "going_on_alone", "never_failing", "put", "wait_for_all"]

_log = logging.getLogger("pyhudi.listeners")
_PATIENCE_S = 0.5
_END_S = 30.0
_WAITING_MAX = 100

Warned = list[tuple[str, type[Warning]]]


def never_failing(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of a listener's failure; where warnings are errors it is logged instead: what was done is done."""
    try:
        warn_caller(message, category)
    except Warning:
        _log.warning("%s", message)


@dataclass(eq=False)
class Delivery:
    """Something a listener does. `is_waited_for`: by the call, which warns of what went wrong in its own name."""

    work: Callable[[], None]
    is_waited_for: bool
    over: threading.Event = field(default_factory=threading.Event)
    warned: Warned = field(default_factory=list)
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    def leave(self, *, waits: bool) -> None:
        """Wait a little, perhaps, and warn of what went wrong so far; the thread warns of the rest."""
        if self.is_waited_for:
            if waits:
                self.over.wait(_PATIENCE_S)
            self._leave()

    def run(self) -> None:
        """In the listener's thread. The work never raises."""
        with collected_warnings(self.warned):
            self.work()
        self.over.set()
        if not self.is_waited_for:
            self._leave()

    def _leave(self) -> None:
        with self._deciding:
            self.is_waited_for = False
            warned, self.warned[:] = list(self.warned), []
        for message, category in warned:
            never_failing(message, category)


class _Queue:
    """The deliveries to one listener, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._waiting: deque[Delivery] = deque()
        self._changed = threading.Condition()
        self._running: Delivery | None = None
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], None]) -> Delivery | None:
        with self._changed:
            is_idle = self._running is None and not self._waiting
            if len(self._waiting) >= _WAITING_MAX:
                return None
            delivery = Delivery(work, is_idle)
            self._waiting.append(delivery)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"hudi-{self.name.lower()}", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return delivery

    def wait_until_idle(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._running is None and not self._waiting, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                self._running = _current.delivery = self._waiting.popleft()
            self._running.run()


class _Current(threading.local):
    delivery: Delivery | None = None


_current = _Current()
_queues: dict[str, _Queue] = {}


def put(listener: str, work: Callable[[], None]) -> Delivery | None:
    """Give a listener something to do, which never raises. None when too many others wait: nobody does it."""
    return _queues.setdefault(listener, _Queue(listener)).put(work)


def going_on_alone() -> None:
    """In a listener, before it pauses: nobody waits for it any longer."""
    if _current.delivery is not None:
        _current.delivery.over.set()


def wait_for_all(timeout_s: float = _END_S) -> bool:
    """Wait until all deliveries are done. Returns: are they?"""
    idle = [queue.wait_until_idle(timeout_s) for queue in tuple(_queues.values())]
    return all(idle)


def _end() -> None:
    if not wait_for_all():
        _log.warning("The process ends before all listeners of its writes have been told.")


atexit.register(_end)
if hasattr(os, "register_at_fork"):  # a child has none of the threads
    os.register_at_fork(after_in_child=_queues.clear)
