"""Files that Spark wrote by Java's old calendar hold for PyHudi what they hold for Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi

DAYS = ("0001-01-01", "1500-02-28", "1500-03-01", "1500-06-01", "1582-10-04", "1582-10-15", "1850-01-01", "2024-02-29")
MODES = "spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite"
KIND = "spark.sql.parquet.outputTimestampType"


@pytest.fixture
def in_utc(spark: Any) -> Any:
    keys = (*MODES, KIND, "spark.sql.session.timeZone")
    before = {key: spark.conf.get(key, None) for key in keys}
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for key in MODES:
        spark.conf.set(key, "LEGACY")
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
def test_old_days_are_the_same_for_spark_and_pyhudi(kind: str, in_utc: Any, tmp_path: Path) -> None:
    in_utc.conf.set(KIND, kind)
    values = ", ".join(f"({n}, DATE '{day}', TIMESTAMP '{day} 03:04:05')" for n, day in enumerate(DAYS))
    source = tmp_path / "source"
    in_utc.sql(f"SELECT * FROM VALUES {values} AS t(id, d, t)").coalesce(1).write.parquet(str(source))
    (file,) = source.glob("*.parquet")
    assert b"org.apache.spark.legacyDateTime" in pq.read_metadata(file).metadata

    def texts(table: Any) -> list[tuple[str, str]]:
        rows = table.select("id", "d", "t").orderBy("id").selectExpr("string(d)", "string(t)").collect()
        return [tuple(row) for row in rows]

    expected = [(day, f"{day} 03:04:05") for day in DAYS]
    assert texts(in_utc.read.parquet(str(source))) == expected
    for mode in ("METADATA_ONLY", "FULL_RECORD"):
        pyhudi.bootstrap(source, tmp_path / mode, record_key="id", mode=mode)
    added = HudiTable.create(tmp_path / "added", HudiTable.open(tmp_path / "FULL_RECORD").schema(), record_key="id")
    added.maintenance.add_files(source)
    # A base file of a table that Spark itself has written in this mode.
    own = tmp_path / "own"
    write_hudi(own, in_utc.read.format("hudi").load(str(tmp_path / "added")), record_key="id", mode="append")
    (base,) = own.glob("*.parquet")
    in_utc.read.parquet(str(base)).coalesce(1).write.parquet(str(tmp_path / "rewritten"))
    (rewritten,) = (tmp_path / "rewritten").glob("*.parquet")
    base.write_bytes(rewritten.read_bytes())

    for name in ("METADATA_ONLY", "FULL_RECORD", "added", "own"):
        rows = HudiTable.open(tmp_path / name).to_arrow(["id", "d", "t"]).sort_by("id")
        found = [(str(row["d"]), row["t"].strftime("%4Y-%m-%d %H:%M:%S").rjust(19, "0")) for row in rows.to_pylist()]
        assert found == expected, name
        assert texts(in_utc.read.format("hudi").load(str(tmp_path / name))) == expected, name
