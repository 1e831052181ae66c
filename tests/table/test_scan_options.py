"""Hudi's read keys at the Python door: the same as `spark.read.format("hudi").option(...)` takes."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiOptionWarning, HudiTable
from pyhudi.filegroup.read import spill as spill_files
from tests.support.tables.rides import ROWS, SCHEMA

LIMIT, FOLDER = "hoodie.memory.merge.max.size", "hoodie.memory.spillable.map.path"
QUERY_TYPE, AS_OF = "hoodie.datasource.query.type", "as.of.instant"


@pytest.fixture
def logged(tmp_path: Path) -> HudiTable:
    """Six rows, of which three have newer versions in log files."""
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.insert(ROWS)
    table.upsert([{**row, "v": 100.0, "ts": 2} for row in ROWS[:3]])
    return table


def values(table: HudiTable, **asked: Any) -> list[float]:
    return sorted(table.scan(["v"], **asked).to_arrow()["v"].to_pylist())


NEWEST = [1.5, 2.0, 2.5, 100.0, 100.0, 100.0]


def test_log_rows_beyond_the_limit_wait_in_the_named_folder(
    logged: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    real = tempfile.NamedTemporaryFile
    monkeypatch.setattr(
        spill_files.tempfile, "NamedTemporaryFile", lambda **how: made.append(how["dir"]) or real(**how)
    )
    folder = tmp_path / "scratch"
    folder.mkdir()

    assert values(logged) == NEWEST
    assert made == []
    assert values(logged, options={LIMIT: 0, FOLDER: folder}) == NEWEST
    assert made == [str(folder)] * 2, "a file of the rows, and one of their keys"


def test_a_limit_holds_for_streams_and_counts_too(logged: HudiTable, tmp_path: Path) -> None:
    """A folder that is not there shows that rows would have gone into it."""
    scan = logged.scan(options={LIMIT: 0, FOLDER: tmp_path / "nowhere"})

    for rows in (scan.to_arrow, scan.count, lambda: scan.to_batches().read_all()):
        with pytest.raises(ConfigError, match=r"nowhere.*hoodie\.memory\.spillable\.map\.path"):
            rows()


def test_query_type_and_moment_may_be_given_by_hudis_keys(logged: HudiTable) -> None:
    first = logged.state().timeline.commits().instants[0].requested_time
    old = sorted(row["v"] for row in ROWS)

    assert values(logged, options={AS_OF: first}) == old
    assert values(logged, options={QUERY_TYPE: "read_optimized"}) == old
    assert values(logged, options={"hoodie.datasource.view.type": "snapshot"}) == NEWEST


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"query_type": "snapshot", "options": {QUERY_TYPE: "read_optimized"}}, "given twice, as 'read_optimized'"),
        ({"as_of": "2024-01-01", "options": {AS_OF: "2024-01-02"}}, "given twice, as '2024-01-02'"),
        ({"options": {QUERY_TYPE: "incremental"}}, "hoodie.datasource.read.begin.instanttime"),
        ({"options": {QUERY_TYPE: "all"}}, "expected one of snapshot, read_optimized, incremental, found 'all'"),
        ({"options": {LIMIT: "1 GB"}}, "expected one integer, found '1 GB'"),
        ({"options": {LIMIT: -1}}, "expected at least 0"),
        (
            {"options": {"hoodie.datasource.read.begin.instanttime": "1"}},
            "begin='1', end=None with a query of type snapshot",
        ),
        ({"options": {"as.of.instant": "yesterday"}}, "as_of='yesterday' is no moment"),
    ],
)
def test_what_can_not_be_meant_is_said_before_anything_is_read(
    logged: HudiTable, asked: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        logged.scan(**asked)
    assert says in str(caught.value)


def test_keys_without_effect_are_warned_about_by_name_once_a_process(
    logged: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.warnings._messages_given_once", set())
    with pytest.raises(ConfigError, match=r"Unknown option 'hoodie\.memory\.merge\.max'.*merge\.max\.size"):
        logged.scan(options={"hoodie.memory.merge.max": 7})
    with pytest.warns(HudiOptionWarning, match=r"No effect.*file\.index\.enable"):
        assert values(logged, options={"hoodie.file.index.enable": False}) == NEWEST
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(logged, options={"hoodie.file.index.enable": False}) == NEWEST
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(logged, options={"hoodie.datasource.write.recordkey.field": "id"}) == NEWEST, "a write's business"
