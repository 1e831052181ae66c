"""New columns: which are taken, which are refused, and what the result says of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, SchemaMismatch
from pyhudi.schema.changes import AddColumn, RenameColumn

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("n", pa.int32()),
        ("addr", pa.struct([("town", pa.string()), ("zip", pa.string())])),
        ("ts", pa.int64()),
    ]
)
WHOLE = {"id": 1, "price": 1.0, "n": 1, "addr": {"town": "oslo", "zip": "1"}, "ts": 1}
OPTIONS = {"hoodie.metadata.enable": "false"}


def made(name: str, **more: Any) -> HudiTable:
    table = HudiTable.create(
        f"memory://misspelt-{name}", COLUMNS, record_key="id", ordering="ts", options=OPTIONS, **more
    )
    table.upsert([WHOLE])
    return table


WRITES = {
    "upsert": lambda table, row: table.upsert([row]),
    "upsert of arrow rows": lambda table, row: table.upsert(pa.Table.from_pylist([row])),
    "insert": lambda table, row: table.insert([row]),
    "bulk_insert": lambda table, row: table.bulk_insert([row]),
    "overwrite": lambda table, row: table.overwrite([row]),
    "null for missing": lambda table, row: table.upsert(
        [row], options={"hoodie.write.set.null.for.missing.columns": "true"}
    ),
    "drop of missing": lambda table, row: table.upsert(
        [row], options={"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    ),
    "merge": lambda table, row: table.merge([row]).when_matched_update("*").execute(),
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("write", WRITES)
def test_a_new_column_beside_a_missing_one_of_nearly_its_name_is_refused(write: str, kind: str) -> None:
    table = made(f"{write}-{kind}", table_type=kind)
    row = {"id": 1, "pirce": 9.0, "n": 1, "addr": WHOLE["addr"], "ts": 2}

    with pytest.raises(SchemaMismatch, match=r"'pirce'.*Did you mean 'price'\? .*schema_mode='merge'"):
        WRITES[write](table, row)
    assert table.to_arrow(meta_columns=False).to_pylist() == [WHOLE]


def test_a_misspelt_field_of_a_struct_is_refused_too() -> None:
    table = made("nested")
    with pytest.raises(SchemaMismatch, match=r"'addr\.twon'.*Did you mean 'addr\.town'\?"):
        table.upsert([{**WHOLE, "addr": {"twon": "rome", "zip": "1"}}])


def test_the_call_or_a_change_of_the_columns_says_that_it_is_a_new_column() -> None:
    row = {"id": 1, "prices": 9.0, "ts": 2}
    said = made("said")
    assert said.upsert([row], schema_mode="merge").columns_added == ("prices",)
    altered = made("altered")
    altered.alter(AddColumn("prices", pa.float64()))
    altered.upsert([row])
    for table in (said, altered):
        assert table.to_arrow(["price", "prices"]).to_pylist() == [{"price": 1.0, "prices": 9.0}]


def test_a_new_column_of_another_name_is_added_and_the_result_says_so() -> None:
    table = made("added")
    more = {"id": 1, "tip": 2.0, "addr": {**WHOLE["addr"], "street": "x"}, "ts": 2}
    result = table.upsert([more])

    assert (result.columns_added, result.columns_retyped) == (("addr.street", "tip"), ())
    assert "1 updated; 2 columns added: addr.street, tip;" in str(result)
    assert result.to_dict()["columns_added"] == ["addr.street", "tip"]
    assert "columns added" in result._repr_html_()
    assert table.upsert([{**WHOLE, **more, "ts": 3}]).columns_added == ()


def test_the_result_names_columns_with_wider_types_and_dropped_ones() -> None:
    table = made("widened")
    rows = pa.Table.from_pylist([WHOLE], COLUMNS).set_column(2, "n", pa.array([2**40]))
    result = table.upsert(rows)
    assert (result.columns_added, result.columns_retyped) == ((), ("n",))
    assert "1 column given another type: n" in str(result)

    drops = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    result = table.upsert(rows.drop_columns(["addr"]), options=drops)
    assert result.columns_dropped == ("addr",)
    assert "1 column dropped: addr" in str(result)
    assert table.alter(RenameColumn("n", "m")).columns_added == ()


@pytest.mark.parametrize("write", ["upsert", "insert", "bulk_insert", "overwrite"])
def test_strict_takes_the_columns_of_the_table_and_no_others(write: str) -> None:
    table = made(f"strict-{write}")
    with pytest.raises(SchemaMismatch, match=r"'x' \(int64\).*schema_mode='strict' adds none.*AddColumn\('x'"):
        getattr(table, write)([{**WHOLE, "x": 1}], schema_mode="strict")
    wide = pa.Table.from_pylist([WHOLE], COLUMNS).set_column(2, "n", pa.array([1]))
    with pytest.raises(SchemaMismatch, match=r"'n': the table has int32, the data int64; schema_mode='strict'"):
        getattr(table, write)(wide, schema_mode="strict")
    getattr(table, write)([{**WHOLE, "ts": 2}], options={"hoodie.pyhudi.schema.mode": "strict"})
    assert table.schema().equals(COLUMNS)
    assert set(table.to_arrow(["ts"]).column("ts").to_pylist()) <= {1, 2}


def test_strict_says_which_column_is_meant_and_holds_for_upserts_of_some_columns() -> None:
    table = made("strict-some")
    with pytest.raises(SchemaMismatch, match=r"'pirce'.*strict.*Did you mean 'price'"):
        table.upsert([{"id": 1, "pirce": 1.0, "ts": 2}], schema_mode="strict")
    table.upsert([{"id": 1, "price": 2.0, "ts": 2}], schema_mode="strict")
    assert table.to_arrow(meta_columns=False).to_pylist() == [{**WHOLE, "price": 2.0, "ts": 2}]
