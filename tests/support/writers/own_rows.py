"""Processes that write rows with keys of their own to one table, without any option about other writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["begin", "said_by", "write_at_once"]

_PROJECT = Path(__file__).parents[3]
WRITER = """
import json, sys, warnings
import pyarrow as pa
from pyhudi import HudiError, write_hudi

path, name, writes, operation, table_type = sys.argv[1:]
told = []
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for number in range(int(writes)):
        row = pa.table({"id": [f"{name}-{number}"], "n": [number]})
        while True:
            try:
                write_hudi(path, row, operation, record_key="id", table_type=table_type, table_name="t")
                break
            except HudiError as error:
                assert error.retryable, repr(error)
                told.append(str(error))
print(json.dumps([told, [str(one.message) for one in warned]]))
"""


def begin(table: Path, name: str, writes: int, operation: str, table_type: str) -> subprocess.Popen[str]:
    """Start a process that writes rows with the keys `<name>-0`, `<name>-1`, ...; after retryable errors again."""
    command = [sys.executable, "-c", WRITER, str(table), name, str(writes), operation, table_type]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(_PROJECT)}
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def said_by(process: subprocess.Popen[str]) -> list[list[str]]:
    """Errors and warnings of a process that ends without another error."""
    out, error = process.communicate()
    assert process.returncode == 0, error[-2000:]
    said: list[list[str]] = json.loads(out)
    return said


def write_at_once(table: Path, writers: int, writes: int, operation: str, table_type: str) -> list[list[list[str]]]:
    """Errors and warnings of each process."""
    processes = [begin(table, f"w{n}", writes, operation, table_type) for n in range(writers)]
    return [said_by(process) for process in processes]
