"""Ranges over commits from before the table changed its type: they have the rows that they had before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, call, write_hudi
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.model.options.streaming import SourceOptions
from pyhudi.queries.follow import end_of_batch
from pyhudi.queries.incremental_range import is_service

FARES = "id", "fare"
SIDES = [("COPY_ON_WRITE", "MERGE_ON_READ"), ("MERGE_ON_READ", "COPY_ON_WRITE")]


def trips(ids: str, fare: float) -> pa.Table:
    return pa.table({"id": list(ids), "fare": [fare] * len(ids)})


def three_commits(path: Path, table_type: str, version: int) -> tuple[HudiTable, list[str]]:
    """A table that logs changes, and the times of its commits: an insert, an update, a delete."""
    options = {"hoodie.metadata.enable": False}
    options |= {"hoodie.table.cdc.enabled": True}
    kind = {"table_type": table_type, "table_version": version}
    first = write_hudi(path, trips("abc", 1.0), record_key="id", options=options, **kind)
    second = write_hudi(path, trips("ab", 2.0))
    table = HudiTable.open(path)
    third = table.delete(where="id = 'c'")
    return table, [str(result.instant_time) for result in (first, second, third)]


def told(table: HudiTable, times: list[str]) -> list[list[dict[str, object]]]:
    """What the table says of each commit and of all, as rows and as changes."""
    ranges = [*zip(["earliest", *times], times, strict=False), ("earliest", times[-1])]
    rows = [table.changes(begin, end).to_arrow().sort_by("id").to_pylist() for begin, end in ranges]
    return [
        *([{name: row[name] for name in (*FARES, "_hoodie_commit_time")} for row in each] for each in rows),
        *(table.changes(begin, end, format="cdc").to_arrow().to_pylist() for begin, end in ranges),
    ]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("source", "target"), SIDES)
def test_each_range_is_the_same_once_the_type_has_changed_and_after_the_next_write(
    tmp_path: Path, source: str, target: str, version: int
) -> None:
    table, times = three_commits(tmp_path / "t", source, version)
    before = told(table, times)
    assert [[row["id"] for row in rows] for rows in before[:4]] == [["a", "b", "c"], ["a", "b"], [], ["a", "b"]]
    assert ["".join(str(change["op"]) for change in changes) for changes in before[4:]] == ["iii", "uu", "d", "iiiuud"]

    table.maintenance.change_type(target)

    assert told(table, times) == before
    write_hudi(table.path, trips("a", 9.0))
    assert told(table, times) == before
    assert [row["fare"] for row in table.changes(times[0]).to_arrow().sort_by("id").to_pylist()] == [9.0, 2.0]


@pytest.mark.parametrize("version", [6, 9])
def test_batches_of_a_stream_end_at_commits_from_before_the_type_changed(tmp_path: Path, version: int) -> None:
    table, _ = three_commits(tmp_path / "t", "COPY_ON_WRITE", version)
    table.maintenance.change_type("MERGE_ON_READ")
    commits = table.state().timeline.commits()
    times = [str(i.completion_time if version >= 8 else i.requested_time) for i in commits]

    ends, begin = [], ""
    while (end := end_of_batch(table.state(), begin, IncrementalOptions(), SourceOptions(max_commits=1))) != begin:
        ends.append(end)
        begin = end

    assert ends == times


def test_commits_from_before_the_type_changed_are_no_compactions_to_show(tmp_path: Path) -> None:
    table, _ = three_commits(tmp_path / "t", "COPY_ON_WRITE", 9)
    table.maintenance.change_type("MERGE_ON_READ")
    assert call("show_compaction", table.path).num_rows == 0
    write_hudi(table.path, trips("a", 9.0))

    ran = table.compact()

    assert call("show_compaction", table.path).column("timestamp").to_pylist() == list(ran.instant_times)


def test_a_commit_of_an_unknown_operation_is_a_compaction_if_it_merged_log_files() -> None:
    commit = Instant("20260101000000000", ActionKind.COMMIT, State.COMPLETED)
    delta = Instant("20260101000000000", ActionKind.DELTACOMMIT, State.COMPLETED)
    merged = {"p": (WriteStat("f", "p/f_1-0-1_20260101000000000.parquet", "p", total_log_files=2),)}
    written = {"p": (WriteStat("f", "p/f_1-0-1_20260101000000000.parquet", "p"),)}

    assert is_service(commit, CommitMetadata(merged))
    assert is_service(commit, CommitMetadata(written, compacted=True))
    assert not is_service(commit, CommitMetadata(written))
    assert not is_service(delta, CommitMetadata(merged))
    assert is_service(commit, CommitMetadata(written, operation_type=OperationType.COMPACT))
