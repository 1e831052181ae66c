"""Copies of real Hudi's merge-on-read tables are compacted: no row changes but in the name of its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi import DamagedLog, HudiTable, WriteConflict
from pyhudi.model.instant import ActionKind
from tests.support.golden.cases import given_up, golden_names
from tests.support.golden.folder import GoldenTable

Golden = Callable[[str, str], GoldenTable]
# Below version 8 no plan is made while a write is pending, and here one is, for the table shows just that.
REFUSED = {("0.15.0", "g2_logs_failed_commit_pending")}
LOGS_REFUSED = {(version, "g2_logs_failed_commit_pending") for version in ("0.15.0", "1.0.2", "1.2.0")}
PENDING = [(version, "g2_compaction_pending") for version in ("0.15.0", "1.0.2", "1.2.0")]


def rows(path: Path, query_type: str = "snapshot") -> list[str]:
    """The table's rows without the names of their files, as sorted text."""
    table = HudiTable.open(path).scan(query_type=query_type).to_arrow()
    columns = [name for name in table.column_names if name != "_hoodie_file_name"]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in table.select(columns).to_pylist())


def log_files(path: Path) -> int:
    return sum(HudiTable.open(path).inspect.partitions().column("log_files").to_pylist())


@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), golden_names("mor"))
def test_a_compaction_changes_no_row_and_leaves_no_log_file(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    before = rows(path)
    if (version, name) in REFUSED:
        with pytest.raises(WriteConflict):
            HudiTable.open(path).compact()
        return
    if given_up(name):
        with pytest.raises(DamagedLog):
            HudiTable.open(path).compact()
    result = HudiTable.open(path).compact(options=given_up(name))
    assert rows(path) == before
    clustering_waits = "clustering_pending" in name
    assert bool(log_files(path)) is clustering_waits, str(result)
    if not clustering_waits:
        assert rows(path, "read_optimized") == before


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), golden_names("mor"))
def test_a_log_compaction_changes_no_row(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    before, optimised = rows(path), rows(path, "read_optimized")
    options = {"hoodie.log.compaction.blocks.threshold": 2}
    if (version, name) in LOGS_REFUSED:
        with pytest.raises(WriteConflict):
            HudiTable.open(path).maintenance.log_compact(options=options)
        return
    HudiTable.open(path).maintenance.log_compact(options=options)
    assert rows(path) == before
    assert rows(path, "read_optimized") == optimised


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), PENDING)
def test_a_plan_of_real_hudi_is_run_as_it_stands(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    before = rows(path)
    table = HudiTable.open(path)
    (plan,) = (i for i in table.state().timeline.pending() if i.action is ActionKind.COMPACTION)
    logs = log_files(path)
    result = table.compact(instant_time=plan.requested_time)
    assert rows(path) == before
    (run,) = result.runs
    assert run.instant_time == plan.requested_time
    assert log_files(path) == logs - run.log_files, "log files of later writes stay"


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_the_stats_of_a_compaction_are_those_of_real_hudi(golden: Golden, version: str) -> None:
    """The same plan, run by real Hudi in one table and by us in the other."""
    theirs = _stats(golden(version, "g2_compaction_executed")[0])
    path, _ = golden(version, "g2_compaction_pending")
    HudiTable.open(path).compact(schedule_only=False)
    ours = _stats(path)
    ignored = {"path", "total_write_bytes", "file_size_in_bytes", "scan_time_ms", "upsert_time_ms"}
    ignored |= {"total_log_read_time_ms", "create_time_ms"}
    if version == "1.0.2":
        ignored.add("num_inserts")  # it counts the rows that stay
    if version == "1.2.0":
        ignored.add("total_log_size_compacted")  # it counts the content of blocks
    for group, stat in theirs.items():
        assert {k: v for k, v in ours[group].items() if k not in ignored} == {
            k: v for k, v in stat.items() if k not in ignored
        }
    assert theirs


def _stats(path: Path) -> dict[str, dict[str, Any]]:
    """File id → stat of the first compaction of a table."""
    table = HudiTable.open(path)
    meta = table.state()
    first = next(i for i in meta.timeline.completed() if i.action is ActionKind.COMMIT)
    body = meta.commits.metadata(first)
    assert (body.operation_type, body.compacted) == ("COMPACT", True)
    return {stat.file_id: {name: getattr(stat, name) for name in stat.__slots__} for stat in body.stats()}
