"""A table's type changes in place. Source: docs/formats/table-config.md, "Keys"."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, write_hudi

ROWS = pa.table({"id": list("abcdef"), "city": ["rome", "oslo"] * 3, "fare": [float(n) for n in range(6)]})


def rows(table: HudiTable) -> list[dict[str, object]]:
    return sorted(table.scan(["id", "city", "fare"]).to_arrow().to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_merge_on_read_table_becomes_copy_on_write_with_all_rows_in_files_of_commits(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "t"
    write_hudi(path, ROWS, record_key="id", partition_by="city", table_type="MERGE_ON_READ", table_version=version)
    write_hudi(path, ROWS.slice(0, 1).set_column(2, "fare", pa.array([9.0])))
    table = HudiTable.open(path)
    before = rows(table)

    planned = table.maintenance.change_type("cow", dry_run=True)
    changed = table.maintenance.change_type("cow")

    assert planned.file_groups == 2
    assert changed.file_groups == 2
    assert table.state().config.table_type == "COPY_ON_WRITE"
    assert rows(table) == before
    # Apache Hudi sees commits and replace commits of such a table only.
    commits = {one.requested_time for one in table.state().timeline.commits() if one.action.value != "deltacommit"}
    assert {row["instant_time"] for row in table.inspect.files().to_pylist()} <= commits
    assert set(table.inspect.files()["log_files"].to_pylist()) == {0}
    write_hudi(path, ROWS.slice(1, 1).set_column(2, "fare", pa.array([8.0])))
    assert rows(table) == [{**row, "fare": 8.0} if row["id"] == "b" else row for row in before]


def test_a_copy_on_write_table_becomes_merge_on_read_and_takes_log_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_hudi(path, ROWS, record_key="id")
    table = HudiTable.open(path)

    changed = table.maintenance.change_type("MERGE_ON_READ")
    write_hudi(path, ROWS.slice(0, 1).set_column(2, "fare", pa.array([9.0])))

    assert (changed.source, changed.target) == ("COPY_ON_WRITE", "MERGE_ON_READ")
    assert table.inspect.files()["log_files"].to_pylist() == [1]
    assert rows(table)[0]["fare"] == 9.0


@pytest.mark.parametrize(
    ("payload", "fare"), [(None, 1.0), ("org.apache.hudi.common.model.DefaultHoodieRecordPayload", 9.0)]
)
def test_a_table_of_version_6_that_becomes_merge_on_read_stores_how_its_logs_merge(
    tmp_path: Path, payload: str | None, fare: float
) -> None:
    path = tmp_path / "t"
    write_hudi(
        path,
        ROWS,
        record_key="id",
        ordering="fare",
        table_version=6,
        options={"hoodie.datasource.write.payload.class": payload} if payload else {},
    )
    table = HudiTable.open(path)
    assert "hoodie.compaction.payload.class" not in table.state().config.properties

    table.maintenance.change_type("mor", options={"hoodie.datasource.write.payload.class": payload} if payload else {})

    stored = {
        key: text for key, text in table.state().config.properties.items() if key.startswith("hoodie.compaction.")
    }
    kind = {"record_key": "id", "ordering": "fare", "table_version": 6, "table_type": "MERGE_ON_READ"}
    options = {"hoodie.datasource.write.payload.class": payload} if payload else {}
    write_hudi(tmp_path / "new", ROWS, options=options, **kind)
    made = HudiTable.open(tmp_path / "new").state().config.properties
    assert stored == {key: text for key, text in made.items() if key.startswith("hoodie.compaction.")} != {}
    for late in (9.0, 1.0):
        write_hudi(path, ROWS.slice(0, 1).set_column(2, "fare", pa.array([late])))
    assert rows(table)[0]["fare"] == fare


def test_another_type_is_refused_and_its_own_changes_nothing(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")

    with pytest.raises(ConfigError, match="COPY_ON_WRITE or MERGE_ON_READ"):
        table.maintenance.change_type("parquet")
    assert str(table.maintenance.change_type("cow")).endswith("is COPY_ON_WRITE already")
