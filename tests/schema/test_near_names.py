"""Names that look like typing errors of others."""

from __future__ import annotations

import pytest

from pyhudi.schema.near_names import near_name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pirce", "price"),
        ("prise", "price"),
        ("pric", "price"),
        ("pricee", "price"),
        ("rprice", "price"),
        ("unitPrice", "unit_price"),
        ("unit-price", "unit_price"),
        ("custmoer_nmae", "customer_name"),
        ("naem", "name"),
    ],
)
def test_one_slip_a_word_is_nearly_the_name(name: str, meant: str) -> None:
    assert near_name(name, ["other", meant]) == meant


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("price2", "price"),
        ("price1", "price2"),
        ("pos_x", "pos_y"),
        ("vv", "v"),
        ("min_price", "max_price"),
        ("created_at", "updated_at"),
        ("longitude", "latitude"),
        ("from_id", "to_id"),
        ("tip", "price"),
    ],
)
def test_names_that_mean_different_things_are_different(name: str, other: str) -> None:
    assert near_name(name, [other]) is None
