"""What an action did, and the listeners that are told. A listener is one row of LISTENERS.

An action is told of when readers see it already, and its lock and its heartbeat have ended (`told_afterwards`). A
listener has a copy, and a thread of its own (`delivery.py`): it can neither fail a write nor delay it, and an error
becomes a warning. Docs: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol

from pyhudi.listeners.delivery import never_failing, put
from pyhudi.model.commit import Body, CommitMetadata, OperationType
from pyhudi.model.instant import Instant
from pyhudi.model.options import WriteOptions
from pyhudi.model.timeline import Timeline
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock

__all__ = ["LISTENERS", "ActionDone", "Listener", "check_listeners", "tell", "told_afterwards"]

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

    def check(self, options: WriteOptions) -> None:
        """Raise ConfigError when it can't listen with these options; nothing was written yet."""
        ...

    def note(self, done: ActionDone, options: WriteOptions) -> None:
        """What is quick and in this process alone: done before the call returns."""
        ...

    def hear(self, done: ActionDone, options: WriteOptions, clock: Clock) -> None:
        """Everything else, in the listener's thread."""
        ...


LISTENERS: Registry[Callable[[], Listener]] = Registry(
    kind="listener",
    entries={
        "METRICS": "pyhudi.listeners.metrics:MetricsListener",
        "CALLBACK": "pyhudi.listeners.callback:CallbackListener",
    },
)


_Told = tuple[ActionDone, WriteOptions, Clock]
_waiting: ContextVar[list[_Told] | None] = ContextVar("waiting", default=None)
_is_held: ContextVar[bool] = ContextVar("is_held", default=False)


def check_listeners(options: WriteOptions) -> None:
    """Refuse listeners that can't listen, before anything is written. Raises ConfigError."""
    if not (options.metrics.is_on or options.callback.is_on):
        return
    for name in LISTENERS.entries:
        listener = LISTENERS.load(name)()
        if listener.wants(options):
            listener.check(options)


def told_afterwards(*, holds: bool = False) -> AbstractContextManager[None]:
    """`with told_afterwards():` around what holds locks and heartbeats: listeners hear of its actions at its end.

    Args:    holds: blocks within this one tell nobody before its end; after an error nobody is told at all.
    """
    return _Afterwards(holds)


class _Afterwards(AbstractContextManager[None]):
    """Not a generator: an interrupt between its `yield` and the block would leave the list to the next call."""

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._token: Token[list[_Told] | None] | None = None
        self._held: Token[bool] | None = None

    def __enter__(self) -> None:
        if _waiting.get() is None or self._holds:
            self._token = _waiting.set([])
        if self._holds:
            self._held = _is_held.set(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            _is_held.reset(self._held)
        waiting = _waiting.get() or []
        told = [] if _is_held.get() or (self._holds and error is not None) else list(waiting)
        if not _is_held.get():
            waiting.clear()
        if self._token is not None:
            _waiting.reset(self._token)
        if told:
            _deliver(told, waits=error is None)


def tell(done: ActionDone, options: WriteOptions, clock: Clock) -> None:
    """Tell all listeners that the options ask for, when the call has ended its heartbeat. Never raises."""
    if not (options.metrics.is_on or options.callback.is_on):
        return
    told = replace(done, seconds=dict(done.seconds), counts=dict(done.counts)), options, clock
    waiting = _waiting.get()
    if waiting is None:
        _deliver([told], waits=True)
    else:
        waiting.append(told)


def _deliver(several: Sequence[_Told], *, waits: bool) -> None:
    deliveries = []
    for done, options, clock in several:
        for name in LISTENERS.entries:
            hear = _heard(name, done, options, clock)
            if hear is None:
                continue
            delivery = put(name, hear)
            if delivery is None:
                never_failing(f"{_what(done, name)} could not be delivered: {name.lower()} is far behind.")
            else:
                deliveries.append(delivery)
    for delivery in deliveries:
        delivery.leave(waits=waits)


def _heard(name: str, done: ActionDone, options: WriteOptions, clock: Clock) -> Callable[[], None] | None:
    """What a listener is to do in its thread; None where the options don't ask for it, or it has failed already."""

    def failed(error: BaseException) -> None:
        never_failing(f"{_what(done, name)} could not be delivered. {type(error).__name__}: {error}")

    try:
        listener = LISTENERS.load(name)()
        if not listener.wants(options):
            return None
        listener.note(done, options)
    except Exception as error:
        failed(error)
        return None

    def hear() -> None:
        try:
            listener.hear(done, options, clock)
        except BaseException as error:  # also an exit: it would end the thread
            failed(error)

    return hear


def _what(done: ActionDone, name: str) -> str:
    instant = "" if done.instant is None else f" {done.instant.requested_time}"
    return f"{done.table}: {done.action}{instant} is done, but its {name.lower()}"
