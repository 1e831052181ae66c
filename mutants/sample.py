"""Which lines are broken: drawn by a seed, the same number on every floor, one change for each line."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mutants import ROOT
from mutants.changes import Change, Source
from mutants.reach import lines_that_count, users
from mutants.relevance import interleaved, words
from mutants.trials import Mutant

# Limits are constants with MAX in their names; a test of the source compares each with its row in SECURITY.md.
LIMITS_TEST = "tests/house/test_security.py::test_every_limit_on_the_page_is_in_the_code_with_this_value"

if TYPE_CHECKING:
    from mutants.coverage_map import CoverageMap


def draw(floors: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, str, Source, Change]]:
    """(floor, path, module, change) of `count` lines, spread over the floors as evenly as it goes.

    More lines with the same seed begin with the same lines.
    """
    for number, floor in enumerate(floors):
        wanted = count // len(floors) + (number < count % len(floors))
        chance = random.Random(f"{seed} {floor}")
        lines = list(_lines(floor))
        chance.shuffle(lines)
        drawn = 0
        for path, source, line in lines:
            if drawn == wanted:
                break
            choices = [change for change in source.changes if change.line == line]
            # The seed and the line say the change, whatever other lines there are.
            random.Random(f"{seed} {path} {line}").shuffle(choices)
            chosen = next((change for change in choices if _can_be_tried(path, source, change)), None)
            if chosen is not None:
                drawn += 1
                yield floor, path, source, chosen


def _can_be_tried(path: str, source: Source, change: Change) -> bool:
    """Not a constant that no function of these floors uses: what the others execute is not known here."""
    return bool(not change.name or users(path, change.name)) and source.compiles(change)


def _lines(floor: str) -> Iterator[tuple[str, Source, int]]:
    """The lines of a floor that can be broken."""
    for file in sorted((ROOT / "pyhudi" / floor).rglob("*.py")):
        source = Source(file.read_bytes())
        for line in sorted({change.line for change in source.changes}):
            yield file.relative_to(ROOT).as_posix(), source, line


def mutant(
    floor: str, path: str, source: Source, change: Change, known: CoverageMap, tests_max: int, seconds_max: float
) -> Mutant:
    """A mutant with the tests that shall notice it: in turn the most specific ones and those that have its words, as
    many as the limits allow.
    """
    before, after = source.before_and_after(change)
    executed = known.tests_of(lines_that_count(path, change, known.executed(path)))
    tests = interleaved(executed, words(f"{path} {_function_of(source, change)} {before}"))
    of_source = (LIMITS_TEST,) if "MAX" in change.name else ()
    chosen: list[str] = []
    took = 0.0
    for test in tests:
        # A long one gives way to those after it that are short: several of them notice more.
        if len(chosen) < tests_max and took + known.seconds[test] <= seconds_max:
            chosen.append(test)
            took += known.seconds[test]
    if not chosen and tests:
        chosen, took = tests[:1], known.seconds[tests[0]]
    return Mutant(floor, path, change, before, after, (*of_source, *chosen), took)


def _function_of(source: Source, change: Change) -> str:
    """The name of the function that a change is in."""
    functions = [node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno <= change.line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno).name if around else ""
