"""Cleaning keeps the files that an export has, within a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.model.filenames import EXPORTS_FOLDER
from tests.support.exports.delta import assert_equal, by_delta

BY_COMMITS = {"hoodie.clean.commits.retained": "1"}
BY_VERSIONS = {"hoodie.clean.fileversions.retained": "1"}
OFF = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false"}


def row(id: int, city: str, v: int) -> dict[str, object]:
    return {"id": id, "city": city, "v": v}


def written(path: Path) -> HudiTable:
    write_hudi(str(path), [row(1, "a", 1), row(2, "b", 1)], record_key="id", partition_by="city", options=OFF)
    return HudiTable.open(path)


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["commits", "versions"])
def test_a_clean_keeps_the_files_of_an_export_that_lags_and_deletes_them_when_it_does_not(
    policy: dict[str, str], tmp_path: Path
) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    had = by_delta(tmp_path)
    for v in (2, 3, 4):
        table.upsert([row(1, "a", v)], options=OFF)
    table.delete_partitions(["b"], options=OFF)
    table.upsert([row(3, "c", 1)], options=OFF)

    table.clean(options=policy)
    assert by_delta(tmp_path) == had

    table.export_metadata("delta")
    cleaned = table.clean(options=policy)
    assert cleaned.runs
    assert_equal(table)
    files = [file for file in tmp_path.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert len(files) <= 3


def test_a_clean_waits_no_longer_than_the_bound_for_an_export(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    for v in (2, 3, 4):
        table.upsert([row(1, "a", v)], options=OFF)

    cleaned = table.clean(options={**BY_COMMITS, "hoodie.pyhudi.export.retain.hours": "0"})
    assert cleaned.runs
    table.export_metadata("delta")
    assert_equal(table)


def test_a_record_of_an_export_that_means_nothing_holds_no_clean_up(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    (tmp_path / EXPORTS_FOLDER / "delta").write_bytes(b"\xff")
    for v in (2, 3, 4):
        table.upsert([row(1, "a", v)], options=OFF)

    assert table.clean(options=BY_COMMITS).runs


def test_a_clean_with_each_commit_leaves_no_moment_in_which_a_version_lacks_a_file(tmp_path: Path) -> None:
    table = written(tmp_path)
    options = {**BY_COMMITS, "hoodie.metadata.enable": "false"}
    exported = {**options, "hoodie.pyhudi.export.formats": "delta"}
    table.upsert([row(1, "a", 2)], options=exported)
    for v in (3, 4, 5):
        had = by_delta(tmp_path)
        table.upsert([row(1, "a", v)], options=options)  # as if it died before the export
        assert by_delta(tmp_path) == had
        table.upsert([row(1, "a", v)], options=exported)
        assert_equal(table)


def test_a_replaced_file_that_an_export_has_stays_hidden_while_it_is_there(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    had = by_delta(tmp_path)
    table.insert_overwrite([row(1, "a", 2)], options=OFF)
    for v in (3, 4, 5, 6, 7):
        table.upsert([row(1, "a", v)], options=OFF)
        table.clean(options=BY_VERSIONS)
    table.maintenance.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **BY_VERSIONS})

    assert by_delta(tmp_path) == had
    assert sorted(table.to_arrow()["v"].to_pylist()) == [1, 7]
    table.export_metadata("delta")
    assert_equal(table)
