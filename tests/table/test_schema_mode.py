"""Overwriting a table with other columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiError, HudiTable, SchemaMismatch, write_hudi
from pyhudi.schema.changes import RenameColumn

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
ROWS = [{"id": 1, "city": "oslo", "n": 1, "ts": 5}, {"id": 2, "city": "rome", "n": 2, "ts": 5}]
NEW = pa.table({"n": ["x", "y"], "id": ["a", "b"], "city": ["oslo", "bonn"], "ts": [1.5, 2.5], "more": [1, 2]})


def made(path: Path, kind: str = "COPY_ON_WRITE", **more: Any) -> HudiTable:
    table = HudiTable.create(
        path / "t", SCHEMA, record_key="id", partition_by="city", ordering="ts", table_type=kind, **more
    )
    table.upsert(ROWS)
    table.upsert(ROWS[:1])
    return table


def rows(table: Any, *columns: str) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.to_arrow(["id", *columns]).to_pylist())


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_overwrite_gives_the_table_the_columns_of_the_data(tmp_path: Path, kind: str, version: int) -> None:
    table = made(tmp_path, kind, table_version=version)
    before = table.history()[0].instant_time
    table.overwrite(NEW, schema_mode="overwrite")

    assert table.schema().equals(NEW.schema)
    assert rows(table, "n", "ts", "more") == [("a", "x", 1.5, 1), ("b", "y", 2.5, 2)]
    assert table.to_arrow(["id"], "n = 'y' AND ts > 2.0").to_pylist() == [{"id": "b"}]
    assert table.at(before).schema().equals(SCHEMA)
    assert rows(table.at(before), "n", "ts") == [(1, 1, 5), (2, 2, 5)]
    table.upsert(pa.table({"n": ["z"], "id": ["b"], "city": ["bonn"], "ts": [9.5], "more": [3]}))
    table.delete(where="id = 'a'")
    assert rows(table, "n", "more") == [("b", "z", 3)]
    if version > 6:
        assert table.metadata.validate() == ()


@pytest.mark.thorough
def test_write_hudi_has_the_mode_too_and_restore_undoes_it(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = table.history()[0].instant_time
    write_hudi(table.path, NEW, mode="overwrite", schema_mode="overwrite")
    assert table.schema().equals(NEW.schema)
    table.restore(before)
    assert table.schema().equals(SCHEMA)
    assert rows(table, "n") == [(1, 1), (2, 2)]


def test_by_default_columns_are_merged(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.overwrite([{**ROWS[0], "more": 7}])
    assert table.schema().names == [*SCHEMA.names, "more"]
    with pytest.raises(SchemaMismatch):
        table.overwrite(NEW, schema_mode="merge")


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda t: t.upsert(NEW, schema_mode="overwrite"), "goes with an overwrite of the whole table"),
        (lambda t: t.insert_overwrite(NEW, schema_mode="overwrite"), "goes with an overwrite of the whole table"),
        (lambda t: t.overwrite(NEW, where="city = 'oslo'", schema_mode="overwrite"), "with the old columns"),
        (lambda t: t.overwrite(NEW.drop_columns("ts"), schema_mode="overwrite"), "lack ts, by which rows are ordered"),
        (lambda t: t.overwrite(NEW.drop_columns("id"), schema_mode="overwrite"), "'id' is not in the data"),
        (lambda t: t.overwrite(NEW, schema_mode="other"), "merge, overwrite"),
    ],
)
def test_what_does_not_go_is_refused(tmp_path: Path, write: Any, says: str) -> None:
    table = made(tmp_path)
    with pytest.raises(HudiError) as caught:
        write(table)
    assert says in str(caught.value)
    assert rows(table, "n") == [(1, 1), (2, 2)]


def test_constraints_and_a_schema_history_hold_columns(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.constraints.add("small", "n < 10")
    with pytest.raises(ConfigError, match="The constraint 'small'"):
        table.overwrite(NEW.drop_columns("n"), schema_mode="overwrite")
    table.constraints.drop("small")
    table.alter(RenameColumn("n", "m"))
    with pytest.raises(ConfigError, match="schema history"):
        table.overwrite(NEW, schema_mode="overwrite")
