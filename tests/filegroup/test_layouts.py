"""What a layout is good for: the share of row groups that a filter on either column has to read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.filegroup.rewrite.sort import RowOrder

ROWS, GROUPS = 40_000, 64
_random = np.random.default_rng(11)
TABLE = pa.table(
    {
        "lon": _random.uniform(-180, 180, ROWS),
        "amount": np.exp(_random.normal(7, 3, ROWS)).astype(np.int64),  # skewed over eight orders of magnitude
        "name": [
            f"{word}{number}" for word, number in zip(_random.choice(list("abcdefgh"), ROWS), range(ROWS), strict=True)
        ],
    }
)


def read_share(order: RowOrder, column: str) -> float:
    """The share of row groups that filters for one hundredth of the rows can't skip, by least and greatest value."""
    rows = TABLE.take(pa.array(order.positions(order.keys(TABLE)))).column(column).to_numpy(zero_copy_only=False)
    groups = [(part.min(), part.max()) for part in np.array_split(rows, GROUPS)]
    ordered = np.sort(rows)
    read = []
    for hundredth in range(5, 100, 10):
        low, high = ordered[hundredth * ROWS // 100], ordered[(hundredth + 1) * ROWS // 100]
        read.append(sum(least <= high and greatest >= low for least, greatest in groups) / GROUPS)
    return float(np.mean(read))


def test_a_linear_order_serves_its_first_column_only() -> None:
    order = RowOrder(("lon", "amount"))
    assert read_share(order, "lon") < 0.04
    assert read_share(order, "amount") == 1.0


@pytest.mark.parametrize("layout", ["ZORDER", "HILBERT"])
@pytest.mark.parametrize("columns", [("lon", "amount"), ("amount", "name"), ("lon", "name")])
def test_a_curve_serves_all_of_its_columns(layout: str, columns: tuple[str, ...]) -> None:
    order = RowOrder(columns, layout, sample_size=10_000)
    for column in columns:
        assert read_share(order, column) < 0.3, column


@pytest.mark.parametrize("layout", ["ZORDER", "HILBERT"])
def test_without_a_sample_a_skewed_column_is_served_less(layout: str) -> None:
    """That is what the sample is for: by value, nearly all amounts are in the first steps of their range."""
    by_value, by_rank = RowOrder(("lon", "amount"), layout), RowOrder(("lon", "amount"), layout, 10_000)
    assert read_share(by_value, "amount") > 2 * read_share(by_rank, "amount")
    assert read_share(by_value, "lon") < 0.3
