"""Tests of which `make test` runs the cases that `by_file.txt` names: with the other tests of their file these execute
every line of PyHudi that all cases of the file do.

Their cases are versions, types of tables, engines, tables of real Hudi, and what is alike in other ways. Which stay was
recorded and found by `python -m mutants.needless`: the dearest that adds no line goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["BY_FILE"]


def _read(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Each test on a line of its own, the ids of its cases indented below it."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            found[next(reversed(found))].append(line.strip())
        else:
            found[line] = []
    return {test: tuple(cases) for test, cases in found.items()}


# Test → ids of the cases that are kept.
BY_FILE = _read(Path(__file__).with_suffix(".txt"))
