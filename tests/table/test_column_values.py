"""Values that a column can't hold are refused with the column, what it holds, and the change that would let it."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pyhudi import HudiTable, SchemaMismatch, write_hudi
from pyhudi.schema.changes import ChangeType
from pyhudi.table.input import check_frame, column_refused

ROW: dict[str, Any] = {
    "id": "a", "i": 1, "l": 1, "d": Decimal("1.25"), "f": 1.5, "day": datetime.date(2026, 1, 1), "arr": [1],
    "s": {"x": 1},
}  # fmt: skip
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.decimal128(5, 2)),
        ("f", pa.float64()),
        ("day", pa.date32()),
        ("arr", pa.list_(pa.int64())),
        ("s", pa.struct([("x", pa.int64())])),
    ]
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = tmp_path_factory.mktemp("values") / "t"
    write_hudi(path, pa.Table.from_pylist([ROW], SCHEMA), record_key="id")
    return HudiTable.open(path)


@pytest.mark.parametrize(
    ("column", "value", "holds", "way"),
    [
        ("i", 2**40, "int32", r"ChangeType\('i', pa.int64\(\)\)"),
        ("l", 1.5, "int64", r"ChangeType\('l', pa.float64\(\)\)"),
        ("l", "x", "int64", r"ChangeType\('l', pa.string\(\)\)"),
        ("d", Decimal("1.255"), r"decimal128\(5, 2\)", r"ChangeType\('d', pa.decimal128\(6, 3\)\)"),
        ("d", Decimal("12345.6"), r"decimal128\(5, 2\)", r"ChangeType\('d', pa.decimal128\(7, 2\)\)"),
        ("d", 1.5, r"decimal128\(5, 2\)", "Convert the values"),
        ("f", "x", "double", r"ChangeType\('f', pa.string\(\)\)"),
        ("day", "2026-01-01", "date32.day.", "Convert the values"),
        ("id", 5, "string", "Convert the values"),
        ("arr", 5, "list<element: int64>", "Convert the values"),
        ("arr", ["x"], "list<element: int64>", "Convert the values"),
        ("arr", [1.5], "list<element: int64>", "digits"),
        ("s", {"x": 1.5}, "struct<x: int64>", "digits"),
    ],
)
def test_a_value_of_a_dict_that_the_column_can_not_hold_is_refused_with_both(
    table: HudiTable, column: str, value: Any, holds: str, way: str
) -> None:
    with pytest.raises(SchemaMismatch, match=rf"Column '{column}' is of type {holds} .*{way}"):
        table.upsert([{**ROW, "id": "b"}, {**ROW, column: value}])
    assert table.to_arrow(list(ROW)).to_pylist() == [ROW]


def test_the_change_that_the_error_names_lets_the_column_hold_the_value(tmp_path: Path) -> None:
    write_hudi(tmp_path, pa.Table.from_pylist([ROW], SCHEMA), record_key="id")
    table = HudiTable.open(tmp_path)
    table.alter(ChangeType("d", pa.decimal128(6, 3)), ChangeType("l", pa.float64()))
    table.upsert([{**ROW, "d": Decimal("1.255"), "l": 2.5}])
    assert table.to_arrow(["d", "l"]).to_pylist() == [{"d": Decimal("1.255"), "l": 2.5}]


def test_a_decimal_of_more_digits_in_arrow_is_refused_with_the_change_that_would_let_it(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match=r"'d'.*decimal128\(4, 3\).*ChangeType\('d', pa.decimal128\(6, 3\)\)"):
        table.upsert(pa.table({"id": ["a"], "d": [Decimal("1.255")]}))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a", "v": 1}, {"id": "b", "v": "x"}], "Column 'v' has values of several types"),
        ([{"id": "a", "v": object()}], "Column 'v' has a value that no column can hold"),
        ([{"id": "a", "v": 2**70}], "Column 'v' has a value that no column can hold"),
        ([{"id": "a", 5: 1}], "the key 5"),
        (pd.DataFrame([["a", 1, 2]], columns=["id", "v", "v"]), "several columns called v"),
        (pd.DataFrame({"id": ["a", "b"], "v": [1, "x"]}), "'v'"),
        (pd.DataFrame({"id": ["a"], "v": [object()]}), "'v'"),
        (pa.table({"id": ["a"], "v": pa.array([{}])}), "'v' is a struct without fields"),
        (pa.table({"id": ["a"], "v": pa.array([[{}]])}), "'v' is a struct without fields"),
        (pa.table({"id": ["a"], "v": pa.array([[]])}), "'v' is of type null"),
    ],
)
def test_rows_that_make_no_table_are_refused_with_the_column(rows: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match=words):
        write_hudi(tmp_path / "t", rows, record_key="id")
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


class DataFrame:
    """As polars' own, as far as it is looked at."""

    columns = ("id", "v", "w")

    @property
    def schema(self) -> dict[str, str]:
        return {"id": "String", "v": "Object", "w": "Int128"}

    def __getitem__(self, name: str) -> Any:
        return Series(name)


class Series:
    def __init__(self, name: str) -> None:
        self.name = name

    def to_frame(self) -> Any:
        if self.name == "w":
            raise pa.ArrowInvalid("Invalid or unsupported format string: '_pli128'")
        return pa.table({self.name: ["x"]})


def test_python_objects_of_polars_are_refused_and_types_unknown_to_arrow_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DataFrame, "__module__", "polars.dataframe.frame")
    with pytest.raises(SchemaMismatch, match="'v' is of polars' type Object"):
        check_frame(DataFrame())
    error = column_refused(DataFrame(), pa.ArrowInvalid("all"), pa.schema([("w", pa.int64())]))
    assert "Column 'w'" in str(error)
    assert "of type int64" in str(error)


def test_fields_of_dicts_that_the_table_lacks_are_added_at_every_depth() -> None:
    inner = pa.struct([("x", pa.int32())])
    columns = [("id", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    table = HudiTable.create("memory://new-fields", pa.schema(columns), record_key="id")
    more = {"x": 1, "y": "new", "z": None}
    table.upsert([{"id": 1, "s": more, "l": [more, {"x": 2}], "m": {"k": more}}])
    table.upsert([{"id": 1, "s": {"x": 3, "y": None, "deep": {"w": 1}}}])

    kept = {"x": 1, "y": "new"}
    (row,) = table.to_arrow(["s", "l", "m"]).to_pylist()
    assert row["s"] == {"x": 3, "y": None, "deep": {"w": 1}}
    assert (row["l"], row["m"]) == ([kept, {"x": 2, "y": None}], [("k", kept)])
