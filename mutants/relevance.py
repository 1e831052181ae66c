"""Which of many tests speak of a line: those whose text has its words, the rarer the better.

The most specific tests of a line that every write executes say little of it: hundreds of tests come by, and the one
that looks is as long as the others. It has the words of the line, though: names of options, of fields, of errors.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, zip_longest

from mutants import ROOT

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SHORTEST = 4  # letters of a word that says something

Words = frozenset[str]


def words(text: str) -> Words:
    """The words of a text, parts of names too, in small letters and without the s of a plural."""
    return frozenset(word.lower().removesuffix("s") for word in _WORD.findall(text) if len(word) >= _SHORTEST)


def words_of_test(function: str) -> Words:
    """Those of a test function: `tests/room/test_file.py::test_name`."""
    path, _, name = function.partition("::")
    return _words_in(path).get(name.rpartition("::")[2], frozenset())


@cache
def _words_in(path: str) -> dict[str, Words]:
    text = (ROOT / path).read_text()
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    lines = text.splitlines()
    return {node.name: words("\n".join(lines[_first(node) - 1 : node.end_lineno])) for node in found}


def _first(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def interleaved(tests: Sequence[str], line: Words, words_of: Callable[[str], Words] = words_of_test) -> list[str]:
    """The tests in turn: the next as they are given, and the next of those that share the most words with the line.

    Of each test function one case comes before any other case of it.
    """
    functions = [test.partition("[")[0] for test in tests]
    shared = {function: words_of(function) & line for function in set(functions)}
    counts = Counter(chain.from_iterable(shared.values()))
    score = {f: sum(math.log(len(shared) / counts[word]) for word in common) for f, common in shared.items()}
    met: Counter[str] = Counter()
    ranked: list[tuple[int, float, int]] = []
    for place, function in enumerate(functions):
        met[function] += 1
        ranked.append((met[function], -score[function], place))
    by_words = (tests[place] for _, _, place in sorted(ranked))
    return [*dict.fromkeys(_in_turn(tests, by_words))]


def _in_turn(one: Sequence[str], other: Iterator[str]) -> Iterator[str]:
    for pair in zip_longest(one, other):
        yield from (test for test in pair if test is not None)
