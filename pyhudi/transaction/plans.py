"""Pending plans on the timeline: any process may run one, and a run that fails or dies leaves the plan as it was.

    request       <T>.<kind>.requested holds the plan                                   under the lock
    begin         files of a dead run deleted; heartbeat; <T>.<kind>.inflight           under the lock
    work          the caller's: it writes files, and ends with the commit
    take back     files of the run, its markers, then the inflight file                 under the lock
    drop          an abandoned plan leaves the timeline

A participant's plans (transaction/commit.py) run under the lock from beginning to end, so they need no heartbeat: they
take the same steps without `run`. Source: docs/formats/timeline.md, "Steps of an instant", "Bodies", "Rollback";
docs/formats/writers.md, "Table services and concurrent writers".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from pyhudi.errors import add_note
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, State
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.commit import TakenOver, after_commit
from pyhudi.transaction.context import ContextT, TableContext
from pyhudi.transaction.instants import start, to_plan
from pyhudi.transaction.undo import delete_files

__all__ = ["WaitingPlan", "run", "start_again", "take_back"]

PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")
AnyContext = TypeVar("AnyContext", bound=TableContext, contravariant=True)


class WaitingPlan(Protocol[AnyContext, PlanT]):
    """One kind of plan. All calls are made under the lock, with the table as it is then."""

    def find(self, instant_time: str, now: AnyContext) -> tuple[Instant, PlanT]:
        """The pending instant of that time, and its plan. Raises TableError when there is none of this kind."""
        ...

    def check_dead(self, instant: Instant, now: AnyContext) -> None:
        """Raise WriteConflict when the process that runs the plan is alive."""
        ...

    def check(self, instant: Instant, plan: PlanT, now: AnyContext) -> None:
        """Raise WriteConflict when the plan can't be run now."""
        ...

    def delete_files(self, instant: Instant, plan: PlanT, now: AnyContext) -> None:
        """Delete the files that runs of the plan have made."""
        ...


def run(
    kind: WaitingPlan[ContextT, PlanT],
    context: ContextT,
    instant_time: str,
    work: Callable[[Instant, PlanT], ResultT],
    *,
    beats: bool,
) -> ResultT:
    """Run a pending plan. After any error it is pending again, unless its instant is complete already.

    Args:    work: takes the inflight instant and completes it. beats: whether a heartbeat shows others that the run is
                 alive.
    Raises:  the errors of the kind of plan and of the work.
    """
    heartbeat = context.heartbeat(instant_time)
    begun: list[tuple[Instant, PlanT]] = []
    try:
        with context.locked():
            inflight, plan = _begin(kind, instant_time, heartbeat, beats, context.reloaded(), begun)
        result = work(inflight, plan)
        after_commit("ending its heartbeat", inflight, context, heartbeat.stop)
        return result
    except BaseException as error:
        for instant, plan in begun:
            _give_up(kind, instant, plan, heartbeat, context, error)
        raise


def _begin(
    kind: WaitingPlan[ContextT, PlanT],
    instant_time: str,
    heartbeat: Heartbeat,
    beats: bool,
    now: ContextT,
    begun: list[tuple[Instant, PlanT]],
) -> tuple[Instant, PlanT]:
    """Begin a run. `begun` gets the instant as soon as there may be something to take back."""
    instant, plan = kind.find(instant_time, now)
    if instant.state is State.INFLIGHT:
        kind.check_dead(instant, now)
        _take_back(kind, instant, plan, now)
    kind.check(instant, plan, now)
    with heartbeat.begun(beats):  # before others can see the run
        begun.append((instant.at(State.INFLIGHT), plan))
        return start(instant.at(State.REQUESTED), now.meta), plan


def _give_up(
    kind: WaitingPlan[ContextT, PlanT],
    inflight: Instant,
    plan: PlanT,
    heartbeat: Heartbeat,
    context: ContextT,
    error: BaseException,
) -> None:
    """Turn a failed run back into its plan. If that fails too, the next run does it."""
    with uninterrupted():
        try:
            try:
                if not isinstance(error, TakenOver):
                    with context.locked():
                        now = context.reloaded()
                        current = now.meta.timeline.find(inflight.requested_time, inflight.action)
                        if current is not None and current.state is State.INFLIGHT:
                            _take_back(kind, current, plan, now)
            finally:
                heartbeat.stop()  # not before: without it others would run the plan, too
        except Exception as second:
            time = inflight.requested_time
            add_note(error, f"{time} could not be taken back yet ({second}); the next run of its plan will do it.")


def _take_back(kind: WaitingPlan[ContextT, PlanT], inflight: Instant, plan: PlanT, now: ContextT) -> None:
    kind.delete_files(inflight, plan, now)
    take_back(inflight, now.meta)


def take_back(instant: Instant, meta: MetaClient, paths: Iterable[str] = ()) -> Instant:
    """Turn a pending plan back to requested, and delete the files of its runs. Hold the lock."""
    delete_files(paths, meta.storage)
    delete_markers(meta.storage, instant.requested_time)
    return to_plan(instant, meta) if instant.state is State.INFLIGHT else instant


def start_again(clean: Instant, meta: MetaClient) -> Instant:
    """Make a requested or dead clean inflight. The files of its plan are deleted from now on; after a crash the next
    run goes on where it stopped.
    """
    if clean.state is not State.REQUESTED:
        return clean
    repeats = not meta.config.format.has_empty_inflight_cleans
    return start(clean, meta, meta.reader.read_body(clean, State.REQUESTED) if repeats else b"")
