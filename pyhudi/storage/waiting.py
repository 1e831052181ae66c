"""Calls of a remote store that may take long: they can be interrupted, have a time limit, and are announced.

Python handles Ctrl-C and SIGTERM between two of its steps; a client in C++ may wait for minutes within one. So the main
thread leaves calls to another thread and waits for it in Python.

A signal abandons a call that only reads at once. It waits for one that changes the store: abandoned, that call could
still take effect after its caller has undone the rest. The time limit of such calls is in the clients themselves. A
third signal ends even this wait; until that call has ended, this process changes nothing more, as if it had died.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from pyhudi.errors import ConfigError, StorageError
from pyhudi.interrupts import uninterrupted

__all__ = ["TIMEOUT", "announce_waits", "answer_of", "change_by", "timeout_s"]

TIMEOUT = "fs.pyhudi.timeout.s"  # Hadoop has a key for each store and each phase of a request
_ANNOUNCED_AFTER_S = 2.0

Answer = TypeVar("Answer")
_announce: Callable[[str], None] | None = None
_abandoned: list[threading.Event] = []  # each is set when its abandoned call has ended


def announce_waits(announce: Callable[[str], None] | None) -> None:
    """Call a function with the path of each call that has waited for two seconds; None for none."""
    global _announce
    _announce = announce


def timeout_s(options: Mapping[str, str]) -> float | None:
    """Return the timeout of a store's calls in seconds; None without the option. Raises ConfigError."""
    text = options.get(TIMEOUT)
    if text is None:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < threading.TIMEOUT_MAX:
        raise ConfigError(f"{TIMEOUT} (timeout): expected a number of seconds above 0, found {text!r}.")
    return limit


def answer_of(call: Callable[[], Answer], where: str, limit_s: float | None) -> Answer:
    """Return or raise the outcome of a call. Raises StorageError after the time limit."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    return _elsewhere(call, where, limit_s, [])


def change_by(call: Callable[[], Answer], where: str) -> Answer:
    """Return or raise the outcome of a call that changes the store. Signals wait for its end; the third one does not.

    Raises: StorageError while an earlier abandoned call of this kind has not ended.
    """
    _abandoned[:] = [has_ended for has_ended in _abandoned if not has_ended.is_set()]
    if _abandoned:
        raise StorageError(
            f"{where}: an earlier call that changes the store was interrupted and has not ended. Nothing more is "
            "changed before it ends; the next writer rolls back the unfinished write."
        )
    if threading.current_thread() is not threading.main_thread():
        return call()
    running: list[threading.Event] = []
    try:
        with uninterrupted():
            return _elsewhere(call, where, None, running)
    finally:
        _abandoned.extend(has_ended for has_ended in running if not has_ended.is_set())


def _elsewhere(call: Callable[[], Answer], where: str, limit_s: float | None, running: list[threading.Event]) -> Answer:
    """Run a call in another thread and wait for it. `running` receives the event that its end sets."""
    answers: list[Answer] = []
    errors: list[BaseException] = []
    has_ended = threading.Event()

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            has_ended.set()

    running.append(has_ended)
    threading.Thread(target=run, name=f"asks {where}", daemon=True).start()
    _wait(has_ended, where, limit_s)
    if errors:
        raise errors[0]
    return answers[0]


def _wait(has_ended: threading.Event, where: str, limit_s: float | None) -> None:
    first_s = _ANNOUNCED_AFTER_S if limit_s is None else min(_ANNOUNCED_AFTER_S, limit_s)
    if has_ended.wait(first_s):
        return
    if _announce is not None and first_s == _ANNOUNCED_AFTER_S:
        _announce(where)
    if not has_ended.wait(None if limit_s is None else limit_s - first_s):
        raise StorageError(f"{where}: the store has not answered for {limit_s:g} s ({TIMEOUT}).")
