"""The command `pyhudi` as users call it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.support.source import ROOT

__all__ = ["Ran", "command_lines", "run_cli"]


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


def command_lines() -> list[str]:
    """The lines of `pyhudi` that README.md and docs/cli.md begin with; their tables are in ./rides and ./lake/rides."""
    readme = (ROOT / "README.md").read_text().partition("On the command line")[2].partition("\n\n")[0]
    page = (ROOT / "docs" / "cli.md").read_text().partition("```\n")[2].partition("```")[0]
    lines = [*re.findall(r"`(pyhudi [^`]+)`", readme), *re.findall(r"^pyhudi .*$", page, re.M)]
    return [line.replace("/tmp", ".").replace("/lake", "./lake") for line in lines]


def run_cli(*words: object, stdin: str | bytes = b"", code: int | None = 0, **environment: str) -> Ran:
    """Run `pyhudi` with these words. `code`: the expected exit code, None for any."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    given = stdin.encode() if isinstance(stdin, str) else stdin
    command = [sys.executable, "-m", "pyhudi.cli", *map(str, words)]
    ended = subprocess.run(command, input=given, capture_output=True, env=variables, timeout=300, check=False)
    ran = Ran(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
    assert code is None or ran.code == code, f"exit code {ran.code}, expected {code}\n{ran.out}\n{ran.err}"
    return ran
