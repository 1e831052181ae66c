"""The health of a table: what is found, and which call mends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.services.health import Finding, TableHealth
from tests.support.arguments import arguments

pytestmark = pytest.mark.metadata_table

_FEW = {"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}


def test_a_new_table_is_healthy_in_one_line(tmp_path: Path) -> None:
    health = _table(tmp_path, writes=1).inspect.health()
    assert (health.is_healthy, health.findings, health.commits, health.files.base_files) == (True, (), 1, 2)
    assert health.lists_files == "metadata table"
    assert str(health).endswith("1 commits")
    assert "\n" not in str(health)


@pytest.mark.thorough
def test_many_small_files_are_found_and_clustering_reduces_them(tmp_path: Path) -> None:
    options = {"hoodie.parquet.small.file.limit": "0"}  # each write makes a file of its own
    for number in range(12):
        write_hudi(tmp_path, pa.table({"id": [f"{number}"], "n": [1]}), "insert", record_key="id", options=options)
    table = HudiTable.open(tmp_path)
    finding = _finding(table.inspect.health(), "small files")
    assert (finding.level, finding.run) == ("warning", "table.cluster()")
    assert finding.text.startswith("12 of 12 base files are small")
    assert finding.text.endswith("; 1 would do")
    eval(finding.run, {"table": table})
    assert (table.inspect.health().files.base_files, table.inspect.health().is_healthy) == (1, True)


def test_small_buckets_are_a_note_without_a_call_because_clustering_keeps_buckets(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "16"}
    write_hudi(tmp_path, pa.table({"id": [str(i) for i in range(200)]}), record_key="id", options=options)
    finding = _finding(HudiTable.open(tmp_path).inspect.health(), "small files")
    assert (finding.level, finding.run) == ("note", "")


@pytest.mark.thorough
def test_deep_log_files_and_waiting_plans_are_found_and_compaction_ends_both(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=6, table_type="MERGE_ON_READ", options={"hoodie.compact.inline": "false"})
    plan = table.compact(schedule_only=True).scheduled
    health = table.inspect.health()
    assert health.files.log_files_deepest == 5
    assert health.waiting == (plan,)
    assert [f.about for f in health.warnings] == ["waiting services", "log files"]
    assert {f.run for f in health.warnings} == {"table.compact()"}
    table.compact()
    assert table.inspect.health().is_healthy


def test_a_running_replacement_of_the_table_is_a_writer_and_leaves_nothing_to_find(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    seen = list[TableHealth]()

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": ["new"], "n": [1]})
        seen.append(table.inspect.health())

    rows = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.string()), ("n", pa.int64())]), batches())
    write_hudi(tmp_path, rows, record_key="id", mode="replace")

    assert [(one.findings, one.writers, one.dead_writers) for one in seen] == [((), 1, ())]
    assert (table.inspect.health().findings, table.inspect.health().writers) == ((), 0)


def test_a_replacement_whose_process_died_is_noted_and_the_next_write_deletes_it(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    built = tmp_path / ".hoodie" / ".temp" / "replacement-6f1f0c1e-9d8a-4c57-8d3e-0a1b2c3d4e5f"
    built.mkdir(parents=True)
    (built / "part.parquet").write_bytes(b"half")

    finding = _finding(table.inspect.health(), "dead writers")

    assert finding.level == "note"
    assert finding.text.startswith("a new table to replace this one: the process died before the end")
    assert table.inspect.health().writers == 0
    table.upsert(_rows(7))
    assert not built.exists()
    assert table.inspect.health().findings == ()


@pytest.mark.thorough
def test_a_table_without_metadata_table_is_noted_and_one_that_is_behind_is_a_warning(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    table.metadata.drop()
    missing = _finding(table.inspect.health(), "metadata table")
    assert (missing.level, missing.run, table.inspect.health().lists_files) == (
        "note",
        "table.metadata.rebuild()",
        "folders",
    )
    table.metadata.rebuild()
    assert table.inspect.health().findings == ()
    newest = table.upsert(_rows(7)).instant_time
    for file in (tmp_path / ".hoodie/metadata/.hoodie/timeline").glob(f"{newest}_*"):
        file.unlink()
    behind = _finding(table.inspect.health(), "metadata table")
    assert behind.level == "warning"
    assert f"lacks the instant {newest}" in behind.text
    assert table.inspect.health().files.base_files == 2  # folders were listed


def test_missing_statistics_are_noted_once(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    table.indexes.drop("column_stats")
    health = table.inspect.health()
    assert [(f.about, f.run) for f in health.findings] == [("statistics", "table.indexes.create('column_stats')")]
    table.indexes.create("column_stats")
    assert [f.run for f in table.inspect.health().findings] == ["table.indexes.create('partition_stats')"]


def test_a_dead_writer_is_found_and_its_rollback_ends_it(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    dead = str(int(table.state().timeline.commits().instants[-1].requested_time) + 1)
    (tmp_path / f".hoodie/timeline/{dead}.commit.requested").touch()
    health = table.inspect.health()
    assert health.dead_writers == (dead,)
    assert health.writers == 0
    assert _finding(health, "dead writers").run == f"table.rollback({dead!r})"
    eval(_finding(health, "dead writers").run, {"table": table})
    assert table.inspect.health().dead_writers == ()


def test_what_dead_writers_left_of_complete_writes_is_noted(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    (tmp_path / ".hoodie/.temp" / table.state().timeline.commits().instants[0].requested_time).mkdir(parents=True)
    assert "markers of 1 and heartbeats of 0" in _finding(table.inspect.health(), "dead writers").text
    write_hudi(tmp_path, _rows(3))
    assert table.inspect.health().findings == ()


@pytest.mark.thorough
def test_a_long_timeline_is_found(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=7, options={"hoodie.archive.automatic": "false"})
    health = table.inspect.health(options=_FEW)
    assert _finding(health, "timeline").run == "table.maintenance.archive()"


def test_health_is_json_html_and_a_line(tmp_path: Path) -> None:
    table = _table(tmp_path, writes=1)
    table.metadata.drop()
    health = table.inspect.health()
    values = json.loads(health.to_json())
    assert values["files"]["base_files"] == 2
    assert values["findings"][0]["about"] == "metadata table"
    assert "<td>table.metadata.rebuild()</td>" in health._repr_html_()
    assert repr(health).startswith("TableHealth(")
    assert "\n" not in repr(health)
    assert len(repr(health)) < 250
    assert "\n-  metadata table" in str(health)


def _table(path: Path, writes: int, **options: Any) -> HudiTable:
    for number in range(writes):
        write_hudi(path, _rows(number), record_key="id", **arguments({"partition_by": "city"}, options))
    return HudiTable.open(path)


def _rows(number: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "n": [number, number]})


def _finding(health: TableHealth, about: str) -> Finding:
    return next(finding for finding in health.findings if finding.about == about)
