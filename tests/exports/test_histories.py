"""What happened to a table between two exports: each commit is a version, and the newest has the table's rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pyhudi import ConfigError, HudiTable, StorageError, TableExists, UnsupportedTable, bootstrap, write_hudi
from pyhudi.errors import MissingLibrary
from pyhudi.exports.commits import ExportedState, load_pending
from pyhudi.model.options.catalogs import exporting
from tests.support.exports.delta import assert_equal, by_delta, instants, live_files, rows

OFF = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
NONE: Mapping[str, str] = {}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


def row(id: int, city: str = "a", v: int = 1) -> dict[str, Any]:
    return {"id": id, "city": city, "v": v}


def written(path: Path, version: int = 9, options: Mapping[str, str] = NONE) -> HudiTable:
    given = {**OFF, "hoodie.write.table.version": str(version), **options}
    write_hudi(str(path), [row(1), row(2), row(3, "b")], record_key="id", partition_by="city", options=given)
    return HudiTable.open(path)


def paths(table: HudiTable) -> list[str]:
    """The files of the table now."""
    return [str(path) for path in table.inspect.files()["path"].to_pylist()]


def commits(table: HudiTable) -> list[str]:
    return [one.requested_time for one in table.state().timeline.commits()]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_each_commit_since_the_last_export_is_a_version_with_its_rows(version: int, tmp_path: Path) -> None:
    table = written(tmp_path, version)
    table.export_metadata("delta")
    table.upsert([row(1, v=2)], options=OFF)
    table.delete(where="id = 2", options=OFF)
    table.insert_overwrite([row(9, "b")], options=OFF)
    table.cluster(options=OFF)
    table.delete_partitions(["b"], options=OFF)

    result = table.export_metadata("delta")

    assert result.commits == 5
    assert instants(tmp_path) == commits(table)
    for number, instant in enumerate(commits(table)):
        assert by_delta(tmp_path, number) == rows(table.scan(as_of=instant).to_arrow())


def test_an_export_without_news_makes_no_version(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")

    result = table.export_metadata("delta")

    assert (result.commits, result.files_added, result.files_removed) == (0, 0, 0)
    assert result.instant_time == commits(table)[-1]
    assert DeltaTable(tmp_path).version() == 0


def test_a_commit_without_files_is_a_version(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    table.upsert(pa.table({"id": [1], "city": ["a"], "v": [1]}).slice(0, 0), options=OFF)

    table.export_metadata("delta")

    assert instants(tmp_path)[-1] == commits(table)[-1]
    assert_equal(table)


def test_a_table_without_a_commit_has_nothing_to_export(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path, pa.schema([("id", pa.int64())]), record_key="id")

    result = table.export_metadata("delta")

    assert (result.instant_time, result.commits) == (None, 0)
    assert "nothing new" in str(result)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("then", ["nothing", "a write"])
def test_a_rollback_takes_the_files_out_again_and_brings_the_older_ones_back(
    version: int, then: str, tmp_path: Path
) -> None:
    table = written(tmp_path, version)
    table.export_metadata("delta")
    had = by_delta(tmp_path)
    table.upsert([row(1, v=2), row(7, "c")], options=OFF)
    table.export_metadata("delta")
    table.rollback(options=OFF)
    if then == "a write":
        table.upsert([row(8, "d")], options=OFF)

    table.export_metadata("delta")

    assert_equal(table)
    if then == "nothing":
        assert by_delta(tmp_path) == had
        assert instants(tmp_path)[-1] == commits(table)[-1]


def test_a_restore_takes_several_commits_back(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.savepoints.create(options=OFF)
    table.export_metadata("delta")
    had = by_delta(tmp_path)
    table.upsert([row(1, v=2)], options=OFF)
    table.insert_overwrite([row(9, "b")], options=OFF)
    table.export_metadata("delta")

    table.restore(commits(table)[0], options=OFF)
    table.export_metadata("delta")

    assert by_delta(tmp_path) == had
    assert_equal(table)


def test_commits_whose_files_were_cleaned_are_one_version_with_the_next(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    for v in range(2, 7):
        table.upsert([row(1, v=v)], options=OFF)
    none_kept = {"hoodie.clean.commits.retained": "1", "hoodie.pyhudi.export.retain.hours": "0"}
    assert table.clean(options=none_kept).runs

    table.export_metadata("delta")

    assert_equal(table)
    for version in range(1, DeltaTable(tmp_path).version() + 1):  # none names a file that is not there
        by_delta(tmp_path, version)
    assert instants(tmp_path)[-1] == commits(table)[-1]
    assert len(instants(tmp_path)) < 6


def test_commits_that_were_archived_are_one_version(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    for v in range(2, 9):
        table.upsert([row(1, v=v)], options=OFF)
    keep = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table.clean(options={"hoodie.clean.commits.retained": "1", "hoodie.pyhudi.export.retain.hours": "0"})
    assert table.maintenance.archive(options=keep)

    assert table.export_metadata("delta").commits == 1
    assert_equal(table)


def test_a_commit_that_completes_after_a_later_one_was_exported_is_a_version_of_its_own(tmp_path: Path) -> None:
    table = written(tmp_path)
    late = table.cluster(schedule_only=True, options=OFF).scheduled
    table.insert([row(10, "z")], options={**OFF, "hoodie.parquet.small.file.limit": "0"})
    table.export_metadata("delta")
    assert late is not None
    table.cluster(instant_time=late, options=OFF)

    result = table.export_metadata("delta")

    assert result.commits == 1
    assert instants(tmp_path)[-1] == late
    assert_equal(table)


def test_a_merge_on_read_table_is_exported_as_its_base_files_and_says_what_it_lacks(tmp_path: Path) -> None:
    table = written(tmp_path, options=MERGE_ON_READ)
    table.export_metadata("delta")
    table.upsert([row(1, v=2), row(3, "b", 2)], options={**OFF, **MERGE_ON_READ})

    with pytest.warns(UserWarning, match="lacks 2 rows that are only in log files"):
        result = table.export_metadata("delta")
    assert result.rows_in_logs == 2
    assert "2 rows are only in log files" in str(result)
    assert_equal(table)

    table.compact(options=OFF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = table.export_metadata("delta")
    assert (result.rows_in_logs, result.files_added, result.files_removed) == (0, 2, 2)
    assert by_delta(tmp_path) == rows(table.to_arrow())


def test_a_table_that_was_upgraded_goes_on(tmp_path: Path) -> None:
    table = written(tmp_path, 6)
    table.export_metadata("delta")
    table.upsert([row(1, v=2)], options=OFF)
    table.maintenance.upgrade(9, options=OFF)
    table.upsert([row(1, v=3)], options=OFF)

    table.export_metadata("delta")

    assert_equal(table)
    assert instants(tmp_path)[-1] == commits(table)[-1]


# ---- the log


def test_the_log_says_how_many_rows_each_file_has(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")

    actions: list[Any] = pa.table(DeltaTable(tmp_path).get_add_actions())["num_records"].to_pylist()

    assert sum(actions) == table.count()
    assert live_files(tmp_path) == sorted(paths(table))


@pytest.mark.parametrize("full", [False, True])
def test_no_vacuum_within_the_retention_finds_a_file(full: bool, tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    table.upsert([row(1, v=2)], options=OFF)
    table.export_metadata("delta")
    table.upsert([row(1, v=3)], options=OFF)  # not exported yet

    assert DeltaTable(tmp_path).vacuum(dry_run=False, full=full) == []
    with pytest.raises(Exception, match="minimum retention"):
        DeltaTable(tmp_path).vacuum(retention_hours=0, full=full)
    table.export_metadata("delta")
    assert_equal(table)


def test_a_vacuum_that_overrides_the_retention_still_finds_no_file_that_was_ever_exported(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    had = live_files(tmp_path)
    table.upsert([row(1, v=2)], options=OFF)
    table.export_metadata("delta")
    ever = {*had, *live_files(tmp_path)}

    options: Any = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": True}
    assert DeltaTable(tmp_path).vacuum(**options) == []
    assert ever.isdisjoint(DeltaTable(tmp_path).vacuum(**options, full=True))


def test_what_another_writer_does_to_the_delta_table_is_undone_by_the_next_export(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    opened = DeltaTable(tmp_path)
    write_deltalake(opened, by_name(opened).slice(0, 1), mode="append")
    opened.optimize.compact()
    opened.delete("id = 3")

    result = table.export_metadata("delta")

    assert result.commits == 1
    assert_equal(table)


def by_name(table: DeltaTable) -> pa.Table:
    return table.to_pyarrow_table()


def test_what_is_left_of_a_log_that_was_being_deleted_is_no_table(tmp_path: Path) -> None:
    table = written(tmp_path)
    for v in (2, 3):
        table.export_metadata("delta")
        table.upsert([row(1, v=v)], options=OFF)
    table.export_metadata("delta")
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    assert table.export_metadata("delta").commits == 1
    assert DeltaTable(tmp_path).version() == 0
    assert_equal(table)


def test_a_log_with_checkpoints_and_without_its_first_versions_goes_on(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    table.upsert([row(1, v=2)], options=OFF)
    table.export_metadata("delta")
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    table.upsert([row(1, v=3)], options=OFF)

    assert table.export_metadata("delta").commits == 1
    assert DeltaTable(tmp_path).version() == 2
    assert_equal(table)


# ---- what is refused


def test_a_delta_table_that_is_not_of_this_table_stays_as_it_is(tmp_path: Path) -> None:
    table = written(tmp_path)
    write_deltalake(tmp_path, pa.table({"x": [1]}))

    with pytest.raises(TableExists, match="not exported from the Hudi table"):
        table.export_metadata("delta")
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    table = written(tmp_path)

    with pytest.raises(ConfigError, match=r"exported as .*delta.*found 'deltas'"):
        table.export_metadata("deltas")
    with pytest.raises(ConfigError, match=r"hoodie.pyhudi.export.formats: expected .*delta.*found 'paimon'"):
        table.upsert([row(5)], options={**OFF, "hoodie.pyhudi.export.formats": "paimon"})
    assert len(commits(table)) == 1


def test_a_missing_library_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path)
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)

    with pytest.raises(MissingLibrary, match=r"deltalake.*pip install .pyhudi\[delta\]"):
        table.export_metadata("delta")
    with pytest.raises(MissingLibrary, match=r"hoodie.pyhudi.export.formats=delta needs deltalake"):
        table.upsert([row(5)], options={**OFF, "hoodie.pyhudi.export.formats": "delta"})
    assert len(commits(table)) == 1


def test_a_table_in_memory_is_refused(tmp_path: Path) -> None:
    write_hudi("memory://exported", [row(1)], record_key="id", options=OFF)

    with pytest.raises(UnsupportedTable, match="deltalake can't reach"):
        HudiTable.open("memory://exported").export_metadata("delta")


def test_skeletons_of_a_bootstrap_are_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "v": [1, 2]}), tmp_path / "source" / "f.parquet")
    bootstrap(str(tmp_path / "source"), str(tmp_path / "t"), record_key="id", options=OFF)

    with pytest.raises(UnsupportedTable, match="bootstrap"):
        HudiTable.open(tmp_path / "t").export_metadata("delta")


def test_base_files_that_are_not_parquet_are_refused(tmp_path: Path) -> None:
    table = written(tmp_path, options={"hoodie.table.base.file.format": "ORC"})

    with pytest.raises(UnsupportedTable, match=r"Parquet base files, found .*\.orc"):
        table.export_metadata("delta")


def test_a_log_that_can_not_be_written_is_a_storage_error(tmp_path: Path) -> None:
    table = written(tmp_path)
    (tmp_path / "_delta_log").write_text("not a folder")

    with pytest.raises(StorageError, match="deltalake can't do its part"):
        table.export_metadata("delta")


# ---- the commits as values


def test_the_commits_add_up_to_what_is_visible(tmp_path: Path) -> None:
    table = written(tmp_path)
    first = commits(table)[0]
    start = frozenset(paths(table))
    for v in (2, 3):
        table.upsert([row(1, v=v), row(10 + v, f"c{v}")], options=OFF)
    meta = table.state()
    state = ExportedState(first, meta.timeline.find(first).completion_time or "", start, ("city",))  # type: ignore[union-attr]

    now = set(start)
    for commit, instant in zip(load_pending(meta, state).commits(), commits(table)[1:], strict=True):
        assert (commit.instant, commit.action) == (instant, "commit")
        assert now.issuperset(commit.removed)
        now = now.difference(commit.removed).union(file.path for file in commit.added)
        assert all(file.partition_values == {"city": file.partition_path} for file in commit.added)
    assert now == set(paths(table))


def test_a_first_export_is_one_commit_with_everything(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.upsert([row(1, v=2)], options=OFF)

    (commit,) = load_pending(table.state(), None).commits()

    assert commit.instant == commits(table)[-1]
    assert {file.path: file.row_count for file in commit.added} == {
        path: 2 if path.startswith("a/") else 1 for path in paths(table)
    }


@pytest.mark.parametrize("name", ["a b", "50%", "ü#?"])
@pytest.mark.parametrize("form", ["{}", "file://{}"], ids=["path", "uri"])
def test_a_folder_may_have_any_name(form: str, name: str, tmp_path: Path) -> None:
    written(tmp_path / name)
    table = HudiTable.open(form.format(tmp_path / name))
    for v in (2, 3):
        table.export_metadata("delta")
        table.upsert([row(1, v=v)], options=OFF)

    table.export_metadata("delta")

    assert (tmp_path / name / "_delta_log").is_dir()
    assert DeltaTable(tmp_path / name).version() == 2
    assert_equal(HudiTable.open(tmp_path / name))


def test_a_folder_that_deltalake_looks_for_elsewhere_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "50%25")

    with pytest.raises(UnsupportedTable, match=r"'%25' in the name of a folder.*Rename"):
        table.export_metadata("delta")
