"""A table elsewhere: rows in a file, instants as JSON, a whole copy as of a commit. Source: docs/savepoints.md."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, HudiTable, TableError, write_hudi
from pyhudi.errors import RangeNotReadable, StorageError, TableExists
from pyhudi.table import exports
from tests.support.golden.folder import Golden

ROWS = [{"id": n, "city": "abc"[n % 3], "ts": 1} for n in range(9)]
GOLDEN = (
    ("0.15.0", "cow_operations"),
    ("0.15.0", "g2_compaction_pending"),
    ("0.15.0", "g2_logs_failed_commit_pending"),
    ("0.15.0", "g2_clustering_executed"),
    ("1.0.2", "g2_compaction_executed"),
    ("1.0.2", "g2_savepoint_only"),
    ("1.2.0", "cow_operations"),
    ("1.2.0", "g2_bucket_consistent"),
    ("1.2.0", "mdt_all_mor"),
    ("1.2.0", "history_a_mor"),
)


def as_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def data_files(path: Path) -> list[Path]:
    files = (file for file in path.rglob("*") if file.is_file() and ".hoodie" not in file.parts)
    return sorted(file for file in files if not file.name.startswith(".hoodie_partition") and file.suffix != ".crc")


def written(path: Path, table_type: str = "COPY_ON_WRITE", version: int = 9) -> HudiTable:
    options = {
        "hoodie.write.table.version": str(version),
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
    }
    keys: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", "table_type": table_type}
    for ts in range(1, 4):
        write_hudi(path, [{**row, "ts": ts} for row in ROWS[: 9 // ts]], options=options, **keys)
    return HudiTable.open(path)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), GOLDEN)
def test_a_copy_of_hudis_tables_has_the_rows_of_then_and_a_metadata_table_that_is_right(
    golden: Golden, tmp_path: Path, version: str, name: str
) -> None:
    path, _ = golden(version, name)
    table = HudiTable.open(path)
    commits = [commit.requested_time for commit in table.state().timeline.commits()]
    for number, time in enumerate(commits):
        try:
            rows = table.at(time).to_arrow()
        except TableError:
            with pytest.raises(TableError, match="cleaning has removed"):
                table.maintenance.copy_to(tmp_path / str(number), time)
            continue

        copied = table.maintenance.copy_to(tmp_path / str(number), time)

        copy = HudiTable.open(copied.path)
        assert as_rows(copy.to_arrow()) == as_rows(rows)
        assert set(copy.metadata.partitions) == set(table.metadata.partitions)
        assert copy.metadata.validate() == ()
        assert copied.files == len(data_files(Path(copied.path)))


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_copy_is_written_to_and_served_without_the_table_that_it_is_of(
    tmp_path: Path, version: int, table_type: str
) -> None:
    table = written(tmp_path / "t", table_type, version)
    second = table.state().timeline.commits().instants[1].requested_time
    rows = as_rows(table.at(second).to_arrow())

    table.maintenance.copy_to(tmp_path / "copy", second)
    shutil.rmtree(tmp_path / "t")
    copy = HudiTable.open(tmp_path / "copy")

    assert as_rows(copy.to_arrow()) == rows
    copy.upsert([{"id": 0, "city": "a", "ts": 9}, {"id": 100, "city": "a", "ts": 9}])
    if table_type == "MERGE_ON_READ":
        copy.compact()
    copy.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30)})
    copy.clean()
    assert {row["id"]: row["ts"] for row in copy.to_arrow().to_pylist()} == {
        **{n: 2 if n < 4 else 1 for n in range(9)},
        0: 9,
        100: 9,
    }
    assert copy.metadata.validate() == ()


@pytest.mark.thorough
def test_nothing_older_than_the_copy_can_be_read_in_it(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    first, second, _ = (commit.requested_time for commit in table.state().timeline.commits())

    table.maintenance.copy_to(tmp_path / "copy", second)

    copy = HudiTable.open(tmp_path / "copy")
    assert [commit.requested_time for commit in copy.state().timeline.commits()] == [first, second]
    with pytest.raises(TableError, match="cleaning has removed"):
        copy.at(first).to_arrow()
    with pytest.raises(RangeNotReadable):
        copy.changes(since="earliest", until=first).to_arrow()
    with pytest.raises(TableError):
        copy.restore(first)
    assert copy.count() == 9


@pytest.mark.thorough
def test_savepoints_stay_where_their_files_are(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    first, second, _ = (commit.requested_time for commit in table.state().timeline.commits())
    table.savepoints.create(first)

    table.maintenance.copy_to(tmp_path / "copy", second)
    table.maintenance.copy_to(tmp_path / "saved", first)

    assert [commit.requested_time for commit in HudiTable.open(tmp_path / "copy").state().timeline.commits()] == [
        second
    ]
    for name, count in (("copy", 9), ("saved", 9)):
        copy = HudiTable.open(tmp_path / name)
        assert list(copy.savepoints.list()) == []
        assert copy.count() == count


def test_log_blocks_of_later_commits_stay_out_of_a_copy(tmp_path: Path) -> None:
    """Below version 8 they may be in the same log file: once archiving has passed them they would count."""
    table = written(tmp_path / "t", "MERGE_ON_READ", 6)
    _, second, third = (commit.requested_time for commit in table.state().timeline.commits())
    logs = [path for path in data_files(tmp_path / "t") if ".log." in path.name]
    older = next(path for path in logs if second.encode() in path.read_bytes())
    newer = next(path for path in logs if third.encode() in path.read_bytes() and path.parent == older.parent)
    before = older.read_bytes()
    older.write_bytes(before + newer.read_bytes())  # as Hudi appends where the file system can
    newer.unlink()

    table.maintenance.copy_to(tmp_path / "copy", second)

    assert (tmp_path / "copy" / older.relative_to(tmp_path / "t")).read_bytes() == before
    copied = data_files(tmp_path / "copy")
    assert [path for path in copied if third.encode() in path.read_bytes() or not path.stat().st_size] == []


def test_a_copy_needs_a_folder_of_its_own(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")

    with pytest.raises(ConfigError, match="not empty"):
        table.maintenance.copy_to(tmp_path / "full")
    with pytest.raises(TableExists):
        table.maintenance.copy_to(tmp_path / "t")
    with pytest.raises(TableError, match="no commit yet"):
        HudiTable.create(tmp_path / "new", table.schema(), record_key="id").maintenance.copy_to(tmp_path / "copy")
    assert (tmp_path / "full" / "file").read_text() == "x"


@pytest.mark.parametrize("step", ["_copy_file", "create_table", "_serve"])
def test_a_copy_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    table = written(tmp_path / "t")
    whole, calls = getattr(exports, step), iter(range(99))

    def failing(*arguments: Any) -> Any:
        if step == "_copy_file" and next(calls) < 3:
            return whole(*arguments)
        raise StorageError("full")

    monkeypatch.setattr(exports, step, failing)
    with pytest.raises(StorageError, match="full"):
        table.maintenance.copy_to(tmp_path / "copy")

    assert list((tmp_path / "copy").iterdir()) == []
    monkeypatch.undo()
    table.maintenance.copy_to(tmp_path / "copy")
    assert HudiTable.open(tmp_path / "copy").count() == 9


def test_a_file_that_cleaning_takes_away_meanwhile_fails_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path / "t")
    whole = exports._copy

    def cleaned(parts: Any, source: Any, target: Any) -> None:
        for path in (tmp_path / "t").rglob("*.parquet"):
            path.unlink()
        whole(parts, source, target)

    monkeypatch.setattr(exports, "_copy", cleaned)
    with pytest.raises(TableError, match="while it was copied, by a clean"):
        table.maintenance.copy_to(tmp_path / "copy")
    assert not HudiTable.exists(tmp_path / "copy")


def test_a_copy_goes_to_another_store(tmp_path: Path) -> None:
    table = written(tmp_path / "t")

    copied = table.maintenance.copy_to("memory://copied")

    assert as_rows(HudiTable.open("memory://copied").to_arrow()) == as_rows(table.to_arrow())
    assert copied.path == "memory://copied"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_rows_go_to_a_file_of_another_format(tmp_path: Path, suffix: str) -> None:
    table = written(tmp_path / "t")
    first = table.state().timeline.commits().instants[0].requested_time

    exported = table.export(tmp_path / f"rows.{suffix}", ["id", "ts"], "city = 'a'", first)

    assert exported.items == 3
    ids: Sequence[int]
    if suffix == "parquet":
        ids = pq.read_table(exported.path)["id"].to_pylist()
    elif suffix == "csv":
        ids = [int(line.split(",")[0]) for line in Path(exported.path).read_text().splitlines()[1:]]
    else:
        ids = pa.ipc.open_file(exported.path).read_all()["id"].to_pylist()
    assert sorted(ids) == [0, 3, 6]
    with pytest.raises(ConfigError, match="ends in"):
        table.export(tmp_path / "rows.xls")


def test_instants_are_json_in_a_folder(tmp_path: Path) -> None:
    table = written(tmp_path / "t")

    exported = table.inspect.export_instants(tmp_path / "out")

    assert exported.items == 3
    bodies = [json.loads(path.read_text()) for path in sorted((tmp_path / "out").iterdir())]
    assert [body["operationType"] for body in bodies] == ["UPSERT"] * 3
    with pytest.raises(ConfigError, match="no action 'commits'"):
        table.inspect.export_instants(tmp_path / "out", actions=["commits"])
    assert table.inspect.export_instants(tmp_path / "cleans", actions=["clean"]).items == 0
