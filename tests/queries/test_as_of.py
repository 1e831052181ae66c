"""Time travel: what `as_of` may be, and the errors of moments that a table can't answer for."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, TableError, write_hudi
from pyhudi.queries.query import in_zone, parse_as_of

UTC = timezone.utc


@pytest.mark.parametrize(
    ("as_of", "instant_time"),
    [
        ("20240131123000123", "20240131123000123"),
        ("20240131123000", "20240131123000"),
        (20240131123000123, "20240131123000123"),
        ("2024-01-31", "20240131000000000"),
        ("2024-01-31 12:30:00", "20240131123000000"),
        ("2024-01-31 12:30:00.5", "20240131123000500"),
        ("2024-01-31 12:30:00.123", "20240131123000123"),
        ("2024-01-31T12:30:00.123456", "20240131123000123"),
        ("2024-01-31T12:30:00.123456789Z", "20240131123000123"),
        ("2024-01-31T12:30:00+05:30", "20240131070000000"),
        (date(2024, 1, 31), "20240131000000000"),
        (datetime(2024, 1, 31, 12, 30, 0, 123999), "20240131123000123"),
        (datetime(2024, 1, 31, 12, 30, tzinfo=timezone(timedelta(hours=-1))), "20240131133000000"),
    ],
)
def test_a_moment_is_an_instant_time_in_the_timeline_zone(as_of: Any, instant_time: str) -> None:
    assert parse_as_of(as_of, UTC) == instant_time


def test_moments_with_a_zone_are_brought_into_the_timeline_zone_and_others_are_read_in_it() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")

    assert parse_as_of("2024-01-31T12:00:00Z", tokyo) == "20240131210000000"
    assert parse_as_of("2024-01-31 12:00:00", tokyo) == "20240131120000000"


@pytest.mark.parametrize("as_of", ["yesterday", "2024-13-01", "2024", "202401311230001234", "", 5, True, 1.5, object()])
def test_anything_else_is_refused(as_of: Any) -> None:
    with pytest.raises(ConfigError, match="is no moment"):
        parse_as_of(as_of, UTC)


def test_a_table_can_be_read_as_of_each_commit_and_moments_between(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), record_key="id")
    first = table.upsert([{"id": 1, "v": 1}])
    second = table.upsert([{"id": 1, "v": 2}, {"id": 2, "v": 2}])

    def values(as_of: Any) -> list[int]:
        return table.at(as_of).to_arrow(["v"])["v"].to_pylist()

    assert values(first.instant_time) == [1]
    assert values(second.instant_time) == [2, 2]
    assert values("2100-01-01") == [2, 2]
    assert values(str(int(second.instant_time) - 1)) == [1]


def test_a_moment_before_the_first_commit_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id")
    with pytest.raises(TableError, match="no commit yet"):
        table.scan(as_of="2100-01-01").to_arrow()
    first = table.insert([{"id": 1}])

    with pytest.raises(TableError, match=f"the first commit is {first.instant_time}"):
        table.scan(as_of="2001-01-01").to_arrow()


def test_a_column_added_later_is_not_in_earlier_moments(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id")
    first = table.insert([{"id": 1}])
    table.upsert([{"id": 2, "v": "x"}])

    assert table.to_arrow(["id", "v"]).sort_by("id").to_pylist() == [{"id": 1, "v": None}, {"id": 2, "v": "x"}]
    assert "v" not in table.scan(as_of=first.instant_time).schema.names


@pytest.mark.parametrize("moment", ["2024-01-31 12:00:00", datetime(2024, 1, 31, 12), "2024-01-31T12:00:00+09:00"])
def test_a_time_that_names_no_zone_is_one_of_the_sessions(moment: Any) -> None:
    assert parse_as_of(in_zone(moment, ZoneInfo("Asia/Tokyo")), UTC) == "20240131030000000"


@pytest.mark.parametrize("moment", ["20240131123000123", 20240131123000123, "earliest", "2024-01-31T12:00:00Z"])
def test_what_is_no_time_without_a_zone_stays_as_it_is(moment: Any) -> None:
    assert in_zone(moment, ZoneInfo("Asia/Tokyo")) is moment


def test_with_a_session_a_moment_is_one_of_its_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id")
    written = table.upsert([{"id": 1}])
    there = datetime.now(ZoneInfo("Pacific/Kiritimati")) + timedelta(seconds=1)
    table._handle.spark = object()  # type: ignore[assignment]
    monkeypatch.setattr("pyhudi.table.calls.session_zone", lambda _: ZoneInfo("Pacific/Kiritimati"))

    shown = table.history(until=there.replace(tzinfo=None))

    assert [entry.instant_time for entry in shown] == [written.instant_time]
    assert table._handle.commit_time(there.replace(tzinfo=None)) == written.instant_time


def test_a_log_block_of_the_very_instant_counts_and_later_ones_do_not(tmp_path: Path) -> None:
    options = {"hoodie.write.table.version": "6", "hoodie.compact.inline": "false"}
    for n in (1, 2, 3):
        rows = pa.table({"id": [1], "n": [n]})
        write_hudi(tmp_path / "t", rows, record_key="id", table_type="MERGE_ON_READ", options=options)
    table = HudiTable.open(tmp_path / "t")
    instants = [instant.requested_time for instant in table.state().timeline.completed()]
    assert [table.at(instant).to_arrow(["n"])["n"].to_pylist() for instant in instants] == [[1], [2], [3]]
