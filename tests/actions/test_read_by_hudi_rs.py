"""Tables that we write are read by hudi-rs, which shares no code with us, with the same rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.storage.local import LocalStorage
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.hudi_rs import read_by_hudi_rs, rows
from tests.support.tables.small import Row, TestTable

pytest.importorskip("hudi", reason="the hudi package is not installed")

LAYOUTS = {
    "partitioned": {},
    "not partitioned": {"hoodie.datasource.write.partitionpath.field": ""},
    "hive style": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    "url encoded": {"hoodie.datasource.write.partitionpath.urlencode": "true"},
    "two keys": {"hoodie.datasource.write.recordkey.field": "id,ts"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hudi_rs_reads_what_writes_left(layout: str, version: str, tmp_path: Path) -> None:
    options = {"hoodie.write.table.version": version, **LAYOUTS[layout]}
    table = TestTable(LocalStorage(str(tmp_path / "table")), options, metadata_by_default=True)
    start: list[Row] = [(f"k{n}", f"p {n % 3}", 1, n) for n in range(30)]
    first = table.bulk_insert(*start)
    table.upsert(("k1", "p 1", 1, 111), ("new", "p 0", 1, 5))
    table.delete(*((id_, p) for id_, p, _, _ in start[10:13])) if layout != "two keys" else None

    columns = [
        "_hoodie_commit_time",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "id",
        "p",
        "v",
    ]
    found = read_by_hudi_rs(table, tmp_path)
    assert rows(found, columns) == rows(table.read(), columns)
    then = read_by_hudi_rs(table, tmp_path, first.instant_time)
    assert rows(then, columns) == rows(table.read(first.instant_time), columns)


def test_hudi_rs_reads_all_types(tmp_path: Path) -> None:
    table = TestTable(LocalStorage(str(tmp_path / "table")), {"hoodie.datasource.write.precombine.field": ""})
    data = pa.table(
        {
            "id": ["a", "b"],
            "p": ["x", "x"],
            "flag": pa.array([True, None]),
            "money": pa.array([Decimal("12.34"), Decimal("-0.01")], pa.decimal128(10, 2)),
            "day": pa.array([-1, 20000], pa.date32()),
            "moment": pa.array([-1_000_001, 1], pa.timestamp("us", "UTC")),
            "tags": pa.array([["q", None], []], pa.list_(pa.string())),
            "place": pa.array(
                [{"lat": 1.5, "name": "n"}, None], pa.struct([("lat", pa.float64()), ("name", pa.string())])
            ),
            "counts": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
            "raw": pa.array([b"\x00\xff", None], pa.binary()),
        }
    )
    table.write("bulk_insert", data)
    table.write("upsert", data.slice(0, 1))

    found = read_by_hudi_rs(table, tmp_path)
    columns = data.column_names
    assert rows(found, columns) == rows(data, columns)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("table_type", TYPES)
def test_hudi_rs_reads_what_a_clustering_left(version: str, table_type: str, tmp_path: Path) -> None:
    table = Clustered(version, table_type, LocalStorage(str(tmp_path / "table")))
    for first in range(0, 30, 10):
        table.insert(*((f"k{n}", f"p{n % 2}", 1, n) for n in range(first, first + 10)))
    last = table.upsert(*((f"k{n}", f"p{n % 2}", 2, 100 + n) for n in range(5)))
    before = table.rows()
    table.cluster(clustering_plan_strategy_sort_columns="v,ts", layout_optimize_strategy="HILBERT")
    assert rows(read_by_hudi_rs(table, tmp_path), ["id", "p", "ts", "v"]) == before
    table.upsert(("k7", "p1", 3, 7), ("new", "p0", 1, 5))
    assert rows(read_by_hudi_rs(table, tmp_path), ["id", "p", "ts", "v"]) == table.rows()
    assert rows(read_by_hudi_rs(table, tmp_path, last.instant_time), ["id", "p", "ts", "v"]) == before
