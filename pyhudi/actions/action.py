"""Action: anything that changes the timeline, in four phases. Each phase writes one thing to storage.

    schedule   → the requested file        all checks that need no rows
    prepare    → the inflight file         rows get keys, locations and tasks; the workload profile is known
    execute    → data files                through the engine
    summarise  → the completed file        the commit's body

Source: docs/architecture.md, "How a table changes".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from pyhudi.engine.base import Engine, Frame
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.listeners.spans import Span, span
from pyhudi.model.commit import CommitMetadata, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.progress_line import describing, in_phase
from pyhudi.schema.internal import InternalSchema, encode_internal_schema
from pyhudi.storage.clock import Clock
from pyhudi.transaction.context import TableContext

__all__ = ["Action", "ActionContext", "PreparedWrite", "Schedule", "Stopwatch", "action_span"]

PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True)
class ActionContext(TableContext):
    """The input of an action: the table at one moment, the caller's options, and the engine."""

    engine: Engine

    @property
    def tasks_may_outlive_it(self) -> bool:
        """True if a task can outlive its call. In this process it can't: the call waits for its threads."""
        return not getattr(self.engine, "shares_memory", False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """First phase: the decisions before any row is read. `schema`: data columns of the table after the action.

    `history`: the table's schemas with ids of columns, newest first, () where columns match by name; `internal_schema`:
    the newest of them, in the commit's form. `new_schema`: the schema that this action adds to the history. `time`: the
    instant time if it is fixed.
    """

    schema: pa.Schema
    schema_json: str
    body: bytes = b""
    history: tuple[InternalSchema, ...] = ()
    internal_schema: str | None = None
    new_schema: InternalSchema | None = None
    time: str | None = None

    def at(self, instant_time: str) -> Schedule:
        """The schedule with the action's instant time, which is the version of a new schema."""
        if self.new_schema is None:
            return self
        newest = replace(self.new_schema, version_id=int(instant_time))
        text = encode_internal_schema(newest)
        return replace(self, history=(newest, *self.history), internal_schema=text, new_schema=newest)


@dataclass(frozen=True, slots=True)
class PreparedWrite(Generic[PlanT]):
    """Second phase: the rows to write, and the action's plan for them.

    `profile`: body of the inflight file, None for an empty one. `frame`: None without rows. `plan`: the action's
    private plan. `cached`: frames that the engine caches for it. `not_found`: number of a delete's rows whose key the
    index does not find in the table. `combined`: number of rows that others of their keys replaced before they were
    placed.
    """

    instant: Instant
    schedule: Schedule
    spec: WriteSpec
    profile: CommitMetadata | None
    frame: Frame | None
    plan: PlanT
    cached: tuple[Frame, ...] = ()
    not_found: int = 0
    combined: int = 0


@dataclass
class Stopwatch:
    """Seconds by phase of one action, starting at `began_s`."""

    clock: Clock
    seconds: dict[str, float] = field(default_factory=dict)
    began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.began_s = self.clock.monotonic_s()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Run the block as this phase: it gets a span, and its time is added to the phase."""
        start = self.clock.monotonic_s()
        try:
            with span(f"hudi.{name}"), in_phase(name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock.monotonic_s() - start


@contextmanager
def action_span(operation: str, context: TableContext) -> Iterator[Span | None]:
    """A span around an action and its phases; errors in it get a description of the action."""
    table = {"hudi.table": context.meta.storage.root, "hudi.operation": operation.lower()}
    with describing(operation, context.meta.config.table_name), span(f"hudi.{operation.lower()}", table) as trace_span:
        yield trace_span


class Action(Protocol[PlanT]):
    """One kind of write or table service."""

    @property
    def kind(self) -> ActionKind:
        """Its name on the timeline."""
        ...

    @property
    def operation(self) -> str:
        """Word of `OperationType` for the commit metadata."""
        ...

    def schedule(self, context: ActionContext) -> Schedule:
        """Run all checks that need no rows, and decide the schema. Raises HudiError; nothing is on disk yet."""
        ...

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[PlanT]:
        """Turn rows into tasks."""
        ...

    def execute(self, prepared: PreparedWrite[PlanT], context: ActionContext) -> tuple[WriteStatus, ...]:
        """Write data files."""
        ...

    def summarise(
        self, prepared: PreparedWrite[PlanT], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        """Body of the completed file."""
        ...
