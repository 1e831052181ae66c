"""Texts of floats as Java 17 prints them. Expected texts: Java's documentation, keys and values of golden tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyhudi.java.floats import double_texts, float_text, float_texts
from tests.support.values.strategies import RELAXED


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (2e23, "1.9999999999999998E23"),
        (4.9e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_have_javas_text(number: float, text: str) -> None:
    assert float_text(pa.array([number, None])).to_pylist() == [text, None]


def test_floats_have_javas_text_of_single_precision() -> None:
    numbers = np.array([0.1, 8589934592.0, 16777216.0, 3.4028235e38, 1.4e-45, 2.5], "f4")

    assert float_text(pa.array(numbers)).to_pylist() == [
        "0.1",
        "8.5899346E9",
        "1.6777216E7",
        "3.4028235E38",
        "1.4E-45",
        "2.5",
    ]


@RELAXED
@given(hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(width=32)))
def test_whole_columns_of_floats_get_the_texts_of_single_numbers(numbers: np.ndarray) -> None:
    assert float_text(pa.array(numbers)).to_pylist() == float_texts(numbers.view(np.int32).tolist())


@RELAXED
@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats()))
def test_whole_columns_of_doubles_get_the_texts_of_single_numbers(numbers: np.ndarray) -> None:
    assert float_text(pa.array(numbers)).to_pylist() == double_texts(numbers.view(np.int64).tolist())


def test_common_numbers_get_the_texts_of_single_numbers() -> None:
    random = np.random.default_rng(0)
    for numbers in (
        random.uniform(-1e5, 1e5, 20_000).round(2),
        10 ** random.uniform(-4, 8, 20_000),
        random.integers(-(10**7), 10**7, 20_000).astype("f8"),
    ):
        assert float_text(pa.array(numbers)).to_pylist() == double_texts(numbers.view(np.int64).tolist())
        single = numbers.astype("f4")
        assert float_text(pa.array(single)).to_pylist() == float_texts(single.view(np.int32).tolist())
