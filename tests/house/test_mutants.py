"""Lines are broken as docs/contributing/mutants.md says: one meaningful change each, the same for a seed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mutants import ROOT
from mutants.changes import Source
from mutants.coverage_map import places_now
from mutants.relevance import interleaved, words, words_of_test
from mutants.report import judged, share, table
from mutants.sample import FLOORS, draw, mutant
from mutants.trials import Mutant, Outcome, Trial

PATH = "pyhudi/merge/some.py"


def lines_after(body: str, returns: str = "object") -> set[str]:
    """What the line of a function may become."""
    source = Source(f"def f(a, b, c) -> {returns}:\n    {body}\n".encode())
    return {source.before_and_after(change)[1] for change in source.changes if source.compiles(change)}


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a is not b", {"x = a is b"}),
        ("x = a not in (b)", {"x = a in (b)"}),
        ("x = a and (b or c)", {"x = a or (b or c)", "x = a and (b and c)"}),
        ("x = not a", {"x = (a)"}),
        ("x = a[1:]", {"x = a[2:]", "x = a[0:]"}),
        ("x = a - b", {"x = a + b"}),
        ("x = b if a else c", {"x = b if not (a) else c"}),
        ("x = [b for b in a if b]", {"x = [b for b in a if not (b)]"}),
        ("x = a(b, c=c)", {"x = a(b, )"}),
        ("x = max(a, b)", {"x = min(a, b)"}),
        ("x = len(a)", {"x = (len(a) + 1)"}),
        ("a(b)", {"pass"}),
        ("a.x = b", {"pass"}),
        ("a += b", {"pass"}),
        ("raise ValueError('a < b', 1)", {"pass"}),
        ("x = 'key'", {"x = 'key~'"}),
        ("x = True", {"x = False"}),
    ],
)
def test_a_line_is_broken_in_each_way_that_it_can_be(body: str, broken: set[str]) -> None:
    assert lines_after(body) == broken


@pytest.mark.parametrize(
    ("returns", "broken"),
    [
        ("bool", "return not (a)"),
        ("int", "return (a) + 1"),
        ("str | None", "return None"),
        ("tuple[str, ...]", "return ()"),
    ],
)
def test_a_function_answers_something_else_of_its_type(returns: str, broken: str) -> None:
    assert lines_after("return a", returns) == {broken}


@pytest.mark.parametrize(
    "body",
    [
        '"""What it does, in 1 line."""',
        "assert a < b, 'never'",
        "x: Mapping[1, 2] = a",
        'x = f"{a + 1} rows"',
        'x = "a text for people"',
        "x = y",
        "x = [*zip(a, b, strict=True)]",
    ],
)
def test_what_no_test_should_mind_is_left_alone(body: str) -> None:
    assert lines_after(body) == set()


def test_bytes_of_letters_beyond_ascii_are_counted() -> None:
    assert lines_after("x = 'é' + a  # ü") == {"x = 'é~' + a # ü"}


def test_a_seed_draws_the_same_lines_and_more_of_them_begin_with_these() -> None:
    few, many, others = (
        [(path, change) for _, path, _, change in draw(["index"], count, seed)]
        for count, seed in ((6, 1), (10, 1), (6, 2))
    )

    assert len(few) == 6
    assert few == many[:6]
    assert few != others


def test_floors_get_the_same_number_of_lines() -> None:
    drawn = [floor for floor, *_ in draw(["merge", "index"], 7, 1)]

    assert [drawn.count(floor) for floor in ("merge", "index")] == [4, 3]


THIS = "tests/house/test_mutants.py"
LENGTHS = {"long": 9.0, "short": 1.0, "shorter": 0.5}


class Known:
    """A map of three tests, the most specific of which is long."""

    seconds: Mapping[str, float] = {f"{THIS}::{name}": took for name, took in LENGTHS.items()}

    def tests_of(self, path: str, lines: set[int]) -> list[str]:
        return [*self.seconds]

    def executed(self, path: str) -> set[int]:
        return {1}


@pytest.mark.parametrize(
    ("most", "seconds", "chosen"),
    [
        (5, 60, ("long", "short", "shorter")),
        (2, 60, ("long", "short")),
        (5, 9, ("long",)),
        (5, 5, ("short", "shorter")),
        (1, 5, ("short",)),
        (5, 0.1, ("long",)),
    ],
)
def test_the_most_specific_tests_are_run_as_many_as_the_limits_allow(
    most: int, seconds: float, chosen: tuple[str, ...]
) -> None:
    source = Source(b"LIMIT = 1\n\n\ndef limit():\n    return LIMIT\n")
    one = mutant("merge", PATH, source, source.changes[0], Known(), most, seconds)  # type: ignore[arg-type]

    assert one.tests == tuple(f"{THIS}::{name}" for name in chosen)
    assert one.seconds == sum(LENGTHS[test] for test in chosen)


def test_tests_that_have_the_words_of_a_line_take_turns_with_the_most_specific_ones() -> None:
    texts = {"a": "write rows", "b": "write keys", "c[1]": "", "c": "Heartbeat.isExpired of a write", "d": "heartbeats"}
    tests = ["a", "b", "c[1]", "c[2]", "d"]

    found = interleaved(tests, words("write: if heartbeat.is_expired():"), lambda name: words(texts[name]))

    assert found == ["a", "c[1]", "b", "d", "c[2]"]


def test_the_words_of_a_test_are_those_of_its_text() -> None:
    name = "test_the_words_of_a_test_are_those_of_its_text"

    assert {"word", "text", "partition"} <= words_of_test(f"{THIS}::{name}"), "its name, and partition"
    assert words("readFooters of_a_FILE x") == {"read", "footer", "file"}


def trial(outcome: Outcome, before: str) -> Trial:
    source = Source(b"LIMIT = 1\n\n\ndef limit():\n    return LIMIT\n")
    return Trial(Mutant("merge", PATH, source.changes[0], before, "y", (), 0.0), outcome)


def test_equivalent_lines_of_the_page_do_not_count_and_others_that_survive_do() -> None:
    page = f"| `{PATH}` | `a \\| b` → `y` | equivalent | why |\n| `{PATH}` | `c` → `y` | second defence | why |\n"
    verdicts = judged(page)
    done = [
        trial(Outcome.SURVIVED, "a | b"),
        trial(Outcome.SURVIVED, "c"),
        trial(Outcome.NOTICED, "d"),
        trial(Outcome.TIMED_OUT, "e"),
        trial(Outcome.NOTICED, "f"),
    ]

    assert share(done, verdicts) == 75
    assert table(done, verdicts).splitlines()[2:] == [
        "| merge | 5 | 2 | 1 | 1 | 1 | 75 |",
        "| all | 5 | 2 | 1 | 1 | 1 | 75 |",
    ]


def test_what_was_recorded_of_a_module_moves_with_its_lines() -> None:
    then = "a\nb\nc\nd\n"

    assert places_now(then, then) == {1: [1], 2: [2], 3: [3], 4: [4]}
    assert places_now(then, "new\na\nb\nmore\nd\n") == {1: [2], 2: [3], 3: range(4, 5), 4: [5]}
    assert places_now(then, "a\nb\nb2\nb3\nc\n") == {1: [1], 2: [2, 3, 4], 3: [5], 4: range(5, 5)}


def test_the_floors_that_are_broken_are_packages() -> None:
    assert [floor for floor in FLOORS if not (ROOT / "pyhudi" / floor).is_dir()] == []
