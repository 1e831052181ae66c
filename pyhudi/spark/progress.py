"""The number of ended tasks of Spark's jobs, for the line about long work (`progress_line`).

A Connect session reports it to a handler, every two seconds. On a classic session a thread polls the status tracker for
the stages that started since the job began; jobs of other threads are counted, too, as the line counts their work
elsewhere. Nothing is polled while no line is shown, and unavailable numbers are not shown.
Source: PySpark's reference, `SparkSession.registerProgressHandler`, `StatusTracker`; tried on Spark 4.3.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import SparkSession

from pyhudi.progress_line import ReportTasks, remote_task_reporter
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect

if TYPE_CHECKING:
    from pyspark import StatusTracker

__all__ = ["tasks_shown"]

_POLL_S = 0.5


class _Stage(Protocol):
    """A stage as Connect reports it."""

    num_tasks: int
    num_completed_tasks: int


@contextmanager
def tasks_shown(spark: SparkSession) -> Iterator[None]:
    """While the block waits for jobs of a session, show how many of their tasks have ended."""
    report = remote_task_reporter()
    if report is None:
        yield
    elif is_on_connect(spark):
        with _reported_by_connect(spark, report):
            yield
    else:
        with _reported_by_tracker(report):
            yield


@contextmanager
def _reported_by_connect(spark: SparkSession, report: ReportTasks) -> Iterator[None]:
    if not capabilities.PRESENT.tells_progress:
        yield
        return
    caller = threading.get_ident()

    def handler(stages: Iterable[_Stage] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        stage_list = list(stages or ())
        if (
            stage_list and threading.get_ident() == caller
        ):  # the session's handlers are called for queries of other threads, too
            report(sum(stage.num_completed_tasks for stage in stage_list), sum(stage.num_tasks for stage in stage_list))

    spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # a function does
    try:
        yield
    finally:
        with suppress(ValueError):  # the handlers may have been cleared
            spark.removeProgressHandler(handler)  # type: ignore[arg-type]


@contextmanager
def _reported_by_tracker(report: ReportTasks) -> Iterator[None]:
    from pyspark import SparkContext  # a client-only PySpark has none

    tracker = SparkContext.getOrCreate().statusTracker()
    others = frozenset(tracker.getActiveStageIds())  # taken before the job begins: its stages come later
    over = threading.Event()
    poller = threading.Thread(target=_poll, args=(tracker, others, report, over), daemon=True, name="pyhudi progress")
    poller.start()
    try:
        yield
    finally:
        over.set()
        poller.join(_POLL_S)


def _poll(tracker: StatusTracker, others: frozenset[int], report: ReportTasks, over: threading.Event) -> None:
    """Poll until the event is set. A stage that has ended is not polled again."""
    stages: dict[int, tuple[int, int]] = {}  # id → tasks that have ended, tasks
    with suppress(Exception):  # the session or gateway may have ended: the job reports it, not the line
        while not over.wait(_POLL_S):
            active = set(tracker.getActiveStageIds()) - others
            for ended in stages.keys() - active:
                stages[ended] = (stages[ended][1], stages[ended][1])
            for number in active:
                stage = tracker.getStageInfo(number)
                if stage is not None:
                    stages[number] = (stage.numCompletedTasks, stage.numTasks)
            report(sum(done for done, _ in stages.values()), sum(tasks for _, tasks in stages.values()))
