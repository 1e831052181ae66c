"""Upgrade and downgrade of a table with a metadata table: it has the same partitions in the form of the new version."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.metadata.index_definitions import read_index_definitions
from tests.support.tables.small import TestTable
from tests.support.tables.versioned import take_to
from tests.support.tables.with_metadata import NAMES, check, keep_names, metadata_of, table_of, with_names
from tests.support.writers.dying import deaths

STEPS = [(6, 8), (8, 9), (9, 8), (8, 6), (6, 9), (9, 6)]


@pytest.fixture(autouse=True)
def names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_names(monkeypatch)


def made(version: int, kind: str) -> TestTable:
    table = table_of(str(version), kind)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    with_names(table)
    table.upsert(("a", "x", 2, 11), ("c", "y", 1, 30))
    check(table, "before")
    return table


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("source", "target"), STEPS)
def test_the_metadata_table_is_there_in_the_new_version(source: int, target: int, kind: str) -> None:
    table = made(source, kind)
    take_to(table.storage, target)
    check(table, "changed")
    assert table.meta.config.metadata_partitions == (NAMES, "files")
    assert metadata_of(table).meta.config.table_version == target
    table.options = {**table.options, "hoodie.write.table.version": str(target)}
    table.upsert(("a", "x", 3, 12))
    check(table, "afterwards")


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("source", "target"), [(6, 8), (9, 8), (8, 6)])
def test_a_death_anywhere_loses_no_partition(source: int, target: int) -> None:
    table = made(source, "COPY_ON_WRITE")
    for attempt, where in deaths(table, lambda t: take_to(t.storage, target)):
        version = attempt.meta.config.table_version
        attempt.options = {**attempt.options, "hoodie.write.table.version": str(version)}
        attempt.upsert(("e", "x", 1, 50))
        check(attempt, where)
        assert attempt.meta.config.metadata_partitions == (NAMES, "files"), where
        assert metadata_of(attempt).meta.config.table_version == version, where


def test_indexes_of_values_and_expressions_are_there_in_version_9() -> None:
    table = table_of("8", metadata_global_record_level_index_enable="true")
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    handle = HudiTable(table.meta)
    handle.indexes.create("by_v", columns="v")
    handle.indexes.create("day", expression="from_unixtime(v, 'yyyy-MM-dd')")
    take_to(table.storage, 9)
    indexes = {"expr_index_day", "secondary_index_by_v"}
    assert indexes <= set(table.meta.config.metadata_partitions)
    definitions = read_index_definitions(table.storage).by_name
    assert {definitions[name].version for name in indexes} == {"V2"}
    table.options = {**table.options, "hoodie.write.table.version": "9"}
    table.upsert(("a", "x", 3, 12))
    assert indexes <= set(table.meta.config.metadata_partitions)
    keys = metadata_of(table).records("secondary_index_by_v").column("key").to_pylist()
    assert sorted(map(str, keys)) == ["12$a", "20$b"]
