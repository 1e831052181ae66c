"""Indexes made, dropped and listed by name."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from tests.support.tables.small import TestTable

VERSIONS = ("6", "8", "9")
ROWS = [("a", "x", 1, 10), ("b", "y", 1, 20)]


def table_of(version: str, **options: str) -> TestTable:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    table = TestTable(options={"hoodie.write.table.version": version, **given})
    table.bulk_insert(*ROWS)
    return table


def names(table: TestTable) -> list[str]:
    return [one.name for one in HudiTable(table.meta).indexes.list()]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_without_a_metadata_table_gets_one_with_the_index(version: str) -> None:
    table = table_of(version)
    made = HudiTable(table.meta).indexes.create("record_index")
    assert (made.name, made.is_built) == ("record_index", True)
    assert table.meta.config.metadata_partitions == ("files", "record_index")
    table.upsert(("a", "x", 2, 11))
    assert validate(table.meta) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_are_made_of_the_named_columns_and_dropped_again(version: str) -> None:
    table = table_of(version)
    handle = HudiTable(table.meta)
    handle.indexes.create("column_stats", columns=["v"])
    handle.indexes.create("bloom_filters")
    assert names(table) == ["bloom_filters", "column_stats"]
    table.upsert(("a", "x", 2, 11))
    assert validate(table.meta) == ()
    handle.indexes.drop("column_stats")
    handle.indexes.drop("bloom_filters")
    assert names(table) == []
    assert table.rows(("id", "v")) == [("a", 11), ("b", 20)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_timeline_says_what_was_indexed_up_to_where(version: str) -> None:
    table = table_of(version)
    HudiTable(table.meta).indexes.create("record_index")
    (instant,) = table.meta.timeline.of([ActionKind.INDEXING])
    assert instant.is_completed
    plan = table.meta.reader.index_plan(instant)
    last = table.meta.timeline.last_commit()
    assert last is not None
    assert (plan.partitions, plan.up_to) == (("record_index",), last.requested_time)


@pytest.mark.thorough
@pytest.mark.filterwarnings("error::pyhudi.metadata.build.MetadataTableRebuilt")
def test_a_dropped_index_can_be_made_again_and_knows_what_came_between() -> None:
    table = table_of("9")
    handle = HudiTable(table.meta)
    handle.indexes.create("record_index")
    handle.indexes.create("by_v", columns="v")
    table.upsert(("a", "x", 2, 11))
    handle.indexes.drop("by_v")
    assert "secondary_index_by_v" not in read_index_definitions(table.storage).by_name
    table.upsert(("a", "x", 3, 12))
    handle.indexes.create("by_v", columns="v")
    table.upsert(("b", "y", 3, 12))
    assert validate(table.meta) == ()


def test_what_can_t_be_made_is_refused_by_name_and_nothing_is_written() -> None:
    table = table_of("9")
    handle = HudiTable(table.meta)
    before = sorted(entry.path for entry in table.storage.walk(""))
    for name, columns, message in (
        ("by_v", ["v"], "create_index..record_index"),
        ("by/v", ["v"], "letters, digits and _"),
        ("by_v", ["w"], "has no column w"),
        ("by_v", [], "needs one column, found none"),
        ("record_index", ["v"], "has no columns"),
    ):
        with pytest.raises(ConfigError, match=message):
            handle.indexes.create(name, columns=columns)
    assert before == sorted(entry.path for entry in table.storage.walk(""))
    assert not table.meta.config.metadata_partitions
    handle.indexes.create("record_index")
    with pytest.raises(ConfigError, match="already"):
        handle.indexes.create("record_index")
    with pytest.raises(ConfigError, match="no index 'nothing'; it has: record_index"):
        handle.indexes.drop("nothing")
    handle.indexes.create("by_v", columns="v")
    with pytest.raises(ConfigError, match="secondary_index_by_v need the record index"):
        handle.indexes.drop("record_index")


def test_a_secondary_index_of_a_table_below_version_8_is_refused() -> None:
    table = table_of("6")
    handle = HudiTable(table.meta)
    handle.indexes.create("record_index")
    with pytest.raises(ConfigError, match="secondary indexes begin with 8"):
        handle.indexes.create("by_v", columns="v")


def test_indexes_print_as_a_table() -> None:
    table = table_of("9")
    HudiTable(table.meta).indexes.create("column_stats", columns=["v"])
    header, _, line = repr(HudiTable(table.meta).indexes.list()).splitlines()
    assert header.split() == ["index", "type", "columns", "function", "state"]
    assert line.split()[-3:] == ["v", "column_stats", "built"]


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_table_s_properties_say_where_hudi_finds_the_definitions(version: str) -> None:
    table = table_of(version)
    HudiTable(table.meta).indexes.create("column_stats")
    properties = table.meta.config.properties
    assert properties["hoodie.table.index.defs.path"] == ".hoodie/.index_defs/index.json"
    assert table.storage.stat(properties["hoodie.table.index.defs.path"]) is not None
