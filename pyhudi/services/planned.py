"""What compaction, log compaction and clustering share: a plan that waits on the timeline, executed by any process.

    <T>.<service>.requested    the plan, made under the lock
    <T>.<service>.inflight     under the lock; from here a run is on
    files of the run           markers first; write tokens name the run
    <T> completed              under the lock, if every file of the run is still there

A run that fails is taken back: its files go, then the inflight file, and the plan waits for the next run. A run that
died is taken back by the next one. Source: docs/formats/timeline.md, "Steps of an instant", "Bodies", "Rollback";
docs/formats/table-services.md, "Compaction plan", "Clustering plan"; docs/formats/writers.md,
"Table services and concurrent writers".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from pyhudi.actions.action import ActionContext, Schedule, Stopwatch
from pyhudi.actions.clustering_updates import is_clustering
from pyhudi.actions.concurrency import check_preferred_writers
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.table_keys import table_keygen
from pyhudi.actions.writes.preparation import commit_body, with_rolling_metadata, write_spec
from pyhudi.engine.base import FanOutWork, TaskT
from pyhudi.errors import TableError, WriteConflict, add_note
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, WriteStatus
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.services.plan_files import PlanSchema, plan_schema, schema_metadata, slice_reading
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.commit import Committed, TakenOver, after_commit, commit
from pyhudi.transaction.instants import request, start, to_plan

__all__ = ["Service", "pending_plans", "pending_writes", "run_plan", "run_waiting", "schedule_plan"]

_RUNS = 2**31  # write tokens hold what fits into Java's int

PlanT = TypeVar("PlanT")
RunT = TypeVar("RunT", covariant=True)


class Service(Protocol[PlanT, TaskT, RunT]):
    """One kind of service: what its plans are, and the work of executing one."""

    @property
    def kind(self) -> ActionKind:
        """What the timeline calls it while it waits."""
        ...

    @property
    def operation(self) -> str:
        """Word of `OperationType` for the commit metadata."""
        ...

    def plan(self, context: ActionContext) -> PlanT | None:
        """What is to be done to the table as the context has it; None: nothing. Raises errors of the family."""
        ...

    def encode(self, plan: PlanT, meta: MetaClient) -> bytes:
        """Body of the requested file."""
        ...

    def read(self, instant: Instant, meta: MetaClient) -> PlanT:
        """The plan of an instant that waits or runs. Raises CorruptFile."""
        ...

    def is_own(self, instant: Instant, meta: MetaClient) -> bool:
        """Is a pending instant one of this service?"""
        ...

    def check(self, instant: Instant, plan: PlanT, meta: MetaClient, began: MetaClient | None = None) -> None:
        """Called under the lock, before a run starts and before it completes: may the plan still be executed?

        Args: began: the table as the run read it.
        """
        ...

    def tasks(self, plan: PlanT, context: ActionContext) -> Sequence[TaskT]:
        """The tasks of a run, long ones first. Raises TableError when a file of the plan is missing."""
        ...

    def work(
        self, plan: PlanT, context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
    ) -> FanOutWork[TaskT]:
        """What is done with a task; `run` has to be in the names of new files. Reading gives all stored columns."""
        ...

    def delete_files(
        self, instant: Instant, plan: PlanT, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
    ) -> None:
        """Delete the files of runs, except `keep`. `by_listing`: the markers may be deleted."""
        ...

    def finish(self, plan: PlanT, instant: Instant, body: CommitMetadata, context: ActionContext) -> CommitMetadata:
        """Body of the completed file, from one that has the statuses and the schema. Called under the lock."""
        ...

    def completed(self, instant: Instant, plan: PlanT, context: ActionContext) -> None:
        """What is left to do when the instant is complete; it may be left out by a crash."""
        ...

    def result(
        self, completed: Instant, plan: PlanT, statuses: Sequence[WriteStatus], seconds: Mapping[str, float]
    ) -> RunT:
        """The report on a run."""
        ...


def schedule_plan(service: Service[PlanT, TaskT, RunT], context: ActionContext) -> tuple[Instant, PlanT] | None:
    """Put a plan on the timeline; None when there is nothing to do. Raises errors of the family."""
    with context.locked():
        now = context.reloaded()
        plan = service.plan(now)
        if plan is None:
            return None
        return request(service.kind, service.encode(plan, now.meta), now), plan


def pending_plans(service: Service[PlanT, TaskT, RunT], context: ActionContext) -> tuple[Instant, ...]:
    """The plans of a service that are not completed, oldest first."""
    return tuple(instant for instant in context.meta.timeline.pending() if service.is_own(instant, context.meta))


def pending_writes(context: ActionContext) -> tuple[str, ...]:
    """Requested times of writes that are not completed; plans of clusterings that wait are none."""
    pending = [instant for instant in context.meta.timeline.pending() if instant.action.is_commit]
    return tuple(instant.requested_time for instant in pending if not is_clustering(instant, context.meta))


def run_plan(service: Service[PlanT, TaskT, RunT], context: ActionContext, instant_time: str) -> RunT:
    """Execute a plan that waits on the timeline.

    Raises: TableError when there is no such plan, WriteConflict when another process is running it. After any error the
        plan waits for the next run, unless the instant is complete already.
    """
    watch = Stopwatch(context.clock)
    storage = context.meta.storage
    heartbeat = context.heartbeat(instant_time)
    begun: list[tuple[Instant, PlanT]] = []
    try:
        instant, plan, run = watch.time("start", lambda: _start(service, instant_time, heartbeat, context, begun))
        context = context.reloaded()
        schema = plan_schema(instant_time, context.meta)
        statuses = watch.time("execute", lambda: _execute(service, instant, plan, run, schema, context))
        kept = [status.stat.path for status in statuses if status.stat.path is not None]
        watch.time("sweep", lambda: service.delete_files(instant, plan, context.meta, keep=kept, by_listing=False))
        completed = watch.time("commit", lambda: _complete(service, instant, plan, statuses, schema, context))
        after_commit("tidying up after it", completed, context, lambda: service.completed(completed, plan, context))
        after_commit("deleting its markers", completed, context, lambda: delete_markers(storage, instant_time))
        after_commit("ending its heartbeat", completed, context, heartbeat.stop)
    except BaseException as error:
        for instant, plan in begun:
            _give_up(heartbeat, service, instant, plan, context, error)
        raise
    return service.result(completed, plan, statuses, watch.seconds)


class _NotPending(TableError):
    """There is no such plan, or not any more."""


def run_waiting(
    instants: Iterable[Instant], context: ActionContext, run: Callable[[ActionContext, str], RunT]
) -> tuple[RunT, ...]:
    """Execute plans that were pending a moment ago, in this order. Those that another process has carried out, or
    dropped, while this one waited for the lock are left out.

    Args:    run: executes the plan of an instant time, by `run_plan`.
    Raises:  as `run`. Plans that were executed before stay so.
    """
    runs = []
    for instant in instants:
        try:
            runs.append(run(context, instant.requested_time))
        except _NotPending:
            continue
    return tuple(runs)


def _start(
    service: Service[PlanT, TaskT, RunT],
    instant_time: str,
    heartbeat: Heartbeat,
    context: ActionContext,
    begun: list[tuple[Instant, PlanT]],
) -> tuple[Instant, PlanT, int]:
    """The inflight instant, its plan, and a number that no other run of it has; its heartbeat has started.

    `begun` gets the instant as soon as there may be something to take back.
    """
    with context.locked():
        meta = context.meta.reload()
        found = meta.timeline.find(instant_time, service.kind)
        if found is None or found.is_completed or not service.is_own(found, meta):
            waiting = [instant.requested_time for instant in pending_plans(service, context.reloaded())]
            raise _NotPending(
                f"{meta.storage.root}: there is no pending {service.kind.value} {instant_time}. Pending are: "
                f"{', '.join(waiting) or 'none'}."
            )
        plan = service.read(found, meta)
        if found.state is State.INFLIGHT:
            _check_dead(found, context)
            _take_back(service, found, plan, context)
        service.check(found, plan, meta)
        run = context.clock.now_ms() % _RUNS
        # Before others can see the run; with EAGER nobody looks at it.
        with heartbeat.begun(context.options.failed_writes_policy == "LAZY"):
            begun.append((found.at(State.INFLIGHT), plan))
            return start(found.at(State.REQUESTED), meta), plan, run


def _check_dead(instant: Instant, context: ActionContext) -> None:
    if context.options.failed_writes_policy == "EAGER":
        return  # one process at a time writes to the table: the other one is dead
    if not context.is_dead(instant.requested_time):
        raise WriteConflict(
            f"{context.meta.storage.root}: another process is running {instant.action.value} {instant.requested_time}; "
            f"its heartbeat is fresh. Wait for it, or run again when the heartbeat has expired."
        )


def _execute(
    service: Service[PlanT, TaskT, RunT],
    instant: Instant,
    plan: PlanT,
    run: int,
    schema: PlanSchema,
    context: ActionContext,
) -> tuple[WriteStatus, ...]:
    meta = context.meta
    keygen = None if meta.config.populate_meta_fields else table_keygen(context, instant.requested_time)
    spec = write_spec(Schedule(schema.columns, ""), keygen, instant, context)
    tasks = service.tasks(plan, context)
    work = service.work(plan, context, spec, slice_reading(spec, schema, context), run)
    return tuple(from_table(context.engine.collect(context.engine.fan_out(tasks, work, STATUS_SCHEMA))))


def _complete(
    service: Service[PlanT, TaskT, RunT],
    instant: Instant,
    plan: PlanT,
    statuses: Sequence[WriteStatus],
    schema: PlanSchema,
    context: ActionContext,
) -> Instant:
    """Make the result visible, unless another process considered this run dead and deleted its files."""
    written = [status.stat.path for status in statuses if status.stat.path is not None]

    def alive(now: ActionContext) -> None:
        _check_files_exist(instant, statuses, now)
        service.check(instant, plan, now.meta, context.meta)

    def body(now: ActionContext) -> CommitMetadata:
        entries = schema_metadata(instant.requested_time, schema, now.meta)
        made = commit_body(service.operation, Schedule(schema.columns, entries["schema"]), tuple(statuses), now)
        made = service.finish(plan, instant, replace(made, extra_metadata=entries), now)
        check_preferred_writers(instant, made, now)
        return with_rolling_metadata(made, now.meta, now.options.commits)

    committed: Committed[CommitMetadata] = commit(
        instant, context, body, participant=METADATA_TABLE, written=written, alive=alive, statuses=tuple(statuses)
    )
    return committed.instant


def _check_files_exist(instant: Instant, statuses: Iterable[WriteStatus], context: ActionContext) -> None:
    """Raises TakenOver when files of this run are not there as it has made them."""
    storage = context.meta.storage
    for status in statuses:
        path = status.stat.path
        info = storage.stat(path) if path is not None else None
        if info is None or info.size_bytes != status.stat.file_size_in_bytes:
            raise TakenOver(
                f"{storage.root}: {path} of {instant.action.value} {instant.requested_time} is not there any more: "
                f"another process considered this run dead and runs the plan itself. Nothing of this run is visible."
            )


def _give_up(
    heartbeat: Heartbeat,
    service: Service[PlanT, TaskT, RunT],
    instant: Instant,
    plan: PlanT,
    context: ActionContext,
    error: BaseException,
) -> None:
    """Take a failed run back to its plan. When that fails too, the next run does it."""
    with uninterrupted():
        try:
            try:
                if not isinstance(error, TakenOver):
                    _take_back_failed(service, instant, plan, context)
            finally:
                heartbeat.stop()  # not before: without it others would run the plan, too
        except Exception as second:
            time = instant.requested_time
            add_note(error, f"{time} could not be taken back yet ({second}); the next run of its plan will do it.")


def _take_back_failed(
    service: Service[PlanT, TaskT, RunT], instant: Instant, plan: PlanT, context: ActionContext
) -> None:
    with context.locked():
        found = context.meta.reload().timeline.find(instant.requested_time, instant.action)
        if found is not None and found.state is State.INFLIGHT:
            _take_back(service, found, plan, context)


def _take_back(service: Service[PlanT, TaskT, RunT], instant: Instant, plan: PlanT, context: ActionContext) -> None:
    """Delete what a run has made, then its inflight file. Hold the lock."""
    meta = context.meta
    service.delete_files(instant, plan, meta, keep=(), by_listing=True)
    delete_markers(meta.storage, instant.requested_time)
    to_plan(instant, meta)
