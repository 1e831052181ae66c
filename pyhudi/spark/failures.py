"""Spark's Python workers: their errors, and their garbage collection.

A worker returns only the text of an exception, wrapped in stack traces of two languages. `spelled_out` encodes
a HudiError in that text, and `translated` restores the error with its original message.

`in_worker` surrounds every task: it encodes the task's errors, and excludes imported modules from garbage collection.
Source: tried on Spark 4.3, classic and Connect; daemon.py and worker.py of PySpark 3.5 to 4.3.
"""

from __future__ import annotations

import base64
import gc
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi import errors
from pyhudi.errors import HudiError, TaskFailed

__all__ = ["in_worker", "spelled_out", "translated"]


# Base64, because line ends and quotes of the message change in the traces.
_MARK = re.compile(r"<<pyhudi (\w+) ([A-Za-z0-9+/=]*)>>")
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_OTHER_VERSION = re.compile(r"PYTHON_VERSION_MISMATCH\] (Python in worker [^,]*)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*python[^"]*)"')
_WHICH_PYTHON = (
    'Where the workers are on this machine, write os.environ["PYSPARK_PYTHON"] = sys.executable before the session is '
    "made (in a Connect server's environment before it starts); on other machines install pyhudi and what it needs "
    "for a Python of this version, and give PYSPARK_PYTHON its path there."
)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


@contextmanager
def spelled_out() -> Iterator[None]:
    """Inside a worker: turn a HudiError into an exception whose text has its class and message."""
    try:
        yield
    except HudiError as error:
        message = base64.b64encode(str(error).encode()).decode()
        raise RuntimeError(f"{error} <<pyhudi {type(error).__name__} {message}>>") from error


@contextmanager
def translated() -> Iterator[None]:
    """Around a Spark action: raise an error of PyHudi's work with its original type.

    A HudiError is raised as its own class; any other exception of a Python worker as TaskFailed with the worker's
    message. Errors of Spark itself (analysis, missing columns, lost executors) pass unchanged. Ctrl-C is raised as
    such: PySpark cancels the jobs, and would raise the error of the cancelled job instead.
    """
    outer = sys.exc_info()[1]
    try:
        yield
    except Exception as error:
        interrupt = _interrupt_behind(error, outer)
        if interrupt is not None:
            raise interrupt from None
        translation = _translate(error)
        if translation is None:
            raise
        raise translation from error


def _interrupt_behind(error: BaseException, outer: BaseException | None) -> BaseException | None:
    """The Ctrl-C, or exit, whose handling raised the error; not one that was being handled before."""
    earlier = error.__context__
    while earlier is not None and earlier is not outer:
        if not isinstance(earlier, Exception):
            return earlier
        earlier = earlier.__context__
    return None


def _translate(error: Exception) -> HudiError | None:
    text = str(error)
    mark = _MARK.search(text)
    if mark is not None:
        kind = getattr(errors, mark[1], None)
        if isinstance(kind, type) and issubclass(kind, HudiError):
            return kind(base64.b64decode(mark[2]).decode())
    no_python = _NO_PYTHON.search(text)
    if no_python is not None:
        return TaskFailed(f"Spark's workers can't start their Python, {no_python[1]!r}. {_WHICH_PYTHON}")
    if type(error).__name__ != "PythonException":
        return None
    missing = _MISSING_MODULE.search(text)
    if missing is not None:
        return TaskFailed(f"The Python of Spark's workers has no module {missing[1]!r}. {_WHICH_PYTHON}")
    other_version = _OTHER_VERSION.search(text)
    if other_version is not None:
        return TaskFailed(f"{other_version[1]}. {_WHICH_PYTHON}")
    return TaskFailed(f"Work failed on an executor: {_last_message(text)}")


def _last_message(text: str) -> str:
    """The worker's exception in the trace: the text from the last line that is not part of a stack."""
    body = _SQLSTATE.sub("", text.split("\n\tat ")[0]).strip()
    lines = body.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(("  File ", "    ")):
            message = "\n".join(lines[index + 1 :]).strip()
            return message or body
    return body


_modules_kept = 0


@contextmanager
def in_worker() -> Iterator[None]:
    """Around the work of a task."""
    _keep_imports_out_of_collections()
    with spelled_out():
        yield


def _keep_imports_out_of_collections() -> None:
    """Spark's workers collect garbage after every task. Walking through all imports of PyArrow, pandas and PyHudi takes
    50 to 100 ms, more than the work of a small task. This excludes existing objects from later collections.

    Right after such a collection there is no garbage that could never be freed. It runs again if an earlier task has
    imported modules.
    """
    global _modules_kept
    if len(sys.modules) != _modules_kept:
        gc.freeze()
        _modules_kept = len(sys.modules)
