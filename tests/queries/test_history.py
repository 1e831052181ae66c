"""The history that people see: active and archived instants, newest first, and which of them can still be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import TableError
from pyhudi.meta_client import MetaClient
from pyhudi.queries.history import load_table_history
from pyhudi.storage import open_storage
from tests.support.golden.folder import GoldenTable

KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",  # cleaning by commits would keep more commits active
}
BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])


def table_with(path: Path, version: int, writes: int) -> HudiTable:
    # With a metadata table archiving waits until that is compacted.
    options = {"hoodie.metadata.enable": "false"}
    table = HudiTable.create(path / "t", SCHEMA, record_key="id", table_version=version, options=options)
    for n in range(writes):
        table.upsert([{"id": "a", "v": n}, {"id": f"k{n}", "v": n}], options=BY_HAND)
    return table


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 8, 9])
def test_archived_instants_stay_in_the_history(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version, 7)
    before = table.history()
    assert table.maintenance.archive(options=KEEP).archived

    after = table.history()

    assert [e.instant_time for e in after] == [e.instant_time for e in before]
    assert [(e.rows_written, e.rows_updated, e.files, e.bytes_written, e.operation) for e in after] == [
        (e.rows_written, e.rows_updated, e.files, e.bytes_written, e.operation) for e in before
    ]
    assert [e.is_archived for e in after] == [False, False, True, True, True, True, True]
    assert all(e.readable for e in after)
    assert "archived" in repr(after)
    assert len(table.history(archived=False)) == 2
    for count, entry in enumerate(reversed(after), start=1):
        assert table.scan(as_of=entry.instant_time).count() == 1 + count
    times = [e.instant_time for e in reversed(after)]
    assert [e.instant_time for e in table.history(since=times[1], until=times[3])] == times[3:0:-1]
    assert [e.instant_time for e in table.history(limit=4)] == times[:2:-1]
    assert [e.instant_time for e in table.history(limit=1, until=times[2])] == [times[2]]


@pytest.mark.thorough
def test_the_newest_instants_are_listed_without_a_look_at_the_archive(tmp_path: Path) -> None:
    table = table_with(tmp_path, 9, 6)
    table.maintenance.archive(options=KEEP)
    for path in (tmp_path / "t/.hoodie/timeline/history").iterdir():
        path.write_bytes(b"damaged")
    assert len(table.history(limit=2)) == 2


@pytest.mark.thorough
def test_what_cleaning_took_is_said_and_reading_it_fails(tmp_path: Path) -> None:
    table = table_with(tmp_path, 9, 3)
    first = table.history()[-1].instant_time
    table.savepoints.create(first)
    table.upsert([{"id": "a", "v": 9}], options=BY_HAND)
    table.clean(options={"hoodie.clean.commits.retained": "1"})

    history = [e for e in table.history() if e.action == "commit"]

    assert [e.readable for e in history] == [True, False, False, True]
    assert [e.is_saved for e in history] == [False, False, False, True]
    assert "cleaned" in repr(table.history())
    for entry in history:
        if entry.readable:
            assert table.scan(as_of=entry.instant_time).count()
        else:
            with pytest.raises(TableError, match="can't be read any more"):
                table.scan(as_of=entry.instant_time).count()


@pytest.mark.parametrize(
    ("version", "name"),
    [("0.15.0", "history_a_mor"), ("1.0.2", "history_a_mor"), ("1.2.0", "history_a_mor"), ("1.2.0", "history_a_cow")],
)
def test_histories_of_real_hudi_say_what_real_hudi_can_read(
    golden: Callable[[str, str], GoldenTable], version: str, name: str
) -> None:
    path, description = golden(version, name)
    history = {e.instant_time: e for e in load_table_history(MetaClient.load(open_storage(path)))}
    expected = description["expected"]

    for time, answer in expected["as_of"].items():
        readable = not (isinstance(answer, dict) and "error" in answer)
        # Real Hudi refuses the newest instant too when cleaning kept a later one that is no commit.
        assert history[time].readable == readable or time == max(t for t, e in history.items() if e.readable), time
    for row in expected["show_archived_commits"]:
        entry = history[row["commit_time"]]
        assert entry.is_archived
        assert (entry.bytes_written, entry.rows_written) == (row["total_bytes_written"], row["total_records_written"])
    if "hudi_query_timeline_with_archived" in expected:
        shown = {row["Timestamp"] for row in expected["hudi_query_timeline_with_archived"]}
        assert shown == set(history)


@pytest.mark.parametrize("version", [6, 9])
def test_a_read_past_a_savepoint_has_the_columns_of_then(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version, 1)
    first = table.history()[-1].instant_time
    table.savepoints.create(first)
    wider = table.upsert([{"id": "a", "v": 1, "w": "new"}], options=BY_HAND).instant_time
    for n in range(2):
        table.upsert([{"id": f"b{n}", "v": 2, "w": "x", "y": 1.5}], options=BY_HAND)
    keep = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.archive.beyond.savepoint": "true"}
    table.maintenance.archive(options={**KEEP, **keep})
    assert [e.instant_time for e in table.history() if e.is_archived][-1] == wider

    assert [row["w"] for row in table.scan(as_of=wider).to_arrow().to_pylist() if row["id"] == "a"] == ["new"]
    assert "w" not in table.scan(as_of=first).to_arrow().column_names


@pytest.mark.parametrize("version", [6, 9])
def test_a_read_as_of_an_archived_commit_has_the_columns_of_then(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version, 1)
    wider = table.upsert([{"id": "a", "v": 1, "w": "new"}], options=BY_HAND).instant_time
    table.upsert([{"id": "b", "v": 2, "w": "x", "y": 1.5}], options=BY_HAND)
    table.upsert([{"id": "c", "v": 2, "w": "x", "y": 1.5}], options=BY_HAND)
    first = table.history()[-1].instant_time
    table.maintenance.archive(options={**KEEP, "hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"})

    def columns(time: str) -> list[str]:
        return [name for name in table.scan(as_of=time).to_arrow().column_names if not name.startswith("_hoodie")]

    assert [entry.is_archived for entry in table.history()].count(True) >= 2
    assert (columns(first), columns(wider)) == (["id", "v"], ["id", "v", "w"])
