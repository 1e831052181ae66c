"""Which tests execute which lines of PyHudi: recorded once, and again for the test files that changed since.

Everything is kept in `.mutants/`, which git ignores.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import coverage

from mutants import ROOT
from mutants.recorder import FOLDER_VARIABLE

FOLDER = ROOT / ".mutants"
# Rooms of fast tests. Left out: tests of the source itself, those that need Spark or servers, and the sweeps of faults
# and concurrency, which take longer than all others together.
ROOMS = (
    "actions", "contracts", "filegroup", "formats", "golden", "index", "java", "keygen", "locks", "merge", "metadata",
    "model", "queries", "schema", "services", "sql", "storage", "table", "timeline", "view",
)  # fmt: skip
MARKS = "not spark and not judge and not slow and not sweep and not servers"
_LINES, _SECONDS, _FILES = FOLDER / "lines", FOLDER / "seconds.json", FOLDER / "files.json"


@dataclass(frozen=True)
class CoverageMap:
    """What was recorded. `seconds`: how long each test took; only tests that passed are in it."""

    seconds: Mapping[str, float]
    _found: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def tests_of(self, path: str, lines: Iterable[int]) -> list[str]:
        """The tests that execute any of these lines, the most specific first: those that execute the fewest lines.

        Of each test function one case comes before any other case of it.
        """
        if path not in self._found:
            self._found[path] = self._data.contexts_by_lineno(str(ROOT / path))
        of_line = self._found[path]
        tests = {test for line in lines for test in of_line.get(line, ()) if test in self.seconds}
        ranks: dict[str, int] = {}
        ranked: list[tuple[int, int, str]] = []
        for test in sorted(tests, key=lambda name: (self._sizes.get(name, 0), name)):
            function = test.partition("[")[0]
            ranks[function] = ranks.get(function, 0) + 1
            ranked.append((ranks[function], len(ranked), test))
        return [test for _, _, test in sorted(ranked)]

    def executed(self, path: str) -> set[int]:
        """The lines of a module that any test executes."""
        self.tests_of(path, ())
        return {line for line, tests in self._found[path].items() if any(test in self.seconds for test in tests)}

    @cached_property
    def _data(self) -> coverage.CoverageData:
        data = coverage.CoverageData(str(_LINES))
        data.read()
        return data

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """How many lines each test executes."""
        sizes: dict[str, int] = {}
        with sqlite3.connect(_LINES) as lines:
            query = "select context, numbits from line_bits join context on context.id = context_id"
            for test, bits in lines.execute(query):
                sizes[test] = sizes.get(test, 0) + int.from_bytes(bits, "little").bit_count()
        return sizes


def load(processes: int) -> CoverageMap:
    """The map of this tree: made anew when a module changed, and for those test files that changed."""
    known: dict[str, str] = json.loads(_FILES.read_text()) if _FILES.exists() else {}
    now = _fingerprints()
    sources = {name for name in known.keys() | now.keys() if name.startswith("pyhudi/")}
    if any(known.get(name) != now.get(name) for name in sources):
        for file in (_LINES, _SECONDS, _FILES):
            file.unlink(missing_ok=True)
        _record([f"tests/{room}" for room in ROOMS], processes)
    else:
        changed = [name for name in now.keys() - sources if known.get(name) != now[name]]
        old = [name for name in known.keys() - sources if known.get(name) != now.get(name)]
        if changed or old:
            _keep_but(old)
            _record(sorted(changed), processes)
    _FILES.write_text(json.dumps(now))
    return CoverageMap(json.loads(_SECONDS.read_text()))


def _fingerprints() -> dict[str, str]:
    """Path → hash, of the modules and of the files of tests."""
    tests = [path for room in ROOMS for path in (ROOT / "tests" / room).rglob("test_*.py")]
    paths = [*(ROOT / "pyhudi").rglob("*.py"), *tests]
    return {p.relative_to(ROOT).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def _keep_but(test_files: Sequence[str]) -> None:
    """Forget the tests of these files; their lines stay recorded, and count no more."""
    seconds: dict[str, float] = json.loads(_SECONDS.read_text())
    kept = {test: took for test, took in seconds.items() if test.partition("::")[0] not in test_files}
    _SECONDS.write_text(json.dumps(kept))


def _record(tests: Sequence[str], processes: int) -> None:
    if not tests:
        return
    record = FOLDER / "record"
    record.mkdir(parents=True, exist_ok=True)
    print(f"recording which lines {len(tests)} folders or files of tests execute", file=sys.stderr)
    command = [sys.executable, "-m", "pytest", "-p", "mutants.recorder", "-p", "no:cacheprovider", "-q", "-m", MARKS]
    given = os.environ | {FOLDER_VARIABLE: str(record), "PYHUDI_SAMPLE": "1"}  # what `make test` runs
    subprocess.run([*command, "-n", str(processes), "--dist", "worksteal", *tests], cwd=ROOT, env=given, check=False)
    merge_records(record)


def merge_records(record: Path) -> None:
    """Add what the processes of one run recorded to the map."""
    seconds: dict[str, float] = json.loads(_SECONDS.read_text()) if _SECONDS.exists() else {}
    for part in record.glob("seconds.*.json"):
        seconds |= json.loads(part.read_text())
        part.unlink()
    total = coverage.Coverage(data_file=str(_LINES), config_file=False)
    total.load()  # else combining begins with nothing
    total.combine([str(part) for part in record.glob("lines.*")], strict=True)
    total.save()
    _SECONDS.write_text(json.dumps(seconds))
