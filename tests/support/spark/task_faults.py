"""Faults in the tasks of a cluster, at the moments when they announce a file, and when they have done their work.

A fault waits as a file in the folder that `FAULTS` names in the environment; the first task that comes to its moment
takes it away. The workers of a cluster load this module when they start (`sitecustomize`), a driver arms the faults.

    kill-announced, kill-done    the executor of the task ends by kill -9, and the task with it
    late-before, late-announced  the task goes on, before or after its marker, when `let_go` is called: a straggler
                                 whose copy was faster, or whose executor the driver takes for lost
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["FAULTS", "SITE", "arm", "install", "is_armed", "late_task_ended", "let_go"]

FAULTS = "PYHUDI_TASK_FAULTS"
SITE = "from tests.support.spark import task_faults\ntask_faults.install()\n"
_GO = "go"
_LATE_ENDED = "late-ended"
_PATIENCE_S = 120


def _folder() -> Path:
    return Path(os.environ[FAULTS])


# ---- in the driver ---------------------------------------------------------------------------------------------------


def arm(fault: str) -> None:
    for left in _folder().iterdir():
        left.unlink(missing_ok=True)
    (_folder() / fault).touch()


def is_armed(fault: str) -> bool:
    """Has no task come to its moment yet?"""
    return (_folder() / fault).exists()


def let_go() -> None:
    """Let the late task go on, and wait until it has ended."""
    (_folder() / _GO).touch()
    _wait(lambda: late_task_ended() is not None)


def late_task_ended() -> str | None:
    """How the late task ended: its error, or "no error"; None while it runs."""
    try:
        return (_folder() / _LATE_ENDED).read_text() or None
    except FileNotFoundError:
        return None


# ---- in a worker -----------------------------------------------------------------------------------------------------

_is_late = False  # this process runs the late task


def install() -> None:
    from pyhudi.filegroup.write.spec import WriteSpec
    from pyhudi.spark import tasks

    kinds: tuple[Any, ...] = (tasks.StreamTask, tasks.GroupTask, tasks.FanOutTask, tasks.PickledTasks)
    for kind in kinds:
        kind.__call__ = _with_faults(kind.__call__)
    announce = WriteSpec.announce

    def announced(self: WriteSpec, path: str, io_type: str) -> None:
        _be_late("late-before")
        announce(self, path, io_type)
        _be_late("late-announced")
        if _take("kill-announced"):
            _kill_executor()

    WriteSpec.announce = announced  # type: ignore[method-assign]


def _with_faults(call: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def run(self: Any, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from call(self, batches)
        except BaseException as error:
            _note(repr(error))
            raise
        _note("no error")
        if _take("kill-done"):
            _kill_executor()

    return run


def _note(end: str) -> None:
    global _is_late
    if _is_late:
        _is_late = False  # the worker may run other tasks
        (_folder() / _LATE_ENDED).write_text(end)


def _take(fault: str) -> bool:
    try:
        (_folder() / fault).unlink()
    except FileNotFoundError:
        return False
    return True


def _be_late(fault: str) -> None:
    global _is_late
    if _take(fault):
        _is_late = True
        _wait(lambda: (_folder() / _GO).exists())


def _kill_executor() -> None:
    """The JVM above the daemon that has forked this worker."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    os.kill(int(status.partition("PPid:")[2].split()[0]), signal.SIGKILL)
    os._exit(1)


def _wait(is_over: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not is_over():
        if time.monotonic() > deadline_s:
            raise AssertionError("the other side did not come")
        time.sleep(0.02)
