"""`python -m bench.sql_bench`: statements on names against the same work by paths and DataFrames.

An UPDATE or a MERGE INTO and the same change by a DataFrame (read, join, compute, `df.write` with operation upsert) go
to copies of the same table, in turns. Then what it costs to look at a statement that is not Hudi's, and to plan a query
by a name. Wall seconds, and seconds of the processor for all processes, which say more on a busy machine; medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import pyhudi
from bench import data
from bench.__main__ import session
from bench.spent import processor_s
from pyhudi.model.keys import META_COLUMNS
from pyhudi.session.temp_views import spark_sql

KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
QUIET = {"hoodie.compact.inline": "false"}
UPSERT = {**data.HUDI, **QUIET, "hoodie.datasource.write.operation": "upsert"}
NOT_OURS = (
    "SELECT count(*) FROM range(10) AS t JOIN range(10) AS u ON t.id = u.id WHERE t.id > 3 GROUP BY t.id ORDER BY 1"
)

Change = tuple[Callable[[SparkSession, str, DataFrame], object], Callable[[SparkSession, str, DataFrame], object]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sql_bench", description=__doc__)
    parser.add_argument("--rows", type=int, help="of the table (default 1,000,000)")
    parser.add_argument("--share", type=float, default=0.01, help="of the rows that change")
    parser.add_argument("--repeats", type=int, help="pairs of each change (default 5)")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="3g", help="of the Spark driver")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--only", default="cow,mor,plans")
    parser.add_argument("--quick", action="store_true", help="100,000 rows, three pairs")
    given = parser.parse_args()
    given.rows = given.rows or (100_000 if given.quick else 1_000_000)
    given.repeats = given.repeats or (3 if given.quick else 5)
    with tempfile.TemporaryDirectory(prefix="pyhudi-sql-", dir=given.work) as name:
        folder = Path(name)
        spark = session(given, folder)
        pyhudi.enable(spark)
        print(json.dumps(measure(spark, folder, given), indent=1))


def measure(spark: SparkSession, folder: Path, given: argparse.Namespace) -> dict[str, object]:
    report: dict[str, object] = {"rows": given.rows, "cores": given.cores, "load": os.getloadavg()[0]}
    source = data.source(spark, folder, given.rows)
    for kind in KINDS:
        if kind in given.only:
            made = table(spark, folder, kind, source)
            save(data.batch(spark, folder, given.rows, given.share, 2), str(made))
            for name, change in CHANGES.items():
                report[f"{kind} {name}"] = pairs(spark, made, change, given)
    if "plans" in given.only:
        report["statement"] = recognition(spark)
        report["plan"] = planning(spark, table(spark, folder, "plans", source.limit(10_000)))
    return report


def table(spark: SparkSession, folder: Path, kind: str, source: DataFrame) -> Path:
    """A new table under its own name."""
    path = folder / f"bench_{kind}"
    shutil.rmtree(path, ignore_errors=True)
    options = {**data.HUDI, "hoodie.datasource.write.table.type": KINDS.get(kind, "COPY_ON_WRITE")}
    options["hoodie.datasource.write.operation"] = "bulk_insert"
    source.write.format("hudi").options(**options).mode("append").save(str(path))
    named(spark, path)
    return path


def named(spark: SparkSession, path: Path) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {path.name}")
    quiet = ", ".join(f"'{key}' = '{value}'" for key, value in QUIET.items())  # as the DataFrame's writes have it
    spark.sql(f"CREATE TABLE {path.name} USING hudi LOCATION '{path}' TBLPROPERTIES ({quiet})")


def digest(spark: SparkSession, path: Path) -> Any:
    rows = stored(spark, str(path)).drop(*META_COLUMNS)
    return rows.agg(F.count("*"), F.sum(F.xxhash64(*rows.columns).cast("decimal(38,0)"))).collect()


def pairs(spark: SparkSession, made: Path, change: Change, given: argparse.Namespace) -> dict[str, object]:
    """One change by SQL and by a DataFrame, each of a copy of the same table, in turns; the first pair warms."""
    times: list[list[tuple[float, float]]] = [[], []]
    sides = [made.with_name(f"{made.name}_sql"), made.with_name(f"{made.name}_frame")]
    for turn in range(given.repeats + 1):
        batch = data.batch(spark, made.parent, given.rows, given.share, 10 + turn)
        for side in (0, 1) if turn % 2 else (1, 0):
            path = sides[side]
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(made, path, copy_function=os.link)  # files of a table are never changed
            named(spark, path)
            took = timed(lambda side=side, path=path, batch=batch: change[side](spark, str(path), batch))
            if turn:
                times[side].append(took)
        assert turn or digest(spark, sides[0]) == digest(spark, sides[1]), "both ways make the same rows"
    sql, frame = times
    found = {
        "sql_s": statistics.median(wall for wall, _ in sql),
        "frame_s": statistics.median(wall for wall, _ in frame),
        "ratio": statistics.median(a / b for (a, _), (b, _) in zip(sql, frame, strict=True)),
        "cpu_ratio": statistics.median(a / b for (_, a), (_, b) in zip(sql, frame, strict=True)),
    }
    print(f"{made.name}: {found}", file=sys.stderr, flush=True)
    return {**found, "sql": sql, "frame": frame}


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds, of this process and all below it (Linux; elsewhere of this one)."""
    began = time.perf_counter(), processor_s()
    work()
    return time.perf_counter() - began[0], processor_s() - began[1]


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# ---- the changes, by SQL and by a DataFrame


def save(frame: DataFrame, path: str) -> None:
    frame.drop(*META_COLUMNS).write.format("hudi").options(**UPSERT).mode("append").save(path)


def stored(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("hudi").load(path)


def update_by_sql(spark: SparkSession, path: str, batch: DataFrame) -> None:
    spark.sql(f"UPDATE {Path(path).name} SET price = price + 1, status = 'late' WHERE pmod(quantity, 100) = 7")


def update_by_frame(spark: SparkSession, path: str, batch: DataFrame) -> None:
    rows = stored(spark, path).where("pmod(quantity, 100) = 7")
    save(rows.withColumns({"price": F.col("price") + 1, "status": F.lit("late")}), path)


def merge(spark: SparkSession, path: str, batch: DataFrame, on: str, clauses: str) -> None:
    batch.createOrReplaceTempView("changes")
    spark.sql(f"MERGE INTO {Path(path).name} AS t USING changes AS c ON {on} {clauses}")


def merge_by_sql(spark: SparkSession, path: str, batch: DataFrame) -> None:
    clause = "WHEN MATCHED THEN UPDATE SET price = t.price + c.price, status = c.status, ts = c.ts"
    merge(spark, path, batch, "t.id = c.id", clause)


def merge_by_frame(spark: SparkSession, path: str, batch: DataFrame) -> None:
    changes = batch.select("id", "ts", "status", F.col("price").alias("more"))
    rows = stored(spark, path).drop("ts", "status").join(changes, "id")
    rows = rows.withColumn("price", F.col("price") + F.col("more")).drop("more")
    save(rows.select(batch.columns), path)


def stars_by_sql(spark: SparkSession, path: str, batch: DataFrame) -> None:
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    merge(spark, path, batch, "t.id = c.id AND t.day = c.day", clauses)


def stars_by_frame(spark: SparkSession, path: str, batch: DataFrame) -> None:
    save(batch, path)


CHANGES: dict[str, Change] = {
    "UPDATE": (update_by_sql, update_by_frame),
    "MERGE INTO": (merge_by_sql, merge_by_frame),
    "MERGE INTO, both stars": (stars_by_sql, stars_by_frame),
}


# ---- what a statement costs before anything runs


def recognition(spark: SparkSession, times: int = 200) -> dict[str, float]:
    """A statement of Spark's own through `spark.sql` as `enable` has it, and through Spark's: the median difference."""
    ours, own = [], []
    for _ in range(times):
        ours.append(seconds(lambda: spark.sql(NOT_OURS)))
        own.append(seconds(lambda: spark_sql(spark, NOT_OURS)))
    more = statistics.median(a - b for a, b in zip(ours, own, strict=True))
    return {"ours_ms": 1e3 * statistics.median(ours), "spark_ms": 1e3 * statistics.median(own), "more_ms": 1e3 * more}


def planning(spark: SparkSession, path: Path, times: int = 50) -> dict[str, float]:
    """A query by name and one by path, until there is a DataFrame."""
    name = path.name
    by_name, by_path = [], []
    for _ in range(times):
        by_name.append(seconds(lambda: spark.sql(f"SELECT price FROM {name} WHERE quantity = 7")))
        by_path.append(seconds(lambda: stored(spark, str(path)).where("quantity = 7").select("price")))
    more = statistics.median(a - b for a, b in zip(by_name, by_path, strict=True))
    return {
        "name_ms": 1e3 * statistics.median(by_name),
        "path_ms": 1e3 * statistics.median(by_path),
        "more_ms": 1e3 * more,
    }


if __name__ == "__main__":
    main()
