"""Trying changes out: each in a copy of the tree, against the tests that execute the line."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from queue import Queue

import pytest

from mutants import ROOT
from mutants.changes import Change

# A broken line may ask for any amount of memory; the largest of the fast tests reserves 4 GiB of addresses.
ADDRESSES_BYTES = 12 << 30
# How much longer than when it was recorded a run may take before it is stopped, in seconds of the processor.
PATIENCE = 5
STARTUP_S = 60.0  # a run's own time to import and collect
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", re.M)


class Outcome(Enum):
    """What became of a changed line."""

    NOTICED = "noticed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module, and the tests that shall notice it."""

    floor: str
    path: str
    change: Change
    before: str
    after: str
    tests: tuple[str, ...]
    seconds: float  # that these tests took when they were recorded

    @property
    def name(self) -> tuple[str, str, str]:
        """What tells it from others, wherever its line moves."""
        return self.path, self.before, self.after


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant, and the test that noticed it."""

    mutant: Mutant
    outcome: Outcome
    noticed_by: str = ""


class StaleMap(Exception):
    """The map names tests that are not there."""


class Copy:
    """A copy of the tree as it is, without what git ignores, and a process that runs pytest in it."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        for name in _tracked():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.tree / name)
        shared = ROOT.parent / "shared"
        if shared.is_dir():
            (folder / "shared").symlink_to(shared.resolve())
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "mutants.worker"],
            cwd=self.tree, env=os.environ | {"PYTHONPATH": str(self.tree), "PYHUDI_SAMPLE": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def pytest(self, tests: Sequence[str], limit_s: float, *, stop: bool = True) -> tuple[int, str]:
        """Exit code, that of a signal as a negative number; and what pytest printed."""
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        output = self.tree / "output"
        options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-q", "--tb=no", "--hypothesis-seed=0"]
        request = {
            "arguments": [*options, *(["-x"] if stop else []), f"--basetemp={self.tree}/basetemp", *tests],
            "output": str(output),
            "limit_s": math.ceil(limit_s),
            "addresses_bytes": ADDRESSES_BYTES,
        }
        self._worker.stdin.write(json.dumps(request) + "\n")
        self._worker.stdin.flush()
        return int(self._worker.stdout.readline()), output.read_text(errors="replace")

    def close(self) -> None:
        """End the process."""
        self._worker.communicate()


def _tracked() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@contextmanager
def copies(count: int) -> Iterator[list[Copy]]:
    """Copies of the tree, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-mutants-") as folder:
        made = [Copy(Path(folder) / str(number)) for number in range(count)]
        try:
            yield made
        finally:
            for copy in made:
                copy.close()


def run_all(mutants: Sequence[Mutant], processes: int) -> Iterator[Trial]:
    """Try mutants, as many at a time as there are processes, in their order."""
    with copies(min(processes, len(mutants))) as made, ThreadPoolExecutor(len(made)) as pool:
        free: Queue[Copy] = Queue()
        for copy in made:
            free.put(copy)

        def one(mutant: Mutant) -> Trial:
            copy = free.get()
            try:
                return run(mutant, copy)
            finally:
                free.put(copy)

        yield from pool.map(one, mutants)


def run(mutant: Mutant, copy: Copy) -> Trial:
    """Break the line in the copy, run the tests until one fails, and mend it."""
    if not mutant.tests:
        return Trial(mutant, Outcome.SURVIVED)
    module = copy.tree / mutant.path
    good = module.read_bytes()
    change = mutant.change
    module.write_bytes(good[: change.start] + change.new.encode() + good[change.end :])
    _forget_compiled(module)
    try:
        code, output = copy.pytest(mutant.tests, STARTUP_S + PATIENCE * mutant.seconds)
    finally:
        module.write_bytes(good)
        _forget_compiled(module)
    if code in (-signal.SIGALRM, -signal.SIGPROF):
        return Trial(mutant, Outcome.TIMED_OUT)
    if code == pytest.ExitCode.USAGE_ERROR and "not found:" in output:
        raise StaleMap(output[-2000:])
    failed = _FAILED.search(output)
    return Trial(mutant, Outcome.NOTICED if code else Outcome.SURVIVED, failed.group(1) if failed else "")


def _forget_compiled(module: Path) -> None:
    """Python would take it for that of the changed module, were size and second the same."""
    for compiled in module.parent.glob(f"__pycache__/{module.stem}.*.pyc"):
        compiled.unlink()


def failing(tests: Sequence[str]) -> list[str]:
    """Those of these tests that fail with no line broken."""
    with copies(1) as (copy,):
        _, output = copy.pytest(tests, 3600.0, stop=False)
    return _FAILED.findall(output)
