"""Rows that are put next to their places in this process: only where each key has one place."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.index.key_join import counted, join_locations
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY

ROWS = pa.table({RECORD_KEY: ["a", "b", "c", "a"], PARTITION_PATH: ["x", "x", "y", "y"], "v": [1, 2, 3, 4]})


def hits(*places: tuple[str, str, str]) -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, LOCATION)])
    return pa.Table.from_pylist([dict(zip(schema.names, place, strict=True)) for place in places], schema=schema)


def test_rows_have_the_place_of_their_key_in_their_own_partition() -> None:
    found = join_locations(ROWS, hits(("c", "y", "f3"), ("a", "x", "f1"), ("unknown", "x", "f9")))

    assert found is not None
    assert found.to_pydict() == {**ROWS.to_pydict(), LOCATION: ["f1", None, "f3", None]}
    assert counted(found) == {("x", "f1"): 1, ("x", None): 1, ("y", "f3"): 1, ("y", None): 1}


@pytest.mark.thorough
def test_without_places_all_keys_are_new() -> None:
    found = join_locations(ROWS, hits())

    assert found is not None
    assert found.column(LOCATION).to_pylist() == [None] * 4


@pytest.mark.thorough
@pytest.mark.parametrize("second", [("a", "x", "f2"), ("a", "y", "f2"), ("a", "x", "f1")])
def test_a_key_in_several_places_is_left_to_the_join(second: tuple[str, str, str]) -> None:
    assert join_locations(ROWS, hits(("a", "x", "f1"), ("b", "x", "f1"), second)) is None
