"""A stream of small batches into a merge-on-read table with services next to it, and reads of what it leaves: a case of
`python -m bench --only h`.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.spent import Spent, processor_s, tell
from pyhudi import HudiTable, write_batches_to, write_hudi

BATCH_ROWS, STREAM_KEYS = 1_000, 100_000
WARM_BATCHES, STREAM_PARTITIONS = 5, 4
STREAMED = {
    "hoodie.table.name": "streamed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.clean.async.enabled": "true",
}
READS = 5


def stream(spark: SparkSession, folder: Path, batches: int) -> dict[str, object]:
    """Batches of small files, as fast as they go; compactions and cleaning next to them, archiving in them.

    The table has the keys that 90 % of a batch update; the other rows are new.
    """
    source, path = folder / "source", folder / "streamed"
    write_hudi(str(path), stream_rows(range(STREAM_KEYS), 0), operation="bulk_insert", options=STREAMED, mode="append")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(batches + WARM_BATCHES))
    run_stream(spark, source, path, range(WARM_BATCHES))
    began, processor = time.perf_counter(), processor_s()
    walls = run_stream(spark, source, path, range(WARM_BATCHES, WARM_BATCHES + batches))
    total_s, total_processor_s = time.perf_counter() - began, processor_s() - processor
    what = f"batch of {BATCH_ROWS:,} rows, median of {batches}; processor: mean, services included"
    tell(what, f"**{statistics.median(walls):.2f} s**", f"{total_processor_s / batches:.2f} s", "< 1 s")
    for name, part in (("the first 20", walls[:20]), ("the last 20", walls[-20:])):
        tell(f"  median of {name}", f"{statistics.median(part):.2f} s", "-")
    tell("  slowest but 5 %", f"{sorted(walls)[int(len(walls) * 0.95)]:.2f} s", "-")
    tell("  all of them", f"{total_s:.0f} s", f"{total_processor_s:.0f} s")
    return {"batches_s": walls, "processor_s": total_processor_s, "reads": reads_after(spark, path)}


def run_stream(spark: SparkSession, source: Path, path: Path, batches: range) -> list[float]:
    """Write these batches as files, let the stream take them one by one; seconds of each."""
    source.mkdir(parents=True, exist_ok=True)
    for number in batches:
        values = np.random.default_rng(number)
        old = values.choice(STREAM_KEYS, BATCH_ROWS * 9 // 10, replace=False).tolist()
        first = STREAM_KEYS + number * BATCH_ROWS
        file = source / f"{number:05d}.parquet"
        pq.write_table(stream_rows([*old, *range(first, first + BATCH_ROWS // 10)], number + 1), file)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # the source takes them by age
    schema = spark.read.parquet(str(source / f"{batches[0]:05d}.parquet")).schema
    query = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .writeStream.foreachBatch(write_batches_to(path, STREAMED))
        .option("checkpointLocation", str(source.with_name("checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    walls = [each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress if each["numInputRows"]]
    assert len(walls) == len(batches), len(walls)
    return walls


def stream_rows(keys: Sequence[int] | range, version: int) -> pa.Table:
    values = np.random.default_rng(version)
    return pa.table(
        {
            "id": pa.array([f"k{key:06d}" for key in keys]),
            "p": pa.array([str(key % STREAM_PARTITIONS) for key in keys]),
            "ts": pa.array(np.full(len(keys), version)),
            "v": pa.array(values.random(len(keys))),
            "city": pa.array([f"city-{n}" for n in values.integers(0, 3000, len(keys)).tolist()]),
        }
    )


def spent_by(work: Callable[[], object]) -> Spent:
    """What reads take, after one that nobody measures."""
    work()
    spent = Spent()
    for _ in range(READS):
        spent.run(work, processor_s)
    return spent


def reads_after(spark: SparkSession, path: Path) -> dict[str, object]:
    """The streamed table as it is, and once it is compacted."""
    table = HudiTable.open(path, spark=spark)
    kinds = Counter(entry.action for entry in table.history())
    print(f"history: {dict(kinds)}")
    expected = int(table.scan(["id"]).count())
    ways: dict[str, Callable[[], object]] = {
        "by Spark": lambda: spark.read.format("hudi").load(str(path)).selectExpr("count(*)", "sum(v)").collect(),
        "without Spark": lambda: HudiTable.open(path).scan(["v"]).to_arrow(),
    }
    found: dict[str, object] = {}
    as_it_is = {name: spent_by(work) for name, work in ways.items()}
    table.compact()
    assert int(HudiTable.open(path).scan(["id"]).count()) == expected
    for name, work in ways.items():
        before, after = as_it_is[name], spent_by(work)
        ratio = [a / b for a, b in zip(before.medians, after.medians, strict=True)]
        tell(f"read after the stream, {name}: as it is", *(f"{s:.2f} s" for s in before.medians))
        tell("  compacted", *(f"{s:.2f} s" for s in after.medians))
        tell("  ratio", f"**{ratio[0]:.2f}**", f"{ratio[1]:.2f}", "<= 2")
        found[name] = [before, after]
    return found
