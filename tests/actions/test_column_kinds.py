"""Data of another kind than its column: the column stays what it is, unless an option says otherwise."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from tests.support.tables.small import TestTable, rows_of

ALLOWED = {"pyhudi_schema_allow_kind_change": "true"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("number", [pa.float64(), pa.int64()])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_text_does_not_turn_a_column_of_numbers_into_text(operation: str, number: pa.DataType, kind: str) -> None:
    table = TestTable(options={"hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"})
    rows = rows_of(("a", "x", 1, 0), ("b", "x", 1, 2))
    table.write("upsert", rows.set_column(3, "v", pa.array([0, 2], number)))
    before = table.memory.paths()
    text = rows_of(("a", "x", 2, 0)).set_column(3, "v", pa.array(["late"]))

    with pytest.raises(SchemaMismatch, match=rf"column 'v': the table has {number}, the data string.*kind\.change"):
        table.write(operation, text)

    assert table.memory.paths() == before
    assert table.meta.table_schema().field("v").type == number
    table.write("upsert", text, **ALLOWED)
    assert table.meta.table_schema().field("v").type == pa.string()
    older = "2.0" if number == pa.float64() else "2"
    assert table.rows() == [("a", "x", 2, "late"), ("b", "x", 1, older)]


def test_numbers_still_widen_and_go_into_columns_of_text() -> None:
    table = TestTable()
    rows = rows_of(("a", "x", 1, 7))
    table.write("upsert", rows.set_column(3, "v", pa.array([7], pa.int32())).append_column("t", pa.array(["7"])))

    table.write("upsert", rows.set_column(3, "v", pa.array([0.5])).append_column("t", pa.array([8])))

    assert table.meta.table_schema().field("v").type == pa.float64()
    assert table.rows(["id", "v", "t"]) == [("a", 0.5, "8")]
