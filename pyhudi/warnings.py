"""Warnings that point at the caller's line, however deep in the package they are issued."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

from pyhudi import redaction

__all__ = ["collected_warnings", "variable_of_caller", "warn_caller"]

_PACKAGES = Path(__file__).parent.parent
_OWN_FOLDERS = tuple(f"{_PACKAGES / name}{os.sep}" for name in ("pyhudi", "pyspark_hudi"))


_collector: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("collected_warnings", default=None)


@contextmanager
def collected_warnings(into: list[tuple[str, type[Warning]]]) -> Iterator[None]:
    """Collect the warnings of one of our threads, which has no caller, so that another thread can issue them."""
    token = _collector.set(into)
    try:
        yield
    finally:
        _collector.reset(token)


_messages_given_once: set[str] = set()


def warn_caller(message: str, category: type[Warning] = UserWarning, *, once: bool = False) -> None:
    """Warn in the name of the first caller outside this package; for quoted text see `redaction.message`.

    Args: once: issue the message once per process, whichever line calls. Python's own filter works per line, and each
          cell of a notebook has its own lines.
    """
    collector = _collector.get()
    if collector is not None:
        collector.append((message, category))
        return
    if once:
        if message in _messages_given_once:
            return
        _messages_given_once.add(message)
    warnings.warn(redaction.message(message), category, stacklevel=_caller()[0] - 1)


def variable_of_caller(name: str) -> object:
    """Return the local, else global, variable of this name in the first caller outside this package; None if absent."""
    frame = _caller()[1]
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _caller() -> tuple[int, FrameType]:
    """Return the first frame outside this package, and how many frames are above it, this function's included."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_FOLDERS):
        level, frame = level + 1, frame.f_back
    return level, frame
