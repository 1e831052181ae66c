"""What a lock provider is, and what one is made from.

The lock guards drawing instant times, making requested and completed files, config updates and upgrades. Every writer
of a table must use the same provider. It is not re-entrant. Source: spec, timeline 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["LockOptions", "LockProvider", "LockSettings"]


class LockSettings(Protocol):
    """The attributes that `open_lock` reads."""

    @property
    def provider(self) -> str: ...
    @property
    def filesystem_path(self) -> str | None: ...
    @property
    def expire_min(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LockOptions:
    """A caller's choice of lock.

    `provider`: IN_PROCESS, FILESYSTEM, Hudi's class name of these, or "module:Class" of one's own. `filesystem_path`:
    folder of the lock file, None for the table's `.hoodie`. `expire_min`: minutes after which a lock file counts as
    left behind, 0 for never. `wait_timeout_s`: longest wait. `retry_wait_ms`: pause between two attempts.
    """

    provider: str = "IN_PROCESS"
    filesystem_path: str | None = None
    expire_min: int = 0
    wait_timeout_s: float = 60.0
    retry_wait_ms: int = 100


@runtime_checkable
class LockProvider(Protocol):
    """One writer's handle on a table's lock."""

    @property
    def default_skew_ms(self) -> int:
        """How far the clocks of the processes that share this lock may differ, in milliseconds."""
        ...

    @property
    def is_held(self) -> bool:
        """True between a successful `try_acquire` of this handle and its `release`."""
        ...

    @property
    def owner_note(self) -> str:
        """Who holds the lock now, as far as one can tell; for messages."""
        ...

    def try_acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting up to `timeout_s` seconds (0: one attempt). False when another holds it still."""
        ...

    def release(self) -> None:
        """Give the lock back."""
        ...
