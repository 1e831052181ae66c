"""`python -m mutants.worker`, in a copy of the tree: runs pytest in children that have the libraries imported already.

Importing them takes longer than most tests do. A line of JSON comes in for each run, and its exit code goes out.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import NoReturn

# What tests and PyHudi import, nothing of the tree itself; no library that starts threads, which a fork would lose.
_IMPORTED = (
    "pytest", "hypothesis.strategies", "hypothesis.stateful", "numpy", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.fs", "pyarrow.orc", "pyarrow.parquet", "fastavro", "msgspec", "pyroaring", "xxhash", "isal",
)  # fmt: skip


def main() -> None:
    """Serve until the input ends."""
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(**json.loads(line))
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what its tests started
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(arguments: list[str], output: str, limit_s: int, addresses_bytes: int) -> NoReturn:
    """One run of pytest; one of two alarms ends it: `limit_s` of the processor, or ten times as much by the clock."""
    import pytest

    os.setsid()
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    resource.setrlimit(resource.RLIMIT_AS, (addresses_bytes, addresses_bytes))
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    signal.alarm(10 * limit_s)
    code = 70
    try:
        code = int(pytest.main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
