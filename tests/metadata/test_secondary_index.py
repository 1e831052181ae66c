"""Secondary indexes: made from rows, kept up by all actions, against what Apache Hudi wrote."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import DamagedLog
from pyhudi.metadata.build import add_partition
from pyhudi.metadata.partitions.secondary_index import secondary_keys
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.options.metadata import MetadataOptions
from tests.support.golden.folder import SHARED
from tests.support.golden.metadata_tables import opened, places_with
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row, rows_of

SECONDARY = "secondary_index_"
ON = {"metadata_enable": "true", "metadata_global_record_level_index_enable": "true"}
FEW = {
    "metadata_global_record_level_index_min_filegroup_count": "2",
    "metadata_global_record_level_index_max_filegroup_count": "2",
}
PLACES = (*(SHARED / "golden").glob("*/*.zip"), *(SHARED / "fixtures" / "hudi-tables").glob("*.zip"))
KINDS = [(version, kind) for version in ("8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


def _open(place: Path, folder: Path) -> MetadataTable:
    table = opened(place, folder)
    if table is None or "record_index" not in table.partitions:
        pytest.skip("it can't be read, or the table has no record index")
    return table


def _secondary(table: MetadataTable) -> list[str]:
    return [name for name in table.partitions if kind_of(name) is MetadataKind.SECONDARY_INDEX]


@pytest.mark.parametrize("place", places_with(SECONDARY, PLACES))
def test_a_secondary_index_built_from_the_rows_is_the_one_that_hudi_kept(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path)
    for name in _secondary(table):
        try:
            theirs = table.records(name)
        except DamagedLog:
            pytest.skip("a log file of the index is lost")
        table = add_partition(table, name, MetadataOptions())
        ours = table.records(name)
        assert ours.schema == theirs.schema
        assert sorted(map(str, ours.to_pylist())) == sorted(map(str, theirs.to_pylist())), name
        by_value = table.lookup(name, ours.column("key").to_pylist())
        assert by_value.num_rows == ours.num_rows


def indexed(version: str, kind: str, *rows: Row) -> Clustered:
    """A table with secondary indexes of a column of numbers, and of the partition column, which is text."""
    table = Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **ON, **FEW)
    table.bulk_insert(*rows)
    for name, column in (("by_v", "v"), ("by_p", "p")):
        HudiTable(table.meta).indexes.create(name, columns=column)
    return table


def check(table: Clustered, what: object) -> None:
    """The indexes have exactly the pairs of the existing rows."""
    found = MetadataTable.open(table.meta)
    assert found is not None, what
    rows = table.read().combine_chunks()
    for name, column in (("by_v", "v"), ("by_p", "p")):
        assert f"{SECONDARY}{name}" in found.partitions, what
        expected: list[object] = []
        if rows.num_rows:
            (batch,) = rows.select(["_hoodie_record_key", column]).to_batches()
            expected = secondary_keys(batch.column(1), batch.column(0), table.meta.config.table_version).to_pylist()
        keys = map(str, found.records(f"{SECONDARY}{name}").column("key").to_pylist())
        assert sorted(keys) == sorted(map(str, expected)), (what, name)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_action_keeps_secondary_indexes_up(version: str, kind: str) -> None:
    table = indexed(version, kind, ("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30), ("e", "y", 1, 5))
    check(table, "built")
    steps: list[tuple[str, Any]] = [
        ("upsert", lambda: table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))),
        ("nothing new", lambda: table.upsert(("a", "x", 3, 11))),
        ("delete", lambda: table.delete(("b", "x"))),
        ("back again", lambda: table.upsert(("b", "x", 3, 21))),
        ("cluster", lambda: table.cluster(clustering_plan_strategy_small_file_limit="1000000")),
        ("insert overwrite", lambda: table.write("insert_overwrite", rows_of(("a", "x", 4, 12), ("f", "x", 1, 7)))),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("delete partition", lambda: table.write("delete_partition", rows_of(("c", "y", 1, 1)))),
        ("moves", lambda: table.upsert(("a", "w", 5, 13), record_index_update_partition_path="true")),
        ("compaction", lambda: table.compact_now() if kind == "MERGE_ON_READ" else None),
        ("upsert again", lambda: table.upsert(("a", "w", 6, 14), ("g", "v", 1, 1))),
    ]
    for what, act in steps:
        act()
        check(table, what)
    assert table.rows(("id", "v")) == [("a", 14), ("b", 21), ("d", 40), ("g", 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_secondary_indexes_are_the_pairs_of_the_rows_after_any_history(version: str, kind: str, seed: int) -> None:
    chance = random.Random(f"{version} {kind} {seed}")
    home = {key: chance.choice("xyz") for key in "abcdefgh"}
    table = indexed(version, kind, *(("abcd"[n], home["abcd"[n]], 1, n % 2) for n in range(4)))

    def some(ts: int) -> list[Row]:
        return [(key, home[key], ts, chance.randrange(3)) for key in chance.sample("abcdefgh", 3)]

    for step in range(2, 7):
        act = chance.choice(["upsert", "upsert", "delete", "rollback", "compact", "cluster"])
        if act == "upsert":
            table.upsert(*some(step))
        elif act == "delete":
            table.delete(*((key, home[key]) for key in chance.sample("abcdefgh", 2)))
        elif act == "rollback" and step > 2:
            table.upsert(*some(step))
            HudiTable(table.meta).rollback()
        elif act == "compact" and kind == "MERGE_ON_READ":
            table.compact_now()
        elif act == "cluster":
            table.cluster(clustering_plan_strategy_small_file_limit="1000000")
        check(table, (step, act))


@pytest.mark.thorough
def test_a_value_that_stays_writes_nothing() -> None:
    table = indexed("9", "COPY_ON_WRITE", ("a", "x", 1, 10), ("b", "x", 1, 20))
    result = table.upsert(("a", "x", 2, 10))
    names = [entry.path for entry in table.storage.walk(".hoodie/metadata")]
    own = {path.split("/")[2] for path in names if result.instant_time in path.rpartition("/")[2]}
    assert own == {".hoodie", "files", "column_stats", "partition_stats"}


@pytest.mark.thorough
@pytest.mark.filterwarnings("error::pyhudi.metadata.build.MetadataTableRebuilt")
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_an_instant_from_before_an_index_was_built_can_be_rolled_back(version: str, kind: str) -> None:
    table = Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **ON, **FEW)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "x", 2, 30))
    for name, column in (("by_v", "v"), ("by_p", "p")):
        HudiTable(table.meta).indexes.create(name, columns=column)
    HudiTable(table.meta).rollback()
    assert table.rows(("id", "v")) == [("a", 10), ("b", 20)]
    check(table, "taken back")
    table.upsert(("a", "x", 3, 12))
    check(table, "written on")
