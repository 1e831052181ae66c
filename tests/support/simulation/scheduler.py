"""A scheduler of tasks, of which one runs at a time: threads that hand each other a baton.

Whatever a task does that others could see is a point (`Scheduler.point`): a call of the storage, of the lock, a look at
the clock. Time is simulated: it goes on by a millisecond at each point, and jumps when everybody waits. Without an
event a task goes on until it waits or ends. An event at a point, by its number, changes that:

    switch   another task goes on
    late     the task waits: the call, or its answer, comes late; its heartbeat beats on
    stall    its whole process waits, heartbeat included
    die      its process dies: from now on nothing that it does has an effect

So a run is a function of its events, and a failing one is shrunk by leaving events out.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Died", "Event", "Process", "Scheduler", "Stuck", "Task"]

POINTS_MAX = 60_000  # a run has some thousands; more is a task that goes round in circles
_REAL_S = 120.0  # of a run that does not end: a task waits outside the simulation


class Died(BaseException):
    """A process has died, or the run is over: its tasks end here."""


class Stuck(AssertionError):
    """Somebody waits for ever."""


@dataclass(frozen=True, slots=True)
class Event:
    """`value`: of a switch which of the others, counted from the one that ran; else milliseconds."""

    kind: Literal["switch", "late", "stall", "die"]
    value: int = 0

    def __str__(self) -> str:
        return self.kind + (f" {self.value}" if self.value else "")


@dataclass
class Process:
    """Tasks that die together."""

    name: str
    is_dead: bool = False
    stalled_until_ms: int = 0


@dataclass(eq=False)
class Task:
    """`is_daemon`: nobody waits for its end. `free`: what it waits for, besides the time; None: only for the time."""

    name: str
    process: Process
    work: Callable[[], object]
    is_daemon: bool = False
    wakes_ms: int = 0
    free: Callable[[], bool] | None = None
    is_over: bool = False
    result: object = None
    error: BaseException | None = None
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None


class Scheduler:
    """Runs tasks. `story`: what happened at the points with events, for people."""

    def __init__(self, events: Mapping[int, Event], start_ms: int, mortal: frozenset[str] = frozenset()) -> None:
        self.events, self.mortal = events, mortal
        self.now_ms, self.points = start_ms, 0
        self.tasks: list[Task] = []
        self.story: list[str] = []
        self.trace: list[str] = []  # all points
        self._local = threading.local()
        self._ended = threading.Event()
        self._is_over = False
        self._failure: BaseException | None = None

    def spawn(self, task: Task) -> Task:
        """Add a task; it runs from its time on."""
        self.tasks.append(task)
        return task

    def current(self) -> Task | None:
        """The task of this thread, None outside the simulation."""
        task: Task | None = getattr(self._local, "task", None)
        return task

    def run(self, first: int = 0) -> None:
        """Run all tasks, beginning with the given one; returns when they have ended. Raises Stuck."""
        self.tasks[first].wakes_ms = 0
        self._go_on_with(self.tasks[first])
        if not self._ended.wait(_REAL_S):
            faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
            self._failure = Stuck("A task waits outside the simulation.")
        self._is_over = True
        for task in self.tasks:
            while task.thread is not None and task.thread.is_alive():
                task.baton.release()
                task.thread.join(1)
        if self._failure is not None:
            raise self._failure

    def point(self, what: str) -> None:
        """A moment at which something may happen, in the task that runs."""
        task = self.current()
        if task is None:
            return
        self._check_alive(task)
        self.points += 1
        self.now_ms += 1
        if self.points > POINTS_MAX:
            self._fail(Stuck(f"{task.name} is at point {self.points:,}: {what}"))
            raise Died
        self.trace.append(f"{task.name}: {what}")
        event = self.events.get(self.points)
        if event is not None:
            self._happen(event, task, what)
        elif task.process.stalled_until_ms > self.now_ms:
            self._pass_on(task)

    def wait(self, until_ms: int, free: Callable[[], bool] | None = None) -> None:
        """Let the others go on until a time, or until `free` is true."""
        task = self.current()
        assert task is not None
        self._check_alive(task)
        task.wakes_ms, task.free = until_ms, free
        self._pass_on(task)
        task.wakes_ms, task.free = 0, None

    def _happen(self, event: Event, task: Task, what: str) -> None:
        said = f"point {self.points}, {task.name} at {what}: {event}"
        if event.kind == "switch":
            at = self.tasks.index(task)
            others = [one for one in (*self.tasks[at + 1 :], *self.tasks[:at]) if self._can_run(one)]
            if others:
                chosen = others[event.value % len(others)]
                self.story.append(f"{said}: {chosen.name} goes on")
                self._hand_to(chosen, task)
        elif event.kind == "die":
            if task.process.name in self.mortal:
                self.story.append(said)
                task.process.is_dead = True
                raise Died
        elif event.kind == "late":
            self.story.append(said)
            self.wait(self.now_ms + event.value)
        else:
            self.story.append(said)
            task.process.stalled_until_ms = self.now_ms + event.value
            self._pass_on(task)

    def _can_run(self, task: Task) -> bool:
        if task.is_over or task.process.stalled_until_ms > self.now_ms:
            return False
        return task.wakes_ms <= self.now_ms or (task.free is not None and task.free())

    def _next(self, after: Task) -> Task | None:
        """Who goes on when a task waits or has ended. The time jumps while nobody can."""
        if all(task.is_over for task in self.tasks if not task.is_daemon):
            return None
        at = self.tasks.index(after)
        order = (*self.tasks[at + 1 :], *self.tasks[: at + 1])
        for task in order:
            if self._can_run(task):
                return task
        waiting = [task for task in self.tasks if not task.is_over]
        self.now_ms = min(max(task.wakes_ms, task.process.stalled_until_ms) for task in waiting)
        return next(task for task in order if self._can_run(task))

    def _pass_on(self, task: Task) -> None:
        chosen = self._next(task)
        if chosen is None:
            self._ended.set()
            task.baton.acquire()
            raise Died
        self._hand_to(chosen, task)

    def _hand_to(self, chosen: Task, task: Task) -> None:
        if chosen is not task:
            self._go_on_with(chosen)
            task.baton.acquire()
        self._check_alive(task)

    def _check_alive(self, task: Task) -> None:
        if task.process.is_dead or self._is_over:
            raise Died

    def _go_on_with(self, task: Task) -> None:
        if task.thread is None:
            task.thread = threading.Thread(target=self._live, args=(task,), name=task.name, daemon=True)
            task.thread.start()
        else:
            task.baton.release()

    def _live(self, task: Task) -> None:
        self._local.task = task
        try:
            self._check_alive(task)
            task.result = task.work()
        except Died as error:
            task.error = error
        except BaseException as error:
            task.error = error
        task.is_over = True
        if self._is_over:
            return
        try:
            chosen = self._next(task)
        except BaseException as error:
            self._fail(error)
            return
        if chosen is None:
            self._ended.set()
        else:
            self._go_on_with(chosen)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._is_over = True
        self._ended.set()
