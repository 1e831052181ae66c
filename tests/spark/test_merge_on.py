"""`HudiTable.merge` on a condition with a Spark DataFrame as the source: what it does without Spark, it does here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch
from pyhudi.table.merge_builder import Merge

pytest.importorskip("duckdb")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
    ]
)
CITIES = ("oslo", "rome", "bonn")
ROWS = [
    *({"id": i, "city": CITIES[i % 3], "n": i * 10, "x": None if i % 2 else i / 4} for i in range(6)),
    {"id": 101, "city": "rome", "n": 101, "x": 0.0},
]
SOURCE = [
    (1, 1, "rome", 11, 2.0),
    (2, 2, "oslo", 31, 3.0),
    (3, 3, "oslo", None, 4.0),
    (60, 60, "lima", 61, None),
    (70, 70, "lima", None, 1.0),
]
COLUMNS = "id long, ref long, city string, n long, x double"
MOMENT = datetime(2024, 3, 1, 12, 30, 0, 250, tzinfo=timezone(timedelta(hours=2)))


def every_clause(merge: Merge) -> Merge:
    merge = merge.when_matched_delete("source.n >= 30")
    merge = merge.when_matched_update({"x": "source.x / 2", "n": "n * 10"}, "target.n < 20")
    merge = merge.when_matched_update({"n": 0})
    merge = merge.when_not_matched_insert({"id": "ref", "city": "concat(city, '-', ref)", "n": "n"}, "n IS NOT NULL")
    merge = merge.when_not_matched_by_source_update({"x": "coalesce(x, 0) - 1"}, "city = 'oslo'")
    return merge.when_not_matched_by_source_delete("id > 100")


def constants(merge: Merge) -> Merge:
    odd_text = pa.scalar("it's \\ a\n`{b}`")
    merge = merge.when_matched_update({"at": MOMENT, "price": Decimal("-12.50"), "x": float("-inf")})
    return merge.when_not_matched_by_source_update({"day": date(2024, 2, 29), "n": None, "x": -1.5e-9}, "id < 5") \
        .when_not_matched_by_source_delete("id = 5") \
        .when_not_matched_insert({"id": "ref", "city": odd_text})  # fmt: skip


MERGES: Mapping[str, tuple[str, Callable[[Merge], Merge]]] = {
    "every clause": ("target.id = source.ref", every_clause),
    "constants": ("t.id = s.ref AND s.ref <> 70", constants),
    "an order of values": ("t.id = s.ref and s.n > t.n", lambda merge: merge.when_matched_update({"n": "t.n + s.n"})),
    "all columns": ("t.id = ref", lambda merge: merge.when_matched_update_all().when_not_matched_insert_all()),
    "no key": ("abs(t.n - s.n) <= 1 AND t.city <> 'oslo'", lambda merge: merge.when_matched_update({"x": "s.x"})),
}


def made(place: Path, table_type: str, spark: Any = None) -> HudiTable:
    table = HudiTable.create(
        place, SCHEMA, record_key="id", partition_by="city", table_type=table_type, index="SIMPLE", spark=spark
    )
    table.upsert(pa.Table.from_pylist(ROWS, SCHEMA))
    return table


def rows(table: HudiTable) -> list[dict[str, Any]]:
    return table.to_arrow(SCHEMA.names).sort_by("id").to_pylist()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("case", MERGES)
def test_a_dataframe_merges_on_a_condition_as_arrow_rows_do(
    spark: Any, tmp_path: Path, case: str, table_type: str
) -> None:
    on, clauses = MERGES[case]
    arrow = pa.Table.from_pylist([dict(zip(("id", "ref", "city", "n", "x"), row, strict=True)) for row in SOURCE])
    without, by_spark = made(tmp_path / "local", table_type), made(tmp_path / "spark", table_type, spark)
    expected = clauses(without.merge(arrow, on=on)).execute()
    assert rows(without) != ROWS

    result = clauses(by_spark.merge(spark.createDataFrame(SOURCE, COLUMNS), on=on)).execute()

    assert rows(by_spark) == rows(without)
    counts = (result.operation, result.inserted, result.updated, result.deleted)
    assert counts == (expected.operation, expected.inserted, expected.updated, expected.deleted)
    assert len(by_spark.state().timeline.commits()) == 2


@pytest.mark.thorough
def test_every_clause_does_what_it_says(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path / "t", "COPY_ON_WRITE")
    source = spark.createDataFrame(SOURCE, COLUMNS)
    result = every_clause(table.merge(source, on="target.id = source.ref")).execute()

    assert (result.inserted, result.updated, result.deleted) == (1, 3, 2)
    assert [(row["id"], row["city"], row["n"], row["x"]) for row in rows(table)] == [
        (0, "oslo", 0, -1.0),
        (1, "rome", 100, 1.0),
        (3, "oslo", 0, None),
        (4, "rome", 40, 1.0),
        (5, "bonn", 50, None),
        (60, "lima-60", 61, None),
    ]


@pytest.mark.thorough
def test_options_of_the_call_and_a_place_of_any_name_are_taken(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path / "it`s {a} table", "COPY_ON_WRITE", spark)
    table.constraints.add("small", "n < 1000")
    source = spark.createDataFrame(SOURCE, COLUMNS)
    options = {"hoodie.pyhudi.engine": "spark", "hoodie.parquet.compression.codec": "zstd"}
    by_tasks = table.merge(source, on="t.id = s.ref", options=options)
    assert by_tasks.when_matched_update({"n": "s.ref"}).execute().updated == 3
    rome = table.inspect.files().filter(pc.field("partition_path") == "rome")["path"][0].as_py()
    assert pq.read_metadata(f"{table.path}/{rome}").row_group(0).column(0).compression == "ZSTD"
    assert [row["n"] for row in rows(table)][:4] == [0, 1, 2, 3]

    before = rows(table)
    with pytest.raises(SchemaMismatch, match="break the constraint 'small'"):
        table.merge(source, on="t.id = s.ref").when_matched_update({"n": "5000"}).execute()
    with pytest.raises(ConfigError, match="Several rows of the source"):
        table.merge(source.union(source), on="t.id = s.ref").when_matched_update({"n": "5"}).execute()
    with pytest.raises(ConfigError, match="the source has no column 'nope'"):
        table.merge(source, on="t.id = s.nope").when_matched_delete().execute()
    assert rows(table) == before


@pytest.mark.thorough
def test_a_merge_that_is_an_upsert_takes_the_way_of_upserts(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
    table = HudiTable.create(tmp_path / "t`s", schema, record_key="id", ordering="ts", spark=spark)
    table.upsert([{"id": 1, "v": "a", "ts": 5}, {"id": 2, "v": "b", "ts": 5}])
    source = spark.createDataFrame([(1, "late", 4), (2, "new", 6), (3, "c", 1)], "id long, v string, ts long")

    # A second equation makes it a free condition of the key alone.
    merge = table.merge(source, on="target.id = source.id AND source.id = target.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    assert table.to_arrow(["id", "v"]).sort_by("id").to_pylist() == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "new"},
        {"id": 3, "v": "c"},
    ]
