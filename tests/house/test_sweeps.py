"""What a run takes of long tests, which cases its seed chooses, and what runs on Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.source import ROOT
from tests.support.spark import on_connect
from tests.support.sweeps import SHARE, WHOLE_ROOMS, mark_sweeps, seed_of

TEST = "tests/actions/test_a.py::test"


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


def test_of_many_cases_one_in_share_is_kept_and_stays_so_when_others_come() -> None:
    cases = [str(number) for number in range(100 * SHARE)]
    kept = kept_of(mark_sweeps, *(Case(TEST, case) for case in cases))

    assert 0.75 < len(kept) * SHARE / len(cases) < 1.25
    assert set(kept) <= set(kept_of(mark_sweeps, *(Case(TEST, case) for case in [*cases, "new", "newer"])))


def test_every_test_keeps_a_case_and_where_it_can_one_that_is_not_slow() -> None:
    for number in range(3 * SHARE):
        test = f"tests/actions/test_a.py::test_{number}"
        assert kept_of(mark_sweeps, Case(test)) == [""]
        kept = kept_of(mark_sweeps, Case(test, "a", ["slow"]), Case(test, "b"), Case(test, "c", ["slow"]))
        assert "b" in kept


def test_as_many_seeds_as_parts_play_every_case() -> None:
    names = [str(number) for number in range(100)]
    played = [
        set(kept_of(partial(mark_sweeps, seed=seed), *(Case(TEST, name) for name in names))) for seed in range(SHARE)
    ]

    assert set.union(*played) == set(names)
    assert max(map(len, played)) < len(names) / 4


def test_the_seed_is_the_commits_hash_unless_one_is_given() -> None:
    show = [sys.executable, "-c", "from tests.support.sweeps import SEED; print(SEED)"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYHUDI_SEED", None)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    of_commit = subprocess.run(show, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    given = {**environment, "PYHUDI_SEED": "0000002a9"}
    of_text = subprocess.run(show, cwd=ROOT, env=given, capture_output=True, text=True, check=True).stdout

    assert int(of_commit) == seed_of(commit.strip())
    assert int(of_text) == 0x2A


def test_tests_of_the_source_and_of_real_hudi_keep_all_their_cases() -> None:
    cases = [str(number) for number in range(40)]
    for room in WHOLE_ROOMS:
        assert kept_of(mark_sweeps, *(Case(f"tests/{room}/test_a.py::test", case) for case in cases)) == cases


def test_ci_runs_every_part_and_the_rooms_of_make_floors_are_there() -> None:
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("FLOORS := ")]

    assert [room for room in line.split()[2:] if not (ROOT / "tests" / room).is_dir()] == []
    parts = re.findall(r"^part (?:\w+=\w+ )*make ([\w-]+)", (ROOT / ".ci/run").read_text(), re.M)
    assert parts == ["check", "test-all", "clusters", "judge", "sparks", "wheel"]


def test_a_case_that_is_known_by_name_stays() -> None:
    cases = [Case("tests/spark/test_other.py::test_named", case) for case in map(str, range(40))]
    assert kept_of(lambda items: mark_sweeps(items, lambda _: True), *cases) == list(map(str, range(40)))
    for name, ids in on_connect.KEPT.items():
        test = f"tests/spark/test_other.py::{name}"
        kept = kept_of(
            lambda items: mark_sweeps(items, on_connect.is_named),
            *(Case(test, case) for case in [*map(str, range(9)), *ids]),
        )
        assert set(ids) <= set(kept)


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
    for name in on_connect.LEFT:
        ids = on_connect.KEPT[name]
        test = f"tests/spark/test_other.py::{name}"
        assert kept_of(on_connect.mark_left, *(Case(test, case) for case in (*ids, "another"))) == ["another"]
        repeated = (Case(test, case) for case in ids)
        assert kept_of(on_connect.mark_repetitions, Case(test, "first"), *repeated) == list(ids)


def test_rooms_tests_and_files_that_are_named_are_there() -> None:
    spark = "".join(path.read_text() for path in (ROOT / "tests/spark").glob("test_*.py"))

    assert [room for room in WHOLE_ROOMS if not (ROOT / "tests" / room).is_dir()] == []
    assert [name for name in (*on_connect.KEPT, *on_connect.LEFT) if f"def {name}(" not in spark] == []
    assert [
        name for name in on_connect.WHOLE | on_connect.SHOWN if not (ROOT / f"tests/spark/{name}.py").exists()
    ] == []
