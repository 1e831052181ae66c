"""Mistakes in Python calls: the family's error at once, with the way out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiError, HudiTable, SchemaMismatch, write_hudi
from pyhudi.errors import MissingLibrary, ValidationFailed
from pyhudi.schema.changes import AddColumn, ChangeType, RenameColumn
from pyhudi.timeline.table_properties import update_table_config

COLUMNS = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("p", pa.string()), ("ts", pa.int64())])
ROWS = [{"id": 1, "price": 1.0, "p": "a", "ts": 1}]
OPTIONS = {"hoodie.metadata.enable": "false"}


def made(name: str, **more: Any) -> HudiTable:
    path = f"memory://mistakes-{name}"
    table = HudiTable.create(path, COLUMNS, record_key="id", partition_by="p", options=OPTIONS, **more)
    table.upsert(ROWS)
    return table


MISTAKES: dict[str, tuple[Any, str]] = {
    "SQL to alter": (lambda t: t.alter("ADD COLUMN x"), "changes of columns, such as AddColumn.*pyhudi.sql"),
    "a type that is none": (lambda t: AddColumn("x", "strng"), "'strng' is not a type.*pa.int64"),
    "a class as type": (lambda t: ChangeType("price", int), "is not a type.*'int64'"),  # type: ignore[arg-type]
    "a number as name": (lambda t: RenameColumn("price", 5), "RenameColumn: name is text; found 5"),  # type: ignore[arg-type]
    "a pandas Series": (lambda t: t.upsert(pd.Series([1], name="id")), "is one column.*to_frame"),
    "a polars Series": (lambda t: t.upsert(pl.Series("id", [1])), "is one column.*to_frame"),
    "an array": (lambda t: t.upsert(pa.array([1])), r"is one column.*pyarrow.table"),
    "Int128": (
        lambda t: t.upsert(pl.DataFrame({"id": pl.Series([1], dtype=pl.Int128)})),
        "'id' is of polars' type Int128.*pl.Int64",
    ),
    "a path as data": (lambda t: t.upsert("rows.csv"), "'rows.csv', not rows.*add_files.*read_csv"),
    "a Path as data": (lambda t: t.upsert(Path("rows.csv")), "not rows.*add_files"),
    "no rows for a new table": (
        lambda t: write_hudi("memory://mistakes-none", [], record_key="id"),
        "no columns; a table needs one.*HudiTable.create",
    ),
    "a misspelt column": (lambda t: t.scan(["pric"]), "'pric', which the table does not have. Did you mean 'price'"),
    "a misspelt filter": (lambda t: t.scan(where="pric > 1"), "'pric', which the table does not have"),
    "a text for columns": (lambda t: t.scan("price"), "is one text; give a list"),
    "a relation of no columns": (lambda t: t.scan(columns=[]).to_duckdb(), r"columns=\[\] names none.*count"),
    "a constraint of no column": (lambda t: t.constraints.add("x", "length('a') < 2"), "names no column.*fare > 0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_at_once_with_the_way_out(name: str) -> None:
    table = made(name.replace(" ", "-"))
    call, says = MISTAKES[name]
    with pytest.raises((ConfigError, SchemaMismatch), match=re.compile(says, re.S)):
        call(table)
    assert table.to_arrow(meta_columns=False).to_pylist() == ROWS
    assert len(table.history()) == 1


def test_types_of_new_columns_may_be_texts() -> None:
    assert AddColumn("x", "string").type == pa.string()  # type: ignore[arg-type]


def test_no_rows_change_nothing_in_a_table_that_is_there() -> None:
    table = made("empty")
    for nothing in ([], {}):
        assert "no rows changed" in str(table.upsert(nothing))
    assert table.to_arrow(meta_columns=False).to_pylist() == ROWS


@pytest.mark.parametrize(("short", "word"), [("mor", "MERGE_ON_READ"), ("COW", "COPY_ON_WRITE")])
def test_table_types_have_short_names(short: str, word: str) -> None:
    assert made(f"short-{short}", table_type=short).state().config.table_type == word


def test_to_pandas_names_the_package_where_pandas_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("pandas")
    find = importlib.util.find_spec
    for module in ("pyhudi.table.readable.find_spec", "pyhudi.result.find_spec"):
        monkeypatch.setattr(module, lambda name: None if name == "pandas" else find(name))
    for call in (table.to_pandas, table.history().to_pandas):
        with pytest.raises(MissingLibrary, match=r"to_pandas needs pandas.*pip install pandas"):
            call()


def test_a_table_among_files_of_others_is_made_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "export.csv").write_text("x")
    with pytest.warns(UserWarning, match=r"lies among other files, such as export\.csv.*drop\(\)"):
        write_hudi(tmp_path, ROWS, record_key="id", options=OPTIONS)
    assert HudiTable(tmp_path).count() == 1


def test_tables_of_metadata_and_merges_print_as_a_line() -> None:
    table = made("prints")
    assert repr(table.metadata) == f"TableMetadata({table.path}: no metadata table)"
    merge = table.merge(ROWS * 100).when_matched_update("*").when_not_matched_insert("*")
    assert repr(merge) == (
        f"Merge(list of 100 rows into {table.path}; matched: update; not matched: insert; not run yet)"
    )


def test_a_merge_on_false_matches_nothing() -> None:
    table = made("false")
    result = (
        table.merge([{**ROWS[0], "id": 2}], on="false").when_matched_delete().when_not_matched_insert("*").execute()
    )
    assert (result.inserted, result.deleted, table.count()) == (1, 0, 2)


def test_a_validator_of_a_single_value_says_that_null_equals_nothing() -> None:
    table = made("validator")
    options = {
        "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
        "hoodie.precommit.validators.single.value.sql.queries": "SELECT max(price) FROM <TABLE_NAME> WHERE id = 7#null",
    }
    with pytest.raises(ValidationFailed, match=r"expected null, found NULL, which equals nothing.*IS NULL#true"):
        table.upsert(ROWS, options=options)


@pytest.mark.parametrize("where", ["p = 'a'", "price > 0.5"])
def test_an_overwrite_of_some_rows_adds_columns_where_schema_mode_says_so(where: str) -> None:
    table = made(f"overwrite-{where}")
    table.insert([{"id": 2, "price": 0.1, "p": "b", "ts": 1}])
    rows = [{"id": 1, "price": 2.0, "p": "a", "ts": 2, "tip": 5}]
    with pytest.raises(SchemaMismatch, match=r"columns tip, which the table does not have.*schema_mode='merge'"):
        table.overwrite(rows, where=where)
    result = table.overwrite(rows, where=where, schema_mode="merge")
    assert result.columns_added == ("tip",)
    assert table.to_arrow(["id", "price", "tip"]).sort_by("id").to_pylist() == [
        {"id": 1, "price": 2.0, "tip": 5},
        {"id": 2, "price": 0.1, "tip": None},
    ]


def twins(*names: str) -> pa.DataType:
    return pa.struct([(name, pa.int64()) for name in names])


TWINS: dict[str, Any] = {
    "create": lambda t: HudiTable.create(
        "memory://mistakes-new", COLUMNS.append(pa.field("s", twins("a", "A"))), record_key="id"
    ),
    "first write": lambda t: write_hudi("memory://mistakes-new", [{"id": 1, "s": {"a": 1, "A": 2}}], record_key="id"),
    "upsert": lambda t: t.upsert([{**ROWS[0], "s": {"a": 1, "A": 2}}]),
    "in a list": lambda t: t.upsert([{**ROWS[0], "s": [{"a": 1, "A": 2}]}]),
    "alter": lambda t: t.alter(AddColumn("s", twins("a", "A"))),
}


@pytest.mark.parametrize("door", TWINS)
def test_fields_of_a_struct_that_differ_only_by_case_are_refused(door: str) -> None:
    table = made(f"twins-{door}")
    with pytest.raises(SchemaMismatch, match=r"'s\.(element\.)?a' and 's\.(element\.)?A' differ only by case"):
        TWINS[door](table)
    assert table.schema().equals(COLUMNS)
    assert not HudiTable.exists("memory://mistakes-new")


def test_a_table_whose_only_write_apache_hudi_rolled_back_says_why_it_has_no_columns() -> None:
    write_hudi("memory://mistakes-undone", ROWS, record_key="id", options=OPTIONS)
    table = HudiTable("memory://mistakes-undone")
    table.rollback()
    update_table_config(table.state().storage, remove=["hoodie.table.create.schema"])  # Hudi notes none
    assert table.count() == 0
    with pytest.raises(HudiError, match=r"no data columns: no write of rows is complete, or the only one was rolled"):
        table.to_arrow(["id"])
