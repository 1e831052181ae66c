"""Keys and partition values that come as another type than the table's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, SchemaMismatch, write_hudi

DAY = date(2024, 1, 5)
NOON = datetime(2024, 1, 5, 12, tzinfo=timezone.utc)
UTC = pa.timestamp("us", "UTC")


def made(path: Path, key: pa.DataType, value: object, kind: str = "COPY_ON_WRITE", **more: Any) -> HudiTable:
    """A table with one row, whose key is the value."""
    schema = pa.schema([("id", key), ("p", pa.int32()), ("v", pa.int64()), ("w", pa.int64())])
    given: dict[str, Any] = {"record_key": "id", "partition_by": "p", "table_type": kind, **more}
    table = HudiTable.create(path / "t", schema, **given)
    table.upsert(pa.table({"id": pa.array([value], key), "p": pa.array([5], pa.int32()), "v": [0], "w": [0]}))
    return table


def rows(table: HudiTable) -> list[tuple[object, ...]]:
    names = ["_hoodie_record_key", "p", "v", "w"]
    return [tuple(row.values()) for row in table.to_arrow(names).sort_by("_hoodie_record_key").to_pylist()]


def merge(table: HudiTable, data: pa.Table) -> object:
    return table.merge(data).when_matched_update_all().when_not_matched_insert_all().execute()


def upsert(table: HudiTable, data: pa.Table) -> object:
    return table.upsert(data)


def write(table: HudiTable, data: pa.Table) -> object:
    return write_hudi(table.path, data, operation="upsert")


def stream(table: HudiTable, data: pa.Table) -> object:
    return table.upsert(pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=1)))


def overwrite(table: HudiTable, data: pa.Table) -> object:
    return table.overwrite(data, where="v = 9 OR v = 0")


DOORS: dict[str, Callable[[HudiTable, pa.Table], object]] = {
    door.__name__: door for door in (upsert, merge, write, stream, overwrite)
}

SAME = [
    (pa.int64(), 1, pa.array([1.0])),
    (pa.int64(), 1, pa.array([1.0], pa.float32())),
    (pa.int64(), 1, pa.array(["1"])),
    (pa.int64(), 1, pa.array([Decimal("1.00")])),
    (pa.int64(), 1, pa.array([1.0]).dictionary_encode()),
    (pa.int32(), 1, pa.array([1], pa.int64())),
    (pa.float64(), 1.0, pa.array([1])),
    (pa.float64(), 0.1, pa.array([Decimal("0.10")])),
    (pa.decimal128(10, 2), Decimal("1.50"), pa.array([1.5])),
    (pa.decimal128(10, 2), Decimal("1.50"), pa.array([Decimal("1.5")])),
    (pa.decimal128(10, 2), Decimal("1.00"), pa.array([1])),
    (pa.string(), "1", pa.array([1])),
    (pa.string(), "2024-01-05", pa.array([DAY])),
    (pa.string(), "true", pa.array([True])),
    (pa.date32(), DAY, pa.array(["2024-01-05"])),
    (pa.date32(), DAY, pa.array([datetime(2024, 1, 5)], pa.timestamp("ns"))),
    (pa.timestamp("us"), datetime(2024, 1, 5), pa.array([DAY])),
    (UTC, NOON, pa.array([NOON], pa.timestamp("ms", "UTC"))),
    (UTC, NOON, pa.array([NOON], pa.timestamp("ns", "Europe/Oslo"))),
]
OTHER = [
    (pa.int64(), 1, pa.array([1.5])),
    (pa.int64(), 1 << 53, pa.array([float((1 << 53) + 2)])),
    (pa.int64(), 1, pa.array(["01"])),
    (pa.int64(), 1, pa.array([True])),
    (pa.int64(), 1, pa.array([Decimal("1.5")])),
    (pa.int32(), 1, pa.array([1 << 40])),
    (pa.float64(), 1.0, pa.array([(1 << 53) + 1])),
    (pa.float64(), 1.0, pa.array(["1"])),
    (pa.decimal128(10, 2), Decimal("0.30"), pa.array([0.1 + 0.2])),
    (pa.string(), "1.0", pa.array([1.0])),
    (pa.string(), "1704456000000000", pa.array([NOON])),
    (pa.bool_(), True, pa.array([1])),
    (pa.date32(), DAY, pa.array(["2024-1-5"])),
    (pa.date32(), DAY, pa.array([datetime(2024, 1, 5, 13)])),
    (pa.date32(), DAY, pa.array([NOON])),
    (UTC, NOON, pa.array(["2024-01-05 12:00:00"])),
    (UTC, NOON, pa.array([datetime(2024, 1, 5, 12)])),
    (UTC, NOON, pa.array([1704456000000000])),
    (pa.timestamp("ms", "UTC"), NOON, pa.array([NOON.replace(microsecond=5)], UTC)),
]


def named(case: object) -> str:
    return str(case.type if isinstance(case, pa.Array) else case)


@pytest.mark.parametrize(("key", "value", "given"), SAME, ids=named)
def test_a_key_of_another_type_is_the_key_of_its_value(
    tmp_path: Path, key: pa.DataType, value: object, given: pa.Array
) -> None:
    table = made(tmp_path, key, value)
    table.upsert(pa.table({"id": given, "p": [5], "v": [9]}))
    [(stored, *rest)] = rows(table)
    assert rest == [5, 9, 0]
    assert (stored, table.to_arrow(["id"]).to_pylist()) == (made_key(table), [{"id": value}])
    assert table.delete(pa.table({"id": given, "p": ["5"]})).deleted == 1
    assert rows(table) == []


def made_key(table: HudiTable) -> str:
    """The key as the first commit spelt it."""
    first = min(entry.instant_time for entry in table.history())
    return str(table.at(first).to_arrow(["_hoodie_record_key"]).to_pylist()[0]["_hoodie_record_key"])


@pytest.mark.parametrize(("key", "value", "given"), OTHER, ids=named)
def test_a_value_that_the_key_column_can_not_hold_as_it_is_is_refused(
    tmp_path: Path, key: pa.DataType, value: object, given: pa.Array
) -> None:
    table = made(tmp_path, key, value)
    before = rows(table)
    with pytest.raises(SchemaMismatch, match=r"Column 'id' makes keys.*Cast the column"):
        table.upsert(pa.table({"id": given, "p": [5], "v": [9]}))
    with pytest.raises(SchemaMismatch, match="Column 'id' makes keys"):
        table.delete(pa.table({"id": given, "p": [5]}))
    assert rows(table) == before
    assert len(table.history()) == 1


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_keys_by_their_values(tmp_path: Path, door: str, kind: str) -> None:
    table = made(tmp_path, pa.int64(), 1, kind)
    DOORS[door](table, pa.table({"id": [1.0, 2.0], "p": ["5", "6"], "v": [9, 9], "w": [8, 8]}))
    assert rows(table) == [("1", 5, 9, 8), ("2", 6, 9, 8)]
    with pytest.raises(SchemaMismatch, match=r"such as 1\.5"):
        DOORS[door](table, pa.table({"id": [3.0, 1.5], "p": [5, 5], "v": [9, 9], "w": [8, 8]}))
    assert rows(table) == [("1", 5, 9, 8), ("2", 6, 9, 8)]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "overwrite"])
def test_inserts_and_overwrites_spell_keys_as_the_table_does(tmp_path: Path, operation: str) -> None:
    table = made(tmp_path, pa.int64(), 1)
    getattr(table, operation)(pa.table({"id": [2.0], "p": [5.0], "v": [9], "w": [9]}))
    assert rows(table)[-1] == ("2", 5, 9, 9)
    assert table.inspect.partitions().column("partition_path").to_pylist() == ["5"]
    assert table.upsert(pa.table({"id": [2], "p": [5], "v": [7], "w": [7]})).inserted == 0


@pytest.mark.parametrize("given", ["05", True, 5.5])
def test_partition_values_are_cast_like_keys(tmp_path: Path, given: object) -> None:
    table = made(tmp_path, pa.int64(), 1)
    with pytest.raises(SchemaMismatch, match="Column 'p' makes keys or partition paths: the table has int32"):
        table.upsert(pa.table({"id": [1], "p": [given], "v": [9]}))
    assert rows(table) == [("1", 5, 0, 0)]


def test_each_field_of_a_composite_key_is_cast(tmp_path: Path) -> None:
    table = made(tmp_path, pa.int64(), 1, record_key=["id", "p"], partition_by=None)
    table.upsert(pa.table({"id": [1.0], "p": ["5"], "v": [9]}))
    assert rows(table) == [("id:1,p:5", 5, 9, 0)]


def test_a_nested_key_field_is_cast_inside_its_struct(tmp_path: Path) -> None:
    schema = pa.schema([("who", pa.struct([("id", pa.int64()), ("name", pa.string())])), ("v", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="who.id")
    table.upsert([{"who": {"id": 1, "name": "a"}, "v": 0}])
    table.upsert(pa.table({"who": [{"id": 1.0, "name": "b"}, {"id": 2.0, "name": "c"}], "v": [9, 9]}))
    assert table.to_arrow(["who", "v"]).sort_by("v").to_pylist() == [
        {"who": {"id": 1, "name": "b"}, "v": 9},
        {"who": {"id": 2, "name": "c"}, "v": 9},
    ]


def test_deletes_without_the_partition_cast_their_keys(tmp_path: Path) -> None:
    table = made(tmp_path, pa.int64(), 1)
    assert table.delete(pa.table({"id": [1.0]})).deleted == 1


def test_a_record_index_finds_keys_of_another_type(tmp_path: Path) -> None:
    options = {"hoodie.metadata.global.record.level.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
    table = made(tmp_path, pa.int64(), 1, options=options)
    table.upsert(pa.table({"id": [1.0], "p": [5], "v": [9]}), options=options)
    assert rows(table) == [("1", 5, 9, 0)]
    assert [table.scan(where=text).count() for text in ("id = 1.0", "id = '1'", "id = 1.5")] == [1, 1, 0]


def test_a_schema_overwrite_takes_the_types_of_the_data(tmp_path: Path) -> None:
    table = made(tmp_path, pa.int64(), 1)
    table.overwrite(pa.table({"id": ["01"], "p": [5], "v": [9], "w": [9]}), schema_mode="overwrite")
    assert rows(table) == [("01", 5, 9, 9)]


@pytest.mark.parametrize(
    ("key", "value", "given", "lost"),
    [(pa.int64(), 1, Decimal("1.5"), "digits"), (pa.date32(), DAY, datetime(2024, 1, 5, 13), "its time of day")],
)
def test_values_of_dicts_lose_nothing(
    tmp_path: Path, key: pa.DataType, value: object, given: object, lost: str
) -> None:
    table = made(tmp_path, key, value)
    with pytest.raises(SchemaMismatch, match=f"{lost}.* would be lost"):
        table.upsert([{"id": given, "p": 5, "v": 9}])


@pytest.mark.parametrize("condition", ["t.id = s.id", "t.id = s.id AND t.p = s.p"])
def test_merge_into_does_not_round_the_key_of_a_new_row(tmp_path: Path, condition: str) -> None:
    pytest.importorskip("duckdb")
    table = made(tmp_path, pa.int64(), 1)

    def merge_into(key: str) -> None:
        pyhudi.sql(
            f"MERGE INTO hudi.`{table.path}` t USING (SELECT {key} AS id, 5 AS p, 9 AS v, 9 AS w) s ON {condition} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    with pytest.raises(SchemaMismatch, match=r"Column 'id' makes keys.*1\.4"):
        merge_into("1.4")
    assert rows(table) == [("1", 5, 0, 0)]
    merge_into("1.0")
    assert rows(table) == [("1", 5, 9, 9)]
