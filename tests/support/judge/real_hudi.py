"""The judge: real Apache Hudi in one long-lived process, asked by JSON lines.

It lives in the shared folder next to the project (`judge/README.md` there); `make judge` sets it up when it is missing.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

HUDI_OF_TABLE_VERSION = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}


class Judge:
    """Answers of real Hudi. Every method raises AssertionError with Hudi's own words when Hudi fails."""

    def __init__(self, command: Path, versions: tuple[str, ...]) -> None:
        subprocess.run([command.with_name("setup"), "--quiet", *versions], check=True, stdin=subprocess.DEVNULL)
        self._process = subprocess.Popen(
            [command, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the judge ended with exit code {self._process.wait()}"
        return json.loads(line)

    def rows(self, table: Path, hudi: str, **how: Any) -> list[dict[str, Any]]:
        """All rows that real Hudi of this version returns, meta columns included."""
        answer = self.ask(command="read", table=str(table), hudi=hudi, limit=0, **how)
        assert answer["ok"], answer
        return answer["rows"]

    def check(self, table: Path, hudi: str, **how: Any) -> dict[str, dict[str, Any]]:
        """Name → outcome of every step. Fails with the details of the steps that Hudi was not content with."""
        answer = self.ask(command="check", table=str(table), hudi=hudi, **how)
        steps = {step["step"]: step for step in answer.get("steps", [])}
        failed = {name: step["detail"] for name, step in steps.items() if not step["ok"]}
        assert answer["ok"], failed or answer
        return steps

    def write(self, table: Path, hudi: str, **spec: Any) -> dict[str, Any]:
        """Real Hudi writes."""
        answer = self.ask(command="write", path=str(table), version=hudi, **spec)
        assert answer["ok"], answer
        return answer

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=120)
