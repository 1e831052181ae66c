"""`python -m bench.spark_read_bench`: reads on Spark against Spark's own scan, and first writes of a session.

All pairs are read in turns, in one session, on the same data of 16 columns in 20 partitions:

    cow    a copy-on-write table, and `spark.read.parquet` of its files
    mor    a merge-on-read table after five upserts of 1 %, its log rows read by the driver and by tasks, and the table
           after compaction
    keys   ten keys of the copy-on-write table, and the same filter on its files
    cold   a process of its own: the first and the second write of a session

`plan` is the time until there is a DataFrame. Seconds are least ones, of the clock and of the processor for all
processes; the latter says more on a busy machine. All reads of a table must give the same digest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.__main__ import session
from bench.cases import current_files
from bench.spent import processor_s
from pyhudi import HudiTable

PARTITIONS, ROUNDS, SHARE = 20, 5, 100
HUDI = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.compact.inline": "false",
}
KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
Read = Callable[[DataFrame], object]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_read_bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="3g", help="of the Spark driver")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--only", default="cow,mor,keys,cold")
    parser.add_argument("--cold", metavar="FOLDER", help=argparse.SUPPRESS)  # the process of the case
    given = parser.parse_args()
    if given.cold:
        print(json.dumps(cold_writes(given, Path(given.cold))))
        return
    with tempfile.TemporaryDirectory(prefix="pyhudi-read-", dir=given.work) as name:
        print(json.dumps(measure(given, Path(name)), indent=1))


def measure(given: argparse.Namespace, folder: Path) -> dict[str, object]:
    report: dict[str, object] = {"rows": given.rows, "load": os.getloadavg()[0]}
    if "cold" in given.only:
        report["cold"] = [cold(given, folder) for _ in range(2)]
    if given.only == "cold":
        return report
    spark = session(given, folder)
    report["spark"] = spark.version
    if "cow" in given.only or "keys" in given.only:
        path = table(spark, folder, "cow", given.rows)
        upsert(spark, path, given.rows, 1)
        files = current_files(path)
        ways = {"pyhudi": lambda: load(spark, path), "parquet": lambda: spark.read.parquet(*files)}
        if "cow" in given.only:
            report["cow"] = compare(ways, READS, given.repeats)
        if "keys" in given.only:
            report["keys"] = compare(ways, {"keys": ten_keys(spark, given.rows)}, 2 * given.repeats)
    if "mor" in given.only:
        report["mor"] = merge_on_read(spark, folder, given)
    return report


def merge_on_read(spark: SparkSession, folder: Path, given: argparse.Namespace) -> object:
    path, compacted = table(spark, folder, "mor", given.rows), str(folder / "compacted")
    for version in range(1, ROUNDS + 1):
        upsert(spark, path, given.rows, version)
    shutil.copytree(path, compacted)
    HudiTable.open(compacted, spark=spark).compact()
    ways = {
        "driver": lambda: load(spark, path),
        "tasks": lambda: by_tasks(spark, path),
        "compacted": lambda: load(spark, compacted),
    }
    return compare(ways, {**READS, "keys": ten_keys(spark, given.rows)}, given.repeats)


# ---- data


def expressions(rows: int, version: int) -> list[str]:
    """16 columns over the column `n`, ordered by partition as rows of time are."""
    v = version
    return [
        "concat_ws('-', substr(md5(cast(n as string)), 1, 8), substr(sha2(cast(n as string), 256), 1, 27)) as id",
        f"date_format(date_add(date'2025-01-01', cast(n * {PARTITIONS} div {rows} as int)), 'yyyy-MM-dd') as dt",
        f"1700000000000 + n + {v} * 1000 as ts",
        f"cast(pmod(hash(n, {v}, 1), 1000) as int) as qty",
        f"cast(pmod(hash(n, {v}, 2), 5000000) as bigint) as customer_id",
        f"pmod(hash(n, {v}, 3), 1000000) / 64.0d as price",
        f"pmod(hash(n, {v}, 4), 64) / 64.0d as discount",
        f"cast(pmod(hash(n, {v}, 5), 1000000000) / 100 as decimal(18,2)) as amount",
        f"cast(pmod(hash(n, {v}, 6), 10000000) / 10000 as decimal(10,4)) as tax",
        f"element_at(array('new', 'paid', 'packed', 'shipped', 'returned'), 1 + pmod(hash(n, {v}, 7), 5)) as status",
        f"concat('c', pmod(hash(n, {v}, 8), 40)) as country",
        f"concat('product-', pmod(hash(n, {v}, 9), 10000)) as product",
        f"substr(sha2(concat(n, '-{v}'), 256), 1, 20 + pmod(hash(n, {v}, 10), 41)) as comment",
        "timestamp_micros(1700000000000000 + n * 1000000) as created_at",
        f"timestamp_micros(1700000000000000 + n * 1000000 + {v} * 86400000000) as updated_at",
        f"if(pmod(hash(n, {v}, 11), 10) < 3, null, substr(md5(concat(n, 'n{v}')), 1, 12)) as note",
    ]


def table(spark: SparkSession, folder: Path, kind: str, rows: int) -> str:
    path = str(folder / kind)
    save(numbers(spark, rows).selectExpr(*expressions(rows, 0)), path, "bulk_insert", kind)
    return path


def upsert(spark: SparkSession, path: str, rows: int, version: int) -> None:
    some = numbers(spark, rows).where(f"pmod(hash(n, {version}, 99), {SHARE}) = 0")
    save(some.selectExpr(*expressions(rows, version)), path, "upsert", Path(path).name)


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(rows).withColumnRenamed("id", "n")


def save(frame: DataFrame, path: str, operation: str, kind: str, **options: str) -> None:
    words = {"hoodie.datasource.write.table.type": KINDS[kind], "hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**{**HUDI, **words, **options}).mode("append").save(path)


# ---- reads


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("hudi").load(path)


def by_tasks(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("hudi").option("hoodie.pyhudi.read.log.driver.max.bytes", 0).load(path)


def all_columns(frame: DataFrame) -> object:
    columns = [name for name in frame.columns if not name.startswith("_hoodie")]
    return frame.agg(F.count(F.lit(1)), F.sum(F.xxhash64(*columns) % 1_000_003)).first()


def four_columns(frame: DataFrame) -> object:
    rows = frame.groupBy("status").agg({"qty": "sum", "price": "max", "ts": "max", "*": "count"}).collect()
    return sorted(map(tuple, rows))


def count(frame: DataFrame) -> object:
    return frame.count()


READS: Mapping[str, Read] = {"all": all_columns, "four": four_columns, "count": count}


def ten_keys(spark: SparkSession, rows: int) -> Read:
    some = numbers(spark, rows).where(f"n % {rows // 10} = 7").selectExpr(expressions(rows, 0)[0])
    keys = [row.id for row in some.collect()]

    def read(frame: DataFrame) -> object:
        some = frame.where(F.col("id").isin(keys)).select("id", "ts", "amount", "comment")
        return sorted(map(tuple, some.collect()))

    return read


def compare(ways: Mapping[str, Callable[[], DataFrame]], reads: Mapping[str, Read], repeats: int) -> dict[str, Any]:
    """Least seconds of each way of each read."""
    report: dict[str, Any] = {}
    for name, read in reads.items():
        spent: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
        digests = set[str]()
        for turn in range(repeats + 1):
            for way in list(ways)[:: -1 if turn % 2 else 1]:
                began, cpu = time.perf_counter(), processor_s()
                frame = ways[way]()
                planned = time.perf_counter()
                digests.add(repr(read(frame)))
                if turn:
                    spent[way].append((time.perf_counter() - began, processor_s() - cpu, planned - began))
        assert len(digests) == 1, digests
        report[name] = {way: least(taken) for way, taken in spent.items()}
        print(name, json.dumps(report[name]), file=sys.stderr, flush=True)
    return report


def least(taken: Sequence[tuple[float, ...]]) -> dict[str, float]:
    return dict(
        zip(("s", "cpu_s", "plan_s"), (round(min(column), 3) for column in zip(*taken, strict=True)), strict=True)
    )


# ---- first writes


def cold(given: argparse.Namespace, folder: Path) -> object:
    command = [
        sys.executable,
        "-m",
        "bench.spark_read_bench",
        "--rows",
        str(given.rows),
        "--cold",
        str(folder / "cold"),
    ]
    done = subprocess.run([*command, "--memory", given.memory], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def cold_writes(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Seconds of the clock and of the processor: Spark's start, then loads and upserts of new tables in turn."""
    folder.mkdir(parents=True)
    began = time.perf_counter()
    spark = session(given, folder)
    frame = numbers(spark, given.rows).selectExpr(*expressions(given.rows, 0))
    report: dict[str, Any] = {"start_s": round(time.perf_counter() - began, 2)}
    staged = str(folder / "staged")
    began = time.perf_counter()
    frame.write.parquet(staged)  # which warms Spark's own code, as the source of a load does
    report["staging_s"] = round(time.perf_counter() - began, 2)
    frame = spark.read.parquet(staged)
    for turn in range(4):
        began, cpu = time.perf_counter(), processor_s()
        save(frame, str(folder / f"cow{turn}"), "bulk_insert", "cow")
        report[f"load {turn + 1}"] = round(time.perf_counter() - began, 2), round(processor_s() - cpu, 2)
    spark.stop()
    shutil.rmtree(folder)
    return report


if __name__ == "__main__":
    main()
