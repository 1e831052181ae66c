"""Rows that are the same are found, and records that differ in their keys alone are encoded once, as each is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.metadata.group_files import encoded_records
from pyhudi.metadata.keys import one_per_key
from pyhudi.metadata.locations import RecordLocation, coded_location_records, encoded_locations, location_records
from pyhudi.metadata.records import dictionary_rows
from tests.support.sweeps import examples

_UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
ROWS = st.lists(st.tuples(st.sampled_from([1, 2, -1, None]), st.sampled_from(["", "a", None]), st.booleans()))


@settings(max_examples=examples(50), deadline=None)
@given(rows=ROWS)
def test_each_row_has_the_number_of_one_that_is_the_same(rows: list[tuple[int | None, str | None, bool]]) -> None:
    number, text, flag = ([row[at] for row in rows] for at in range(3))
    inner = pa.StructArray.from_arrays([pa.array(text, pa.string()), pa.array(flag, pa.bool_())], ["t", "f"])
    batch = pa.RecordBatch.from_arrays([pa.array(number, pa.int64()), inner], ["n", "s"])
    found = dictionary_rows(batch)
    kinds = len(set(rows))
    assert (found is None) == (not rows or kinds > len(rows) // 2)
    if found is not None:
        assert len(found.first) == kinds
        assert batch.take(found.first).take(found.numbers).equals(batch)


def test_floats_and_rows_that_differ_are_passed_over() -> None:
    assert dictionary_rows(pa.RecordBatch.from_arrays([pa.array([0.0, -0.0, 0.0, 0.0])], ["x"])) is None
    assert dictionary_rows(pa.RecordBatch.from_arrays([pa.array([1, 2, 3, 4])], ["x"])) is None
    null = pa.StructArray.from_arrays([pa.array([1, 1, 1])], ["x"], mask=pa.array([True, False, False]))
    assert dictionary_rows(pa.RecordBatch.from_arrays([null], ["x"])) is None


@pytest.mark.parametrize("version", [6, 8, 9])
def test_records_of_many_keys_are_encoded_as_each_is(version: int) -> None:
    places = [RecordLocation("p", f"{_UUID}-0", 7), RecordLocation("p", f"{_UUID}-1", 7), RecordLocation("q", "raw", 9)]
    keys = pa.array([f"k{number}" for number in range(40)])
    records = location_records(version, keys, places, (np.arange(40) % 3).astype(np.int32))
    bodies = records.drop_columns(["key"])
    alone = [encoded_records(bodies.slice(row, 1), version, "file")[0].as_py() for row in range(40)]
    assert encoded_records(bodies, version, "file").to_pylist() == alone
    coded = coded_location_records(
        version, keys, encoded_locations(version, places), (np.arange(40) % 3).astype(np.int32)
    )
    coded = coded.drop_columns(["key"])
    assert encoded_records(coded, version, "file").to_pylist() == alone
    assert encoded_records(coded.slice(1, 1), version, "file").to_pylist() == alone[1:2]
    assert len(set(alone)) == len(places)


def test_rows_are_in_the_order_of_their_keys_and_the_last_of_one_key_stays() -> None:
    keys = pa.array(["b", "Ü", "a", "b", "unused", "\U0001f600", "a", "b"])
    wanted = np.array([0, 1, 2, 3, 5, 6, 7])
    assert _in_order(keys, wanted) == ([6, 7, 1, 5], ["a", "b", "Ü", "\U0001f600"])
    assert _in_order(keys, np.array([2, 3])) == ([2, 3], ["a", "b"])
    assert _in_order(keys, np.array([], np.int64)) == ([], [])


def _in_order(keys: pa.Array, rows: np.ndarray) -> tuple[list[object], list[object]]:
    found, own = one_per_key(keys.take(pa.array(rows)), rows)
    return [*found.to_pylist()], [*own.cast(pa.string()).to_pylist()]
