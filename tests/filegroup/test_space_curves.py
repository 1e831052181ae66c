"""Curves: every cell once, neighbours on the Hilbert curve are neighbours in space, orders of columns are kept."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.filegroup.rewrite.curves import bits_of, coordinates, hilbert_index, ordered_values, z_index
from tests.support.sweeps import examples


def grid(columns: int, bits: int) -> list[Any]:
    cells = np.array(list(product(range(1 << bits), repeat=columns)), np.uint64)
    return [cells[:, number].copy() for number in range(columns)]


@pytest.mark.parametrize(("columns", "bits"), [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_neighbours_on_the_hilbert_curve_differ_in_one_column_by_one(columns: int, bits: int) -> None:
    cells = grid(columns, bits)
    index = hilbert_index(cells, bits)
    assert sorted(index.tolist()) == list(range(1 << (columns * bits))), "every cell has a place of its own"
    walked = np.stack(cells, axis=1)[np.argsort(index)].astype(np.int64)
    assert (np.abs(np.diff(walked, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("columns", "bits"), [(1, 8), (2, 3), (3, 3), (5, 2)])
def test_a_z_index_has_the_bits_in_turn(columns: int, bits: int) -> None:
    cells = grid(columns, bits)
    expected = [
        int("".join(f"{int(cell):0{bits}b}"[bit] for bit in range(bits) for cell in row), 2)
        for row in zip(*cells, strict=True)
    ]
    assert z_index(cells, bits).tolist() == expected


def test_wide_coordinates_use_all_bits() -> None:
    top = np.array([0xFFFF], np.uint64)
    assert z_index([top] * 4, 16).tolist() == [2**64 - 1]
    assert bits_of(2) == 16
    assert bits_of(64) == 1
    with pytest.raises(ConfigError, match="1 to 64 columns"):
        bits_of(65)


COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))),
    "decimal": (pa.decimal128(10, 2), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n) / 100)),
    "bytes": (pa.binary(), st.binary(max_size=8)),
}


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_numbers_and_coordinates_keep_the_order_of_values(name: str, data: st.DataObject) -> None:
    kind, values = COLUMNS[name]
    cells = data.draw(st.lists(values | st.none(), min_size=1, max_size=30))
    column = pa.array(cells, kind)
    numbers = ordered_values(column)
    assert numbers.tolist() == ordered_values(column.dictionary_encode()).tolist()
    assert numbers.tolist() == ordered_values(pa.chunked_array([column.slice(0, 1), column.slice(1)])).tolist()
    for found in (numbers, coordinates(numbers, 16), coordinates(numbers, 8, numbers[::2])):
        by_number = sorted(range(len(cells)), key=lambda at: int(found[at]))
        for before, after in pairwise(by_number):
            if found[before] == found[after]:
                continue
            first, second = cells[before], cells[after]
            assert first is None or (second is not None and first <= second)


def test_text_counts_by_its_first_bytes() -> None:
    texts = pa.array(["", "a", "ab", "b", "é", None, "aaaaaaaaaaaaz", "aaaaaaaaaaaab"])
    found = ordered_values(texts).tolist()
    assert found[0] < found[1] < found[2] < found[3] < found[4]
    assert found[5] == 0
    assert found[6] == found[7]


def test_columns_without_an_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="list"):
        ordered_values(pa.array([[1]]))


def test_a_skewed_column_gets_even_coordinates_from_a_sample() -> None:
    values = ordered_values(pa.array([2**n for n in range(62)] * 10))
    direct, sampled = coordinates(values, 3), coordinates(values, 3, values)
    assert len(set(direct.tolist())) < 8
    assert np.bincount(sampled.astype(np.int64), minlength=8).min() >= 70
