"""Without a record index the files are read, which is told from the second write on: the first has no keys to find."""

from __future__ import annotations

import warnings

import pytest

from pyhudi.index.record_index import RecordIndexIgnored
from tests.support.tables.small import TestTable


def complaints(table: TestTable, value: int) -> list[str]:
    """What an upsert says of an index that it can't use."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.upsert(("a", "x", value, value))
    return [str(one.message) for one in caught if one.category is RecordIndexIgnored]


@pytest.mark.parametrize("name", ["GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"])
def test_only_a_write_that_has_keys_to_find_tells_that_the_index_is_missing(name: str) -> None:
    table = TestTable(options={"hoodie.index.type": name})

    assert complaints(table, 1) == []
    for value in (2, 3):
        (message,) = complaints(table, value)
        assert f"hoodie.index.type={name} finds keys without it" in message
    assert table.rows() == [("a", "x", 3, 3)]
