"""Rows of binary values are sorted by their bytes, even with long common prefixes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyhudi.arrow.buffers as byte_order
from tests.support.sweeps import examples


def expected(values: list[bytes]) -> list[int]:
    return sorted(range(len(values)), key=values.__getitem__)


@settings(max_examples=examples(60), deadline=None)
@given(
    prefix=st.binary(max_size=10),
    values=st.lists(st.one_of(st.binary(max_size=12), st.sampled_from([b"", b"\x00", b"a", b"a\x00", b"b" * 9]))),
)
def test_any_values_are_in_the_order_of_their_bytes_and_equal_ones_in_their_own(
    prefix: bytes, values: list[bytes]
) -> None:
    given = [prefix + value for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_order, "_FEW", 0)
        if given:
            sliced = pa.array([b"before", *given], pa.binary()).slice(1)
            assert byte_order.order_of_bytes(sliced).tolist() == expected(given)


@pytest.mark.parametrize(
    "value",
    [
        lambda one: b"key-%010d" % one.randrange(10**6),
        lambda one: one.randbytes(one.randrange(20)),
        lambda one: bytes(one.choices(b"\x00a", k=one.randrange(12))),
        lambda one: b"the same",
    ],
)
def test_many_values_are_in_the_order_of_their_bytes(value: object) -> None:
    assert callable(value)
    chance = random.Random(1)
    values = [value(chance) for _ in range(3 * byte_order._FEW)]
    assert byte_order.order_of_bytes(pa.array(values, pa.binary())).tolist() == expected(values)
