"""New base files: columns, footers, rolling over, many partitions at once."""

from __future__ import annotations

import uuid
from collections import Counter
from time import process_time
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import KeyGenError, SchemaMismatch
from pyhudi.filegroup.write.markers import list_markers
from pyhudi.filegroup.write.new_files import create_files, write_partitioned
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import BloomFilter
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.keys import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, SLOT
from tests.support.sweeps import examples
from tests.support.tables.file_groups import FIRST, SCHEMA, TASK, Table


def rows(count: int, partitions: int = 1, city: str = "Oslo") -> pa.Table:
    return pa.table(
        {
            RECORD_KEY: [f"k{n:06d}" for n in range(count)],
            PARTITION_PATH: [f"p={n % partitions}" for n in range(count)],
            "id": [f"k{n:06d}" for n in range(count)],
            "ts": range(count),
            "tie": pa.nulls(count, pa.string()),
            "city": [city] * count,
            SLOT: pa.array([0] * count, pa.int32()),
        }
    )


def test_a_new_file_has_meta_columns_first_then_the_tables_columns(table: Table) -> None:
    (status,) = create_files(table.spec, TASK, "p=0", rows(3).to_batches(), clock=table.clock, first_seq=10)

    path = str(status.stat.path)
    file = table.file(path)
    assert file.schema_arrow.names == [*META_COLUMNS, *SCHEMA.names]
    assert all(file.schema.column(index).max_definition_level == 1 for index in range(9))  # all columns optional
    assert b"ARROW:schema" not in file.metadata.metadata
    assert table.rows(path)[1] == {
        "_hoodie_commit_time": FIRST,
        "_hoodie_commit_seqno": f"{FIRST}_3_11",
        "_hoodie_record_key": "k000001",
        "_hoodie_partition_path": "p=0",
        "_hoodie_file_name": path.rpartition("/")[2],
        "id": "k000001",
        "ts": 1,
        "tie": None,
        "city": "Oslo",
    }


def test_the_footer_has_filter_range_and_schema(table: Table) -> None:
    (status,) = create_files(table.spec, TASK, "p=0", rows(5).to_batches(2), clock=table.clock)

    footer = table.file(str(status.stat.path)).metadata.metadata
    assert (footer[b"hoodie_min_record_key"], footer[b"hoodie_max_record_key"]) == (b"k000000", b"k000004")
    assert footer[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"
    bloom = BloomFilter(50, 1e-9)
    bloom.add(rows(5).column(RECORD_KEY))
    assert footer[b"org.apache.hudi.bloomfilter"].decode() == bloom.to_base64()
    schema: Any = fastavro.parse_schema(__import__("json").loads(footer[b"parquet.avro.schema"]))
    assert schema["name"] == "hoodie.trips.trips_record"
    assert [field["name"] for field in schema["fields"]] == [*META_COLUMNS, *SCHEMA.names]


def test_the_range_in_the_footer_is_in_the_order_of_utf_16_units_as_hudis_look_up_compares(table: Table) -> None:
    keys = ["\ue000", "\U0001f600", "\ufffd", "k"]  # as bytes of UTF-8 the second would be the greatest
    batches = rows(4).set_column(0, RECORD_KEY, pa.array(keys)).to_batches()
    (status,) = create_files(table.spec, TASK, "p=0", batches, clock=table.clock)

    footer = table.file(str(status.stat.path)).metadata.metadata
    assert footer[b"hoodie_min_record_key"].decode() == "k"
    assert footer[b"hoodie_max_record_key"].decode() == "\ufffd"


def test_a_simple_filter_writes_no_type_code_and_no_filter_no_range(table: Table) -> None:
    simple = Table(file={"bloom_kind": "SIMPLE", "bloom_num_entries": 50})
    (status,) = create_files(simple.spec, TASK, "", rows(1).to_batches(), clock=simple.clock)
    footer = simple.file(str(status.stat.path)).metadata.metadata
    assert b"org.apache.hudi.bloomfilter" in footer
    assert b"hoodie_bloom_filter_type_code" not in footer

    without = Table(file={"bloom_enabled": False})
    (status,) = create_files(without.spec, TASK, "", rows(1).to_batches(), clock=without.clock)
    footer = without.file(str(status.stat.path)).metadata.metadata
    assert not {b"org.apache.hudi.bloomfilter", b"hoodie_min_record_key"} & set(footer)


def test_the_status_counts_inserts_and_names_the_file(table: Table) -> None:
    (status,) = create_files(table.spec, TASK, "a/b", rows(7).to_batches(), clock=table.clock)

    stat = status.stat
    name = BaseFileName.parse(str(stat.path).rpartition("/")[2])
    assert name == BaseFileName(stat.file_id, "3-5-7", FIRST)
    assert (stat.partition_path, stat.prev_commit, stat.prev_base_file) == ("a/b", "null", None)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (7, 7, 0, 0)
    assert stat.file_size_in_bytes == stat.total_write_bytes == len(table.storage.read(str(stat.path)))
    assert uuid.UUID(stat.file_id[:-2])
    assert stat.file_id.endswith("-0")


def test_a_partition_is_announced_before_its_first_file(table: Table) -> None:
    list(create_files(table.spec, TASK, "a/b", rows(1).to_batches(), clock=table.clock))
    lines = table.storage.read("a/b/.hoodie_partition_metadata").decode().splitlines()

    assert lines[0] == "#partition metadata"
    assert lines[1].endswith(" UTC 2023")
    assert lines[2:] == [f"commitTime={FIRST}", "partitionDepth=2"]

    list(create_files(table.at("20240109000000000"), TASK, "a/b", rows(1).to_batches(), clock=table.clock))
    assert table.storage.read("a/b/.hoodie_partition_metadata").decode().splitlines() == lines


def test_a_table_without_partitions_has_its_files_in_the_root(table: Table) -> None:
    (status,) = create_files(table.spec, TASK, "", rows(1).to_batches(), clock=table.clock)

    assert "/" not in str(status.stat.path)
    assert b"partitionDepth=0" in table.storage.read(".hoodie_partition_metadata")
    assert [marker.data_path for marker in list_markers(table.storage, FIRST)] == [status.stat.path]


def test_without_rows_there_is_no_file(table: Table) -> None:
    assert list(create_files(table.spec, TASK, "p", rows(0).to_batches(), clock=table.clock)) == []
    assert list(write_partitioned(table.spec, TASK, iter([]), table.clock)) == []
    assert list(table.storage.walk("")) == []


@pytest.mark.thorough
@pytest.mark.parametrize("limit", [60_000, 400_000])
def test_files_roll_over_at_the_size_limit_and_count_up(limit: int) -> None:
    table = Table(file={"bloom_num_entries": 50, "max_file_size_bytes": limit, "row_group_rows": 1000})
    data = rows(40_000)
    noise = pa.array([uuid.uuid5(uuid.NAMESPACE_OID, str(n)).hex for n in range(len(data))])
    data = data.set_column(data.column_names.index("city"), "city", noise)
    statuses = list(create_files(table.spec, TASK, "p", data.to_batches(777), clock=table.clock))

    prefix = statuses[0].stat.file_id.rpartition("-")[0]
    assert [status.stat.file_id for status in statuses] == [f"{prefix}-{n}" for n in range(len(statuses))]
    assert sum(status.stat.num_writes for status in statuses) == 40_000
    sizes = [status.stat.file_size_in_bytes for status in statuses[:-1]]
    assert all(0.5 * limit < size < 1.5 * limit for size in sizes), sizes
    rows_of_files = [status.stat.num_writes for status in statuses[1:-1]]
    assert max(rows_of_files) < 1.1 * min(rows_of_files), "rows are as long as those of the files before"
    seqnos = [row["_hoodie_commit_seqno"] for status in statuses for row in table.rows(str(status.stat.path))]
    assert seqnos == [f"{FIRST}_3_{n}" for n in range(40_000)]


def test_a_given_file_id_is_one_file_whatever_its_size() -> None:
    table = Table(file={"bloom_num_entries": 50, "max_file_size_bytes": 1, "row_group_rows": 100})
    bucket = "00000001-067c-4ba6-8385-46a5b13d2781-0"
    statuses = list(create_files(table.spec, TASK, "p", rows(1000).to_batches(), clock=table.clock, file_id=bucket))

    assert [status.stat.file_id for status in statuses] == [bucket]


def test_rows_without_key_or_column_are_refused(table: Table) -> None:
    nameless = rows(2).set_column(0, RECORD_KEY, pa.array(["a", None]))
    with pytest.raises(KeyGenError, match="1 rows"):
        list(create_files(table.spec, TASK, "p", nameless.to_batches(), clock=table.clock))
    with pytest.raises(SchemaMismatch, match="city"):
        list(create_files(table.spec, TASK, "p", rows(2).drop_columns(["city"]).to_batches(), clock=table.clock))


def test_virtual_keys_leave_all_meta_columns_empty_and_the_footer_bare() -> None:
    table = Table(populate_meta_fields=False)
    (status,) = create_files(table.spec, TASK, "p", rows(2).to_batches(), clock=table.clock)

    assert [[row[name] for name in META_COLUMNS] for row in table.rows(str(status.stat.path))] == [[None] * 5] * 2
    assert set(table.file(str(status.stat.path)).metadata.metadata) == {b"parquet.avro.schema"}


def test_dropped_partition_columns_are_neither_in_the_file_nor_in_its_schema() -> None:
    table = Table(partition_columns_dropped=("city",))
    (status,) = create_files(table.spec, TASK, "city=Oslo", rows(2).to_batches(), clock=table.clock)

    file = table.file(str(status.stat.path))
    assert "city" not in file.schema_arrow.names
    assert b'"city"' not in file.metadata.metadata[b"parquet.avro.schema"]


def test_narrow_types_are_stored_as_hudi_stores_them() -> None:
    kinds = {"i8": pa.int8(), "i16": pa.int16(), "large": pa.large_string(), "ns": pa.timestamp("us", "Europe/Oslo")}
    table = Table(schema=pa.schema(list(kinds.items())))
    data = {"i8": [1], "i16": [2], "large": ["x"], "ns": [0]}
    batch = pa.table({name: pa.array(data[name], kind) for name, kind in kinds.items()} | {RECORD_KEY: ["k"]})
    (status,) = create_files(table.spec, TASK, "", batch.to_batches(), clock=table.clock)

    stored = table.file(str(status.stat.path)).schema_arrow
    assert [stored.field(name).type for name in kinds] == [
        pa.int32(), pa.int32(), pa.string(), pa.timestamp("us", "UTC"),
    ]  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(
    paths=st.lists(st.sampled_from(["a", "b/c", "d=1", "é", "f"]), max_size=200),
    batch_rows=st.integers(1, 50),
    group_rows=st.integers(1, 40),
    buffer_bytes=st.sampled_from([0, 500, 1 << 20]),
)
def test_rows_of_many_partitions_land_each_in_its_own_once(
    paths: list[str], batch_rows: int, group_rows: int, buffer_bytes: int
) -> None:
    table = Table(file={"bloom_num_entries": 5, "row_group_rows": group_rows})
    data = rows(len(paths)).set_column(1, PARTITION_PATH, pa.array(paths, pa.string()))
    statuses = list(
        write_partitioned(table.spec, TASK, data.to_batches(batch_rows), table.clock, buffer_bytes=buffer_bytes)
    )

    assert len({status.stat.file_id for status in statuses}) == len(statuses) == len(set(paths))
    found = Counter()
    for status in statuses:
        read = table.rows(str(status.stat.path))
        assert len(read) == status.stat.num_writes
        assert {row[PARTITION_PATH] for row in read} == {status.stat.partition_path}
        assert {row[FILE_NAME] for row in read} == {str(status.stat.path).rpartition("/")[2]}
        found.update((row[PARTITION_PATH], row["id"]) for row in read)
        with open_base_file(table.storage, str(status.stat.path)) as reader:
            keys = [row[RECORD_KEY] for row in read]
            assert (reader.footer.min_key, reader.footer.max_key) == (min(keys), max(keys))
    assert found == Counter(zip(paths, data.column("id").to_pylist(), strict=True))
    seqnos = [row["_hoodie_commit_seqno"] for status in statuses for row in table.rows(str(status.stat.path))]
    assert len(set(seqnos)) == len(paths)


@pytest.mark.thorough
def test_more_partitions_than_open_files_still_lose_no_row(table: Table) -> None:
    data = rows(1200, partitions=150)
    statuses = list(write_partitioned(table.spec, TASK, data.to_batches(300), table.clock, buffer_bytes=0))

    assert sum(status.stat.num_writes for status in statuses) == 1200
    assert {status.stat.partition_path for status in statuses} == {f"p={n}" for n in range(150)}


def test_an_error_half_way_leaves_markers_for_all_files_that_are_there(table: Table) -> None:
    def batches() -> Any:
        yield from rows(1000, partitions=3).to_batches()
        raise RuntimeError("the source broke")

    spec = Table(file={"row_group_rows": 10, "bloom_num_entries": 5}).spec
    with pytest.raises(RuntimeError, match="the source broke"):
        list(write_partitioned(spec, TASK, batches(), table.clock, buffer_bytes=0))
    marked = {marker.data_path for marker in list_markers(spec.storage, FIRST)}
    there = {info.path for info in spec.storage.walk("") if info.path.endswith(".parquet")}
    assert there <= marked


@pytest.mark.thorough
def test_the_status_of_a_file_comes_when_it_is_finished_and_not_only_at_the_end() -> None:
    table = Table(file={"bloom_num_entries": 50, "max_file_size_bytes": 1, "row_group_rows": 20_000})
    read: list[int] = []

    def batches() -> Any:
        for number in range(3):
            read.append(number)
            yield from rows(70_000).to_batches()

    statuses = write_partitioned(table.spec, TASK, batches(), table.clock)
    assert next(statuses).stat.num_writes > 0
    assert read == [0]
    statuses.close()  # type: ignore[attr-defined]  # a generator


def test_a_table_of_thousands_of_columns_costs_each_column_as_much_as_one_of_hundreds() -> None:
    """Processor time, and room for noise: by the square of the columns it was 60 times as much, not 8."""
    from pyhudi.filegroup.write.base_file import checked_rows
    from pyhudi.model.keys import RECORD_KEY

    def cost_s(columns: int) -> float:
        names = [f"c{number}" for number in range(columns)]
        rows = pa.table({RECORD_KEY: ["a"], **{name: [1] for name in names}})
        stored = pa.schema([(name, pa.int64()) for name in names])

        def once() -> float:
            start = process_time()
            assert checked_rows(rows, stored).num_columns == columns + 1
            return process_time() - start

        return min(once() for _ in range(3))

    assert cost_s(3200) < 25 * cost_s(400)
