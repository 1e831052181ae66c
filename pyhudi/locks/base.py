"""The protocol of a lock provider, and retrying until a lock is granted or time is up.

A provider is made from LockOptions, the table's storage and a clock. The lock guards drawing instant times, making
requested and completed files, config updates and upgrades. Every writer of a table must use the same provider. It is
not re-entrant. Source: docs/formats/writers.md, "Locks".

"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from pyhudi.interrupts import let_interrupts_through, uninterrupted
from pyhudi.model.options import LockOptions, declare
from pyhudi.storage.clock import Clock

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["LockOptions", "LockProvider", "Pauses", "own_options", "retry_until"]


Options = TypeVar("Options", bound="DataclassInstance")


def own_options(settings: LockOptions, kind: type[Options]) -> Options:
    """Parse the options of a user's provider, declared in its `options_class`. Raises ConfigError for wrong values."""
    return declare.own_options(kind, settings.own_texts)


@runtime_checkable
class LockProvider(Protocol):
    """One writer's handle on a table's lock."""

    @property
    def default_skew_ms(self) -> int:
        """The greatest difference between the clocks of the processes that share this lock, in milliseconds."""
        ...

    @property
    def is_held(self) -> bool:
        """True between a successful `try_acquire` of this handle and its `release`."""
        ...

    @property
    def owner_note(self) -> str:
        """A description of the lock's current holder, as far as known; for messages."""
        ...

    def try_acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting up to `timeout_s` seconds (0: one attempt). False when another still holds it."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


Pauses = tuple[float, float]  # first and longest pause between two attempts, in seconds


def retry_until(attempt: Callable[[], bool], timeout_s: float, pauses: Pauses, clock: Clock) -> bool:
    """Call `attempt` until it is True or `timeout_s` seconds have passed; pauses double up to the longest.

    Ctrl-C ends the waiting, but never interrupts an attempt: a lock is either taken and recorded, or not taken.
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
