"""Services with plans: compaction, log compaction and clustering. Any process may execute a plan on the timeline.

A service is a value, `Service`: it finds its plans, makes new ones, executes them, and sums up. `call` is its only
caller for users; services after a write, or beside it, use the single steps.

    dry run         the plan, nothing on disk
    schedule only   the plan goes to the timeline
    else            pending plans are executed, then a new one is made and executed

A plan on the timeline:

    <T>.<service>.requested    the plan, made under the lock
    <T>.<service>.inflight     under the lock; from now on a run is active
    files of the run           markers first; write tokens name the run
    <T> completed              under the lock, if every file of the run still exists

Runs begin, and are rolled back when they fail or die, as for all plans: `transaction/plans.py`. Source:
docs/formats/timeline.md, "Bodies"; docs/formats/table-services.md, "Compaction plan", "Clustering plan";
docs/formats/writers.md, "Table services and concurrent writers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pyhudi.actions.action import ActionContext, Schedule, Stopwatch, action_span
from pyhudi.actions.clustering_updates import is_clustering
from pyhudi.actions.concurrency import check_preferred_writers
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.table_keys import table_keygen
from pyhudi.actions.undo.checks import check_not_being_undone
from pyhudi.actions.writes.preparation import commit_body, with_rolling_metadata, write_spec
from pyhudi.engine.base import FanOutWork, TaskT
from pyhudi.errors import TableError, WriteConflict
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table
from pyhudi.listeners.metrics import count
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.services.plan_files import PlanSchema, plan_schema, schema_metadata, slice_reading
from pyhudi.transaction.commit import Committed, TakenOver, after_commit, commit
from pyhudi.transaction.instants import request
from pyhudi.transaction.plans import Running

__all__ = ["Called", "Service", "call", "pending_plans", "pending_writes", "run_waiting", "schedule_plan"]

_RUNS = 2**31  # write tokens hold a Java int

PlanT = TypeVar("PlanT")
RunT = TypeVar("RunT")
ResultT = TypeVar("ResultT", covariant=True)


@dataclass(frozen=True, slots=True)
class Called(Generic[PlanT, RunT]):
    """The outcome of a call. `plan`: made, or to be made. `scheduled`: its instant, None: it is not on the timeline.
    `runs`: of that plan, and of pending ones. `waiting`: the pending ones that it would run.
    """

    table: str
    plan: PlanT | None = None
    scheduled: str | None = None
    runs: tuple[RunT, ...] = ()
    waiting: tuple[str, ...] = ()


class Service(Protocol[PlanT, TaskT, RunT, ResultT]):
    """One kind of service: its plans, and the work of executing one."""

    @property
    def kind(self) -> ActionKind:
        """The action of its pending instants."""
        ...

    @property
    def operation(self) -> str:
        """Word of `OperationType` for the commit metadata."""
        ...

    def wants(self, context: ActionContext) -> bool:
        """True if a new plan is due when a user calls the service."""
        ...

    def plan(self, context: ActionContext) -> PlanT | None:
        """The plan for the context's table; None: nothing to do. Raises HudiError."""
        ...

    def encode(self, plan: PlanT, meta: MetaClient) -> bytes:
        """Body of the requested file."""
        ...

    def read(self, instant: Instant, meta: MetaClient) -> PlanT:
        """The plan of a pending instant. Raises CorruptFile."""
        ...

    def is_own(self, instant: Instant, meta: MetaClient) -> bool:
        """True if a pending instant belongs to this service."""
        ...

    def check(self, instant: Instant, plan: PlanT, meta: MetaClient, began: MetaClient | None = None) -> None:
        """Check under the lock that the plan may still be executed, before a run starts and before it completes.

        Args: began: the table as the run read it.
        """
        ...

    def tasks(self, plan: PlanT, context: ActionContext) -> Sequence[TaskT]:
        """The tasks of a run, long ones first. Raises TableError when a file of the plan is missing."""
        ...

    def work(
        self, plan: PlanT, context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
    ) -> FanOutWork[TaskT]:
        """The work of a task; `run` must be in the names of new files. Reading gives all stored columns."""
        ...

    def delete_files(
        self, instant: Instant, plan: PlanT, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
    ) -> None:
        """Delete the files of runs, except `keep`. `by_listing`: the markers may be deleted already."""
        ...

    def finish(self, plan: PlanT, instant: Instant, body: CommitMetadata, context: ActionContext) -> CommitMetadata:
        """Body of the completed file, from a body with the statuses and the schema. Called under the lock."""
        ...

    def completed(self, instant: Instant, plan: PlanT, context: ActionContext) -> None:
        """Do the work that remains when the instant is complete; a crash may skip it."""
        ...

    def failed(self, instant_time: str, error: WriteConflict, context: ActionContext) -> None:
        """After a run gave way to others, and its plan is pending again: drop it if no run can execute it any more."""
        ...

    def report(
        self, completed: Instant, plan: PlanT, statuses: Sequence[WriteStatus], seconds: Mapping[str, float]
    ) -> RunT:
        """The report on a run."""
        ...

    def summarise(self, called: Called[PlanT, RunT]) -> ResultT:
        """The result of a call."""
        ...


def call(
    service: Service[PlanT, TaskT, RunT, ResultT],
    context: ActionContext,
    *,
    dry_run: bool = False,
    schedule_only: bool = False,
    instant_time: str | None = None,
) -> ResultT:
    """Run a service.

    Args:    dry_run: only make the plan, write nothing. schedule_only: leave the plan on the timeline for another run.
                 instant_time: execute only this pending plan.
    Raises:  HudiError; see `schedule_plan` and `_execute`. Plans executed before stay executed.
    """
    table = context.meta.storage.root
    if instant_time is not None and not dry_run:
        return service.summarise(Called(table, runs=(_execute(service, context, instant_time),)))
    pending = () if schedule_only else pending_plans(service, context)
    if dry_run:
        times = tuple(instant.requested_time for instant in pending)
        return service.summarise(
            Called(table, service.plan(context) if service.wants(context) else None, waiting=times)
        )
    runs = run_waiting(service, pending, context)
    context = context.reloaded() if pending else context
    scheduled = schedule_plan(service, context) if service.wants(context) else None
    if scheduled is None:
        return service.summarise(Called(table, runs=runs))
    instant, new = scheduled
    runs = runs if schedule_only else (*runs, *run_waiting(service, [instant], context))
    return service.summarise(Called(table, new, instant.requested_time, runs))


# ---- the steps of a call


def pending_plans(service: Service[PlanT, TaskT, RunT, ResultT], context: ActionContext) -> tuple[Instant, ...]:
    """The plans of a service that are not completed, oldest first."""
    return tuple(instant for instant in context.meta.timeline.pending() if service.is_own(instant, context.meta))


def schedule_plan(
    service: Service[PlanT, TaskT, RunT, ResultT], context: ActionContext
) -> tuple[Instant, PlanT] | None:
    """Put a plan on the timeline; None when there is nothing to do. Raises HudiError."""
    with context.locked():
        now = context.reloaded()
        check_not_being_undone(now.meta, f"a plan of {service.kind.value}")
        plan = service.plan(now)
        if plan is None:
            return None
        requested = request(service.kind, service.encode(plan, now.meta), now)
    if service.kind.is_compaction:
        count(context.options, context.meta.config.table_name, "compaction.compaction.requested.counter")
    return requested, plan


def run_waiting(
    service: Service[PlanT, TaskT, RunT, ResultT], instants: Iterable[Instant], context: ActionContext
) -> tuple[RunT, ...]:
    """Execute plans that were pending a moment ago, in this order. Those that another process executed or dropped while
    this one waited for the lock are left out.

    Raises:  as `_execute`. Plans executed before stay executed.
    """
    runs: list[RunT] = []
    for instant in instants:
        with suppress(_NotPending):
            runs.append(_execute(service, context, instant.requested_time))
    return tuple(runs)


def pending_writes(context: ActionContext) -> tuple[str, ...]:
    """Requested times of writes, rollbacks and restores that are not completed; pending clusterings don't count."""
    undoing = (ActionKind.ROLLBACK, ActionKind.RESTORE)
    pending = [one for one in context.meta.timeline.pending() if one.action.is_commit or one.action in undoing]
    return tuple(instant.requested_time for instant in pending if not is_clustering(instant, context.meta))


# ---- the run of a plan


def _execute(service: Service[PlanT, TaskT, RunT, ResultT], context: ActionContext, instant_time: str) -> RunT:
    """Execute a pending plan.

    Raises: TableError when there is no such plan, WriteConflict when another process is running it. After any error the
            plan is pending again, unless the instant is complete already or the service has dropped it.
    """
    watch = Stopwatch(context.clock)
    beats = context.options.failed_writes_policy == "LAZY"  # with EAGER it is not used
    try:
        with action_span(service.operation, context) as trace_span:
            if trace_span is not None:
                trace_span.set_attribute("hudi.instant", instant_time)
            with Running(_Waiting(service), context, instant_time, beats=beats) as (instant, plan):
                watch.seconds["start"] = context.clock.monotonic_s() - watch.began_s
                now = context.reloaded()
                schema = plan_schema(instant_time, now.meta)
                with watch.phase("execute"):
                    tasks, work = _tasks_and_work(service, instant, plan, schema, now)
                    statuses = tuple(from_table(now.engine.collect(now.engine.fan_out(tasks, work, STATUS_SCHEMA))))
                completed = _finish(service, instant, plan, statuses, schema, now, watch)
                return service.report(completed, plan, statuses, watch.seconds)
    except WriteConflict as error:
        service.failed(instant_time, error, context)
        raise


def _tasks_and_work(
    service: Service[PlanT, TaskT, RunT, ResultT],
    instant: Instant,
    plan: PlanT,
    schema: PlanSchema,
    context: ActionContext,
) -> tuple[Sequence[TaskT], FanOutWork[TaskT]]:
    meta = context.meta
    keygen = None if meta.config.populate_meta_fields else table_keygen(context, instant.requested_time)
    spec = write_spec(Schedule(schema.columns, ""), keygen, instant, context)
    tasks = service.tasks(plan, context)
    run_number = context.clock.now_ms() % _RUNS  # no other run of the plan has it
    return tasks, service.work(plan, context, spec, slice_reading(spec, schema, context), run_number)


def _finish(
    service: Service[PlanT, TaskT, RunT, ResultT],
    instant: Instant,
    plan: PlanT,
    statuses: tuple[WriteStatus, ...],
    schema: PlanSchema,
    now: ActionContext,
    watch: Stopwatch,
) -> Instant:
    """Delete files of failed attempts, make the result visible, and tidy up. Returns the completed instant."""
    paths = [status.stat.path for status in statuses if status.stat.path is not None]

    def sweep() -> None:
        service.delete_files(instant, plan, now.meta, keep=paths, by_listing=False)

    with watch.phase("sweep"):
        sweep()
    with watch.phase("commit"):
        completed = _complete(service, instant, plan, statuses, schema, now, watch)
    after_commit("tidying up after it", completed, now, lambda: service.completed(completed, plan, now))
    if now.tasks_may_outlive_it:  # late tasks may have made files since the sweep
        after_commit("deleting files of late tasks", completed, now, sweep)
    storage, time = now.meta.storage, instant.requested_time
    after_commit("deleting its markers", completed, now, lambda: delete_markers(storage, time))
    return completed


class _NotPending(TableError):
    """The plan does not exist, or no longer exists."""


@dataclass(frozen=True)
class _Waiting(Generic[PlanT, TaskT, RunT, ResultT]):
    """The plans of a service, for `transaction.plans.Running`."""

    service: Service[PlanT, TaskT, RunT, ResultT]

    def find(self, instant_time: str, now: ActionContext) -> tuple[Instant, PlanT]:
        kind, instant = self.service.kind, now.meta.timeline.find(instant_time, self.service.kind)
        if instant is None or instant.is_completed or not self.service.is_own(instant, now.meta):
            pending = ", ".join(one.requested_time for one in pending_plans(self.service, now)) or "none"
            raise _NotPending(
                f"{now.meta.storage.root}: there is no pending {kind.value} {instant_time}. Pending are: {pending}."
            )
        return instant, self.service.read(instant, now.meta)

    def check_dead(self, instant: Instant, now: ActionContext) -> None:
        if now.options.failed_writes_policy == "EAGER":
            return  # one process at a time writes to the table: the other one is dead
        if not now.is_dead(instant.requested_time):
            raise WriteConflict(
                f"{now.meta.storage.root}: another process is running {instant.action.value} "
                f"{instant.requested_time}; its heartbeat is fresh. Wait for it, or run again when the heartbeat has "
                f"expired."
            )

    def check(self, instant: Instant, plan: PlanT, now: ActionContext) -> None:
        self.service.check(instant, plan, now.meta)

    def delete_files(self, instant: Instant, plan: PlanT, now: ActionContext) -> None:
        self.service.delete_files(instant, plan, now.meta, keep=(), by_listing=True)


def _complete(
    service: Service[PlanT, TaskT, RunT, ResultT],
    instant: Instant,
    plan: PlanT,
    statuses: tuple[WriteStatus, ...],
    schema: PlanSchema,
    context: ActionContext,
    watch: Stopwatch,
) -> Instant:
    """Make the result visible, unless another process considered this run dead and deleted its files."""
    paths = [status.stat.path for status in statuses if status.stat.path is not None]

    def alive(now: ActionContext) -> None:
        _check_files_exist(instant, statuses, now)
        service.check(instant, plan, now.meta, context.meta)

    def body(now: ActionContext) -> CommitMetadata:
        entries = schema_metadata(instant.requested_time, schema, now.meta)
        metadata = commit_body(service.operation, Schedule(schema.columns, entries["schema"]), statuses, now)
        metadata = service.finish(plan, instant, replace(metadata, extra_metadata=entries), now)
        check_preferred_writers(instant, metadata, now)
        return with_rolling_metadata(metadata, now.meta, now.options.commits)

    committed: Committed[CommitMetadata] = commit(
        instant,
        context,
        body,
        participant=METADATA_TABLE,
        paths_to_sync=paths,
        began_s=watch.began_s,
        seconds=watch.seconds,
        alive=alive,
        statuses=statuses,
    )
    return committed.instant


def _check_files_exist(instant: Instant, statuses: Iterable[WriteStatus], context: ActionContext) -> None:
    """Raise TakenOver when files of this run are missing or changed."""
    storage = context.meta.storage
    for status in statuses:
        path = status.stat.path
        info = storage.stat(path) if path is not None else None
        if info is None or info.size_bytes != status.stat.file_size_in_bytes:
            raise TakenOver(
                f"{storage.root}: {path} of {instant.action.value} {instant.requested_time} no longer exists: "
                f"another process considered this run dead and runs the plan itself. Nothing of this run is visible."
            )
