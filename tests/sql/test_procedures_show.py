"""Procedures that show something, on tables of real Hudi: what they say is what those tables are known to be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, write_hudi
from tests.support.golden.folder import Golden

VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
WRITES = ("commit", "deltacommit", "replacecommit")


def column(rows: pa.Table, name: str) -> list[object]:
    return rows.column(name).to_pylist()


def instants(table: Path, *endings: str) -> list[str]:
    """Times of the completed instants of some actions, by the names of their files alone; newest first."""
    folder = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").is_dir() else table / ".hoodie"
    names = [file.name for file in folder.iterdir() if file.name.endswith(tuple(f".{ending}" for ending in endings))]
    return sorted((name[:17] for name in names), reverse=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["cow_operations", "g2_compaction_executed"])
def test_commits_are_those_of_the_timeline_newest_first(golden: Golden, version: str, name: str):
    path, _ = golden(version, name)
    commits = pyhudi.call("show_commits", path, limit=100)
    assert column(commits, "commit_time") == instants(path, *WRITES)
    assert column(pyhudi.call("show_commits", path, limit=2), "commit_time") == column(commits, "commit_time")[:2]
    stats = pyhudi.call("show_commits_metadata", path, limit=1000)
    written = dict.fromkeys(column(commits, "commit_time"), 0)
    for row in stats.to_pylist():
        written[row["commit_time"]] += row["num_writes"]
    assert column(commits, "total_records_written") == list(written.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_one_commit_is_shown_by_file_by_partition_and_as_a_whole(golden: Golden, version: str):
    path, _ = golden(version, "cow_operations")
    newest = column(pyhudi.call("show_commits", path, limit=1), "commit_time")[0]
    files = pyhudi.call("show_commit_files", path, instant_time=newest)
    parts = pyhudi.call("show_commit_partitions", path, instant_time=newest)
    (whole,) = pyhudi.call("show_commit_write_stats", path, instant_time=newest).to_pylist()
    assert whole["total_bytes_written"] == sum(column(files, "total_bytes_written"))
    assert whole["total_bytes_written"] == sum(column(parts, "total_bytes_written"))
    sizes = {file.name: file.stat().st_size for file in path.rglob(f"*_{newest}.parquet")}
    assert sorted(column(files, "file_size")) == sorted(sizes.values())
    first = pyhudi.call("show_commit_partitions", path, instant_time=instants(path, *WRITES)[-1])
    assert sum(column(first, "total_files_added")) > 0
    assert sum(column(first, "total_files_updated")) == 0
    schema = pyhudi.call("show_commit_extra_metadata", path, instant_time=newest, metadata_key="schema")
    assert json.loads(column(schema, "metadata_value")[0])["type"] == "record"


def test_a_commit_that_is_not_there_is_refused(golden: Golden):
    path, _ = golden("1.2.0", "cow_operations")
    with pytest.raises(ConfigError, match=r"no completed commit '20000101000000000'.*newest is 2"):
        pyhudi.call("show_commit_files", path, instant_time="20000101000000000")


@pytest.mark.parametrize("version", VERSIONS)
def test_archived_commits_are_shown_apart_and_in_the_timeline(golden: Golden, version: str):
    path, _ = golden(version, "history_a_mor")
    archived = pyhudi.call("show_archived_commits", path, limit=1000)
    active = set(instants(path, *WRITES))
    assert archived.num_rows > 5
    assert not active & set(column(archived, "commit_time"))
    times = column(archived, "commit_time")
    assert times == sorted(times, reverse=True)
    within = pyhudi.call("show_archived_commits", path, limit=1000, start_ts=times[3], end_ts=times[1])
    assert column(within, "commit_time") == times[1:4]
    shown = pyhudi.call("show_timeline", path, limit=1000, showArchived=True).to_pylist()
    assert set(times) <= {row["instant_time"] for row in shown if row["timeline_type"] == "ARCHIVED"}
    assert active <= {row["instant_time"] for row in shown if row["timeline_type"] == "ACTIVE"}


def test_the_timeline_says_which_write_a_rollback_took_back(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_cow")
    (rollback,) = pyhudi.call("show_timeline", path, filter="action = 'rollback'").to_pylist()
    (shown,) = pyhudi.call("show_rollbacks", path).to_pylist()
    assert rollback["rollback_info"] == f"Rolled back: {shown['rollback_instant']}"
    assert shown["instant"] == instants(path, "rollback")[0]
    detail = pyhudi.call("show_rollback_detail", path, instant_time=shown["instant"])
    assert detail.num_rows == shown["total_files_deleted"]
    assert all(column(detail, "succeeded"))
    assert all(shown["rollback_instant"] in name for name in column(detail, "deleted_file"))


def test_pending_instants_have_no_time_of_completion(golden: Golden):
    path, _ = golden("1.2.0", "g2_compaction_pending")
    (row,) = pyhudi.call("show_timeline", path, filter="action = 'compaction'").to_pylist()
    assert row["state"] == "REQUESTED"
    assert row["requested_time"]
    assert row["inflight_time"] is row["completed_time"] is None


@pytest.mark.parametrize("version", VERSIONS)
def test_savepoints_compactions_clusterings_and_cleans_are_listed(golden: Golden, version: str):
    path, _ = golden(version, "g2_savepoint_only")
    assert column(pyhudi.call("show_savepoints", path), "savepoint_time") == instants(path, "savepoint")
    path, _ = golden(version, "g2_compaction_pending")
    (pending,) = pyhudi.call("show_compaction", path).to_pylist()
    assert (pending["operation_size"], pending["state"]) == (3, "REQUESTED")
    path, _ = golden(version, "g2_clustering_executed")
    (done,) = pyhudi.call("show_clustering", path, show_involved_partition=True).to_pylist()
    assert (done["input_group_size"], done["state"]) == (3, "COMPLETED")
    assert set(done["involved_partitions"].split(",")) == {"a", "b", "c"}
    path, _ = golden(version, "mdt_all_cow")
    cleans = pyhudi.call("show_cleans", path)
    assert column(cleans, "clean_time") == instants(path, "clean")
    parts = pyhudi.call("show_cleans_metadata", path)
    assert sum(column(parts, "success_delete_files")) == sum(column(cleans, "total_files_deleted"))
    plans = pyhudi.call("show_clean_plans", path)
    assert column(plans, "plan_time") == instants(path, "clean")


@pytest.mark.parametrize("version", [6, 9])
def test_archived_cleans_are_shown_on_request(version: int, tmp_path: Path):
    options = {
        "hoodie.metadata.enable": "false",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.write.table.version": str(version),
    }
    seen: dict[str, dict[str, dict[str, Any]]] = {}
    for value in range(7):
        write_hudi(str(tmp_path), [{"id": 1, "p": "a", "v": value}], record_key="id", partition_by="p", options=options)
        for name in ("show_cleans", "show_cleans_metadata", "show_clean_plans"):
            for row in pyhudi.call(name, str(tmp_path)).to_pylist():
                seen.setdefault(name, {})[next(iter(row.values()))] = row

    for name, rows in seen.items():
        newest_first = [rows[time] for time in sorted(rows, reverse=True)]
        active = pyhudi.call(name, str(tmp_path)).to_pylist()
        assert 0 < len(active) < len(rows)
        assert pyhudi.call(name, str(tmp_path), showArchived=True).to_pylist() == newest_first
        assert pyhudi.call(name, str(tmp_path), showArchived=True, limit=2).to_pylist() == newest_first[:2]
        assert pyhudi.call(name, str(tmp_path)).to_pylist() == newest_first[: len(active)]


def test_a_table_without_log_files_has_no_compactions_to_show(golden: Golden):
    path, _ = golden("1.2.0", "cow_operations")
    with pytest.raises(pyhudi.UnsupportedTable, match="copy-on-write"):
        pyhudi.call("show_compaction", path)


@pytest.mark.parametrize("version", VERSIONS)
def test_file_views_show_all_slices_and_the_newest_ones(golden: Golden, version: str):
    path, _ = golden(version, "g2_compaction_executed")
    newest = pyhudi.call("show_fsview_latest", path, limit=-1)
    table = HudiTable.open(path)
    assert sorted(column(newest, "file_id")) == sorted(column(table.inspect.files(), "file_id"))
    for row in newest.to_pylist():
        if row["data_file"]:
            assert Path(row["data_file"].removeprefix("file:")).stat().st_size == row["data_file_size"]
    every = pyhudi.call("show_fsview_all", path, limit=-1)
    assert every.num_rows > newest.num_rows
    only = pyhudi.call("show_fsview_all", path, limit=-1, path_regex="a")
    assert set(column(only, "partition")) == {"a"}
    first = instants(path, *WRITES)[-1]
    before = pyhudi.call("show_fsview_all", path, limit=-1, max_instant=first)
    assert before.num_rows == 0
    then = pyhudi.call("show_fsview_all", path, limit=-1, max_instant=first, include_max=True)
    assert set(column(then, "base_instant")) == {first}


def test_replaced_file_groups_are_among_all_but_not_among_the_newest(golden: Golden):
    path, _ = golden("1.2.0", "g2_clustering_executed")
    newest = set(column(pyhudi.call("show_fsview_latest", path, limit=-1), "file_id"))
    every = set(column(pyhudi.call("show_fsview_all", path, limit=-1), "file_id"))
    assert newest < every


@pytest.mark.parametrize("version", VERSIONS)
def test_sizes_of_files_are_those_on_disk(golden: Golden, version: str):
    path, _ = golden(version, "cow_operations")
    *commits, total = pyhudi.call("stats_file_sizes", path, limit=-1).to_pylist()
    sizes = [file.stat().st_size for file in path.rglob("*.parquet") if ".hoodie" not in file.parts]
    assert (total["min"], total["max"], total["num_files"]) == (min(sizes), max(sizes), len(sizes))
    assert total["avg"] == pytest.approx(sum(sizes) / len(sizes))
    assert sum(row["num_files"] for row in commits) == len(sizes)
    *_, all_commits = pyhudi.call("stats_wa", path, limit=-1).to_pylist()
    assert all_commits["commit_time"] == "Total"


def test_a_file_is_there_deleted_by_cleaning_or_unknown(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_cow")
    there = next(path.glob("EU/*.parquet")).name
    (row,) = pyhudi.call("show_file_status", path, partition="EU", file=there).to_pylist()
    assert (row["status"], row["full_path"]) == ("exist", str(path / "EU" / there))
    detail = pyhudi.call("show_rollback_detail", path, instant_time=instants(path, "rollback")[0]).to_pylist()[0]
    name = detail["deleted_file"].rpartition("/")[2]
    (row,) = pyhudi.call("show_file_status", path, partition=detail["partition"], file=name).to_pylist()
    assert (row["status"], row["action"]) == ("deleted", "rollback")
    (row,) = pyhudi.call("show_file_status", path, partition="EU", file="nothing.parquet").to_pylist()
    assert row["status"] == "unknown"
    with pytest.raises(ConfigError, match="say in which one"):
        pyhudi.call("show_file_status", path, file=there)


def test_broken_base_files_are_found_and_deleted_on_request(golden: Golden):
    path, _ = golden("1.2.0", "cow_operations")
    assert pyhudi.call("show_invalid_parquet", path).num_rows == 0
    broken = sorted(path.glob("2024-01-01/*.parquet"))[0]
    broken.write_bytes(b"PAR1")
    assert column(pyhudi.call("show_invalid_parquet", path), "path") == [f"file:{broken}"]
    assert pyhudi.call("show_invalid_parquet", path, partitions="2024-01-02").num_rows == 0
    other = sorted(path.glob("2024-01-02/*.parquet"))[0]
    other.write_bytes(b"PAR1")
    assert pyhudi.call("show_invalid_parquet", path, needDelete=True, limit=1).num_rows == 1
    assert [broken.exists(), other.exists()].count(True) == 1  # no file is deleted that is not shown
    pyhudi.call("show_invalid_parquet", path, needDelete=True)
    assert not any(file.exists() for file in (broken, other))


def test_folders_are_counted_with_all_that_is_below(tmp_path: Path):
    (tmp_path / "t" / "a" / "b").mkdir(parents=True)
    (tmp_path / "t" / "a" / "b" / "f").write_bytes(b"x" * 2048)
    (tmp_path / "t" / "g").write_bytes(b"y")
    (row,) = pyhudi.call("show_fs_path_detail", tmp_path / "t").to_pylist()
    assert (row["path_num"], row["file_num"], row["storage_size"]) == (3, 2, 2049)
    assert row["storage_size(unit)"] == "2.00KB"
    below = pyhudi.call("show_fs_path_detail", tmp_path / "t", is_sub=True)
    assert column(below, "storage_path") == [f"file:{tmp_path}/t/a", f"file:{tmp_path}/t/g"]


@pytest.mark.parametrize("version", VERSIONS)
def test_blocks_and_records_of_log_files_are_shown(golden: Golden, version: str):
    path, _ = golden(version, "g2_savepoint_only")
    logs = sorted(path.glob("*/.*.log.*"))
    for pattern in (f"{path}/*/.*.log.*", "*/.*.log.*", f"file:{path}/*/.*.log.*"):
        blocks = pyhudi.call("show_logfile_metadata", path, log_file_path_pattern=pattern, limit=-1)
        assert blocks.num_rows == len(logs)
    assert set(column(blocks, "block_type")) == {"AVRO_DATA_BLOCK"}
    header = json.loads(column(blocks, "header_metadata")[0])
    assert header["INSTANT_TIME"] == column(blocks, "instant_time")[0]
    records = pyhudi.call("show_logfile_records", path, log_file_path_pattern="*/.*.log.*", limit=-1)
    assert records.num_rows == sum(column(blocks, "record_count"))
    keys = {json.loads(text)["id"] for text in column(records, "records")}
    merged = pyhudi.call("show_logfile_records", path, log_file_path_pattern="*/.*.log.*", merge=True, limit=-1)
    assert merged.num_rows == len(keys)


def test_delete_blocks_are_shown_where_real_hudi_fails(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_mor")
    blocks = pyhudi.call("show_logfile_metadata", path, log_file_path_pattern="*/.*.log.*", limit=-1)
    assert "DELETE_BLOCK" in column(blocks, "block_type")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_metadata_table_is_shown_and_compared_with_what_is_there(golden: Golden, version: str):
    path, _ = golden(version, "mdt_all_cow")
    partitions = column(pyhudi.call("show_metadata_table_partitions", path), "partition")
    assert {"EU", "US"} <= set(partitions) <= {"APAC", "EU", "US"}
    there = {file.name for file in path.glob("EU/*.parquet")}
    assert there <= set(column(pyhudi.call("show_metadata_table_files", path, partition="EU"), "file_path"))
    assert pyhudi.call("validate_metadata_table_files", path).num_rows == 0
    all_files = pyhudi.call("validate_metadata_table_files", path, verbose=True)
    assert column(all_files, "fs_size") == column(all_files, "metadata_size")
    (path / "EU" / sorted(there)[0]).unlink()
    wrong = pyhudi.call("validate_metadata_table_files", path).to_pylist()
    assert [(row["file_name"], row["is_present_in_fs"]) for row in wrong] == [(sorted(there)[0], False)]


@pytest.mark.thorough
def test_column_statistics_are_shown_for_the_newest_files(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_cow")
    shown = pyhudi.call("show_metadata_table_column_stats", path, targetColumns="i,s").to_pylist()
    table = HudiTable.open(path)
    rows = table.to_arrow(["_hoodie_file_name", "i"]).to_pylist()
    for one in (row for row in shown if row["column_name"] == "i"):
        values = [row["i"] for row in rows if row["_hoodie_file_name"] == one["file_name"] and row["i"] is not None]
        assert int(one["min_value"]) <= min(values)
        assert int(one["max_value"]) >= max(values)
    assert {row["column_name"] for row in shown} == {"i", "s"}
    overlap = pyhudi.call("show_metadata_column_stats_overlap", path, targetColumns="i").to_pylist()
    assert {row["Partition path"] for row in overlap} == {"EU", "US"}
    assert all(row["Maximum file overlap"] == 1 for row in overlap)


def test_properties_and_instants_are_shown_and_exported(golden: Golden, tmp_path: Path):
    path, _ = golden("1.2.0", "mdt_all_cow")
    properties = dict(zip(*pyhudi.call("show_table_properties", path, limit=-1).to_pydict().values(), strict=True))
    assert properties["hoodie.table.version"] == "9"
    folder = tmp_path / "exported"
    with pytest.raises(ConfigError, match="no folder"):
        pyhudi.call("export_instants", path, local_folder=str(folder))
    folder.mkdir()
    pyhudi.call("export_instants", path, local_folder=str(folder), actions="commit,clean,rollback")
    bodies = {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
    assert len(bodies) == len(instants(path, "commit", "clean", "rollback"))
    rollback = next(body for name, body in bodies.items() if name.endswith(".rollback"))
    assert rollback["totalFilesDeleted"] == 2


@pytest.mark.thorough
def test_a_copy_that_went_on_is_behind_and_ahead(golden: Golden, tmp_path: Path):
    path, _ = golden("1.2.0", "cow_operations")
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    (same,) = column(pyhudi.call("commits_compare", path, path=str(copy)), "compare_detail")
    assert "is ahead by 0 commits" in same
    table = HudiTable.open(copy)
    time = table.upsert(table.to_arrow(table.schema().names).slice(0, 1)).instant_time
    (behind,) = column(pyhudi.call("commits_compare", path, path=str(copy)), "compare_detail")
    assert f"is behind by 1 commits. Commits to catch up - [{time}]" in behind
    (ahead,) = column(pyhudi.call("commits_compare", copy, path=str(path)), "compare_detail")
    assert f"is ahead by 1 commits. Commits to catch up - [{time}]" in ahead
