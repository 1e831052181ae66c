"""Deletes by keys: rows that do not say their partition, keys that are not there, and what the result says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from tests.support.tables.small import TestTable, rows_of

MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
START = [("a", "x", 1, 1), ("a", "y", 1, 2), ("b", "x", 1, 3), ("c", "z", 1, 4)]
KINDS = pytest.mark.parametrize("kind", [{}, MERGE_ON_READ], ids=["cow", "mor"])
COMPLEX = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}


def loaded(**options: str) -> TestTable:
    table = TestTable(options=options)
    table.bulk_insert(*START)
    return table


def keys(*ids: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.string())})


@KINDS
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "INMEMORY"])
def test_rows_without_the_partition_column_are_deleted_wherever_they_are(index: str, kind: dict[str, str]) -> None:
    table = loaded(**kind, **{"hoodie.index.type": index})
    table.upsert(("b", "x", 2, 30))

    result = table.write("delete", keys("a", "b", "b", "nowhere"))

    assert table.rows() == [START[3]]
    assert result.deleted == 3
    assert result.not_found == 1
    assert result.partitions == ("x", "y")
    assert "3 deleted, 1 keys not found" in str(result)


@KINDS
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_keys_alone_find_rows_in_each_table_version_and_with_several_key_fields(
    version: str, kind: dict[str, str]
) -> None:
    fields = {"hoodie.datasource.write.recordkey.field": "id,v", "hoodie.write.table.version": version}
    table = loaded(**kind, **fields, **COMPLEX)

    table.write("delete", pa.table({"id": ["a", "b"], "v": [2, 2]}))

    assert table.rows() == [START[0], *START[2:]]


def test_keys_are_not_mistaken_for_those_of_the_default_partition() -> None:
    table = loaded()
    table.upsert(("d", None, 1, 5))  # type: ignore[arg-type]

    assert table.write("delete", keys("d", "c")).deleted == 2

    assert table.rows() == START[:3]


def test_rows_that_say_their_partition_are_deleted_there_only() -> None:
    table = loaded()
    result = table.delete(("a", "y"), ("b", "z"))
    assert table.rows() == [START[0], *START[2:]]
    assert (result.deleted, result.not_found) == (1, 1)


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_buckets_need_the_partition_column_by_name(engine: str) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": engine}
    options["hoodie.bucket.index.num.buckets"] = "2"
    table = TestTable(options={**MERGE_ON_READ, **options})
    table.upsert(*START)
    before = table.memory.paths()

    with pytest.raises(ConfigError, match=r"partition column p, .*index BUCKET.*delete\(where="):
        table.write("delete", keys("a"))

    assert table.memory.paths() == before
    table.delete(("a", "y"))
    assert table.rows() == [START[0], *START[2:]]


def test_rows_with_some_of_the_partition_columns_are_refused_by_name() -> None:
    both = {"hoodie.datasource.write.partitionpath.field": "p,v", **COMPLEX}
    table = loaded(**both)

    with pytest.raises(ConfigError, match=r"partition column v, but have p\. Give all .* or none"):
        table.write("delete", pa.table({"id": ["a"], "p": ["y"]}))

    assert table.rows() == START
    assert table.write("delete", keys("a")).deleted == 2


def test_a_partition_column_that_is_part_of_the_key_is_no_half_said_partition() -> None:
    both = {"hoodie.datasource.write.partitionpath.field": "p,v", "hoodie.datasource.write.recordkey.field": "id,p"}
    table = loaded(**both, **COMPLEX)

    table.write("delete", pa.table({"id": ["a"], "p": ["y"]}))

    assert table.rows() == [START[0], *START[2:]]


def test_a_generator_of_ones_own_needs_the_partition_column_by_name() -> None:
    own = {"hoodie.datasource.write.keygenerator.class": "tests.support.values.own_keys:ShoutedKey"}
    with pytest.raises(ConfigError, match=r"partition column p, .*whole rows only"):
        loaded(**own).write("delete", keys("a"))


@KINDS
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("data", [keys("nowhere", "q"), rows_of(("nowhere", "x", 9, 9), ("q", "q", 9, 9))])
def test_a_delete_that_finds_no_key_says_so_and_makes_no_commit(data: pa.Table, index: str, kind: Any) -> None:
    table = loaded(**kind, **{"hoodie.index.type": index})
    before = table.memory.paths()

    result = table.write("delete", data)

    assert (result.deleted, result.not_found, result.instant_time, result.partitions) == (0, 2, "", ())
    assert "delete without commit: no rows changed, 2 keys not found" in str(result)
    assert "keys not found" in result._repr_html_()
    assert table.memory.paths() == before
    assert table.write("delete", data, allow_empty_commit="true").instant_time
    assert table.write("delete", data, allow_empty_commit="false").instant_time == ""
    assert len(table.meta.timeline) == 2
    assert table.rows() == START


def test_a_bucket_whose_file_has_none_of_the_keys_is_left_as_it_is() -> None:
    table = TestTable(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(*START)
    before = table.memory.paths()

    result = table.delete(("nowhere", "x"))

    assert (result.deleted, result.instant_time) == (0, "")
    assert table.memory.paths() == before


def test_a_delete_by_a_filter_that_takes_no_row_makes_no_commit() -> None:
    table = loaded()
    opened = HudiTable(table.meta)

    result = opened.delete(where="v > 100")

    assert (result.deleted, result.instant_time) == (0, "")
    assert len(table.meta.timeline) == 1
    assert opened.delete(where="v > 100", options={"hoodie.allow.empty.commit": "true"}).instant_time
