"""Lines are broken as docs/contributing/mutants.md says: one meaningful change each, the same for a seed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import pytest

from mutants import ROOT
from mutants.changes import Source
from mutants.coverage_map import places_now
from mutants.needless import Line, needless
from mutants.reach import FLOORS, lines_that_count, users
from mutants.relevance import interleaved, words, words_of_test
from mutants.report import LEFT_OUT, judged, share, table
from mutants.sample import LIMITS_TEST, draw, mutant
from mutants.trials import Mutant, Outcome, Trial
from mutants.unnoticeable import ROUND_NUMBERS, SHARING_OUT
from tests.support.source import modules

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
        "x = a(use_threads=True)",
        "x = a.parallelism * 3",
        "x = a > _READ_ROWS",
        "held_bytes = 0",
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
SEED_OF_HASHES = "pyhudi/formats/xx_hash.py"
LENGTHS = {"long": 9.0, "short": 1.0, "shorter": 0.5}


class Known:
    """A map of three tests, the most specific of which is long."""

    seconds: Mapping[str, float] = {f"{THIS}::{name}": took for name, took in LENGTHS.items()}

    def tests_of(self, lines: Mapping[str, Iterable[int]]) -> list[str]:
        return [*self.seconds] if any(lines.values()) else []

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
    source = Source((ROOT / SEED_OF_HASHES).read_bytes())
    change = next(change for change in source.changes if change.name == "_HUDI_SEED")
    one = mutant("formats", SEED_OF_HASHES, source, change, Known(), most, seconds)  # type: ignore[arg-type]

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


def test_a_limit_is_looked_after_by_the_test_of_its_row_in_the_page_of_limits() -> None:
    path = "pyhudi/formats/hash_ring.py"
    source = Source((ROOT / path).read_bytes())
    change = next(change for change in source.changes if change.name == "_NODES_MAX")

    assert mutant("formats", path, source, change, Known(), 5, 60).tests[0] == LIMITS_TEST  # type: ignore[arg-type]
    assert (ROOT / LIMITS_TEST.partition("::")[0]).read_text().count(f"def {LIMITS_TEST.partition('::')[2]}(") == 1


def line_with(path: str, text: str) -> int:
    """The number of the one line of a module that has this text."""
    (number,) = (number for number, line in enumerate((ROOT / path).read_text().splitlines(), 1) if text in line)
    return number


def test_a_default_value_is_looked_after_by_what_executes_the_function() -> None:
    path = "pyhudi/timeline/heartbeat.py"

    assert line_with(path, "self._beating = Renewal(") in users(path, "DEFAULT_INTERVAL_MS")[path]


def test_a_constant_is_looked_after_by_what_uses_it_in_other_modules_too() -> None:
    assert users("pyhudi/formats/hfile/entries.py", "MAX_KEY_BYTES").keys() == {"pyhudi/formats/hfile/writer.py"}


def test_a_function_that_remembers_its_answers_is_looked_after_by_what_calls_it() -> None:
    path = "pyhudi/formats/avro/checked.py"
    source = Source((ROOT / path).read_bytes())
    first = line_with(path, "def _checked(") + 1
    inside = next(one for one in source.changes if one.line >= first and not one.name)

    counting = lines_that_count(path, inside, {inside.line})

    assert counting[path] == {inside.line, line_with(path, "return _kept(")}


def test_judged_lines_of_the_page_are_counted_apart_and_others_that_survive_are_not() -> None:
    page = (
        f"| `{PATH}` | `a \\| b` → `y` | equivalent | why |\n"
        f"| `{PATH}` | `c` → `y` | second defence | why |\n"
        f"| `{PATH}` | `g` → `y` | not judged yet | |\n"
    )
    verdicts = judged(page)
    done = [
        trial(Outcome.SURVIVED, "a | b"),
        trial(Outcome.SURVIVED, "c"),
        trial(Outcome.NOTICED, "d"),
        trial(Outcome.TIMED_OUT, "e"),
        trial(Outcome.NOTICED, "f"),
        trial(Outcome.SURVIVED, "g"),
    ]

    assert share(done, verdicts) == 75
    assert table(done, verdicts).splitlines()[2:] == [
        "| merge | 6 | 2 | 2 | 1 | 1 | 75 | 50 |",
        "| all | 6 | 2 | 2 | 1 | 1 | 75 | 50 |",
    ]


def test_lines_that_the_page_leaves_out_are_there_and_can_be_broken_so() -> None:
    page = judged((ROOT / "docs" / "contributing" / "mutants.md").read_text())
    left_out = {name for name, verdict in page.items() if verdict in LEFT_OUT}
    sources = {path: Source((ROOT / path).read_bytes()) for path in {path for path, *_ in left_out}}
    possible = {(path, *one.before_and_after(change)) for path, one in sources.items() for change in one.changes}

    assert left_out - possible == set(), "rows of lines that have changed since: judge them anew, or remove them"


def test_names_that_are_not_broken_are_names_of_the_floors() -> None:
    trees = [tree for path, tree in modules().items() if path.split("/")[1] in FLOORS]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    there = {getattr(node, kind, None) for node in nodes for kind in ("id", "attr", "arg")}

    assert {*ROUND_NUMBERS, *SHARING_OUT} - there == set()


def test_what_was_recorded_of_a_module_moves_with_its_lines() -> None:
    then = "a\nb\nc\nd\n"

    assert places_now(then, then) == {1: [1], 2: [2], 3: [3], 4: [4]}
    assert places_now(then, "new\na\nb\nmore\nd\n") == {1: [2], 2: [3], 3: range(4, 5), 4: [5]}
    assert places_now(then, "a\nb\nb2\nb3\nc\n") == {1: [1], 2: [2, 3, 4], 3: [5], 4: range(5, 5)}


def test_the_floors_that_are_broken_are_packages() -> None:
    assert [floor for floor in FLOORS if not (ROOT / "pyhudi" / floor).is_dir()] == []


def test_a_case_is_needless_when_others_of_its_file_execute_its_lines() -> None:
    lines = {
        "a.py::test_one[dear]": [Line(0, 1), Line(0, 2)],
        "a.py::test_one[cheap]": [Line(0, 1)],
        "a.py::test_one[own line]": [Line(0, 1), Line(1, 1)],
        "a.py::test_two": [Line(0, 2)],
        "a.py::test_three[x]": [Line(0, 1)],
        "a.py::test_three[y]": [Line(0, 1)],
    }
    seconds = dict(zip(lines, (3.0, 1.0, 2.0, 5.0, 2.0, 1.5), strict=True))

    assert needless(lines, seconds, 0.1) == {"a.py::test_one[dear]", "a.py::test_one[cheap]", "a.py::test_three[x]"}
    assert needless(lines, seconds, 2.0) == {"a.py::test_one[dear]", "a.py::test_three[x]"}
