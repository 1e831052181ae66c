"""Processes with names in one Hive metastore, a Derby database of a folder: real Hudi's, and ours.

Derby has one process at a time. Spark 3.5 brings Derby 10.14 and Spark 4 a newer one, which opens a database of the
older one and leaves it readable for that; so the first process of a folder is real Hudi's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.judge.hudi_on_s3 import judges_bundle, judges_python
from tests.support.source import ROOT

__all__ = ["NamesOfHudi", "NamesOfOurs", "described", "properties"]

_SCRIPT = Path(__file__).with_name("hive_names.py")
_FOREIGN = ("SPARK_", "PYSPARK_", "PYTHON", "HADOOP_", "YARN_", "VIRTUAL_ENV")


class _Names:
    """A process that runs statements; a context."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path) -> None:
        self._command, self._env, self._log = command, env, log

    def __enter__(self) -> _Names:
        pipe = subprocess.PIPE
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=self._env, cwd=self._log.parent
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=300)

    def ask(self, text: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"sql": text}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the process ended with exit code {self._process.wait()}; see {self._log}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def sql(self, text: str) -> list[list[str]]:
        """The rows that a statement gives, as texts, sorted."""
        answer = self.ask(text)
        assert answer["ok"], f"{text}\n{answer['error']}"
        return sorted(answer["rows"])


class NamesOfHudi(_Names):
    """Real Hudi on Spark 3.5."""

    def __init__(self, folder: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        python = str(judges_python())
        env = {**kept, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
        super().__init__([python, str(_SCRIPT), str(folder), str(judges_bundle())], env, folder / "log")


class NamesOfOurs(_Names):
    """PyHudi on the Spark of the tests, a new process each time."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
        super().__init__([sys.executable, str(_SCRIPT), str(folder)], env, folder / "log")


def described(names: _Names, table: str) -> dict[str, str]:
    """What DESCRIBE TABLE EXTENDED says: columns and their types, and all that comes after them."""
    return {row[0]: row[1] for row in names.sql(f"DESCRIBE TABLE EXTENDED {table}") if row[0]}


def properties(entry: dict[str, str]) -> set[str]:
    """The properties in what DESCRIBE TABLE EXTENDED says."""
    return set(entry["Table Properties"].strip("[]").split(", "))
