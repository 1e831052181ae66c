"""A table whose only write was rolled back keeps its columns, and takes the next write."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable, SchemaMismatch, TableExists, sql, write_hudi
from pyhudi.model.options import WriteOptions
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_it_is_written_to_again(version: str, table_type: str, index: str) -> None:
    table = MergeOnRead(
        version,
        datasource_write_table_type=table_type,
        index_type=index,
        datasource_write_payload_class="org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    )
    table.upsert(("k0", "x", 0, 0))
    last = table.meta.timeline.last_commit()
    assert last is not None
    rollback_write(table.storage, last.requested_time, WriteOptions.parse(DEFAULTS), table.engine)

    table.upsert(("k0", "x", 0, 1), ("k1", "y", 0, 2))

    assert TestTable.rows(table) == [("k0", "x", 0, 1), ("k1", "y", 0, 2)]


@pytest.mark.parametrize("version", [6, 9])
def test_its_columns_stay_for_every_reader_and_the_next_write(version: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    rows = [{"id": 1, "city": "oslo", "fare": 1.5}]
    write_hudi(path, rows, record_key="id", partition_by="city", table_version=version)
    table = HudiTable.open(path)
    columns = table.schema()

    table.rollback()

    assert table.schema() == columns
    assert table.scan(meta_columns=False).to_arrow().schema == columns
    assert table.scan(where="fare > 1").to_arrow().num_rows == 0
    described = sql("DESCRIBE rides", {"rides": path}).to_arrow().to_pylist()
    assert "fare" in {row["col_name"] for row in described}
    with pytest.raises(TableExists):
        write_hudi(path, rows, mode="error")
    with pytest.raises(SchemaMismatch):
        table.upsert([{"id": 2, "city": "rome", "fare": "much"}])
    table.upsert([{"id": 2, "city": "rome", "fare": 2}])
    assert table.scan(meta_columns=False).to_arrow().to_pylist() == [{"id": 2, "city": "rome", "fare": 2.0}]


def test_a_rollback_of_a_later_write_notes_no_columns(tmp_path: Path) -> None:
    for fare in (1.5, 2.5):
        write_hudi(tmp_path / "rides", [{"id": 1, "fare": fare}], record_key="id")
    table = HudiTable.open(tmp_path / "rides")

    table.rollback()

    assert table.state().config.create_schema is None
