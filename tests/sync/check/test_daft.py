"""What a check says of Daft is what Daft does, where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.results import SyncFinding

daft: Any = pytest.importorskip("daft", reason="Daft is not installed")
OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.table.name": "rides"}
ROWS = [{"id": i, "city": "AB"[i % 2], "fare": i / 2} for i in range(10)]


def written(path: Path, version: int = 6, **arguments: Any) -> HudiTable:
    given = {"record_key": "id", "partition_by": "city", "options": OPTIONS, **arguments}
    write_hudi(path, ROWS, table_version=version, **given)
    return HudiTable.open(path)


def problems(table: HudiTable) -> dict[str, SyncFinding]:
    return {one.about: one for one in table.sync_check("daft").problems}


def test_a_table_without_a_problem_is_read_whole(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    table.upsert([{"id": 1, "city": "B", "fare": 100.0}], options=OPTIONS)

    assert problems(table) == {}
    frame = daft.read_hudi(str(tmp_path / "t"))
    assert frame.count_rows() == 10
    assert frame.where(frame["id"] == 1).to_pydict()["fare"] == [100.0]


def test_rows_of_replaced_files_are_as_many_as_the_check_counts(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    table.cluster(options=OPTIONS)
    table.delete_partitions(["A"], options=OPTIONS)

    extra = problems(table)["shows other files"].rows
    assert daft.read_hudi(str(tmp_path / "t")).count_rows() == table.count() + (extra or 0) == 20


def test_a_folder_beside_the_files_of_a_table_without_partitions_hides_them(tmp_path: Path) -> None:
    table = written(tmp_path / "t", partition_by=None)
    assert problems(table) == {}
    (tmp_path / "t" / "metadata").mkdir()

    assert "other folders" in problems(table)
    assert daft.read_hudi(str(tmp_path / "t")).count_rows() == 0


@pytest.mark.parametrize(
    ("version", "options", "about"),
    [
        (9, {}, "version not among"),
        (6, {"hoodie.table.name": "a=b"}, "= in a property"),
        (6, {"hoodie.datasource.write.drop.partition.columns": "true"}, "dropped partition columns"),
    ],
)
def test_what_can_not_be_read_fails(version: int, options: dict[str, str], about: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, options={**OPTIONS, **options})

    assert problems(table)[about].level == "unreadable"
    with pytest.raises(Exception, match=r"Only support|too many values"):
        daft.read_hudi(str(tmp_path / "t")).count_rows()
