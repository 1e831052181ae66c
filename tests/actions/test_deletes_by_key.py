"""Deletes by keys: rows that do not say their partition, keys that are not there, and what the result says."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.sql.duckdb_session import DuckDbSession
from pyhudi.storage import open_storage
from tests.support.tables.small import TestTable, rows_of

MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
START = [("a", "x", 1, 1), ("a", "y", 1, 2), ("b", "x", 1, 3), ("c", "z", 1, 4)]
NAMES = itertools.count()
B = ("b", "x", 8, 2)
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


def delete_by_key(table: TestTable) -> None:
    assert table.delete(("a", "x")).deleted == 1
    table.delete(("a", "x"))  # a key that is not there any more stays as it is


def delete_by_filter(table: TestTable) -> None:
    HudiTable(table.meta).delete(where="id = 'a'", options=table.options)


def delete_by_sql(table: TestTable) -> None:
    DuckDbSession(tables={"t": table.storage.root}, options=table.options).sql("DELETE FROM t WHERE id = 'a'")


DOORS = pytest.mark.parametrize("delete", [delete_by_key, delete_by_filter, delete_by_sql])
INDEXES: dict[str, dict[str, str]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    "record": {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true",
               "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"},
}  # fmt: skip


def by_event_time(version: str, **options: str) -> TestTable:
    """Merge-on-read: the key "a" in a base file, with the ordering value 8; nothing compacts by itself."""
    table = TestTable(open_storage(f"memory://deleted-{next(NAMES)}"), {
        **MERGE_ON_READ, "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload", **options,
    })  # fmt: skip
    table.bulk_insert(("a", "x", 8, 1), B)
    return table


def compact(table: TestTable, **how: Any) -> None:
    HudiTable(table.meta).compact(options={"hoodie.compact.inline.max.delta.commits": "1"}, **how)


@DOORS
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_row_that_comes_late_does_not_bring_a_deleted_row_back(version: str, index: str, delete: Any) -> None:
    if (version, index) == ("6", "record"):
        pytest.skip("version 6 has no such index")
    table = by_event_time(version, **INDEXES[index])
    delete(table)
    late, later = ("a", "x", 4, 40), ("a", "x", 5, 50)
    table.upsert(late)
    # A record index knows that the key is gone, so that the row goes to a file group where nothing was deleted.
    now = [late, B] if index == "record" else [B]
    assert table.rows() == now

    compact(table)
    assert table.rows() == now
    table.upsert(later)
    assert table.rows() == [later, B], "a compaction leaves nothing of a deleted row"


@DOORS
def test_a_row_that_is_as_new_as_a_deleted_one_lives(delete: Any) -> None:
    table = by_event_time("9")
    table.upsert(("a", "x", 9, 10))
    delete(table)
    assert table.rows() == [B]
    table.upsert(("a", "x", 8, 80))
    assert table.rows() == [B], "the value of the row in the log is the greatest"
    table.upsert(("a", "x", 9, 90))
    assert table.rows() == [("a", "x", 9, 90), B]


@DOORS
def test_a_delete_behind_a_pending_compaction_knows_the_row_that_is_compacted(delete: Any) -> None:
    table = by_event_time("6")
    table.upsert(("a", "x", 8, 80))
    compact(table, schedule_only=True)
    delete(table)
    table.upsert(("a", "x", 4, 40))
    assert table.rows() == [B]
    compact(table)
    assert table.rows() == [B]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "new", "old"),
    [
        (pa.string(), "h", "d"),
        (pa.int32(), 8, 4),
        (pa.float64(), 8.5, 4.5),
        (pa.date32(), date(2026, 1, 8), date(2026, 1, 4)),
        (pa.timestamp("us"), datetime(2026, 1, 8), datetime(2026, 1, 4)),
        (pa.decimal128(10, 2), Decimal("8.25"), Decimal("4.25")),
        (pa.struct([("at", pa.int64())]), {"at": 8}, {"at": 4}),
    ],
    ids=str,
)
def test_deletes_by_key_have_ordering_values_of_every_type(kind: pa.DataType, new: Any, old: Any) -> None:
    schema = pa.schema([("id", pa.string()), ("seq", pa.int64()), ("at", kind)])
    fields = ["at.at" if pa.types.is_struct(kind) else "at", "seq"]
    for ordering in (fields[:1], fields):
        path = f"memory://deleted-{next(NAMES)}"
        table = HudiTable.create(path, schema, record_key="id", ordering=ordering, table_type="MERGE_ON_READ")
        table.upsert(pa.Table.from_pylist([{"id": name, "seq": 1, "at": new} for name in "ab"], schema))
        table.delete([{"id": "a"}])
        table.delete(where="id = 'b'")
        table.upsert(pa.Table.from_pylist([{"id": name, "seq": 2, "at": old} for name in "abc"], schema))
        assert table.to_arrow(["id"]).column(0).to_pylist() == ["c"]


def test_deletes_whose_ordering_value_no_delete_block_can_hold_are_written_without() -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.decimal128(38, 20))])
    path = f"memory://deleted-{next(NAMES)}"
    table = HudiTable.create(path, schema, record_key="id", ordering="at", table_type="MERGE_ON_READ")
    at = Decimal("1.00000000000000000001")
    table.upsert(pa.Table.from_pylist([{"id": name, "at": at} for name in "abc"], schema))
    table.delete([{"id": "a"}])
    table.delete(where="id = 'b'")
    assert table.to_arrow(["id"]).column(0).to_pylist() == ["c"]


def test_rows_whose_ordering_value_is_never_null_are_deleted_where_log_files_have_newer_ones(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("ts", pa.int32(), nullable=False)])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.insert(pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1]}, schema=schema))
    table.upsert(pa.table({"id": ["b"], "ts": [2]}, schema=schema))

    table.delete(keys("a", "b"))

    assert table.to_arrow(["id", "ts"]).to_pylist() == [{"id": "c", "ts": 1}]
