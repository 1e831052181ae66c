"""The command `pyhudi` as users call it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.support.source import ROOT

__all__ = ["Ran", "run_cli"]


@dataclass(frozen=True)
class Ran:
    """`code`: the exit code. `out`, `err`: what it wrote."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The answer of a run with `--json`."""
        return json.loads(self.out)


def run_cli(*words: object, stdin: str | bytes = b"", code: int | None = 0, **environment: str) -> Ran:
    """Run `pyhudi` with these words. `code`: the expected exit code, None for any."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    given = stdin.encode() if isinstance(stdin, str) else stdin
    command = [sys.executable, "-m", "pyhudi.cli", *map(str, words)]
    ended = subprocess.run(command, input=given, capture_output=True, env=variables, timeout=300, check=False)
    ran = Ran(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
    assert code is None or ran.code == code, f"exit code {ran.code}, expected {code}\n{ran.out}\n{ran.err}"
    return ran
