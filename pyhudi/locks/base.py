"""What a lock provider is: made from LockOptions, the table's storage and a clock.

The lock guards drawing instant times, making requested and completed files, config updates and upgrades. Every writer
of a table must use the same provider. It is not re-entrant. Source: docs/formats/writers.md, "Locks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from pyhudi.model.options import LockOptions, declare

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["LockOptions", "LockProvider", "own_options"]

Options = TypeVar("Options", bound="DataclassInstance")


def own_options(settings: LockOptions, kind: type[Options]) -> Options:
    """The options that a user's own provider declares in its `options_class`. Raises ConfigError for a wrong value."""
    return declare.own_options(kind, settings.own_texts)


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
