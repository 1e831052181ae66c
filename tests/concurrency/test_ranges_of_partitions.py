"""Statistics of partitions when writes overlap: the ranges hold all rows, whichever write completes last."""

from __future__ import annotations

import copy

import pytest

from pyhudi import HudiTable
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.validation import validate
from tests.support.storages.film import InterruptedStorage
from tests.support.tables.clustered import OPTIMISTIC, Clustered
from tests.support.tables.small import Row
from tests.support.writers.dying import on_clone

DAY_S = 86_400
INDEX, BOUNDS = "expr_index_day", ("minValue", "maxValue")


def _ranges(table: Clustered) -> int:
    found = MetadataTable.open(table.meta)
    assert found is not None
    return found.records("partition_stats").num_rows


def _days(table: Clustered) -> list[tuple[str, str]]:
    """The least and the greatest value of the index's function, of each partition that it knows."""
    found = MetadataTable.open(table.meta)
    assert found is not None
    ranges = [row["ColumnStatsMetadata"] for row in found.records(INDEX).to_pylist() if row["type"] == 6]
    return [tuple(next(one["value"] for one in stats[name].values() if one) for name in BOUNDS) for stats in ranges]


def _upsert_around(table: Clustered, outer: Row, inner: Row) -> None:
    """An upsert that another one begins and ends in, when the first opens its first file."""
    counted = on_clone(table)
    counted.storage = InterruptedStorage(counted.memory)
    counted.upsert(outer)
    first_file = counted.storage.verbs.index("open_output") + 1
    writer = copy.copy(table)
    writer.storage = InterruptedStorage(table.memory, first_file, lambda: table.upsert(inner))
    writer.upsert(outer)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_that_completes_after_a_later_one_is_in_the_ranges_of_its_partition(version: str, kind: str) -> None:
    table = Clustered(version, kind, metadata_enable="true", **OPTIMISTIC)
    table.failed_writes_policy = "LAZY"
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 2))
    before = _ranges(table)

    _upsert_around(table, ("a", "x", 2, 900), ("b", "x", 2, 3))
    assert validate(table.meta) == ()
    assert HudiTable(table.meta).scan(columns=["id"], where="v = 900").to_arrow().to_pylist() == [{"id": "a"}]
    assert _ranges(table) < before  # nobody knew what the first was going to write

    table.upsert(("b", "x", 3, 4))
    assert _ranges(table) == before
    assert validate(table.meta) == ()


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_that_completes_after_a_later_one_is_in_the_ranges_of_an_expression(version: str, kind: str) -> None:
    table = Clustered(version, kind, metadata_enable="true", **OPTIMISTIC)
    table.failed_writes_policy = "LAZY"
    table.insert(("a", "x", 1, 0))
    table.insert(("b", "x", 1, DAY_S))
    HudiTable(table.meta).indexes.create("day", expression="from_unixtime(v, 'yyyy-MM-dd')")
    assert _days(table) == [("1970-01-01", "1970-01-02")]

    _upsert_around(table, ("a", "x", 2, 9 * DAY_S), ("b", "x", 2, 2 * DAY_S))
    assert _days(table) == []  # nobody knew what the first was going to write

    table.upsert(("b", "x", 3, 3 * DAY_S))
    least, greatest = _days(table)[0]
    assert (least <= "1970-01-04", greatest) == (True, "1970-01-10")
