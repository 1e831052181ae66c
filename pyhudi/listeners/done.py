"""What an action did, and the listeners that are told. A listener is one row of LISTENERS.

An action is told of after its lock is released, when readers see it already. So a listener can't fail it: an error
becomes a warning. Docs: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyhudi.caller_warnings import warn_caller
from pyhudi.model.commit import Body, CommitMetadata, OperationType
from pyhudi.model.instant import Instant
from pyhudi.model.options import WriteOptions
from pyhudi.model.timeline import Timeline
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock

__all__ = ["LISTENERS", "ActionDone", "Listener", "tell"]

_SERVICES = frozenset({OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.INDEX})


@dataclass(frozen=True, slots=True)
class ActionDone:
    """An action that is complete.

    `table`: its root; `table_name`: as in its properties. `action`: the word of Hudi's metrics, such as `deltacommit`
    and `compaction`. `instant`, `body`: None for archiving, which completes no instant; `counts` has its numbers.
    `duration_s`: from its beginning to `ended_ms`; `seconds`: of its phases. `timeline`: with the completed instant.
    """

    table: str
    table_name: str
    action: str
    duration_s: float
    ended_ms: int
    instant: Instant | None = None
    body: Body | None = None
    timeline: Timeline = field(default_factory=Timeline, repr=False)
    seconds: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def write(self) -> CommitMetadata | None:
        """The body of a write by a caller; None for table services and all else."""
        body = self.body
        return body if isinstance(body, CommitMetadata) and body.operation_type not in _SERVICES else None


class Listener(Protocol):
    """Somebody who is told of actions."""

    def wants(self, options: WriteOptions) -> bool:
        """Do the options of a call ask for this listener?"""
        ...

    def hear(self, done: ActionDone, options: WriteOptions, clock: Clock) -> None:
        """Take note of an action."""
        ...


LISTENERS: Registry[Callable[[], Listener]] = Registry(
    kind="listener",
    entries={
        "METRICS": "pyhudi.listeners.metrics:MetricsListener",
        "CALLBACK": "pyhudi.listeners.callback:CallbackListener",
    },
)


def tell(done: ActionDone, options: WriteOptions, clock: Clock) -> None:
    """Tell all listeners that the options ask for."""
    if not (options.metrics.is_on or options.callback.is_on):
        return
    for name in LISTENERS.entries:
        try:
            listener = LISTENERS.load(name)()
            if listener.wants(options):
                listener.hear(done, options, clock)
        except Exception as error:
            instant = "" if done.instant is None else f" {done.instant.requested_time}"
            warn_caller(
                f"{done.table}: {done.action}{instant} is done, but its {name.lower()} could not be delivered. "
                f"{type(error).__name__}: {error}"
            )
