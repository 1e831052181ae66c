"""Records of record indexes against those that Apache Hudi wrote, and what is made of all rows of a table at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.filegroup.read.log_blocks import BlockRules
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.merge.rules import merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.keys import shards
from pyhudi.metadata.locations import RecordLocation, file_ids, instant_ms, location_records, partition_paths
from pyhudi.metadata.partitions.record_index import FirstRecords, record_index_group_count
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.metadata import RecordIndexOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.local import LocalStorage
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView
from tests.support.golden.folder import SHARED
from tests.support.tables.small import TestTable

GOLDEN = [
    *(("0.15.0", name) for name in ("mdt_all_cow", "mdt_all_mor", "mdt_compacted_a")),
    *(("1.0.2", name) for name in ("mdt_all_cow", "secondary_a")),
    *(("1.2.0", name) for name in ("mdt_all_cow", "mdt_all_mor", "mdt_compacted_a", "secondary_a")),
]
needs_golden = pytest.mark.skipif(not SHARED.exists(), reason="needs tables that Apache Hudi wrote")


def first_records(meta: MetaClient, groups: dict[str | None, int], **more: Any) -> FirstRecords:
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *meta.stored_schema()])
    version = meta.config.table_version
    rules = BlockRules(version, meta.timeline.is_visible)
    reading = SliceSpec(meta.storage, schema, rules, merge_rules(meta.config))
    slices = with_committed_bytes(meta, FileSystemView.load(meta).all_slices())
    return FirstRecords(version, reading, slices, groups, timezone.utc, **more)


def plain(records: pa.Table) -> pa.Table:
    """With the places themselves instead of a dictionary of them."""
    coded = records.column("recordIndexMetadata").combine_chunks()
    assert isinstance(coded, pa.DictionaryArray)
    return records.set_column(2, "recordIndexMetadata", coded.dictionary_decode())


@needs_golden
@pytest.mark.parametrize(("release", "name"), GOLDEN)
def test_the_records_of_all_rows_are_those_that_hudi_wrote(
    release: str, name: str, golden: Callable[[str, str], tuple[Path, dict[str, Any]]]
) -> None:
    folder, _ = golden(release, name)
    meta = MetaClient.load(LocalStorage(str(folder)))
    table = MetadataTable.open(meta)
    assert table is not None
    theirs = {row["key"]: row for row in table.records("record_index").to_pylist()}
    tables = [plain(records) for _, _, records in first_records(meta, {None: 2}).by_group()]
    ours = {row["key"]: row for row in pa.concat_tables(tables).to_pylist()}
    plan = plan_snapshot(meta, Query(columns=["_hoodie_record_key", "_hoodie_commit_time"], use_metadata=False))
    written = pa.Table.from_batches(read_batches(plan, meta.storage), plan.schema).to_pylist()
    inserted = {row["_hoodie_record_key"]: row["_hoodie_commit_time"] for row in written}

    assert sorted(ours) == sorted(theirs)
    same_time = 0
    for key, row in ours.items():
        own, hudis = row["recordIndexMetadata"], theirs[key]["recordIndexMetadata"]
        same_time += hudis["instantTime"] == instant_ms(inserted[key], timezone.utc)
        assert {**own, "instantTime": 0} == {**hudis, "instantTime": 0}, key
        assert row["type"] == theirs[key]["type"] == 5
    assert same_time, "the moment of rows that were not updated since"


@given(
    st.lists(
        st.one_of(
            st.builds(lambda u, n: f"{u}-{n}", st.uuids(), st.integers(0, 2**31 - 1)),
            st.uuids().map(str),
            st.uuids().map(lambda u: str(u).upper()),
            st.builds(lambda u, n: f"{u}-{n}", st.uuids(), st.sampled_from(["01", "-1", "2147483648", "x", ""])),
            st.text(st.characters(codec="utf-8"), max_size=40),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_every_file_id_comes_back_from_its_record(names: list[str]) -> None:
    places = [RecordLocation(f"p{n}", name, n) for n, name in enumerate(names)]
    keys = pa.array([f"k{n}" for n in range(len(names))], pa.string())
    for version in (6, 8, 9):
        found = location_records(version, keys, places, np.arange(len(names), dtype=np.int32))
        payload = found.column("recordIndexMetadata").combine_chunks()
        assert file_ids(payload).to_pylist() == names
        assert partition_paths(payload).to_pylist() == [place.partition_path for place in places]


def test_the_moment_of_an_instant_is_that_of_the_timelines_zone() -> None:
    assert instant_ms("20260307162643148", timezone.utc) == 1772900803148
    assert instant_ms("20260307162643", timezone.utc) == 1772900803999
    assert instant_ms("00000000000001", timezone.utc) == 1  # of a bootstrap: no moment; Hudi takes the number
    assert instant_ms("00000000000000x", timezone.utc) == 0


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1000])
def test_records_come_by_file_group_in_order_each_key_once(memory_bytes: int) -> None:
    table = TestTable()
    table.insert(*((f"k{n:03}", f"p{n % 2}", 1, n) for n in range(200)))
    table.insert(*((f"k{n:03}", "p0", 1, n) for n in range(150, 250)), parquet_small_file_limit="0")  # some keys twice
    newest = {name.split("_")[0] for (name,) in table.rows(("_hoodie_file_name",)) if name} - {""}
    found = list(first_records(table.meta, {None: 3}, memory_bytes=memory_bytes).by_group())
    keys = [key for _, _, records in found for key in records.column("key").to_pylist()]

    assert [number for _, number, _ in found] == sorted(number for _, number, _ in found)
    assert sorted(map(str, keys)) == [f"k{n:03}" for n in range(250)]
    for _, number, records in found:
        own = records.column("key").combine_chunks()
        assert set(shards(own, 3).tolist()) == {number}
        assert own.to_pylist() == sorted(map(str, own.to_pylist()))
        assert set(file_ids(plain(records).column("recordIndexMetadata").combine_chunks()).to_pylist()) <= newest
    rows = {key: name.split("_")[0] for key, name in table.rows(("_hoodie_record_key", "_hoodie_file_name"))}
    twice = {f"k{n:03}" for n in range(150, 200)}
    last = max(i.requested_time for i in table.meta.timeline.commits())
    places = {k: f for k, f, t in table.rows(("id", "_hoodie_file_name", "_hoodie_commit_time")) if t == last}
    for _, _, records in found:
        ids = file_ids(plain(records).column("recordIndexMetadata").combine_chunks()).to_pylist()
        for key, file_id in zip(records.column("key").to_pylist(), ids, strict=True):
            assert file_id == (places[key].split("_")[0] if key in twice else rows[str(key)])


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1000])
def test_an_index_by_partition_has_records_of_each_in_file_groups_of_its_own(memory_bytes: int) -> None:
    table = TestTable()
    table.insert(*((f"k{n:03}", p, 1, n) for n in range(50) for p in ("", "a", "b")))
    paths: dict[str | None, int] = dict.fromkeys(FileSystemView.load(table.meta).partitions(), 2)
    files = first_records(table.meta, paths, memory_bytes=memory_bytes).files()

    assert len(files) == 6
    for file_id, tables in files.items():
        records = pa.concat_tables(tables)
        payload = plain(records).column("recordIndexMetadata").combine_chunks()
        (path,) = set(partition_paths(payload).to_pylist())
        assert file_id.startswith("record-index-")
        assert str(path).replace("_", "%5F") in file_id
        assert set(shards(records.column("key").combine_chunks(), 2).tolist()) == {int(file_id[-6:-2])}


@pytest.mark.parametrize(
    ("keys", "given", "expected"),
    [
        (0, {}, 10),
        (100_000_000, {}, 10),
        (300_000_000, {}, 26),
        (10**12, {}, 10_000),
        (5, {"groups_min": 3, "groups_max": 3}, 3),
        (1000, {"groups_min": 1, "group_bytes_max": 4800, "growth_factor": 1.05}, 10),
        (1000, {"groups_min": 1, "groups_max": 4, "group_bytes_max": 4800}, 4),
    ],
)
def test_the_number_of_file_groups_follows_from_keys_and_options(
    keys: int, given: dict[str, Any], expected: int
) -> None:
    assert record_index_group_count(keys, RecordIndexOptions(**given)) == expected


def test_a_partition_of_the_table_begins_with_few_file_groups() -> None:
    assert record_index_group_count(0, RecordIndexOptions(), of_partition=True) == 1
    assert record_index_group_count(10**12, RecordIndexOptions(), of_partition=True) == 10


def test_a_uuid_is_two_signed_halves() -> None:
    name = str(uuid.UUID(int=(1 << 127) | 5)) + "-7"
    (row,) = location_records(9, pa.array(["k"]), [RecordLocation("", name, 3)]).to_pylist()
    assert row["recordIndexMetadata"] == {
        "partitionName": "",
        "fileIdHighBits": -(2**63),
        "fileIdLowBits": 5,
        "fileIndex": 7,
        "fileId": "",
        "instantTime": 3,
        "fileIdEncoding": 0,
        "position": None,
    }
