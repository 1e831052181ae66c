"""Trying changes out: each in a copy of the tree, against the tests that execute the line."""

from __future__ import annotations

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

from mutants import ROOT
from mutants.changes import Change

# A broken line may ask for any amount of memory; the largest of the fast tests reserves 4 GiB of addresses.
ADDRESSES_KIB = 12 << 20
# How much longer than when it was recorded a run may take before it is stopped: the machine may be busier.
PATIENCE = 5
STARTUP_S = 60.0  # a run's own time to import and collect, on a busy machine
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


@contextmanager
def copies(count: int) -> Iterator[list[Path]]:
    """Copies of the tree as it is, without what git ignores; removed at the end."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    with tempfile.TemporaryDirectory(prefix="pyhudi-mutants-") as folder:
        shared = ROOT.parent / "shared"
        if shared.is_dir():
            (Path(folder) / "shared").symlink_to(shared.resolve())
        trees = [Path(folder) / f"tree{number}" for number in range(count)]
        for tree in trees:
            for name in names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
            warm_up = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", "tests"]
            subprocess.run(warm_up, cwd=tree, env=_environment(tree, compiling=True), capture_output=True, check=False)
        yield trees


def run_all(mutants: Sequence[Mutant], processes: int) -> Iterator[Trial]:
    """Try mutants, as many at a time as there are processes, in their order."""
    with copies(min(processes, len(mutants))) as trees, ThreadPoolExecutor(len(trees)) as pool:
        free: Queue[Path] = Queue()
        for tree in trees:
            free.put(tree)

        def one(mutant: Mutant) -> Trial:
            tree = free.get()
            try:
                return run(mutant, tree)
            finally:
                free.put(tree)

        yield from pool.map(one, mutants)


def run(mutant: Mutant, tree: Path) -> Trial:
    """Break the line in the copy, run the tests until one fails, and mend it."""
    if not mutant.tests:
        return Trial(mutant, Outcome.SURVIVED)
    module = tree / mutant.path
    good = module.read_bytes()
    change = mutant.change
    for compiled in module.parent.glob(f"__pycache__/{module.stem}.*.pyc"):
        compiled.unlink()  # Python would take it for the changed module's, were size and second the same
    module.write_bytes(good[: change.start] + change.new.encode() + good[change.end :])
    try:
        code, output = _pytest(tree, mutant.tests, STARTUP_S + PATIENCE * mutant.seconds)
    finally:
        module.write_bytes(good)
    if code is None:
        return Trial(mutant, Outcome.TIMED_OUT)
    if code == 4 and "not found:" in output:
        raise StaleMap(output[-2000:])
    failed = _FAILED.search(output)
    return Trial(mutant, Outcome.NOTICED if code else Outcome.SURVIVED, failed.group(1) if failed else "")


def failing(tests: Sequence[str]) -> list[str]:
    """Those of these tests that fail with no line broken."""
    with copies(1) as (tree,):
        _, output = _pytest(tree, tests, 3600.0, stop=False)
    return _FAILED.findall(output)


def _pytest(tree: Path, tests: Sequence[str], limit_s: float, stop: bool = True) -> tuple[int | None, str]:
    """Exit code, None after the time limit; and what pytest printed."""
    (tree / "chosen-tests").write_text("\n".join(tests))
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-q", "--hypothesis-seed=0", "--tb=no"]
    command = [sys.executable, "-m", "pytest", *options, *(["-x"] if stop else []), f"--basetemp={tree}/basetemp"]
    limited = ["/bin/sh", "-c", f'ulimit -v {ADDRESSES_KIB}; exec "$@"', "sh", *command, "@chosen-tests"]
    process = subprocess.Popen(
        limited, cwd=tree, env=_environment(tree), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, output


def _environment(tree: Path, compiling: bool = False) -> dict[str, str]:
    given = os.environ | {"PYTHONPATH": str(tree)}
    return given if compiling else given | {"PYTHONDONTWRITEBYTECODE": "1"}
