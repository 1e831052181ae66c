"""Which tests execute which lines of PyHudi: recorded once, and again for the test files that changed since.

Where a module changed, what was recorded moves with its lines.

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
from contextlib import closing
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

import coverage
from coverage.numbits import numbits_to_nums, nums_to_numbits

from mutants import ROOT
from mutants.reach import FLOORS
from mutants.recorder import CASES_VARIABLE, FOLDER_VARIABLE

FOLDER = ROOT / ".mutants"
# Rooms of fast tests. Left out: tests of the source itself, those that need Spark or servers, and those of concurrency,
# whose writers are processes of their own.
ROOMS = (
    *FLOORS, "contracts", "golden", "metadata", "faults", "queries", "view", "table", "locks", "java", "schema",
    "storage", "keygen", "model", "sql",
)  # fmt: skip
MARKS = "not spark and not judge and not slow and not sweep and not servers"
PIECE = 16  # files of tests that are recorded by one run
_LINES, _SECONDS, _FILES = FOLDER / "lines", FOLDER / "seconds.json", FOLDER / "files.json"


@dataclass(frozen=True)
class CoverageMap:
    """What was recorded. `seconds`: how long each test took; only tests that passed are in it."""

    seconds: Mapping[str, float]
    _found: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def tests_of(self, lines: Mapping[str, Iterable[int]]) -> list[str]:
        """The tests that execute any of these lines, the most specific first: those that execute the fewest lines.

        `lines`: path of a module → numbers. Of each test function one case comes before any other case of it.
        """
        found = [self._tests(path).get(line, ()) for path, numbers in lines.items() for line in numbers]
        tests = {test for some in found for test in some if test in self.seconds}
        ranks: dict[str, int] = {}
        ranked: list[tuple[int, int, str]] = []
        for test in sorted(tests, key=lambda name: (self._sizes.get(name, 0), name)):
            function = test.partition("[")[0]
            ranks[function] = ranks.get(function, 0) + 1
            ranked.append((ranks[function], len(ranked), test))
        return [test for _, _, test in sorted(ranked)]

    def executed(self, path: str) -> set[int]:
        """The lines of a module that any test executes."""
        return {line for line, tests in self._tests(path).items() if any(test in self.seconds for test in tests)}

    def _tests(self, path: str) -> Mapping[int, Sequence[str]]:
        """Number of a line → the tests that execute it."""
        if path not in self._found:
            self._found[path] = self._data.contexts_by_lineno(str(ROOT / path))
        return self._found[path]

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


def load(processes: int, *, cases: int = 0, unfinished: bool = False) -> CoverageMap:
    """The map of this tree, brought up to date: in pieces, so that a run that is broken off goes on where it was.

    Args: cases: most of a test function that are recorded, 0: all; unfinished: nothing more is recorded.
    """
    known: dict[str, str] = json.loads(_FILES.read_text()) if _FILES.exists() else {}
    now = _files()
    move_lines({p: (text, now.get(p, "")) for p, text in known.items() if _is_module(p) and text != now.get(p)})
    known = {path: held for path, held in known.items() if not _is_module(path) and now.get(path) == held}
    known |= {path: held for path, held in now.items() if _is_module(path)}
    _keep_only(known)
    _FILES.write_text(json.dumps(known))
    rest = () if unfinished else sorted(now.keys() - known.keys(), key=_in_order)
    for piece in (rest[first : first + PIECE] for first in range(0, len(rest), PIECE)):
        _record(piece, processes, cases)
        _FILES.write_text(json.dumps(known := known | {path: now[path] for path in piece}))
    return CoverageMap(json.loads(_SECONDS.read_text()))


def _files() -> dict[str, str]:
    """Path → text, of the modules; path → hash, of the files of tests."""
    modules = {_name(path): path.read_text() for path in (ROOT / "pyhudi").rglob("*.py")}
    tests = [path for room in ROOMS for path in (ROOT / "tests" / room).rglob("test_*.py")]
    return modules | {_name(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in tests}


def _in_order(name: str) -> tuple[int, str]:
    """Files of tests as `ROOMS` has their rooms: first those of these floors, which say most of them."""
    return ROOMS.index(name.split("/")[1]), name


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _is_module(name: str) -> bool:
    return name.startswith("pyhudi/")


def move_lines(texts: Mapping[str, tuple[str, str]]) -> None:
    """What was recorded of modules that changed counts for the lines as they are now: path → (text then, text now).

    Tests that executed a line execute what took its place and what was put in after it, or so it is supposed: too many
    tests are run rather than too few. Those that reach a changed module only now are not known; `--fresh` finds them.
    """
    if not texts or not _LINES.exists():
        return
    with closing(sqlite3.connect(_LINES)) as lines, lines:
        for path, (then, now) in texts.items():
            places = places_now(then, now)
            (file,) = lines.execute("select id from file where path = ?", (str(ROOT / path),)).fetchone() or (None,)
            query = "select context_id, numbits from line_bits where file_id = ?"
            for test, bits in lines.execute(query, (file,)).fetchall():
                moved = {at for line in numbits_to_nums(bits) for at in places.get(line, ())}
                row = (nums_to_numbits(moved), file, test)
                lines.execute("update line_bits set numbits = ? where file_id = ? and context_id = ?", row)


def places_now(then: str, now: str) -> Mapping[int, Sequence[int]]:
    """Number of a line as it was → where it is now, with what was put in after it; a removed one is nowhere."""
    old, new = then.splitlines(), now.splitlines()
    places: dict[int, Sequence[int]] = {}
    for kind, first, end, first_now, end_now in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            places |= {first + n + 1: [first_now + n + 1] for n in range(end - first)}
        elif kind == "insert" and first in places:
            places[first] = [*places[first], *range(first_now + 1, end_now + 1)]
        else:
            places |= {line + 1: range(first_now + 1, end_now + 1) for line in range(first, end)}
    return places


def _keep_only(known: Mapping[str, str]) -> None:
    """Forget the tests of other files; their lines stay recorded, and count no more."""
    seconds: dict[str, float] = json.loads(_SECONDS.read_text()) if _SECONDS.exists() else {}
    _SECONDS.parent.mkdir(exist_ok=True)
    _SECONDS.write_text(json.dumps({test: s for test, s in seconds.items() if test.partition("::")[0] in known}))


def forget() -> None:
    """Begin with nothing."""
    for file in (_LINES, _SECONDS, _FILES):
        file.unlink(missing_ok=True)


def _record(tests: Sequence[str], processes: int, cases: int) -> None:
    record = FOLDER / "record"
    record.mkdir(parents=True, exist_ok=True)
    print(f"recording which lines {len(tests)} files of tests execute", file=sys.stderr)
    command = [sys.executable, "-m", "pytest", "-p", "mutants.recorder", "-p", "no:cacheprovider", "-q", "-m", MARKS]
    given = os.environ | {FOLDER_VARIABLE: str(record), "PYHUDI_SAMPLE": "1"}  # what `make test` runs
    given |= {CASES_VARIABLE: str(cases)} if cases else {}
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
