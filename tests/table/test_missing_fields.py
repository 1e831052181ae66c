"""A struct that lacks a field of the table's is refused, at any depth and whatever form the rows have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, SchemaMismatch

PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])
SCHEMA = pa.schema([("id", pa.int64()), ("s", PAIR), ("l", pa.list_(PAIR)), ("m", pa.map_(pa.string(), PAIR))])
WHOLE, PART = {"a": 1, "b": 2}, {"a": 7}
ROW: dict[str, Any] = {"id": 1, "s": WHOLE, "l": [WHOLE], "m": {"k": WHOLE}}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}


def made(path: Path, kind: str = "COPY_ON_WRITE") -> HudiTable:
    table = HudiTable.create(path / "t", SCHEMA, record_key="id", table_type=kind)
    table.upsert([ROW])
    return table


def rows(table: HudiTable) -> list[dict[str, Any]]:
    stored = table.to_arrow(["id", "s", "l", "m"]).sort_by("id").to_pylist()
    return [{**row, "m": dict(row["m"] or ())} for row in stored]


def as_pandas(row: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame([row])


def as_polars(row: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame([row])


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dicts": lambda row: [row],
    "columns": lambda row: {name: [value] for name, value in row.items()},
    "arrow": lambda row: pa.Table.from_pylist([row]),
    "pandas": as_pandas,
    "polars": as_polars,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("column", "value", "path"), [("s", PART, "s.b"), ("l", [PART], "l.element.b")])
def test_an_upsert_of_some_columns_whose_structs_lack_a_field_is_refused(
    tmp_path: Path, kind: str, form: str, column: str, value: Any, path: str
) -> None:
    table = made(tmp_path, kind)
    with pytest.raises(SchemaMismatch, match=rf"'{column}' is of type .* lack the field '{path}'.*Give each field"):
        table.upsert(FORMS[form]({"id": 1, column: value}))
    assert rows(table) == [ROW]


@pytest.mark.parametrize("form", ["dicts", "columns"])
@pytest.mark.parametrize("call", ["upsert", "insert", "bulk_insert", "overwrite"])
@pytest.mark.parametrize(
    ("column", "value", "path"),
    [("s", PART, r"s\.b"), ("l", [PART], r"l\.element\.b"), ("m", {"k": PART}, r"m\.value\.b")],
)
def test_rows_with_all_columns_whose_structs_lack_a_field_are_refused(
    tmp_path: Path, form: str, call: str, column: str, value: Any, path: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(SchemaMismatch, match=rf"column '{path}' \(int64\): missing in the data; add what is missing"):
        getattr(table, call)(FORMS[form]({**ROW, column: value}))
    assert rows(table) == [ROW]


def merged(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> object:
    merge = table.merge([row], options=options)
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


def updated_by_sql(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> object:
    pytest.importorskip("duckdb")
    return pyhudi.sql(f"UPDATE hudi.`{table.path}` SET s = named_struct('a', 7)")


def merged_by_sql(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> object:
    pytest.importorskip("duckdb")
    return pyhudi.sql(
        f"MERGE INTO hudi.`{table.path}` t USING (SELECT 1 AS id, named_struct('a', 7) AS s) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET s = u.s"
    )


DOORS: dict[str, Callable[[HudiTable, dict[str, Any], dict[str, str]], object]] = {
    "overwrite where": lambda table, row, options: table.overwrite([row], where="id = 1", options=options),
    "merge": merged,
    "update set": lambda table, row, options: table.update(set={"s": row["s"]}, options=options),
    "update values": lambda table, row, options: table.update(values={"s": row["s"]}, options=options),
    "update scalar": lambda table, row, options: table.update(set={"s": pa.scalar(row["s"])}, options=options),
    "update function": lambda table, row, options: table.update(set={"s": lambda _: [row["s"]]}, options=options),
    "update array": lambda table, row, options: table.update(
        set={"s": lambda _: pa.array([row["s"]])}, options=options
    ),
    "update by SQL": updated_by_sql,
    "merge by SQL": merged_by_sql,
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_a_change_whose_struct_lacks_a_field_is_refused(tmp_path: Path, door: str) -> None:
    table = made(tmp_path)
    with pytest.raises(SchemaMismatch, match=r"lack the field 's\.b'.*hoodie\.write\.set\.null\.for\.missing\.columns"):
        DOORS[door](table, {**ROW, "s": PART}, {})
    assert rows(table) == [ROW]


@pytest.mark.parametrize("door", [door for door in DOORS if "SQL" not in door])
def test_with_the_option_the_missing_fields_of_a_change_are_null(tmp_path: Path, door: str) -> None:
    table = made(tmp_path)
    DOORS[door](table, {**ROW, "s": PART}, NULLS)
    assert rows(table) == [{**ROW, "s": {"a": 7, "b": None}}]


@pytest.mark.parametrize("form", ["dicts", "columns"])
def test_with_the_option_the_missing_fields_of_an_upsert_are_null(tmp_path: Path, form: str) -> None:
    table = made(tmp_path)
    table.upsert(FORMS[form]({**ROW, "s": PART, "l": [PART], "m": [("k", PART)]}), options=NULLS)
    filled = {"a": 7, "b": None}
    assert rows(table) == [{"id": 1, "s": filled, "l": [filled], "m": {"k": filled}}]


def test_a_field_that_another_row_of_the_batch_has_is_null_like_such_a_column(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert([{"id": 1, "s": PART, "l": None}, {"id": 2, "s": WHOLE}])
    nothing: dict[str, Any] = {"l": None, "m": {}}
    assert rows(table) == [{**ROW, "s": {"a": 7, "b": None}, "l": None}, {**nothing, "id": 2, "s": WHOLE}]


def test_structs_that_are_null_or_by_place_lack_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert([{"id": 1, "s": None, "l": [None], "m": {}}, {"id": 2, "s": (3, 4), "l": [], "m": {"k": None}}])
    assert rows(table) == [
        {"id": 1, "s": None, "l": [None], "m": {}},
        {"id": 2, "s": {"a": 3, "b": 4}, "l": [], "m": {"k": None}},
    ]


def test_a_constant_with_a_field_that_the_struct_does_not_have_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(SchemaMismatch, match=r"has no field 's\.c', which its new values have"):
        table.update(set={"s": {**WHOLE, "c": 3}})
    with pytest.raises(SchemaMismatch, match=r"'s'.*a struct has the key 5, which is not text"):
        table.upsert([{"id": 1, "s": {**WHOLE, 5: 3}}])
    assert rows(table) == [ROW]


def test_a_new_row_has_null_in_the_fields_that_the_struct_of_its_key_lacks(tmp_path: Path) -> None:
    schema = pa.schema([("k", PAIR), ("v", pa.int64()), ("w", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="k.a")
    table.upsert([{"k": PART, "v": 1}])
    assert table.to_arrow(["k", "v", "w"]).to_pylist() == [{"k": {"a": 7, "b": None}, "v": 1, "w": None}]
