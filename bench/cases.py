"""The measured cases. Each one times PyHudi and a floor in turns, in one session, and gives both and their ratio."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from bench import data

ZSTD_1 = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}


@dataclass
class Result:
    """A case: seconds of PyHudi and of the floor by repeat, and the ratio that was aimed at."""

    case: str
    what: str
    floor: str
    ours_s: list[float] = field(default_factory=list)
    floor_s: list[float] = field(default_factory=list)
    aim: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Median of PyHudi by median of the floor."""
        return statistics.median(self.ours_s) / statistics.median(self.floor_s)


@dataclass
class Setting:
    """What all cases share."""

    spark: SparkSession
    folder: Path
    rows: int
    repeats: int
    cores: int

    @property
    def staged(self) -> Path:
        return self.folder / "staged"

    @property
    def table(self) -> str:
        return str(self.folder / "table")


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def save(frame: DataFrame, path: str, operation: str, mode: str = "append") -> None:
    options = {**data.HUDI, "hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**options).mode(mode).save(path)


def warm_up(setting: Setting) -> None:
    """The same calls on a small table, so that start-up of workers and code generation is charged to nobody."""
    path = str(setting.folder / "warm")
    frame = data.source(setting.spark, setting.staged, 20_000)
    save(frame, path, "bulk_insert", "overwrite")
    save(data.batch(setting.spark, setting.staged, 20_000, 0.1, 2), path, "upsert")
    scan_aggregate(setting.spark.read.format("hudi").load(path))
    frame.write.mode("overwrite").partitionBy(data.PARTITION).options(**ZSTD_1).parquet(path + "-native")


def bulk_insert(setting: Setting) -> Result:
    """(a) bulk_insert against Spark's own partitioned Parquet write, same session and codec."""
    result = Result("a", f"bulk_insert, {setting.rows:,} rows x 20 columns, {data.PARTITIONS} partitions",
                    "df.write.partitionBy().parquet(), zstd 1", aim="<= 1.15")  # fmt: skip
    frame = data.source(setting.spark, setting.staged, setting.rows)
    native = str(setting.folder / "native")
    for _ in range(setting.repeats):
        shutil.rmtree(setting.table, ignore_errors=True)
        result.ours_s.append(seconds(lambda: save(frame, setting.table, "bulk_insert")))
        shutil.rmtree(native, ignore_errors=True)
        writer = frame.write.partitionBy(data.PARTITION).options(**ZSTD_1)
        result.floor_s.append(seconds(lambda writer=writer: writer.parquet(native)))
    result.notes = {
        "files": len(base_files(setting.table)),
        "bytes": size_of(setting.table),
        "bytes_floor": size_of(native),
    }
    shutil.rmtree(native)
    return result


def upsert(setting: Setting, share: float, name: str) -> Result:
    """(b) upsert of a share of the keys, all file groups touched, against rewriting the touched files in pyarrow."""
    result = Result(name, f"upsert of {share:.0%} of {setting.rows:,} keys, spread over all file groups",
                    "pyarrow reads and writes the touched files", aim="<= 1.5")  # fmt: skip
    for turn in range(setting.repeats):
        version = 10 + turn + round(share * 1000)
        frame = data.batch(setting.spark, setting.staged, setting.rows, share, version)
        before = set(base_files(setting.table))
        began = time.perf_counter()
        written = pyhudi.write_hudi(setting.table, frame, operation="upsert", spark=setting.spark)
        result.ours_s.append(time.perf_counter() - began)
        touched = sorted(replaced(before, set(base_files(setting.table))))
        result.floor_s.append(seconds(lambda touched=touched: rewrite(touched, setting)))
        result.notes = {
            "files_rewritten": len(touched),
            "bytes": written.bytes_written,
            "updated": written.updated,
            "phases_s": dict(written.seconds),
        }
    return result


def small_commit(setting: Setting) -> Result:
    """(c) 1,000 rows into one partition, warm session."""
    result = Result("c", "upsert of 1,000 rows into one partition, warm", "pyarrow reads and writes the touched files",
                    aim="floor + 0.5 s")  # fmt: skip
    phases: dict[str, float] = {}
    for turn in range(setting.repeats + 1):
        frame = data.batch_of_one_partition(setting.spark, setting.staged, setting.rows, 1000, 100 + turn)
        before = set(base_files(setting.table))
        began = time.perf_counter()
        written = pyhudi.write_hudi(setting.table, frame, operation="upsert", spark=setting.spark)
        ours = time.perf_counter() - began
        touched = sorted(replaced(before, set(base_files(setting.table))))
        floor = seconds(lambda touched=touched: rewrite(touched, setting))
        if turn:  # the first one warms
            result.ours_s.append(ours)
            result.floor_s.append(floor)
            phases = dict(written.seconds)
    over = statistics.median(a - b for a, b in zip(result.ours_s, result.floor_s, strict=True))
    result.notes = {"over_the_floor_s": round(over, 3), "files_rewritten": len(touched), "phases_s": phases}
    return result


def scan_aggregate(frame: DataFrame) -> Any:
    return frame.groupBy("status").agg({"quantity": "sum", "price": "avg", "ts": "max"}).collect()


def scan_all(frame: DataFrame) -> Any:
    return frame.write.format("noop").mode("overwrite").save()


def scan(setting: Setting, name: str, what: str, work: Callable[[DataFrame], Any]) -> Result:
    """(d) snapshot scan against native Parquet over the very same files."""
    result = Result(name, f"snapshot scan, {what}", "spark.read.parquet of the same files", aim="<= 1.05")
    files = current_files(setting.table)

    def ours() -> None:
        result.ours_s.append(seconds(lambda: work(setting.spark.read.format("hudi").load(setting.table))))

    def floor() -> None:
        result.floor_s.append(seconds(lambda: work(setting.spark.read.parquet(*files))))

    for turn in range(max(4, setting.repeats)):  # who comes first reads colder files: take turns
        for one in (ours, floor) if turn % 2 else (floor, ours):
            one()
    return result


def rewrite(paths: list[str], setting: Setting) -> None:
    """The physical floor of copy-on-write: read every row group, write it again, on as many cores as Spark has."""
    folder = setting.folder / "rewritten"
    folder.mkdir(exist_ok=True)

    def one(path: str) -> None:
        with pq.ParquetFile(path) as file:
            writer = pq.ParquetWriter(
                folder / Path(path).name,
                file.schema_arrow,
                compression="zstd",
                compression_level=1,
                use_dictionary=True,
            )
            with writer:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group, use_threads=False))

    with ThreadPoolExecutor(setting.cores) as pool:
        list(pool.map(one, paths))
    shutil.rmtree(folder)


def base_files(table: str) -> list[str]:
    return [str(path) for path in Path(table).rglob("*.parquet") if ".hoodie" not in path.parts]


def current_files(table: str) -> list[str]:
    """Newest file of every file group. One instant time for a name, so the greatest name is the newest."""
    newest: dict[str, str] = {}
    for path in base_files(table):
        group, _, rest = Path(path).name.partition("_")
        instant = rest.rpartition("_")[2]
        known = newest.get(group)
        if known is None or Path(known).name.rpartition("_")[2] < instant:
            newest[group] = path
    return sorted(newest.values())


def replaced(before: set[str], after: set[str]) -> set[str]:
    """Files of `before` whose file group has a newer file in `after`."""
    groups = {Path(path).name.partition("_")[0] for path in after - before}
    current: dict[str, str] = {}
    for path in sorted(before, key=lambda path: Path(path).name.rpartition("_")[2]):
        current[Path(path).name.partition("_")[0]] = path
    return {path for group, path in current.items() if group in groups}


def size_of(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
