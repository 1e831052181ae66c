"""How many tasks of Spark's jobs have ended, for the line about long work (`progress_line`).

A Connect session tells it to a handler, every two seconds. On a classic session a thread asks the status tracker for
the stages that came since the job began; jobs of other threads are counted, too, as the line counts their work
elsewhere. Nothing is asked while no line is shown, and what can't be asked is not shown.
Source: PySpark's reference, `SparkSession.registerProgressHandler`, `StatusTracker`; tried on Spark 4.3.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import SparkSession

from pyhudi.progress_line import Told, tasks_elsewhere
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect

if TYPE_CHECKING:
    from pyspark import StatusTracker

__all__ = ["tasks_shown"]

_ASKED_EVERY_S = 0.5


class _Stage(Protocol):
    """A stage as Connect tells it."""

    num_tasks: int
    num_completed_tasks: int


@contextmanager
def tasks_shown(spark: SparkSession) -> Iterator[None]:
    """While the block waits for jobs of a session, show how many of their tasks have ended."""
    told = tasks_elsewhere()
    if told is None:
        yield
    elif is_on_connect(spark):
        with _told_by_connect(spark, told):
            yield
    else:
        with _told_by_tracker(told):
            yield


@contextmanager
def _told_by_connect(spark: SparkSession, told: Told) -> Iterator[None]:
    if not capabilities.PRESENT.tells_progress:
        yield
        return
    waiting = threading.get_ident()

    def handler(stages: Iterable[_Stage] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        known = list(stages or ())
        if known and threading.get_ident() == waiting:  # the session's handlers hear of queries of other threads
            told(sum(stage.num_completed_tasks for stage in known), sum(stage.num_tasks for stage in known))

    spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # a function does
    try:
        yield
    finally:
        with suppress(ValueError):  # somebody cleared the handlers
            spark.removeProgressHandler(handler)  # type: ignore[arg-type]


@contextmanager
def _told_by_tracker(told: Told) -> Iterator[None]:
    from pyspark import SparkContext  # a PySpark that is a client alone has none

    tracker = SparkContext.getOrCreate().statusTracker()
    others = frozenset(tracker.getActiveStageIds())  # before the job begins: its stages are the ones that come now
    over = threading.Event()
    asking = threading.Thread(target=_ask, args=(tracker, others, told, over), daemon=True, name="pyhudi progress")
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join(_ASKED_EVERY_S)


def _ask(tracker: StatusTracker, others: frozenset[int], told: Told, over: threading.Event) -> None:
    """Ask until it is over. A stage that has ended is not asked for again."""
    stages: dict[int, tuple[int, int]] = {}  # id → tasks that have ended, tasks
    with suppress(Exception):  # a session that has ended, a gateway that is gone: the job says so, not the line
        while not over.wait(_ASKED_EVERY_S):
            active = set(tracker.getActiveStageIds()) - others
            for ended in stages.keys() - active:
                stages[ended] = (stages[ended][1], stages[ended][1])
            for number in active:
                stage = tracker.getStageInfo(number)
                if stage is not None:
                    stages[number] = (stage.numCompletedTasks, stage.numTasks)
            told(sum(done for done, _ in stages.values()), sum(tasks for _, tasks in stages.values()))
