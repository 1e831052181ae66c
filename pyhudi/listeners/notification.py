"""Notify listeners of completed actions. A listener is one row of LISTENERS.

Listeners are notified after the commit is visible and its lock and heartbeat have ended (`notify_afterwards`). A
listener gets a copy and runs in a thread of its own (`delivery.py`): it can neither fail nor delay a write, and its
errors become warnings. Docs: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol

from pyhudi.listeners.delivery import submit, warn_or_log
from pyhudi.model.commit import Body, CommitMetadata, OperationType
from pyhudi.model.instant import Instant
from pyhudi.model.options import WriteOptions
from pyhudi.model.timeline import Timeline
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock

__all__ = ["LISTENERS", "ActionCompleted", "Listener", "check_listeners", "notify", "notify_afterwards"]

_SERVICES = frozenset({OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.INDEX})


@dataclass(frozen=True, slots=True)
class ActionCompleted:
    """A completed action, as listeners see it.

    `table`: the table's root; `table_name`: its name in the properties. `action`: its name in Hudi's metrics, such as
    `deltacommit` and `compaction`. `instant`, `body`: None for archiving, which completes no instant; its numbers are
    in `counts`. `duration_s`: from the start to `ended_ms`; `seconds`: of each phase. `timeline`: includes the
    completed instant.
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
        """The body of a caller's write; None for table services and other actions."""
        body = self.body
        return body if isinstance(body, CommitMetadata) and body.operation_type not in _SERVICES else None


class Listener(Protocol):
    """The contract of a listener."""

    def is_on(self, options: WriteOptions) -> bool:
        """True if the options of a call turn this listener on."""
        ...

    def check(self, options: WriteOptions) -> None:
        """Raise ConfigError if the listener can't work with these options. Called before anything is written."""
        ...

    def record(self, completed: ActionCompleted, options: WriteOptions) -> None:
        """Do the quick work that stays in this process. Runs before the call returns."""
        ...

    def on_action(self, completed: ActionCompleted, options: WriteOptions, clock: Clock) -> None:
        """Do everything else. Runs in the listener's thread."""
        ...


LISTENERS: Registry[Callable[[], Listener]] = Registry(
    kind="listener",
    entries={
        "METRICS": "pyhudi.listeners.metrics:MetricsListener",
        "CALLBACK": "pyhudi.listeners.callback:CallbackListener",
    },
)


_Notification = tuple[ActionCompleted, WriteOptions, Clock]
_pending: ContextVar[list[_Notification] | None] = ContextVar("pending", default=None)
_is_held: ContextVar[bool] = ContextVar("is_held", default=False)


def check_listeners(options: WriteOptions) -> None:
    """Refuse listeners that can't work, before anything is written. Raises ConfigError."""
    if not (options.metrics.is_on or options.callback.is_on):
        return
    for name in LISTENERS.entries:
        listener = LISTENERS.load(name)()
        if listener.is_on(options):
            listener.check(options)


def notify_afterwards(*, holds: bool = False) -> AbstractContextManager[None]:
    """Return a context for code that holds locks and heartbeats: listeners are notified when the block ends.

    Args:    holds: nested blocks notify nobody before this one ends; if it fails, nobody is notified at all.
    """
    return _Afterwards(holds)


class _Afterwards(AbstractContextManager[None]):
    """A class, not a generator: an interrupt between `yield` and the block would leak the list into the next call."""

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._token: Token[list[_Notification] | None] | None = None
        self._held: Token[bool] | None = None

    def __enter__(self) -> None:
        if _pending.get() is None or self._holds:
            self._token = _pending.set([])
        if self._holds:
            self._held = _is_held.set(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            _is_held.reset(self._held)
        pending = _pending.get() or []
        notifications = [] if _is_held.get() or (self._holds and error is not None) else list(pending)
        if not _is_held.get():
            pending.clear()
        if self._token is not None:
            _pending.reset(self._token)
        if notifications:
            _deliver(notifications, may_wait=error is None)


def notify(completed: ActionCompleted, options: WriteOptions, clock: Clock) -> None:
    """Notify the listeners that the options turn on, once the call has ended its heartbeat. Never raises."""
    if not (options.metrics.is_on or options.callback.is_on):
        return
    notification = replace(completed, seconds=dict(completed.seconds), counts=dict(completed.counts)), options, clock
    pending = _pending.get()
    if pending is None:
        _deliver([notification], may_wait=True)
    else:
        pending.append(notification)


def _deliver(notifications: Sequence[_Notification], *, may_wait: bool) -> None:
    deliveries = []
    for completed, options, clock in notifications:
        for name in LISTENERS.entries:
            work = _work_of(name, completed, options, clock)
            if work is None:
                continue
            delivery = submit(name, work)
            if delivery is None:
                warn_or_log(f"{_what(completed, name)} could not be delivered: {name.lower()} is far behind.")
            else:
                deliveries.append(delivery)
    for delivery in deliveries:
        delivery.issue_warnings(may_wait=may_wait)


def _work_of(name: str, completed: ActionCompleted, options: WriteOptions, clock: Clock) -> Callable[[], None] | None:
    """Return the work for a listener's thread; None if the options leave it off or it has already failed."""

    def failed(error: BaseException) -> None:
        warn_or_log(f"{_what(completed, name)} could not be delivered. {type(error).__name__}: {error}")

    try:
        listener = LISTENERS.load(name)()
        if not listener.is_on(options):
            return None
        listener.record(completed, options)
    except Exception as error:
        failed(error)
        return None

    def deliver() -> None:
        try:
            listener.on_action(completed, options, clock)
        except BaseException as error:  # SystemExit included, which would end the thread
            failed(error)

    return deliver


def _what(completed: ActionCompleted, name: str) -> str:
    instant = "" if completed.instant is None else f" {completed.instant.requested_time}"
    return f"{completed.table}: {completed.action}{instant} is done, but its {name.lower()}"
