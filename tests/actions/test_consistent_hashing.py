"""Tables whose buckets are nodes of a hash ring: written, resized, refused where rows would get lost."""

from __future__ import annotations

import json

import pytest

from pyhudi.errors import ConfigError, TableError, UnsupportedTable
from pyhudi.formats.hash_ring import initial_ring
from tests.support.tables.clustered import Clustered
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.rings import ENGINE, many, ringed, rings
from tests.support.tables.small import rows_of


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_each_node_is_a_file_group_and_keys_stay_in_it(version: str, operation: str) -> None:
    table = ringed(version)
    getattr(table, operation)(*many(40))
    assert table.groups() == {"x": 4, "y": 4}
    assert rings(table, "x") == [initial_ring("x", 4)]
    groups = set(table.data_files())
    ids = {node.file_id for path in "xy" for node in initial_ring(path, 4).nodes}
    assert {next(i for i in ids if i in path) for path in groups} == ids
    table.upsert(*many(20, ts=2))
    table.delete(("key001", "y"))
    expected = [row for row in [*many(20, ts=2), *many(40)[20:]] if row[0] != "key001"]
    assert table.rows() == expected
    assert table.groups() == {"x": 4, "y": 4}
    table.compact_now()
    assert table.rows() == expected


def test_the_number_of_buckets_is_that_of_the_first_write() -> None:
    table = ringed()
    table.upsert(*many(10))
    table.upsert(*many(20, ts=2), bucket_index_num_buckets="7")
    assert table.rows() == many(20, ts=2)
    assert len(rings(table, "x")[0].nodes) == 4


@pytest.mark.parametrize("instant", ["20990101000000000", "20000101000000000"])
def test_a_ring_that_a_dead_resize_left_does_not_count(instant: str) -> None:
    table = ringed()
    table.upsert(*many(10))
    body = json.loads(
        table.storage.read(f".hoodie/.bucket_index/consistent_hashing_metadata/x/{'0' * 14}.hashing_meta")
    )
    for node in body["nodes"]:
        node["fileIdPrefix"] = "dead" + node["fileIdPrefix"][4:]
    path = ".hoodie/.bucket_index/consistent_hashing_metadata/x/" + f"{instant}.hashing_meta"
    table.storage.write(path, json.dumps(body).encode())
    table.upsert(*many(10, ts=2))
    assert table.rows() == many(10, ts=2)
    assert not [name for name in table.data_files() if "dead" in name]


def test_copy_on_write_tables_are_refused() -> None:
    with pytest.raises(ConfigError, match="is for merge-on-read tables"):
        Clustered("9", "COPY_ON_WRITE", **ENGINE).upsert(*many(2))


def test_a_table_of_another_index_is_refused() -> None:
    table = Clustered("9", "MERGE_ON_READ")
    table.insert(*many(4))
    with pytest.raises(TableError, match="no node of its hash ring"):
        table.upsert(*many(4), **ENGINE)
    assert table.rows() == many(4)


def test_writes_that_take_file_groups_out_are_refused() -> None:
    table = ringed()
    table.upsert(*many(4))
    with pytest.raises(ConfigError, match="would not be seen"):
        table.write("insert_overwrite", rows_of(*many(2)))
    assert table.rows() == many(4)


def test_a_deleted_partition_takes_no_rows_that_nobody_would_see() -> None:
    table = ringed()
    table.upsert(*many(4))
    table.write_as_is("delete_partition", None, {"hoodie.datasource.write.partitions.to.delete": "x"})
    with pytest.raises(UnsupportedTable, match="was replaced"):
        table.upsert(*many(4))
    table.upsert(("key001", "y", 5, 5))


def test_the_index_may_be_named_by_its_class() -> None:
    table = Clustered("9", "MERGE_ON_READ", bucket_index_num_buckets="4")
    table.upsert(*many(4), index_class="org.apache.hudi.index.bucket.HoodieSparkConsistentBucketIndex")
    assert rings(table, "x") == [initial_ring("x", 4)]


def test_limits_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="is more than"):
        ringed(bucket_index_min_num_buckets="5", bucket_index_max_num_buckets="4").upsert(*many(2))
