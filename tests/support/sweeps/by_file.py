"""Tests of which `make test` runs the cases that are named in two texts; `python -m mutants.needless` finds which.

`by_file.txt`: with the other tests of their file these execute every line of PyHudi that all cases of the file do.
Their cases are versions, types of tables, engines, tables of real Hudi, and what is alike in other ways.

`long.txt`: with all other tests these do. What is left out takes about a second or more each, and `make long` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["BY_FILE", "LONG"]


def _read(name: str) -> Mapping[str, tuple[str, ...]]:
    """Each test on a line of its own, the ids of its cases indented below it."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name(name).read_text().splitlines():
        if line.startswith(" "):
            found[next(reversed(found))].append(line.strip())
        else:
            found[line] = []
    return {test: tuple(cases) for test, cases in found.items()}


# Test → ids of the cases that are kept.
BY_FILE = _read("by_file.txt")
LONG = _read("long.txt")
