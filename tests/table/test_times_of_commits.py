"""Times that a user has seen, in Python's own words: a time of a commit means the commit, a moment is a moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, follow, write_hudi
from pyhudi.model.instant import parse_instant_time
from tests.support.tables.small import TestTable

KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
BEGIN = "hoodie.datasource.read.begin.instanttime"


def rows(*ids: int, v: int = 1) -> pa.Table:
    return pa.table({"id": ids, "v": [v] * len(ids)}, pa.schema([("id", pa.int64()), ("v", pa.int64())]))


def three_writes(path: Path, version: int, kind: str) -> tuple[HudiTable, list[Any]]:
    keys = {"record_key": "id", "table_version": version, "table_type": kind}
    writes = [write_hudi(path, rows(*range(20)), **keys)]
    table = HudiTable.open(path)
    return table, [*writes, table.upsert(rows(7, v=2)), table.upsert(rows(8, 30, v=3))]


def ids(changes: Any) -> list[int]:
    return sorted(changes.to_arrow()["id"].to_pylist())


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_range_of_times_that_a_user_has_seen_begins_and_ends_with_these_commits(
    tmp_path: Path, version: int, kind: str
) -> None:
    table, (first, second, third) = three_writes(tmp_path, version, kind)
    stored = table.scan(where="id = 1").to_arrow()["_hoodie_commit_time"][0].as_py()
    noted = table.history()[-1]
    assert stored == noted.instant_time == first.instant_time

    for since in (first.instant_time, int(first.instant_time), stored, noted.completion_time, first.completion_time):
        assert ids(table.changes(since=since)) == [7, 8, 30]
        assert ids(table.changes(since, until=second.instant_time)) == [7]
        assert ids(table.changes(since, until=second.completion_time)) == [7]
    assert ids(table.changes(since=second.instant_time)) == [8, 30]
    assert ids(table.changes(since=third.instant_time)) == []
    assert ids(table.changes(since=table.changes(since=first.instant_time).checkpoint)) == []
    assert ids(table.changes("earliest", until=first.instant_time)) == list(range(20))


@pytest.mark.parametrize("version", [8, 9])
def test_times_in_options_keep_the_meaning_of_hudi(tmp_path: Path, version: int) -> None:
    table, (first, _, _) = three_writes(tmp_path, version, "COPY_ON_WRITE")

    by_option = table.scan(query_type="incremental", options={BEGIN: first.instant_time})

    assert len(ids(by_option)) == 21, "the range is one of completion times"
    assert ids(table.scan(query_type="incremental", options={BEGIN: first.completion_time})) == [7, 8, 30]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_table_is_read_as_of_any_time_of_a_commit_that_a_user_has_seen(
    tmp_path: Path, version: int, kind: str
) -> None:
    table, writes = three_writes(tmp_path, version, kind)

    for write, values in zip(writes, ((1, 1), (2, 1), (2, 3)), strict=True):
        for as_of in (write.instant_time, int(write.instant_time), write.completion_time):
            rows_then = table.at(as_of).to_arrow(["id", "v"], where="id in (7, 8)").sort_by("id")
            assert tuple(rows_then["v"].to_pylist()) == values


def test_a_moment_in_the_middle_of_a_write_is_before_it(tmp_path: Path) -> None:
    table, (first, second, _) = three_writes(tmp_path, 9, "COPY_ON_WRITE")
    zone = table.state().config.timeline_zone
    middle = parse_instant_time(second.instant_time, zone) + timedelta(milliseconds=1)
    assert first.completion_time < second.instant_time < second.completion_time

    assert table.at(middle).to_arrow(["v"], where="id = 7")["v"].to_pylist() == [1]
    assert ids(table.changes(since=middle)) == [7, 8, 30]
    early = parse_instant_time(first.instant_time, zone) + timedelta(milliseconds=1)
    with pytest.raises(Exception, match=f"the first commit is {first.instant_time}"):
        table.scan(as_of=early).to_arrow()
    after = datetime.now(timezone.utc) + timedelta(seconds=1)
    assert ids(table.changes(since=after)) == []
    assert table.scan(as_of=after).count() == 21


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_time_of_an_archived_commit_means_the_commit(version: str) -> None:
    table = TestTable(
        options={
            "hoodie.write.table.version": version,
            "hoodie.clean.automatic": "false",
            "hoodie.clean.commits.retained": "1",
        }
    )
    results = [table.upsert((f"k{n}", "x", 1, n)) for n in range(8)]
    opened = HudiTable(table.meta)
    opened.maintenance.archive(
        options={"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    )
    times = [i.requested_time for i in opened.state().timeline.commits()]
    assert results[2].instant_time not in times

    assert ids(opened.changes(since=results[2].instant_time)) == [f"k{n}" for n in range(3, 8)]
    assert ids(opened.changes(since=results[2].instant_time, until=results[4].instant_time)) == ["k3", "k4"]


def test_tables_are_followed_from_a_time_of_a_commit(tmp_path: Path) -> None:
    table, (first, _, _) = three_writes(tmp_path / "t", 9, "COPY_ON_WRITE")

    zone = table.state().config.timeline_zone
    for number, since in enumerate((first.instant_time, parse_instant_time(first.completion_time, zone))):
        step = follow({"t": tmp_path / "t"}, checkpoint=tmp_path / f"c{number}", since=since).next()
        assert step is not None
        assert ids(step["t"]) == [7, 8, 30]


def test_a_result_shows_when_the_write_began_and_when_it_was_complete(tmp_path: Path) -> None:
    _, (first, _, _) = three_writes(tmp_path, 9, "MERGE_ON_READ")
    assert f"upsert {first.instant_time} (complete {first.completion_time}): 20 inserted" in str(first)
    assert first.completion_time in first._repr_html_()
    compaction = HudiTable.open(tmp_path).compact()
    (run,) = compaction.runs
    assert f"{run.instant_time} (complete {run.completion_time})" in str(compaction)
