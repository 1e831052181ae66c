"""A table whose file groups are buckets is written by these buckets, whatever the options of later writes leave out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, TableError, UnsupportedTable
from pyhudi.model.buckets import TableBuckets
from pyhudi.model.filenames import PARTITION_BUCKETS_FOLDER
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.rings import as_hudi_stores_it
from tests.support.tables.small import Row, TestTable, rows_of

SIMPLE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
CONSISTENT = {**SIMPLE, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
KINDS = {
    "copy-on-write": SIMPLE,
    "merge-on-read": {**SIMPLE, **MERGE_ON_READ},
    "version 6": {**SIMPLE, **MERGE_ON_READ, "hoodie.write.table.version": "6"},
    "consistent hashing": {**CONSISTENT, **MERGE_ON_READ},
}


def many(count: int, ts: int = 1) -> list[Row]:
    return [(f"key{number:03d}", "xy"[number % 2], ts, number) for number in range(count)]


def made(kind: str, rows: int = 40, *, by_hudi: bool = False) -> TestTable:
    """A table with buckets; `by_hudi`: its properties don't say so."""
    table = TestTable(options=KINDS[kind])
    table.upsert(*many(rows))
    if by_hudi:
        as_hudi_stores_it(table.storage)
    return table


@pytest.mark.parametrize("operation", ["upsert", "delete", "bulk_insert"])
@pytest.mark.parametrize("by_hudi", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_without_index_options_goes_to_the_table_s_buckets(kind: str, by_hudi: bool, operation: str) -> None:
    table = made(kind, by_hudi=by_hudi)
    later = [row for row in many(60, ts=2) if operation != "bulk_insert" or row[3] >= 40]
    table.write_as_is(operation, rows_of(*later))
    old = many(40) if operation == "bulk_insert" else []
    assert table.rows() == ([] if operation == "delete" else [*old, *later])
    groups = FileSystemView.load(table.meta).groups
    assert {path: len(found) for path, found in groups.items()} == {"x": 4, "y": 4}


@pytest.mark.thorough
@pytest.mark.parametrize("by_hudi", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
        {"hoodie.index.type": "BUCKET"},
        {"hoodie.bucket.index.num.buckets": "3"},
        {"hoodie.index.type": "SIMPLE"},
        {"hoodie.index.type": "GLOBAL_BLOOM"},
        {**CONSISTENT},
        {**SIMPLE, "hoodie.index.bucket.engine": "SIMPLE"},
        {"hoodie.index.class": "org.apache.hudi.index.bucket.HoodieSparkConsistentBucketIndex"},
    ],
)
def test_no_options_of_a_later_write_store_a_key_twice(options: dict[str, str], kind: str, by_hudi: bool) -> None:
    table = made(kind, by_hudi=by_hudi)
    try:
        table.write_as_is("upsert", rows_of(*many(60, ts=2)), options)
    except ConfigError:
        assert table.rows() == many(40)
    else:
        assert table.rows() == many(60, ts=2)
    table.write_as_is("upsert", rows_of(*many(60, ts=3)))
    assert table.rows() == many(60, ts=3)


@pytest.mark.thorough
def test_one_bucket_does_not_become_two() -> None:
    table = TestTable(options={**SIMPLE, "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(*many(10))
    for by_hudi in (False, True):
        with pytest.raises(ConfigError, match="stored twice"):
            table.write_as_is("upsert", rows_of(*many(10, ts=2)), {**SIMPLE, "hoodie.bucket.index.num.buckets": "2"})
        if not by_hudi:
            as_hudi_stores_it(table.storage)
    assert table.rows() == many(10)


@pytest.mark.thorough
def test_where_too_few_keys_tell_how_many_buckets_there_are_the_number_is_asked_for() -> None:
    table = made("copy-on-write", rows=1, by_hudi=True)
    with pytest.raises(ConfigError, match=r"Give hoodie\.bucket\.index\.num\.buckets"):
        table.write_as_is("upsert", rows_of(*many(3, ts=2)))
    table.write_as_is("upsert", rows_of(*many(3, ts=2)), SIMPLE)
    assert table.rows() == many(3, ts=2)


@pytest.mark.thorough
def test_other_tables_get_no_buckets_for_some_of_their_partitions() -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 1))
    with pytest.raises(ConfigError, match="the table's file groups are no buckets"):
        table.write_as_is("upsert", rows_of(("b", "y", 1, 1)), SIMPLE)
    assert table.rows() == [("a", "x", 1, 1)]


@pytest.mark.thorough
def test_partitions_with_own_numbers_of_buckets_are_not_written() -> None:
    table = made("copy-on-write", by_hudi=True)
    table.storage.write(f"{PARTITION_BUCKETS_FOLDER}/00000000000000.hashing_config", b"{}")
    with pytest.raises(UnsupportedTable, match="own numbers of buckets"):
        table.write_as_is("upsert", rows_of(*many(10, ts=2)))


@pytest.mark.thorough
@pytest.mark.parametrize("by_hudi", [False, True])
def test_who_overwrites_the_whole_table_may_give_it_another_number_of_buckets(by_hudi: bool) -> None:
    table = made("copy-on-write", by_hudi=by_hudi)
    eight = {**SIMPLE, "hoodie.bucket.index.num.buckets": "8"}
    table.write_as_is("insert_overwrite_table", rows_of(*many(60, ts=2)), eight)
    table.write_as_is("upsert", rows_of(*many(60, ts=3)))
    assert table.rows() == many(60, ts=3)
    assert table.meta.config.properties["hoodie.bucket.index.num.buckets"] == "8"

    table.write_as_is("insert_overwrite_table", rows_of(*many(60, ts=4)), {"hoodie.index.type": "SIMPLE"})
    assert table.meta.config.buckets is None
    table.write_as_is("upsert", rows_of(*many(70, ts=5)))
    assert table.rows() == many(70, ts=5)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["restore", "rollback"])
def test_a_table_that_goes_back_to_other_buckets_is_written_by_those(how: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = [{"id": f"k{number}", "v": 1} for number in range(100)]
    first = write_hudi(path, rows, record_key="id", index="BUCKET", options={"hoodie.bucket.index.num.buckets": 8})
    assert first is not None
    write_hudi(path, rows[:50], mode="overwrite", index="BUCKET", options={"hoodie.bucket.index.num.buckets": 4})
    table = HudiTable.open(path)
    assert table.state().config.buckets == TableBuckets(4)
    if how == "restore":
        table.restore(first.instant_time)
    else:
        table.rollback()
    write_hudi(path, rows)
    assert sorted(HudiTable.open(path).to_arrow()["id"].to_pylist()) == sorted(row["id"] for row in rows)


@pytest.mark.thorough
@pytest.mark.parametrize("by_hudi", [False, True])
def test_an_overwrite_without_index_options_keeps_the_buckets(by_hudi: bool) -> None:
    table = made("copy-on-write", by_hudi=by_hudi)
    table.write_as_is("insert_overwrite_table", rows_of(*many(60, ts=2)))
    assert {path: len(found) for path, found in FileSystemView.load(table.meta).groups.items()} == {"x": 4, "y": 4}
    table.write_as_is("upsert", rows_of(*many(60, ts=3)))
    assert table.rows() == many(60, ts=3)


@pytest.mark.thorough
def test_an_empty_table_keeps_the_buckets_that_it_was_made_with(tmp_path: str) -> None:
    path = f"{tmp_path}/t"
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    HudiTable.create(path, schema, record_key="id", index="BUCKET", options={"hoodie.bucket.index.num.buckets": 3})
    for value in (1, 2):
        write_hudi(path, [{"id": f"k{n}", "v": value} for n in range(20)])
    table = HudiTable.open(path)
    table.update(set={"v": 3}, where="id = 'k7'")
    assert sorted(row["v"] for row in table.to_arrow().to_pylist()) == [2] * 19 + [3]
    assert len({name[:8] for name in table.to_arrow().column("_hoodie_file_name").to_pylist()} - {"00000000"}) == 2


def test_two_file_groups_of_one_bucket_are_refused(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", "hoodie.metadata.enable": "false"}
    write_hudi(tmp_path / "t", pa.table({"id": [1], "v": [1]}), record_key="id", options=options)
    [base_file] = (tmp_path / "t").glob("*.parquet")
    file_id, rest = base_file.name.split("_", 1)
    other = f"{file_id[:9]}{'0' * 4}{file_id[13:]}"
    assert other != file_id
    (tmp_path / "t" / f"{other}_{rest}").write_bytes(base_file.read_bytes())

    with pytest.raises(TableError, match="holds two file groups of one bucket"):
        write_hudi(tmp_path / "t", pa.table({"id": [1], "v": [2]}), "upsert", record_key="id", options=options)
