"""A table as of a moment, and what undoing would take away."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, TableError
from tests.support.tables.rides import ROWS, SCHEMA, ids


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(
        tmp_path / "rides", SCHEMA, record_key="id", partition_by="city", ordering="ts", table_type=request.param
    )
    made.insert(ROWS)
    return made


def changed(table: HudiTable) -> tuple[str, str]:
    """The instant times of two writes that come after the first."""
    first = table.upsert([{"id": 7, "city": "b", "v": 1.0, "ts": 2, "note": "new"}])
    second = table.delete(where="id < 3")
    return first.instant_time, second.instant_time


@pytest.mark.thorough
def test_a_table_at_a_moment_has_the_rows_and_columns_of_then(table: HudiTable) -> None:
    begin = table.history()[0].instant_time
    then = datetime.now(timezone.utc)
    changed(table)
    for moment in (begin, then, then.isoformat()):
        at = table.at(moment)
        assert (at.instant_time, at.schema(), at.count(), len(at)) == (begin, SCHEMA, 6, 6)
        assert sorted(at.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
        assert at.count("id < 2") == 2
        assert at.head(2).num_rows == 2
        assert at.head(2).schema.names == SCHEMA.names
        assert sorted(pa.table(at)["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
        assert sorted(at.to_dataset(["id"], "id > 2").to_table()["id"].to_pylist()) == [3, 4, 5]
    assert ids(table) == [3, 4, 5, 7]


def test_a_table_at_a_moment_is_not_changed_by_later_writes(table: HudiTable) -> None:
    first, _ = changed(table)
    at = table.at(first)
    table.upsert([{"id": 9, "city": "z", "v": 1.0, "ts": 9, "note": None}])
    assert sorted(at.to_arrow(["id"])["id"].to_pylist()) == [0, 1, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("verb", ["upsert", "delete", "merge", "compact", "restore"])
def test_a_table_at_a_moment_is_for_reading(table: HudiTable, verb: str) -> None:
    at = table.at(table.history()[0].instant_time)
    with pytest.raises(ConfigError, match=f"is read-only; {verb} changes"):
        getattr(at, verb)([])
    with pytest.raises(AttributeError):
        _ = at.nothing_of_this_name  # type: ignore[attr-defined]


def test_there_is_no_table_before_its_first_commit(table: HudiTable) -> None:
    with pytest.raises(TableError, match="the first one is"):
        table.at("2001-01-01")
    with pytest.raises(ConfigError, match="no moment"):
        table.at("yesterday")


def test_a_dry_restore_says_what_the_restore_does_and_changes_nothing(table: HudiTable) -> None:
    begin = table.history()[0].instant_time
    newer = changed(table)
    before = (ids(table), [i.instant_time for i in table.history()])

    would = table.restore(begin, dry_run=True)

    assert (ids(table), [i.instant_time for i in table.history()]) == before
    assert would.dry_run
    assert would.instant_time is None
    assert tuple(i.commit_time for i in would.rolled_back) == newer[::-1]
    assert str(would).startswith(f"would restore to {begin}; would roll back {newer[1]}")
    did = table.restore(begin)
    assert did.rolled_back == would.rolled_back
    assert did.undone.files_deleted == would.undone.files_deleted
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_dry_rollback_says_what_the_rollback_does_and_changes_nothing(table: HudiTable) -> None:
    begin = table.history()[0].instant_time
    newer = changed(table)
    before = ids(table)

    newest, both = table.rollback(dry_run=True), table.rollback(to=begin, dry_run=True)

    assert ids(table) == before
    assert newest.instant_times == newer[1:]
    assert both.instant_times == newer[::-1]
    did = table.rollback(to=begin)
    assert (did.instant_times, did.files_deleted) == (both.instant_times, both.files_deleted)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_dry_run_refuses_what_the_run_would_refuse(table: HudiTable) -> None:
    begin = table.history()[0].instant_time
    first, _ = changed(table)
    with pytest.raises(TableError, match="later writes are complete"):
        table.rollback(first, dry_run=True)
    table.savepoints.create(first)
    with pytest.raises(TableError, match="later commits have savepoints"):
        table.restore(begin, dry_run=True)
