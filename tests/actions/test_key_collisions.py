"""Rows whose key fields differ and whose record key is the same: the caller is told that they are one row."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.actions.table_keys import key_collisions
from pyhudi.keygen.record_keys import composite_key
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from tests.support.tables.small import TestTable

COMPOSITE = {
    "hoodie.datasource.write.recordkey.field": "a,b",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
COLLIDING = [
    ([("1,b:2", "3"), ("1", "2,b:3")], "1,b:2"),
    ([("1", None), ("1", "__null__")], "__null__"),
    ([("", "x"), ("__empty__", "x")], "__empty__"),
]


def batch(rows: list[tuple[Any, Any]], **more: Any) -> pa.Table:
    """Rows with the key fields a and b."""
    columns = {"a": pa.array([a for a, _ in rows]), "b": pa.array([b for _, b in rows])}
    size = len(rows)
    return pa.table({**columns, "p": ["x"] * size, "ts": list(range(size)), **more})


def keyed(rows: list[tuple[Any, Any]]) -> pa.Table:
    table = batch(rows)
    keys = composite_key(table.to_batches()[0], ["a", "b"], consistent_timestamps=False)
    return table.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, table.column("p"))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("rows", "message"), COLLIDING, ids=["a comma and a name", "null", "empty"])
def test_an_upsert_of_rows_that_become_one_warns_with_both(
    rows: list[tuple[Any, Any]], message: str, table_type: str
) -> None:
    table = TestTable(options={**COMPOSITE, "hoodie.datasource.write.table.type": table_type})
    with pytest.warns(UserWarning, match="have the same record key") as caught:
        table.write("upsert", batch(rows))
    assert len(caught) == 1
    assert message in str(caught[0].message)
    with pytest.warns(UserWarning, match="have the same record key"):
        table.write("upsert", batch(rows))
    assert table.read().num_rows == 1


@pytest.mark.parametrize(
    "rows",
    [
        [("1,b:2", "3"), ("1,b:2", "3")],
        [("1,b:2", "3"), ("1", "2")],
        [("1", None), ("1", None), ("__null__", "1")],
        [("", "x"), ("", "x"), ("__empty__", "y")],
        [("1,2", "3"), ("1", "2,3")],
    ],
)
def test_keys_that_are_there_twice_or_only_look_odd_are_no_collision(rows: list[tuple[Any, Any]]) -> None:
    table = TestTable(options=COMPOSITE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.write("upsert", batch(rows))


def test_numbers_next_to_texts_are_compared_by_their_text() -> None:
    assert key_collisions(keyed([(1, "x"), (1, "x"), (2, "__null__")]), ["a", "b"]) == ""
    message = key_collisions(keyed([("1,b:2", "3"), ("7", "7"), ("1", "2,b:3")]), ["a", "b"])
    assert "('1,b:2', '3') and ('1', '2,b:3')" in message


def test_rows_without_key_fields_and_keys_of_one_field_are_not_looked_at() -> None:
    rows = keyed([("1,b:2", "3"), ("1", "2,b:3")])
    assert key_collisions(rows.drop_columns(["b"]), ["a", "b"]) == ""
    assert key_collisions(rows, ["a"]) == ""


def test_collisions_of_fields_inside_structs_are_found() -> None:
    flat = [("1,s.b:2", "3"), ("1", "2,s.b:3")]
    nested = pa.table({"s": [{"a": a, "b": b} for a, b in flat], "p": ["x", "x"]})
    keys = composite_key(nested.to_batches()[0], ["s.a", "s.b"], consistent_timestamps=False)
    rows = nested.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, nested.column("p"))
    assert "s.a, s.b" in key_collisions(rows, ["s.a", "s.b"])
