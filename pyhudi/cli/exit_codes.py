"""How a run ends. Source: docs/cli.md, "Exit codes"."""

from __future__ import annotations

import os
import sys

from pyhudi.errors import HudiError

__all__ = [
    "CONFLICT",
    "DONE",
    "ENDED_AFTER",
    "INTERRUPTED",
    "REFUSED",
    "TERMINATED",
    "USAGE",
    "WRONG",
    "code_of",
    "silence_output",
]

DONE = 0
REFUSED = 1
USAGE = 2
WRONG = 3
CONFLICT = 4
ENDED_AFTER = 5  # by a signal, after something was complete
INTERRUPTED = 130  # 128 + SIGINT
TERMINATED = 143  # 128 + SIGTERM


def code_of(error: BaseException) -> int:
    """The exit code of a run that ended with an error."""
    return CONFLICT if isinstance(error, HudiError) and error.retryable else REFUSED


def silence_output() -> None:
    """After the reader of standard output has gone (`| head`): Python writes to it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
