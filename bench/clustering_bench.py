"""`python -m bench.clustering_bench`: clustering against Spark's own read, sort and write of the same files.

A copy-on-write table of many small files is clustered with its rows sorted by two columns. Spark reads the same Parquet
files, sorts by the same columns within each partition and writes one Parquet file for each, with the same codec. A
second floor is pyarrow: read a partition, sort, write. All are timed in turns, in wall seconds, and CPU seconds of this
process for the two without Spark.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.filegroup_bench import generate
from pyhudi import HudiTable, write_hudi

SORT = ("ts", "id")
PLAIN = {"hoodie.parquet.small.file.limit": "0"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.clustering_bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--files", type=int, default=4, help="of each partition")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--layout", default="LINEAR", choices=("LINEAR", "ZORDER", "HILBERT"))
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args()
    pa.set_cpu_count(given.cores)
    with tempfile.TemporaryDirectory(prefix="pyhudi-clustering-") as name:
        print(json.dumps(measure(given, Path(name)), indent=1))


def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    table, copy = folder / "table", folder / "copy"
    make(table, given)
    before = rows_of(table)
    spark = None if given.no_spark else session(given, folder)
    sort = {
        "hoodie.clustering.plan.strategy.sort.columns": ",".join(SORT),
        "hoodie.layout.optimize.strategy": given.layout,
    }
    times: dict[str, list[tuple[float, float]]] = {"clustering": [], "spark": [], "pyarrow": []}
    result: Any = None
    for turn in range(given.repeats + 1):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table, copy)
        opened = HudiTable.open(str(copy))
        took: dict[str, tuple[float, float]] = {}
        if spark is not None:
            took["spark"] = timed(lambda: by_spark(spark, table, folder / "by_spark"))
        took["pyarrow"] = timed(lambda: by_pyarrow(table, folder / "by_pyarrow", given.cores))
        began = time.perf_counter(), time.process_time()
        result = opened.cluster(options=sort)
        took["clustering"] = time.perf_counter() - began[0], time.process_time() - began[1]
        if turn:  # the first one warms
            for name, pair in took.items():
                times[name].append(pair)
    assert rows_of(copy) == before
    wall = {name: statistics.median(pair[0] for pair in pairs) for name, pairs in times.items() if pairs}
    cpu = {
        name: statistics.median(pair[1] for pair in pairs) for name, pairs in times.items() if pairs and name != "spark"
    }
    ratios = {name: round(wall["clustering"] / seconds, 2) for name, seconds in wall.items() if name != "clustering"}
    print(f"clustering {wall['clustering']:.2f} s; ratios {ratios}", file=sys.stderr)
    return {
        "rows": given.rows,
        "file_groups": [result.runs[0].file_slices, result.runs[0].files_written],
        "cores": given.cores,
        "load": os.getloadavg()[0],
        "wall_s": wall,
        "cpu_s": cpu,
        "ratios": ratios,
        "phases_s": dict(result.runs[0].seconds),
    }


def make(table: Path, given: argparse.Namespace) -> None:
    names = pa.array([f"p{n:02d}" for n in range(given.partitions)])
    random = np.random.default_rng(7)
    kind = {"record_key": "id", "partition_by": "region", "ordering": "ts", "table_name": "bench"}
    for part in range(given.files):
        data = generate(given.rows // given.files, part + 1)
        regions = names.take(pa.array(random.integers(0, given.partitions, len(data))))
        write_hudi(str(table), data.append_column("region", regions), "bulk_insert", options=PLAIN, **kind)


def rows_of(table: Path) -> tuple[int, int]:
    found = HudiTable.open(str(table)).scan(columns=["ts"]).to_arrow()
    return found.num_rows, sum(found.column("ts").to_pylist())


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    began = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def session(given: argparse.Namespace, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("PyHudi clustering bench")
    for key, value in {
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.shuffle.partitions": str(given.partitions),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def by_spark(spark: Any, table: Path, out: Path) -> None:
    files = [str(path) for path in table.rglob("*.parquet")]
    rows = spark.read.parquet(*files)
    arranged = rows.repartition("region").sortWithinPartitions("region", *SORT)
    arranged.write.mode("overwrite").partitionBy("region").parquet(str(out))


def by_pyarrow(table: Path, out: Path, threads: int) -> None:
    out.mkdir(exist_ok=True)

    def one(folder: Path) -> None:
        rows = pa.concat_tables(pq.read_table(path, partitioning=None) for path in sorted(folder.glob("*.parquet")))
        rows = rows.sort_by([(name, "ascending") for name in SORT])
        pq.write_table(rows, out / f"{folder.name}.parquet", compression="zstd", compression_level=1)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, [path for path in table.iterdir() if path.is_dir() and path.name != ".hoodie"]))


if __name__ == "__main__":
    main()
