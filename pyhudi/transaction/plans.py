"""Pending plans on the timeline: any process may run one, and a run that fails or dies leaves the plan as it was.

    request       <T>.<kind>.requested holds the plan                                   under the lock
    begin         files of a dead run deleted; heartbeat; <T>.<kind>.inflight           under the lock
    work          the caller's: it writes files, and ends with the commit
    revert        files of the run, its markers, then the inflight file                 under the lock
    drop          an abandoned plan leaves the timeline

A participant's plans (transaction/commit.py) run under the lock from beginning to end, so they need no heartbeat: they
take the same steps without `Running`. Source: docs/formats/timeline.md, "Steps of an instant", "Bodies", "Rollback";
docs/formats/writers.md, "Table services and concurrent writers".
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from pyhudi.errors import add_note
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, State
from pyhudi.transaction.commit import TakenOver, after_commit
from pyhudi.transaction.context import ContextT, TableContext
from pyhudi.transaction.instants import start, to_plan
from pyhudi.transaction.undo import delete_files

__all__ = ["Running", "WaitingPlan", "revert_to_plan", "start_again"]

PlanT = TypeVar("PlanT")
AnyContext = TypeVar("AnyContext", bound=TableContext, contravariant=True)


class WaitingPlan(Protocol[AnyContext, PlanT]):
    """One kind of plan. All calls are made under the lock, with the current state of the table."""

    def find(self, instant_time: str, now: AnyContext) -> tuple[Instant, PlanT]:
        """Find the pending instant of that time, and its plan. Raises TableError if there is none of this kind."""
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


class Running(AbstractContextManager[tuple[Instant, PlanT]], Generic[ContextT, PlanT]):
    """The run of a pending plan: `with Running(...) as (inflight, plan):` around work that completes the instant.

    After any error the plan is pending again, unless its instant is already complete. A class, not a generator: an
    interrupt between `yield` and the block would leave the run inflight.
    """

    def __init__(self, kind: WaitingPlan[ContextT, PlanT], context: ContextT, instant_time: str, *, beats: bool):
        """`beats`: whether a heartbeat shows others that the run is alive."""
        self._kind, self._context, self._instant_time, self._beats = kind, context, instant_time, beats
        self._heartbeat = context.heartbeat(instant_time)
        self._run: tuple[Instant, PlanT] | None = None  # set as soon as there may be something to revert

    def __enter__(self) -> tuple[Instant, PlanT]:
        """Begin the run. Raises: the errors of the kind of plan."""
        try:
            with self._context.locked():
                return self._begin(self._context.reloaded())
        except BaseException as error:
            self._give_up(error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._give_up(error)
            return
        assert self._run is not None
        try:
            after_commit("ending its heartbeat", self._run[0], self._context, self._heartbeat.stop)
        except BaseException as late:
            self._give_up(late)
            raise

    def _begin(self, now: ContextT) -> tuple[Instant, PlanT]:
        instant, plan = self._kind.find(self._instant_time, now)
        if instant.state is State.INFLIGHT:
            self._kind.check_dead(instant, now)
            _revert_to_plan(self._kind, instant, plan, now)
        self._kind.check(instant, plan, now)
        with self._heartbeat.beating(self._beats):  # before others can see the run
            self._run = instant.at(State.INFLIGHT), plan
            return start(instant.at(State.REQUESTED), now.meta), plan

    def _give_up(self, error: BaseException) -> None:
        """Turn a failed run back into its plan. If that fails too, the next run does it."""
        if self._run is None:
            return
        (inflight, plan), context = self._run, self._context
        with uninterrupted():
            try:
                try:
                    if not isinstance(error, TakenOver):
                        with context.locked():
                            now = context.reloaded()
                            current = now.meta.timeline.find(inflight.requested_time, inflight.action)
                            if current is not None and current.state is State.INFLIGHT:
                                _revert_to_plan(self._kind, current, plan, now)
                finally:
                    self._heartbeat.stop()  # not before: without it others would run the plan, too
            except Exception as second:
                time = inflight.requested_time
                add_note(error, f"{time} could not be reverted yet ({second}); the next run of its plan will do it.")


def _revert_to_plan(kind: WaitingPlan[ContextT, PlanT], inflight: Instant, plan: PlanT, now: ContextT) -> None:
    kind.delete_files(inflight, plan, now)
    revert_to_plan(inflight, now.meta)


def revert_to_plan(instant: Instant, meta: MetaClient, paths: Iterable[str] = ()) -> Instant:
    """Turn a pending plan back to requested, and delete the files of its runs. Hold the lock."""
    delete_files(paths, meta.storage)
    delete_markers(meta.storage, instant.requested_time)
    return to_plan(instant, meta) if instant.state is State.INFLIGHT else instant


def start_again(clean: Instant, meta: MetaClient) -> Instant:
    """Make a requested or dead clean inflight. The run then deletes the files of its plan; after a crash the next run
    continues where it stopped.
    """
    if clean.state is not State.REQUESTED:
        return clean
    repeats = not meta.config.format.has_empty_inflight_cleans
    return start(clean, meta, meta.reader.read_body(clean, State.REQUESTED) if repeats else b"")
