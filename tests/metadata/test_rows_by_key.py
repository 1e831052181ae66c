"""Records that stay in memory are found by their keys and by what these begin with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.metadata.rows_by_key import RowsByKey

KEYS = ["", "a", "ab1", "ab2", "ac1", "b", "ba9"]
ROWS = RowsByKey.of(pa.table({"key": KEYS, "n": list(range(len(KEYS)))}))


@pytest.mark.parametrize(
    "prefixes",
    [[], [""], ["ab"], ["ab", "ba"], ["a", "b"], ["ab1", "ac", "b"], ["ab1x"], ["aa", "zz"], ["a", "ba"]],
)
def test_rows_with_prefixes_are_those_whose_keys_begin_with_one(prefixes: list[str]) -> None:
    wanted = [number for number, key in enumerate(KEYS) if prefixes and key.startswith(tuple(prefixes))]
    assert ROWS.with_prefixes(prefixes).column("n").to_pylist() == wanted


def test_rows_with_keys_are_those_that_there_are() -> None:
    assert ROWS.with_keys(["b", "ab2", "no"]).column("n").to_pylist() == [3, 5]
    assert ROWS.with_keys([]).num_rows == 0
