"""Save modes by Arrow rows; tests/spark/test_save_modes.py does the same by DataFrames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, SchemaMismatch
from tests.support.save_modes import CASES, PYTHON_CASES, SaveModeCase, check_case


@pytest.mark.parametrize("case", [*CASES, *PYTHON_CASES], ids=str)
def test_a_save_mode_does_what_the_list_says_with_arrow_rows(case: SaveModeCase, tmp_path: Path):
    path = tmp_path / "t"

    def write(number: int, mode: str, options: dict[str, str]) -> None:
        write_hudi(path, pa.table({"id": [number]}), mode=mode, options=options)

    check_case(case, path, write)


def rows(*values: tuple[str, str, int]) -> pa.Table:
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, value, strict=True)) for value in values], schema)


def stored(table: HudiTable) -> list[tuple[str, str, int]]:
    return sorted((row["id"], row["p"], row["ts"]) for row in table.to_arrow(["id", "p", "ts"]).to_pylist())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("partition_by", [None, "p"])
def test_an_overwrite_from_python_keeps_the_history_and_is_undone_by_restore(
    table_type: str, version: int, partition_by: str | None, tmp_path: Path
) -> None:
    keys = {"record_key": "id", "partition_by": partition_by, "ordering": "ts"}
    first = write_hudi(
        tmp_path, rows(("a", "x", 1), ("b", "y", 1)), **keys, table_type=table_type, table_version=version
    )
    table = HudiTable.open(tmp_path)
    table.upsert(rows(("a", "x", 2)))
    assert first is not None

    result = write_hudi(tmp_path, rows(("c", "y", 2), ("c", "y", 3), ("d", "z", 1)), mode="overwrite", **keys)

    assert result is not None
    assert stored(table) == [("c", "y", 3), ("d", "z", 1)], "rows of one key are combined, as an upsert combines them"
    assert result.operation.lower() == "insert_overwrite_table"
    assert (table.state().config.table_type, table.state().config.table_version) == (table_type, version)
    assert table.scan(as_of=first.instant_time).count() == 2
    table.restore(table.history()[1].instant_time)
    assert stored(table) == [("a", "x", 2), ("b", "y", 1)]

    write_hudi(tmp_path, rows(), mode="overwrite")
    assert stored(table) == []
    assert first.instant_time in {entry.instant_time for entry in table.history()}


def test_an_overwrite_takes_new_columns_and_refuses_a_schema_that_the_table_can_not_take(tmp_path: Path) -> None:
    write_hudi(tmp_path, rows(("a", "x", 1)), record_key="id")
    table = HudiTable.open(tmp_path)
    write_hudi(tmp_path, [{"id": "b", "p": "x", "ts": 1, "more": 1.5}], mode="overwrite")
    assert table.to_arrow(["id", "more"]).to_pylist() == [{"id": "b", "more": 1.5}]

    for other, options in (
        ([{"id": "b"}], {}),
        ([{"id": 1, "p": "x", "ts": 1, "more": 1.5}], {}),
        ([{"id": "b", "p": "x", "ts": 1, "more": 1.5}], {"record_key": "p"}),
        ([{"id": "b", "p": "x", "ts": 1, "more": 1.5}], {"table_type": "MERGE_ON_READ"}),
    ):
        with pytest.raises((SchemaMismatch, ConfigError), match="mode='replace' replaces it by a new table"):
            write_hudi(tmp_path, other, mode="overwrite", **options)
    assert table.to_arrow(["id", "more"]).to_pylist() == [{"id": "b", "more": 1.5}]

    write_hudi(tmp_path, [{"key": 1}], mode="replace", record_key="key")
    assert HudiTable.open(tmp_path).to_arrow(["key"]).to_pylist() == [{"key": 1}]
