"""Tables whose files leave out the partition columns, where a schema of the table names these columns all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("a", pa.string())])


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    # As after CREATE TABLE, the schema at creation has the partition column.
    return HudiTable.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="p", drop_partition_columns=True, table_type=request.param
    )


def rows(table: HudiTable) -> list[tuple[str, ...]]:
    return sorted((row["id"], row["p"], row["a"]) for row in table.to_arrow(["id", "p", "a"]).to_pylist())


def test_a_table_that_was_created_without_rows_is_written_to(table: HudiTable) -> None:
    table.upsert([{"id": "1", "p": "x", "a": "old"}, {"id": "2", "p": "y", "a": "old"}])
    table.upsert([{"id": "1", "p": "x", "a": "new"}])
    table.delete([{"id": "2", "p": "y"}])

    assert rows(table) == [("1", "x", "new")]


def test_services_and_filters_find_the_columns_in_the_path(table: HudiTable) -> None:
    table.upsert([{"id": "1", "p": "x", "a": "old"}, {"id": "2", "p": "y", "a": "old"}])
    table.update("p = 'x'", set={"a": "set"})
    table.delete(where="p = 'y'")
    if table.config.is_merge_on_read:
        table.compact()
    table.cluster()

    assert rows(table) == [("1", "x", "set")]
