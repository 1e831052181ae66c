"""One quiet line about long work, and a log record when it is done.

    table/write.py, table/calls.py    `working("upsert", root)`: the block has a line, and its result is logged
    engine/local.py                   `parts(n)`: n tasks begin; each one that ends moves the line on
    spark/progress.py                 `remote_task_reporter()`: repeatedly reports how many of Spark's tasks have ended
    filegroup/write/base_file.py      `wrote(rows)`: rows have gone into a base file

The line appears after a second, on standard error, through rich. It needs rich (`pip install pyhudi[rich]`) and a
terminal or a notebook; PYHUDI_PROGRESS=1 or 0, or `show_progress`, decides otherwise. There is one line at a time: work
inside other work, or in another thread, moves the outer one. Spark's executors have no line. A line that can't be shown
never fails the work.

`description()` says the same in words, with the phase of the work: "hudi upsert trips: write files". Spark's UI shows
it with the jobs (`spark/job_description.py`).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "ENVIRONMENT",
    "Logged",
    "ReportTasks",
    "describing",
    "description",
    "in_phase",
    "parts",
    "remote_task_reporter",
    "show_progress",
    "working",
    "wrote",
]

ReportTasks: TypeAlias = Callable[[int, int], None]  # takes the numbers of ended tasks and of all tasks

ENVIRONMENT = "PYHUDI_PROGRESS"
_AFTER_S = 1.0
_log = logging.getLogger("pyhudi.table")
_shown: bool | None = None
_line: _Line | None = None
_taking = threading.Lock()


class Logged(Protocol):
    """The object that `working` yields. `result`: is logged if it is set."""

    result: object


def show_progress(shown: bool | None = True) -> None:
    """Show a line of progress while tables are written, compacted, clustered, rebuilt or upgraded.

    Args: shown: True or False for this process; None for the default, a line where standard error is a terminal and in
          notebooks. It needs rich: `pip install pyhudi[rich]`.
    """
    global _shown
    _shown = shown


@contextmanager
def working(what: str, table: str) -> Iterator[Logged]:
    """Show the line while the block runs, when it takes longer than a second; log the block's result at INFO.

    Args: what: one or two words, such as `upsert`. table: its root.
    """
    global _line
    line = _Line(what, table)
    with _taking:
        is_outer = _line is None
        if is_outer:
            _line = line
    try:
        if is_outer:
            line.begin()
        with describing(what, table):
            yield line
    finally:
        if is_outer:
            line.end()
            with _taking:
                _line = None
    if line.result is not None:
        _log.info("%s: %s", table, line.result)


_PHASES = {"schedule": "plan", "prepare": "find rows", "execute": "write files", "sweep": "delete files"}
_work: ContextVar[tuple[str, str]] = ContextVar("the work of this thread, and its phase", default=("", ""))


@contextmanager
def describing(what: str, table: str) -> Iterator[None]:
    """In the block, `description` says what is done to which table. `table`: its name, or its root."""
    name = table.rstrip("/").rpartition("/")[2]
    token = _work.set((f"hudi {what.lower().replace('_', ' ')} {name}", "read input"))
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def in_phase(phase: str) -> Iterator[None]:
    """In the block, the work is in this phase."""
    token = _work.set((_work.get()[0], _PHASES.get(phase, phase)))
    try:
        yield
    finally:
        _work.reset(token)


def description() -> str:
    """What this thread is doing to a table, "" for nothing."""
    work, phase = _work.get()
    return f"{work}: {phase}" if work else ""


def parts(count: int) -> Callable[[], None] | None:
    """Announce that tasks begin. Returns a function to call when one of them ends; None if no line is shown."""
    line = _line
    if line is None or not line.is_shown:
        return None
    line.expect(count)
    return line.advance


def remote_task_reporter() -> ReportTasks | None:
    """A function that reports the tasks of a job elsewhere, as often as they change; None if no line is shown."""
    line = _line
    return None if line is None or not line.is_shown else line.job()


def wrote(rows: int) -> None:
    """Add rows that were written to a base file."""
    if (line := _line) is not None:
        line.rows += rows


class _Line:
    """`rows`: written so far. `result`: see `Logged`."""

    def __init__(self, what: str, table: str) -> None:
        self.what, self.table = what, table
        self.rows = 0
        self.result: object = None
        self.is_shown = False
        self._done = self._expected = 0
        self._timer: threading.Timer | None = None
        self._display: Progress | None = None
        self._changing = threading.Lock()

    def begin(self) -> None:
        with suppress(Exception):  # standard error may be closed, or no thread may start
            self.is_shown = _is_wanted()
            if self.is_shown:
                self._timer = threading.Timer(_AFTER_S, self._appear)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._changing:
            self.is_shown = False
            display, self._display = self._display, None
        if display is not None:
            with suppress(Exception):
                display.stop()

    def expect(self, count: int) -> None:
        with self._changing:
            self._expected += count
        self._refresh()

    def advance(self) -> None:
        with self._changing:
            self._done += 1
        self._refresh()

    def job(self) -> ReportTasks:
        ended = expected = 0

        def report(done: int, tasks: int) -> None:
            nonlocal ended, expected
            with self._changing:
                self._done += done - ended
                self._expected += tasks - expected
                ended, expected = done, tasks
            self._refresh()

        return report

    def _appear(self) -> None:
        with suppress(Exception), self._changing:
            if self.is_shown:
                self._display = _display()
                self._display.add_task("", text="", total=None)
                self._display.start()
        self._refresh()

    def _refresh(self) -> None:
        with suppress(Exception), self._changing:
            if self._display is not None:
                total = self._expected if self._expected > 1 else None
                (task,) = self._display.tasks
                text = self._text(_AFTER_S + (task.elapsed or 0))
                self._display.update(task.id, total=total, completed=self._done, text=text)

    def _text(self, seconds: float) -> str:
        tasks = f" · {self._done:,} of {self._expected:,} tasks" if self._expected > 1 else ""
        rows = f" · {self.rows:,} rows, {self.rows / seconds:,.0f} a second" if self.rows else ""
        return f"{self.what} {self.table}{tasks}{rows}"


def _is_wanted() -> bool:
    said = {"0": False, "1": True}.get(os.environ.get(ENVIRONMENT, "").strip()) if _shown is None else _shown
    if said is None:
        said = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if not said:
        return False
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


def _display() -> Progress:
    """rich's line on standard error: a spinner, the text, a bar, the time so far, the time left. It goes at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = TextColumn("{task.fields[text]}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(20), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4)
