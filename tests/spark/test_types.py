"""Rows cross the border between Arrow and Spark unchanged, whatever the session's zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.types import arrow_from_spark, spark_from_arrow, travelling_schema
from tests.support.spark.lacking import WITHOUT

POINT = pa.struct([("x", pa.int32()), ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), pa.field("i64", pa.int64(), nullable=False),
        ("f32", pa.float32()), ("f64", pa.float64()), ("flag", pa.bool_()), ("text", pa.string()), ("raw", pa.binary()),
        ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
        ("small", pa.decimal128(5, 2)), ("big", pa.decimal128(38, 10)), ("point", POINT),
        ("list", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.timestamp("us"))]))),
        ("map", pa.map_(pa.string(), pa.struct([("when", pa.timestamp("us", "UTC"))]))),
        ("nested", pa.list_(pa.list_(pa.int32()))),
    ]
)  # fmt: skip
OLD = dt.datetime(1899, 12, 31, 23, 59, 59, 999999)
ROWS = [
    {
        "i8": -128, "i16": 32767, "i32": -(2**31), "i64": 2**63 - 1, "f32": 1.5, "f64": float("inf"), "flag": True,
        "text": "ü\u0000𝄞",
        "raw": b"\x00\xff", "day": dt.date(1583, 1, 1), "at": OLD.replace(tzinfo=dt.timezone.utc), "local": OLD,
        "small": Decimal("-999.99"), "big": Decimal("1234567890123456789012345678.0123456789"),
        "point": {"x": 1, "at": OLD.replace(tzinfo=dt.timezone.utc), "tags": ["a", None]},
        "list": [{"a": 1, "b": OLD}, None], "map": [("k", {"when": OLD.replace(tzinfo=dt.timezone.utc)}), ("n", None)],
        "nested": [[1, None], [], None],
    },
    {**dict.fromkeys(SCHEMA.names), "i64": 0},
]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)


@pytest.fixture(params=["UTC", "America/New_York"])
def zoned(request: pytest.FixtureRequest, spark: Any) -> Iterator[Any]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(params=["what this Spark has", "without what 3.5 lacks"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without what 3.5 lacks":
        monkeypatch.setattr(capabilities, "PRESENT", WITHOUT)


def test_the_schema_survives_the_trip() -> None:
    assert travelling_schema(SCHEMA).equals(SCHEMA)


def test_fields_inside_a_struct_become_nullable() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])

    assert travelling_schema(pa.schema([("p", inner)])).field("p").type.field("x").nullable


@pytest.mark.thorough
def test_a_null_struct_whose_fields_are_never_null_arrives(zoned: Any, either_way: None) -> None:
    engine = SparkEngine(zoned)
    frame = zoned.sql(
        "select if(id = 0, null, named_struct('x', 1, 't', timestamp '2020-01-01 00:00:00')) as p, id from range(2)"
    )

    def count(context: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    stamp = engine.collect(zoned.sql("select timestamp '2020-01-01 00:00:00' as t")).column("t")[0].as_py()
    expected = [{"p": None, "id": 0}, {"p": {"x": 1, "t": stamp}, "id": 1}]
    assert engine.collect(frame).sort_by("id").to_pylist() == expected
    assert engine.collect(engine.map(frame, count, engine.schema(frame))).sort_by("id").to_pylist() == expected


@pytest.mark.thorough
def test_rows_survive_the_trip_through_spark(zoned: Any, either_way: None) -> None:
    engine = SparkEngine(zoned)

    back = engine.collect(engine.from_arrow(TABLE))

    assert back.schema.equals(SCHEMA)
    assert back.to_pylist() == ROWS


def test_work_sees_exactly_the_declared_schema(zoned: Any, either_way: None) -> None:
    engine = SparkEngine(zoned)
    shape = SCHEMA

    def same(context: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            assert batch.schema.equals(shape), batch.schema
            yield batch

    def same_batch(context: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.equals(shape), batch.schema
        return batch

    frame = engine.from_arrow(TABLE)
    assert by_id(engine.collect(engine.map(frame, same, SCHEMA))) == by_id(TABLE)
    assert by_id(engine.collect(engine.extend(frame, SCHEMA.names, same_batch, SCHEMA))) == by_id(TABLE)


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    return table.sort_by("i64").to_pylist()


@pytest.mark.thorough
def test_kinds_that_spark_lacks_become_the_next_wider_one(spark: Any, either_way: None) -> None:
    table = pa.table(
        {
            "ms": pa.array([1], pa.timestamp("ms", "UTC")),
            "ms_local": pa.array([1], pa.timestamp("ms")),
            "large": pa.array(["a"], pa.large_string()),
            "fixed": pa.array([b"ab"], pa.binary(2)),
            "u32": pa.array([2**32 - 1], pa.uint32()),
            "word": pa.array(["w"]).dictionary_encode(),
            "lists": pa.array([[1]], pa.large_list(pa.int32())),
        }
    )
    engine = SparkEngine(spark)

    back = engine.collect(engine.from_arrow(table))

    plain = [pa.string(), pa.binary(), pa.int64(), pa.string(), pa.list_(pa.int32())]
    assert back.schema.types == [pa.timestamp("us", "UTC"), pa.timestamp("us"), *plain]
    assert back.column("ms").to_pylist() == table.column("ms").to_pylist()
    assert back.column("word").to_pylist() == ["w"]


@pytest.mark.thorough
def test_columns_that_cannot_be_stored_are_all_named(spark: Any) -> None:
    frame = spark.sql("select interval '1' month as i, named_struct('t', interval '1' day) as s, 1 as fine")

    with pytest.raises(SchemaMismatch, match=r"i \(interval month\), s\.t \(interval day\)"):
        arrow_from_spark(frame.schema)
    with pytest.raises(SchemaMismatch, match=r"d \(duration\[s\]\)"):
        spark_from_arrow(pa.schema([("d", pa.duration("s"))]))


def test_an_empty_map_without_types_is_refused_with_its_column() -> None:
    void = st.MapType(st.NullType(), st.NullType())  # Spark's map()
    for kind, where in ((void, "v"), (st.ArrayType(void), r"v\[\]")):
        with pytest.raises(SchemaMismatch, match=rf"{where} \(map<void,void>\)"):
            arrow_from_spark(st.StructType([st.StructField("v", kind)]))
