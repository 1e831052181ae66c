"""Asking for a lock again and again until it is given or time is up."""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.interrupts import let_interrupts_through, uninterrupted
from pyhudi.storage.clock import Clock

__all__ = ["Pauses", "retry_until"]

Pauses = tuple[float, float]  # first and longest pause between two attempts, in seconds


def retry_until(attempt: Callable[[], bool], timeout_s: float, pauses: Pauses, clock: Clock) -> bool:
    """Call `attempt` until it is True or `timeout_s` seconds have passed; pauses double up to the longest.

    Ctrl-C ends the waiting, but never an attempt half way: a lock is taken and known to be, or it is not taken.
    """
    deadline_s = clock.monotonic_s() + timeout_s
    pause_s, longest_s = pauses
    while not _whole(attempt):
        let_interrupts_through()
        remaining_s = deadline_s - clock.monotonic_s()
        if remaining_s <= 0:
            return False
        clock.sleep_s(min(pause_s, remaining_s))
        pause_s = min(pause_s * 2, longest_s)
    return True


def _whole(attempt: Callable[[], bool]) -> bool:
    with uninterrupted():
        return attempt()
