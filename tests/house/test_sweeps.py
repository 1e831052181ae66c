"""What `make test` runs of long tests, and of the Spark tests on Spark Connect."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.source import ROOT
from tests.support.spark import on_connect
from tests.support.sweeps import mark_sweeps
from tests.support.sweeps.by_file import BY_FILE, LONG
from tests.support.sweeps.each_value import EACH_VALUE
from tests.support.sweeps.named import NAMED

TEST = next(iter(EACH_VALUE))


class Case:
    """What the rules look at of a collected test."""

    def __init__(self, test: str, case: str = "", marks: Iterable[str] = (), **params: object) -> None:
        self.nodeid = f"{test}[{case}]" if case else test
        self.path = Path(test.partition("::")[0])
        self.marks = set(marks)
        self.callspec = SimpleNamespace(params=params)

    def add_marker(self, mark: Any) -> None:
        self.marks.add(mark.name)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def kept_of(mark: Any, *cases: Case) -> list[str]:
    """Ids of the cases that are no sweep."""
    mark(list(cases))
    return [case.nodeid.partition("[")[2].removesuffix("]") for case in cases if "sweep" not in case.marks]


def test_each_value_is_in_a_case_that_is_kept_and_the_last_of_equal_cases_is() -> None:
    cases = [Case(TEST, f"{version}-{kind}", version=version, kind=kind) for version in "689" for kind in "ab"]

    assert kept_of(mark_sweeps, *cases) == ["6-b", "8-a", "9-b"]


def test_parts_of_a_tuple_are_values_and_other_objects_are_told_apart_by_what_they_are() -> None:
    tables = [Case(TEST, f"{v}-{n}", table=(v, n)) for v in ("old", "new") for n in ("x", "y", "z")]
    assert kept_of(mark_sweeps, *tables) == ["old-y", "new-x", "new-z"]

    objects = [Case(TEST, name, what=[name]) for name in ("a", "bb", "ccc")]
    assert kept_of(mark_sweeps, *objects) == ["a", "bb", "ccc"]

    one, other = object(), object()
    repeated = [Case(TEST, f"{n}-{v}", what=what, v=v) for n, what in (("one", one), ("other", other)) for v in "xyz"]
    assert kept_of(mark_sweeps, *repeated) == ["one-y", "other-x", "other-z"]


def test_a_slow_case_is_not_counted_on_for_its_values() -> None:
    cases = [Case(TEST, "a", v=1), Case(TEST, "b", ["slow"], v=2)]

    assert kept_of(mark_sweeps, *cases)[0] == "a"


@pytest.mark.parametrize("table", [NAMED, BY_FILE], ids=["named", "by file"])
def test_cases_that_are_named_are_kept_and_a_test_that_lost_their_names_keeps_all(table: dict[str, Any]) -> None:
    name, ids = next(iter(table.items()))

    assert kept_of(mark_sweeps, Case(name, ids[0]), Case(name, "another")) == [ids[0]]
    assert kept_of(mark_sweeps, Case(name, "renamed"), Case(name, "another")) == ["renamed", "another"]


def test_a_long_case_that_stays_in_make_test_is_named_and_others_have_their_own_target() -> None:
    name, ids = next((name, ids) for name, ids in LONG.items() if name not in {*BY_FILE, *NAMED, *EACH_VALUE})
    cases = [Case(name, ids[0]), Case(name, "another"), Case(name, "swept", ["sweep"])]
    kept_of(mark_sweeps, *cases)

    assert [case.marks for case in cases] == [set(), {"long"}, {"sweep"}]


def test_a_test_that_no_table_has_keeps_all_its_cases() -> None:
    assert kept_of(mark_sweeps, Case("tests/a.py::test", "a"), Case("tests/a.py::test", "b")) == ["a", "b"]


def test_on_connect_a_file_has_its_first_case_or_named_ones_and_files_of_sessions_have_all() -> None:
    whole, shown = (f"tests/spark/{sorted(table)[0]}.py::test" for table in (on_connect.WHOLE, on_connect.SHOWN))
    mark, other = on_connect.mark_repetitions, "tests/spark/test_other.py::test"

    assert kept_of(mark, *(Case(other, case) for case in "abc")) == ["a"]
    assert kept_of(mark, Case(other, "a", ["sweep"]), Case(other, "b"), Case(f"{other}_more", "c")) == ["b"]
    assert kept_of(mark, *(Case(whole, case) for case in "abc")) == ["a", "b", "c"]
    assert kept_of(mark, *(Case(shown, case) for case in "abc")) == []
    named, ids = next(iter(on_connect.KEPT.items()))
    cases = [Case(f"tests/spark/test_other.py::{named}", case) for case in ("first", "second", *ids)]
    assert kept_of(mark, *cases) == list(ids)


def test_what_a_classic_session_leaves_to_connect_runs_there() -> None:
    for name, ids in on_connect.LEFT.items():
        test = f"tests/spark/test_other.py::{name}"
        assert kept_of(on_connect.mark_left, *(Case(test, case) for case in (*ids, "another"))) == ["another"]
        repeated = (Case(test, case) for case in ids)
        assert kept_of(on_connect.mark_repetitions, Case(test, "first"), *repeated) == list(ids)


def test_tests_and_files_that_the_tables_name_are_there() -> None:
    wanted = {*NAMED, *EACH_VALUE, *BY_FILE, *LONG}
    assert len({*NAMED, *EACH_VALUE, *BY_FILE}) == sum(map(len, (NAMED, EACH_VALUE, BY_FILE))), "one is in two tables"
    missing = [
        name for name in wanted if f"def {name.partition('::')[2]}(" not in (ROOT / name.partition("::")[0]).read_text()
    ]
    spark = "".join(path.read_text() for path in (ROOT / "tests/spark").glob("test_*.py"))

    assert missing == []
    assert [name for name in (*on_connect.KEPT, *on_connect.LEFT) if f"def {name}(" not in spark] == []
    assert [
        name for name in on_connect.WHOLE | on_connect.SHOWN if not (ROOT / f"tests/spark/{name}.py").exists()
    ] == []
