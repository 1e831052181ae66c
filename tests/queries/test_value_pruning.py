"""Queries for values of a column with a secondary index open the file groups that have them."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.metadata.removal import drop_partitions
from tests.support.tables.clustered import Clustered

KINDS = [(version, kind) for version in ("8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
ON = {
    "metadata_enable": "true",
    "metadata_global_record_level_index_enable": "true",
    "metadata_index_column_stats_enable": "false",  # which would skip files, too
}

UNIQUE = {"hoodie.pyhudi.read.unique.keys": "true"}  # so that queries go by the record index


def indexed(version: str = "9", kind: str = "COPY_ON_WRITE") -> Clustered:
    """Three file groups, each with the values of its own, and 7 in two of them."""
    table = Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **ON)
    table.bulk_insert(("a", "x", 1, 1), ("b", "x", 1, 7), ("c", "y", 1, 7), ("d", "y", 1, 2), ("e", "z", 1, 3))
    HudiTable(table.meta).indexes.create("by_v", columns="v")
    return table


def skipped(table: Clustered, where: str) -> tuple[int, list[str]]:
    """How many slices were left out, and the keys that were found."""
    scan = HudiTable(table.meta).scan(columns=["id"], where=where, options=UNIQUE)
    return scan.plan.files_skipped, sorted(map(str, scan.to_arrow().column("id").to_pylist()))


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_query_for_values_opens_the_file_groups_that_have_them(version: str, kind: str) -> None:
    table = indexed(version, kind)
    for where, expected in (
        ("v = 1", (2, ["a"])),
        ("v = 7", (1, ["b", "c"])),
        ("v IN (1, 3)", (1, ["a", "e"])),
        ("v = 1 OR v = 2", (1, ["a", "d"])),
        ("v = 7 AND ts = 1", (1, ["b", "c"])),
        ("v = 9", (3, [])),
        ("v > 2", (0, ["b", "c", "e"])),
        ("v = 1 OR id = 'e'", (0, ["a", "e"])),
    ):
        assert skipped(table, where) == expected, where
    table.upsert(("a", "x", 2, 3), ("f", "z", 1, 1))
    assert skipped(table, "v = 1")[1] == ["f"]
    assert skipped(table, "v = 3")[1] == ["a", "e"]


def test_an_index_that_is_not_there_any_more_is_not_used() -> None:
    table = indexed()
    drop_partitions(table.meta, ["secondary_index_by_v"])
    assert skipped(table, "v = 1") == (0, ["a"])


def test_an_earlier_state_is_read_without_the_index() -> None:
    table = indexed()
    first = table.meta.timeline.commits().instants[0].requested_time
    table.upsert(("a", "x", 2, 5))
    scan = HudiTable(table.meta).scan(columns=["id"], where="v = 1", as_of=first, options=UNIQUE)
    assert scan.to_arrow().column("id").to_pylist() == ["a"]


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["v = 1", "id = 'a'"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_scan_finds_rows_where_they_were_though_indexes_were_rebuilt_since(
    version: str, kind: str, where: str
) -> None:
    table = indexed(version, kind)
    scan = HudiTable(table.meta).scan(columns=["id", "p", "v"], where=where, options=UNIQUE)
    table.upsert(("a", "y", 2, 9), record_index_update_partition_path="true", parquet_small_file_limit="1000000")
    HudiTable(table.meta).metadata.rebuild()

    assert scan.to_arrow().to_pylist() == [{"id": "a", "p": "x", "v": 1}]
    now = HudiTable(table.meta).scan(columns=["p"], where="id = 'a'", options=UNIQUE)
    assert now.to_arrow().to_pylist() == [{"p": "y"}]
    assert now.plan.files_skipped
