"""A process dies at any storage call of an upgrade or downgrade: the rows stay, the next call finishes the job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import FaultKind, MemoryStorage
from tests.support.tables.altered import NAMES, ROWS, altered
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.rings import many, resized, ringed
from tests.support.tables.small import TestTable
from tests.support.tables.versioned import all_reads, copy_on_write, merge_on_read, take_to
from tests.support.writers.dying import dies, places_to_die


def clone(table: TestTable) -> TestTable:
    assert isinstance(table.storage, MemoryStorage)
    other = type(table)()
    other.storage, other.options, other.engine = table.storage.clone(), table.options, table.engine
    return other


def compacted(version: str) -> TestTable:
    """Merge-on-read without log files in its newest slices: what is under way is the change of the version alone."""
    table = merge_on_read(version)
    assert isinstance(table, MergeOnRead)
    table.compact_now()
    return table


def with_resized_rings(version: str) -> TestTable:
    table = ringed(version)
    table.upsert(*many(12))
    resized(table)
    return table


def places(calls: list[tuple[str, str]]) -> list[tuple[FaultKind, int]]:
    """Where to die: at every second of the calls that can be torn, and of those that merge log files at a few, for
    compactions have a test of their own.
    """
    compaction = max((n for n, (_, path) in enumerate(calls, start=1) if path.startswith(".hoodie/.temp")), default=0)
    found = [(kind, n) for kind, n in places_to_die(calls) if kind == "after" or n > compaction or n % 7 == 0]
    torn = [place for place in found if place[0] == "torn"]
    return [place for place in found if place not in torn[1::2]]


def meta_files(table: TestTable) -> list[str]:
    """Without markers that a compaction may have left; the next writer takes them away."""
    return [info.path for info in table.storage.walk(".hoodie") if not info.path.startswith(".hoodie/.temp/")]


Made = Callable[[str], TestTable]


def step(make: Made, source: int, target: int, slow: bool = False) -> object:
    """One case; the slow ones are those of `make stress`."""
    return pytest.param(make, source, target, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("make", "source", "target"),
    [
        step(copy_on_write, 6, 8),
        step(copy_on_write, 8, 9, slow=True),
        step(copy_on_write, 9, 8),
        step(copy_on_write, 8, 6, slow=True),
        step(compacted, 6, 8, slow=True),
        step(compacted, 8, 9),
        step(compacted, 9, 8, slow=True),
        step(compacted, 8, 6),
        step(merge_on_read, 6, 8),
        step(merge_on_read, 9, 8, slow=True),
        step(with_resized_rings, 6, 8, slow=True),
        step(with_resized_rings, 8, 6),
    ],
)
def test_rows_stay_and_the_next_call_finishes(make: Made, source: int, target: int) -> None:
    table = make(str(source))
    before = all_reads(table)
    counted = clone(table)
    take_to(counted.storage, target)
    calls = list(counted.memory.log)
    files = len(meta_files(counted))
    data_files = len([info for info in counted.storage.walk("") if not info.path.startswith(".hoodie")])

    versions = set()
    for kind, n in places(calls):
        verb, path = calls[n - 1]
        where = f"{kind} call {n}: {verb} {path}"
        attempt = clone(table)
        dies(attempt, partial(take_to, attempt.storage, target), kind, n)
        versions.add(attempt.meta.config.table_version)
        assert attempt.rows() == before[None], where

        again = clone(attempt)
        take_to(again.storage, target)
        assert again.meta.config.table_version == target, where
        assert again.rows() == before[None], where
        assert len(meta_files(again)) == files, where
        found = [info for info in again.storage.walk("") if not info.path.startswith(".hoodie")]
        assert len(found) == data_files, where

        if n % 4:
            continue
        assert {time: rows for time, rows in all_reads(attempt).items() if time in before} == before, where
        attempt.options = {**attempt.options, "hoodie.write.table.version": str(attempt.meta.config.table_version)}
        attempt.upsert(("z", "x", 9, 99))  # a writer that does not go on with the change
        assert attempt.rows() == sorted([*before[None], ("z", "x", 9, 99)], key=repr), where
    assert versions == {source, target}


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "target"), [(6, 8), pytest.param(8, 6, marks=pytest.mark.slow)])
def test_columns_are_matched_by_id_wherever_the_process_dies(source: int, target: int) -> None:
    table = altered(str(source))
    HudiTable(table.meta).compact()
    counted = clone(table)
    take_to(counted.storage, target)
    calls, files = list(counted.memory.log), meta_files(counted)

    for kind, n in places(calls):
        where = f"{kind} call {n}: {calls[n - 1]}"
        attempt = clone(table)
        dies(attempt, partial(take_to, attempt.storage, target), kind, n)
        assert TestTable.rows(attempt, NAMES) == ROWS, where

        take_to(attempt.storage, target)
        assert TestTable.rows(attempt, NAMES) == ROWS, where
        assert meta_files(attempt) == files, where
