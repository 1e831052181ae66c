"""`python -m mutants.needless FOLDER`: the cases that `tests/support/sweeps/by_file.txt` should name, from a recording.

    PYHUDI_MUTANTS_RECORD=FOLDER PYHUDI_MUTANTS_WHOLE=1 pytest -p mutants.recorder -n 2 ... tests

A case is needless when it takes some time and the other cases that `make test` runs of its file execute every line of
PyHudi that it does. The dearest go first, and of each test the cheapest case stays. With `--together --seconds 0.9` the
cases of `long.txt`: all files of tests count as one.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """A line of PyHudi. `file`: the number that the recording has for its path."""

    file: int
    number: int


def needless(lines: Mapping[str, Iterable[Line]], seconds: Mapping[str, float], least_s: float) -> set[str]:
    """Cases that execute no line of their own. Args: lines: of each case, all of one file of tests."""
    executed = Counter(line for own in lines.values() for line in own)
    cases = Counter(test_of(case) for case in lines)
    found = set()
    for case in sorted(lines, key=lambda case: (-seconds[case], case)):
        if seconds[case] < least_s or cases[test_of(case)] == 1 or any(executed[line] == 1 for line in lines[case]):
            continue
        found.add(case)
        cases[test_of(case)] -= 1
        executed.subtract(lines[case])
    return found


def test_of(case: str) -> str:
    """The test of a case: its id without what is in brackets."""
    return case.partition("[")[0]


def recorded(folder: Path) -> tuple[dict[str, float], dict[str, list[Line]]]:
    """Seconds and lines of each case that passed, from all files of a recording."""
    seconds: dict[str, float] = {}
    for part in folder.glob("seconds*.json"):
        seconds |= json.loads(part.read_text())
    lines: dict[str, list[Line]] = defaultdict(list)
    files: dict[str, int] = {}
    for part in folder.glob("lines*"):
        with sqlite3.connect(part) as data:
            query = (
                "select context, path, numbits from line_bits"
                " join context on context.id = context_id join file on file.id = file_id"
            )
            for case, path, bits in data.execute(query):
                if case in seconds:
                    file = files.setdefault(path, len(files))
                    lines[case] += [Line(file, number) for number in _numbers(bits)]
    return seconds, lines


def _numbers(bits: bytes) -> Iterator[int]:
    for at, byte in enumerate(bits):
        yield from (at * 8 + bit for bit in range(8) if byte >> bit & 1)


def main() -> None:
    """Print the tests with needless cases, each with the cases that stay, as `by_file.txt` has them."""
    parser = argparse.ArgumentParser(prog="python -m mutants.needless", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a needless case, at least (default %(default)s)")
    parser.add_argument("--together", action="store_true", help="lines that cases of other files execute count, too")
    given = parser.parse_args()
    seconds, lines = recorded(given.folder)
    files: dict[str, dict[str, list[Line]]] = defaultdict(dict)
    for case, own in lines.items():
        files["" if given.together else case.partition("::")[0]][case] = own
    left = {case for own in files.values() for case in needless(own, seconds, given.seconds)}
    for test in sorted({test_of(case) for case in left}):
        print(test)
        for case in lines:
            if test_of(case) == test and case not in left:
                print(f"    {case.partition('[')[2].removesuffix(']')}")


if __name__ == "__main__":
    main()
