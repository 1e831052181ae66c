"""Ordering values of several types and sources, held against each other."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.merge.ordering import ordering_keys, stored_is_greater


def text_of(data: bytes) -> pa.Array:
    offsets = pa.array([0, len(data)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(data)])


def test_a_long_that_no_double_holds_is_compared_with_a_double() -> None:
    assert stored_is_greater([pa.array([2**62 + 1, 0])], [pa.array([1.5, 1.5])]).tolist() == [True, False]


def test_moments_beyond_the_years_that_are_compared_are_refused() -> None:
    seconds, micros = pa.array([2**62], pa.timestamp("s")), pa.array([1], pa.timestamp("us", "UTC"))
    with pytest.raises(SchemaMismatch, match="out of bounds timestamp"):
        stored_is_greater([seconds], [micros])


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="utf-8"):
        ordering_keys([text_of(b"\xff\xfe")])


def test_a_decimal_is_compared_with_a_double_from_either_side() -> None:
    decimals, doubles = pa.array([Decimal("1.50"), Decimal("-2.25")]), pa.array([1.25, -2.0])
    assert stored_is_greater([decimals], [doubles]).tolist() == [True, False]
    assert stored_is_greater([doubles], [decimals]).tolist() == [False, True]


# What compares with what: types of one of these groups, each with itself and the others.
GROUPS = [
    {pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.decimal128(20, 5)},
    {pa.timestamp("ms"), pa.timestamp("us", "UTC")},
    {pa.string(), pa.large_string()},
    {pa.date32()},
    {pa.bool_()},
    {pa.binary()},
]
KINDS = sorted((kind for group in GROUPS for kind in group), key=str)


@pytest.mark.parametrize("left", KINDS, ids=str)
def test_types_compare_with_those_of_their_group_and_with_no_others(left: pa.DataType) -> None:
    for right in KINDS:
        pair = [pa.nulls(1, left)], [pa.nulls(1, right)]
        if any({left, right} <= group for group in GROUPS):
            assert stored_is_greater(*pair).tolist() == [False]
        else:
            with pytest.raises(SchemaMismatch, match=rf"{re.escape(str(left))} and .* can't be compared"):
                stored_is_greater(*pair)


def test_a_null_type_compares_with_each() -> None:
    for kind in KINDS:
        assert stored_is_greater([pa.nulls(1)], [pa.nulls(1, kind)]).tolist() == [False]
        assert stored_is_greater([pa.nulls(1, kind)], [pa.nulls(1)]).tolist() == [False]


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        (pa.int64(), -(2**63)), (pa.float64(), float("-inf")), (pa.decimal128(5, 2), Decimal("-999.99")),
        (pa.timestamp("us"), -1), (pa.date32(), -1), (pa.string(), ""), (pa.bool_(), False),
    ],
    ids=str,
)  # fmt: skip
def test_nothing_is_less_than_every_value(kind: pa.DataType, least: object) -> None:
    nothing, value = pa.nulls(1, kind), pa.array([least], kind)

    assert stored_is_greater([value], [nothing]).tolist() == [True]
    assert stored_is_greater([nothing], [value]).tolist() == [False]
