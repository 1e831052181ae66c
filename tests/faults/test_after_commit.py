"""What fails behind the completed file is a warning with its reason: the write returns its result, its rows stay."""

from __future__ import annotations

import warnings

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import StorageError, WriteConflict
from pyhudi.services import after_write
from pyhudi.storage.memory import FaultKind, MemoryStorage
from tests.support.sweeps import SAMPLED
from tests.support.tables.small import Row, TestTable
from tests.support.writers.dying import changing_calls, on_clone
from tests.support.writers.interrupted_calls import AT_ONCE, MANY_WRITERS

START: list[Row] = [("a", "x", 1, 10), ("b", "y", 1, 20)]
CHANGE: Row = ("a", "x", 2, 11)
AFTER = [CHANGE, START[1]]
ERRORS: tuple[type[Exception], ...] = (StorageError, TypeError, MemoryError)
SERVICES_ON = {"hoodie.clean.commits.retained": "1", "hoodie.metadata.enable": "true"}


def table_of(options: dict[str, str]) -> TestTable:
    table = TestTable(MemoryStorage(), {**options, **SERVICES_ON}, engine=LocalEngine(1))
    table.bulk_insert(*START)
    table.upsert(("a", "x", 1, 9))
    return table


@pytest.mark.parametrize("options", [AT_ONCE, MANY_WRITERS], ids=["by default", "many writers"])
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_any_class_at_any_change_behind_the_completed_file_is_a_warning(
    options: dict[str, str], error: type[Exception]
) -> None:
    table = table_of(options)
    counted = on_clone(table)
    counted.upsert(CHANGE)
    calls = counted.memory.log
    completed = next(n for n, (verb, path) in enumerate(calls, 1) if verb == "create_new" and path.endswith(".commit"))
    places: list[tuple[int, FaultKind]] = [(completed, "after")]
    places += [(n, "before") for n in changing_calls(calls) if n > completed]
    assert len(places) > 2
    if SAMPLED:
        places = places[ERRORS.index(error) :: len(ERRORS)]
    for n, kind in places:
        attempt = on_clone(table)
        attempt.memory.fail_at(n, kind, error)
        where = f"{kind} call {n}: {calls[n - 1]}"
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = attempt.upsert(CHANGE)
        assert result.instant_time, where
        assert attempt.rows() == AFTER, where
        assert any("Injected fault" in str(one.message) for one in told), where
        attempt.memory.reset_faults()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt.upsert(("c", "x", 1, 1))
        assert len(attempt.rows()) == 3, where


@pytest.mark.thorough
def test_a_service_that_fails_in_whatever_way_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> tuple[str, ...]:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(after_write, "AFTER_WRITE", {"clean": fails})
    table = TestTable(MemoryStorage(), AT_ONCE, engine=LocalEngine(1))
    with pytest.warns(UserWarning, match="the clean after it failed.*ZeroDivisionError: a fault of ours"):
        result = table.bulk_insert(*START)
    assert result.instant_time
    assert table.rows() == START


@pytest.mark.thorough
def test_a_completed_file_of_another_writer_is_no_result_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(AT_ONCE)
    create = MemoryStorage.create_new

    def taken(storage: MemoryStorage, path: str, data: bytes) -> None:
        if path.endswith(".commit"):
            create(storage, path, b"another's")
        create(storage, path, data)

    monkeypatch.setattr(MemoryStorage, "create_new", taken)
    with pytest.raises(WriteConflict):
        table.upsert(CHANGE)
