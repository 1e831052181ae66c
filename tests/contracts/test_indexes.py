"""What every index promises, run over each row of the registry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import pytest

from pyhudi.actions.conflicts import BucketStrategy, SimpleStrategy, conflict_strategy
from pyhudi.index import INDEXES
from pyhudi.index.base import Index, IndexSettings
from pyhudi.index.record_index import RecordIndexIgnored
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.options import WriteOptions
from tests.support.tables.small import Row, TestTable, rows_of, sorted_rows

ROWS: list[Row] = [(f"key-{n:03d}", f"p{n % 3}", 1, n) for n in range(60)]
BUCKETS = {"hoodie.bucket.index.num.buckets": "4"}
# Tables of other indexes have no record index, and some tables can't have one: then the files are read.
pytestmark = pytest.mark.filterwarnings("ignore::pyhudi.index.record_index.RecordIndexIgnored")
RECORDS = {
    "GLOBAL_RECORD_LEVEL_INDEX": "hoodie.metadata.global.record.level.index.enable",
    "RECORD_LEVEL_INDEX": "hoodie.metadata.record.level.index.enable",
}


@pytest.fixture(params=sorted(INDEXES.entries))
def index_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["6", "9"])
def table(request: pytest.FixtureRequest, index_name: str) -> TestTable:
    return table_of(index_name, **{"hoodie.write.table.version": request.param})


def table_of(index_name: str, **options: str) -> TestTable:
    """A table of the type that the index is for."""
    given = {"hoodie.index.type": index_name, **BUCKETS, **options}
    if index_of(index_name).reads_records and has_records(index_name, options):
        given |= {"hoodie.metadata.enable": "true", RECORDS[index_name]: "true"}
        given |= {"hoodie.record.index.update.partition.path": "true", **options}
    if index_name == "CONSISTENT_BUCKET":
        given |= {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    return TestTable(options=given)


def has_records(index_name: str, options: Mapping[str, str]) -> bool:
    """Can a table with these options have the record index? Without it the index reads the files."""
    if options.get("hoodie.populate.meta.fields") == "false":
        return False
    return index_name == "GLOBAL_RECORD_LEVEL_INDEX" or options.get("hoodie.write.table.version") != "6"


def index_of(name: str) -> Index:
    index: Index = INDEXES.load(name)(IndexSettings())
    return index


def groups(table: TestTable) -> dict[str, list[FileGroupId]]:
    """Record key → file groups that hold it."""
    read = table.read()
    found: dict[str, list[FileGroupId]] = {}
    for key, partition, file_name in zip(
        *(read.column(f"_hoodie_{name}").to_pylist() for name in ("record_key", "partition_path", "file_name")),
        strict=True,
    ):
        found.setdefault(key, []).append(FileGroupId(partition, file_name.split("_")[0]))
    return found


def test_written_keys_are_found_and_stay_in_their_file_group(table: TestTable) -> None:
    table.upsert(*ROWS)
    before = groups(table)
    result = table.upsert(*((key, p, 2, v + 1000) for key, p, _, v in ROWS))

    assert (result.updated, result.inserted) == (60, 0)
    assert groups(table) == before
    assert table.rows() == sorted_rows((key, p, 2, v + 1000) for key, p, _, v in ROWS)


@pytest.mark.thorough
def test_new_keys_are_not_found(table: TestTable, index_name: str) -> None:
    table.upsert(*ROWS)
    result = table.upsert(*((f"new-{key}", p, 2, v) for key, p, _, v in ROWS))

    # Rows that go to the log file of their bucket count as updates.
    assert (result.updated, result.inserted) == ((60, 0) if index_name == "CONSISTENT_BUCKET" else (0, 60))
    assert len(table.rows()) == 120


@pytest.mark.thorough
def test_a_key_has_one_location(table: TestTable) -> None:
    for start in range(0, 60, 20):
        table.upsert(*ROWS[start : start + 20], parquet_small_file_limit="0")
    table.upsert(*ROWS)

    assert all(len(found) == 1 for found in groups(table).values())
    assert len(table.rows()) == 60


@pytest.mark.thorough
def test_deletes_find_their_rows(table: TestTable) -> None:
    table.upsert(*ROWS)
    result = table.delete(*((key, p) for key, p, _, _ in ROWS[:10]))

    assert result.deleted == 10
    assert table.rows() == sorted_rows(ROWS[10:])


@pytest.mark.thorough
def test_keys_written_by_way_of_another_index_are_found(index_name: str) -> None:
    if index_name.endswith("BUCKET"):
        others = [index_name]  # a table of buckets stays one
    else:
        others = [name for name in INDEXES.entries if not name.endswith("BUCKET")]
    for other in others:
        table = table_of(other)
        table.upsert(*ROWS, index_type=other)
        result = table.upsert(*((key, p, 2, v) for key, p, _, v in ROWS), index_type=index_name)
        assert (result.updated, result.inserted) == (60, 0), other


@pytest.mark.thorough
def test_keys_are_found_in_files_without_meta_columns(index_name: str) -> None:
    table = table_of(index_name, **{"hoodie.populate.meta.fields": "false"})
    table.upsert(*ROWS)
    result = table.upsert(*((key, p, 2, v) for key, p, _, v in ROWS[:5]))

    assert (result.updated, result.inserted) == (5, 0)


@pytest.mark.thorough
def test_only_a_global_index_finds_a_key_in_another_partition(table: TestTable, index_name: str) -> None:
    table.upsert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "y", 2, 11))

    stayed = [("a", "x", 1, 10)] if not index_of(index_name).is_global else []
    assert table.rows() == sorted_rows([*stayed, ("a", "y", 2, 11), ("b", "x", 1, 20)])


@pytest.mark.thorough
def test_a_key_that_two_partitions_have_is_updated_in_each_and_deleted_in_the_one_that_is_named(
    index_name: str,
) -> None:
    if index_of(index_name).is_global:
        return
    table = table_of(index_name)
    table.upsert(("a", "x", 1, 10), ("a", "y", 1, 20), ("b", "x", 1, 30))
    before = groups(table)
    newer: list[Row] = [("a", "x", 2, 11), ("a", "y", 2, 21), ("b", "x", 2, 31)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecordIndexIgnored)
        result = table.upsert(*newer)

    assert (result.updated, result.inserted) == (3, 0)
    assert groups(table) == before
    assert table.rows() == sorted_rows(newer)
    assert table.delete(("a", "y")).deleted == 1
    assert table.rows() == sorted_rows([newer[0], newer[2]])


@pytest.mark.thorough
def test_a_global_index_keeps_rows_in_their_partition_if_asked(index_name: str) -> None:
    if not index_of(index_name).is_global or index_name == "INMEMORY":  # Hudi has no such option for it
        return
    family = {"GLOBAL_SIMPLE": "simple", "GLOBAL_BLOOM": "bloom", "GLOBAL_RECORD_LEVEL_INDEX": "record"}[index_name]
    table = table_of(index_name, **{f"hoodie.{family}.index.update.partition.path": "false"})
    table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "y", 2, 11))

    # The file keeps "y"; readers take partition columns from the path, as in Hudi.
    assert table.rows(("id", "p", "v", "_hoodie_partition_path")) == [("a", "x", 11, "x")]


@pytest.mark.thorough
def test_a_row_that_loses_by_its_ordering_value_does_not_move(index_name: str) -> None:
    if not index_of(index_name).is_global:
        return
    table = table_of(index_name)  # version 9 with an ordering field: event time
    table.upsert(("a", "x", 5, 10))
    table.upsert(("a", "y", 4, 11))
    assert table.rows(("id", "p", "v", "_hoodie_partition_path")) == [("a", "x", 10, "x")]

    table.upsert(("a", "y", 6, 12))
    assert table.rows(("id", "p", "v", "_hoodie_partition_path")) == [("a", "y", 12, "y")]


@pytest.mark.thorough
def test_one_row_is_left_of_a_key_that_the_batch_has_in_two_partitions(index_name: str) -> None:
    if not index_of(index_name).is_global:
        return
    table = table_of(index_name)
    table.upsert(("a", "x", 1, 10), ("a", "y", 2, 11))
    table.upsert(("a", "z", 4, 12), ("a", "x", 3, 13))

    assert table.rows() == [("a", "z", 4, 12)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["BUCKET", "bucket", "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex"])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite"])
def test_rows_go_to_buckets_whatever_the_index_is_called(operation: str, name: str) -> None:
    """Sorted bulk inserts and overwrites pass by an index, unless it places inserts."""
    table = table_of(name)
    table.write(operation, rows_of(*ROWS), bulkinsert_sort_mode="GLOBAL_SORT")

    assert {found.file_id[:8] for found, *_ in groups(table).values()} == {f"{n:08d}" for n in range(4)}
    assert table.upsert(*((key, p, 2, v) for key, p, _, v in ROWS)).updated == 60


@pytest.mark.thorough
def test_two_writers_of_a_new_bucket_conflict_whatever_the_index_is_called() -> None:
    for name in ("BUCKET", "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex"):
        assert conflict_strategy(WriteOptions.parse({"hoodie.index.type": name})) == BucketStrategy()
    assert conflict_strategy(WriteOptions.parse({})) == SimpleStrategy()


@pytest.mark.thorough
def test_work_that_looks_for_no_keys_is_done_with_an_index_that_there_is_not() -> None:
    table = TestTable(options={"hoodie.index.type": "FLINK_STATE"})
    table.bulk_insert(("a", "x", 1, 1))

    assert table.rows() == [("a", "x", 1, 1)]
