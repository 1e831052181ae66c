"""The curves of docs/scale.md: their exponents, and that one can be measured and drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.plot import growth_curves
from bench.scale_bench import CURVES, exponent, growths, measure, table


def test_the_exponent_of_a_line_is_1_and_that_of_squares_2() -> None:
    sizes = (1000, 3000, 10_000)

    assert exponent(sizes, [2 * size for size in sizes]) == pytest.approx(1)
    assert exponent(sizes, [size * size / 7 for size in sizes]) == pytest.approx(2)


def test_the_exponent_is_that_of_the_last_factor_of_ten_where_fixed_costs_no_longer_count() -> None:
    assert exponent((1, 10, 1000, 10_000), (5, 5, 70, 700)) == pytest.approx(1)


def test_a_curve_is_measured_and_drawn(tmp_path: Path) -> None:
    curve, points = CURVES["deletes"], []
    for size in curve.quick:
        path = tmp_path / str(size)
        assert curve.make is not None
        curve.make(path, size)
        points.append(measure("deletes", "read the slice", path, size))

    (growth,) = growths(points)
    picture = ElementTree.fromstring(growth_curves([growth]))

    assert growth.sizes == list(curve.quick)
    assert min(growth.seconds) > 0
    assert growth.peaks_mb[-1] > 10
    assert len(picture.findall(".//{*}circle")) == len(curve.quick)
    assert "| deletes in a slice | read the slice | 10,000 | 30,000 |" in table([growth])
