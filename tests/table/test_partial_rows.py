"""Upserts whose rows lack columns: what is there is written, and the rest stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, KeyGenError, SchemaMismatch
from pyhudi.schema import RenameColumn

SCHEMA = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("n", pa.int64()), ("note", pa.string()), ("ts", pa.int64())]
)
ROWS = [
    {"id": 1, "city": "oslo", "n": 1, "note": "a", "ts": 5},
    {"id": 2, "city": "oslo", "n": 2, "note": "b", "ts": 5},
    {"id": 3, "city": "rome", "n": 3, "note": "c", "ts": 5},
]


def made(path: Path, kind: str, **more: Any) -> HudiTable:
    table = HudiTable.create(path / "t", SCHEMA, record_key="id", partition_by="city", table_type=kind, **more)
    table.upsert(ROWS)
    return table


def rows(table: HudiTable) -> list[Any]:
    return [tuple(row.values()) for row in table.to_arrow(["id", "n", "note", "ts"]).sort_by("id").to_pylist()]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("more", [{}, {"ordering": "ts"}], ids=["last wins", "ordered"])
def test_stored_rows_keep_the_columns_that_the_data_lacks(
    tmp_path: Path, kind: str, version: int, more: dict[str, Any]
) -> None:
    table = made(tmp_path, kind, table_version=version, **more)
    result = table.upsert([{"id": 2, "city": "oslo", "n": 20, "ts": 6}, {"id": 9, "city": "bonn", "n": 90, "ts": 6}])

    assert (result.inserted, result.updated, result.operation) == (1, 1, "UPSERT")
    expected = [(1, 1, "a", 5), (2, 20, "b", 6), (3, 3, "c", 5), (9, 90, None, 6)]
    assert rows(table) == expected
    if kind == "MERGE_ON_READ":
        table.compact()
        assert rows(table) == expected


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_one_key_are_combined_first(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind, ordering="ts")
    table.upsert([{"id": 2, "city": "oslo", "n": 7, "ts": 9}, {"id": 2, "city": "oslo", "n": 8, "ts": 7}])
    table.upsert([{"id": 3, "city": "rome", "n": 7}, {"id": 3, "city": "rome", "n": 8}])
    assert rows(table) == [(1, 1, "a", 5), (2, 7, "b", 9), (3, 8, "c", 5)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_comes_late_changes_nothing(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind, ordering="ts")
    table.upsert([{"id": 2, "city": "oslo", "n": 7, "ts": 1}])
    assert rows(table) == [(1, 1, "a", 5), (2, 2, "b", 5), (3, 3, "c", 5)]


def test_streams_are_taken_too(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    data = pa.Table.from_pylist([{"id": 1, "city": "oslo", "note": "z"}, {"id": 8, "city": "oslo", "note": "y"}])
    table.upsert(pa.RecordBatchReader.from_batches(data.schema, iter(data.to_batches(max_chunksize=1))))
    assert rows(table) == [(1, 1, "z", 5), (2, 2, "b", 5), (3, 3, "c", 5), (8, None, "y", None)]


def test_options_about_missing_columns_go_first(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    lacking, option = [{"id": 1, "city": "oslo", "n": 7, "ts": 6}], "hoodie.write.set.null.for.missing.columns"
    with pytest.raises(SchemaMismatch, match="note"):
        table.upsert(lacking, options={option: "false"})
    table.upsert(lacking, options={option: "true"})
    assert rows(table)[0] == (1, 7, None, 6)


def test_a_new_row_needs_the_required_columns(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64(), nullable=False), ("note", pa.string())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")
    table.upsert([{"id": 1, "n": 1, "note": "a"}])
    with pytest.raises(ConfigError, match="New rows need values for n, which are NOT NULL"):
        table.upsert([{"id": 1, "note": "b"}])


INSERTS: dict[str, Any] = {
    "insert": lambda table, rows: table.insert(rows),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows),
    "insert_overwrite": lambda table, rows: table.insert_overwrite(rows),
    "overwrite of a partition": lambda table, rows: table.overwrite(rows, where="city = 'oslo'"),
    "overwrite of rows": lambda table, rows: table.overwrite(rows, where="city = 'oslo' AND id < 10"),
}
ONLY_NEW = {
    "insert_overwrite": [3, 7],
    "overwrite of a partition": [3, 7],
    "overwrite of rows": [3, 7],
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("write", INSERTS)
def test_new_rows_are_null_where_the_data_lacks_a_column(tmp_path: Path, write: str, kind: str) -> None:
    table = made(tmp_path, kind)
    INSERTS[write](table, [{"id": 7, "city": "oslo", "n": 7, "ts": 6}])
    assert table.to_arrow(where="id = 7", meta_columns=False).to_pylist() == [
        {"id": 7, "city": "oslo", "n": 7, "note": None, "ts": 6}
    ]
    assert [row[0] for row in rows(table)] == ONLY_NEW.get(write, [1, 2, 3, 7])


@pytest.mark.parametrize("write", ["insert", "bulk_insert", "insert_overwrite"])
def test_new_rows_need_keys_ordering_and_required_columns_and_only_these_are_named(tmp_path: Path, write: str) -> None:
    columns = [*SCHEMA, pa.field("must", pa.int64(), nullable=False)]
    table = HudiTable.create(tmp_path / "t", pa.schema(columns), record_key="id", partition_by="city", ordering="ts")
    with pytest.raises(SchemaMismatch, match="'ts'") as caught:
        INSERTS[write](table, [{"id": 7, "city": "oslo"}])
    assert "'note'" not in str(caught.value)
    with pytest.raises(SchemaMismatch, match="'must' is NOT NULL"):
        INSERTS[write](table, [{"id": 7, "city": "oslo", "ts": 1}])
    with pytest.raises(KeyGenError, match="id"):
        INSERTS[write](table, [{"city": "oslo", "ts": 1, "must": 1}])
    assert table.count() == 0


def test_an_option_refuses_missing_columns_and_the_message_says_the_rule_once(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    row, off = [{"id": 7, "city": "oslo"}], {"hoodie.write.set.null.for.missing.columns": "false"}
    with pytest.raises(SchemaMismatch) as caught:
        table.insert(row, options=off)
    assert "column 'n' (int64), column 'note' (string), column 'ts' (int64): missing in the data;" in str(caught.value)
    assert str(caught.value).count("hoodie.write.set.null.for.missing.columns") == 1


@pytest.mark.parametrize("more", [{}, {"options": {"hoodie.write.set.null.for.missing.columns": "false"}}])
def test_an_overwrite_of_the_whole_table_says_whether_it_means_nulls_or_other_columns(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    table, row = made(tmp_path, "COPY_ON_WRITE"), [{"id": 7, "city": "oslo"}]
    with pytest.raises(
        SchemaMismatch, match="schema_mode='overwrite' gives the table the columns of the data"
    ) as caught:
        table.overwrite(row, **more)
    assert "missing in the data" in str(caught.value)
    table.overwrite(row, options={"hoodie.write.set.null.for.missing.columns": "true"})
    assert rows(table) == [(7, None, None, None)]
    table.overwrite(row, schema_mode="overwrite")
    assert table.schema().names == ["id", "city"]


def test_an_insert_into_the_log_files_of_buckets_loses_no_stored_values(tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="city", table_type="MERGE_ON_READ", options=buckets
    )
    table.upsert(ROWS, options=buckets)
    with pytest.raises(SchemaMismatch, match=r"column 'note'.*: missing in the data"):
        table.insert([{"id": 1, "city": "oslo", "n": 7, "ts": 6}], options=buckets)
    assert rows(table)[0] == (1, 1, "a", 5)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("more", [{}, {"ordering": "ts"}], ids=["last wins", "ordered"])
@pytest.mark.parametrize("from_pandas", [False, True], ids=["rows", "pandas"])
def test_a_new_column_is_added_while_missing_ones_stay(
    tmp_path: Path, kind: str, version: int, more: dict[str, Any], from_pandas: bool
) -> None:
    table = made(tmp_path, kind, table_version=version, **more)
    data: Any = [
        {"id": 2, "city": "oslo", "n": 20, "ts": 6, "tip": 0.5},
        {"id": 9, "city": "bonn", "n": 90, "ts": 6, "tip": 1.5},
    ]
    result = table.upsert(pytest.importorskip("pandas").DataFrame(data) if from_pandas else data)

    assert (result.inserted, result.updated) == (1, 1)
    assert table.schema().names == [*SCHEMA.names, "tip"]
    expected = {1: ("a", None), 2: ("b", 0.5), 3: ("c", None), 9: (None, 1.5)}
    assert notes_and_tips(table) == expected
    table.upsert([{"id": 1, "city": "oslo", "tip": 2.0}])
    expected[1] = ("a", 2.0)
    assert notes_and_tips(table) == expected
    if kind == "MERGE_ON_READ":
        table.compact()
        assert notes_and_tips(table) == expected


def notes_and_tips(table: HudiTable) -> dict[int, tuple[str | None, float | None]]:
    return {row["id"]: (row["note"], row["tip"]) for row in table.to_arrow(["id", "note", "tip"]).to_pylist()}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_new_column_and_a_wider_one_come_together(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    table.upsert(pa.table({"id": [2], "city": ["oslo"], "n": [2.5], "tip": [0.5]}))
    stored = {row["id"]: (row["n"], row["note"], row["tip"]) for row in table.to_arrow().to_pylist()}
    assert stored == {1: (1.0, "a", None), 2: (2.5, "b", 0.5), 3: (3.0, "c", None)}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_new_column_enters_the_schema_history(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    table.alter(RenameColumn("note", "remark"))
    table.upsert([{"id": 2, "city": "oslo", "n": 20, "tip": 0.5}])
    table.alter(RenameColumn("tip", "extra"))
    stored = {row["id"]: (row["n"], row["remark"], row["extra"]) for row in table.to_arrow().to_pylist()}
    assert stored == {1: (1, "a", None), 2: (20, "b", 0.5), 3: (3, "c", None)}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_column_of_another_kind_changes_nothing(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    with pytest.raises(SchemaMismatch, match="note"):
        table.upsert([{"id": 2, "city": "oslo", "note": 7, "tip": 0.5}])
    assert (len(table.history()), table.schema().names) == (1, SCHEMA.names)


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_a_struct_that_lacks_fields_is_refused(tmp_path: Path, operation: str) -> None:
    columns = [*SCHEMA, pa.field("s", pa.struct([("x", pa.int64()), ("y", pa.int64())]))]
    table = HudiTable.create(tmp_path / "t", pa.schema(columns), record_key="id", partition_by="city")
    data = pa.table({"id": [1], "city": ["oslo"], "s": pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))})
    with pytest.raises(SchemaMismatch, match=r"column 's\.y' \(int64\): missing in the data"):
        getattr(table, operation)(data)
    assert table.count() == 0
