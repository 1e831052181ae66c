"""`python -m bench --only h`: incremental reads, change logs and streams.

    range     the rows of one commit of 1,000: what is opened, and how long planning takes
    changes   an upsert of 10 % with change logs and without, in turns
    stream    batches of 1,000 rows into a merge-on-read table with services next to it, and reads of what they leave

Processor time is that of this process and, of the stream, of the JVM and its workers. Medians count; on a machine with
other work the processor's time says more than the elapsed one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pyhudi import HudiTable, write_batches_to, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage import open_storage
from pyhudi.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
ALL_ACTIVE = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
NEW_GROUPS = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.enable": "false"}
COMMITS, RANGE_ROWS, RANGE_REPEATS = 1_000, 20, 15
CHANGED_ROWS, CHANGED_COLUMNS, CHANGED_FILES, CHANGED_REPEATS = 400_000, 16, 4, 9
CASES = ("range", "changes", "stream")
BATCHES, BATCH_ROWS, STREAM_KEYS = 200, 1_000, 50_000
READS = 5


@dataclass
class Spent:
    """Seconds of runs: by the clock on the wall, and of the processor."""

    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], object], processes: Callable[[], float] = time.process_time) -> None:
        wall, processor = time.perf_counter(), processes()
        work()
        self.processor_s.append(processes() - processor)
        self.wall_s.append(time.perf_counter() - wall)

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.wall_s), statistics.median(self.processor_s)


def tell(what: str, wall: str, processor: str, aim: str = "-") -> None:
    print(f"| {what} | {wall} | {processor} | {aim} |", flush=True)


def tell_ms(what: str, spent: Spent, aim: str = "-") -> None:
    wall_s, processor_s = spent.medians
    tell(what, f"{wall_s * 1000:.1f} ms", f"{processor_s * 1000:.1f} ms", aim)


# ---- one commit of many ----------------------------------------------------------------------------------------------


def one_commit_of_many(folder: Path, commits: int) -> dict[str, object]:
    """A range of one commit in the middle of a long timeline; once of active commits only, once with archived ones."""
    found: dict[str, object] = {}
    for name, options in (("active", ALL_ACTIVE), ("archived", {})):
        path = folder / name
        begins = many_commits(str(path), commits, options)
        first = commits // 2 if options else -3  # the middle was cleaned where archiving is on
        opened, planned, read = range_spent(str(path), *begins[first : first + 2])
        kept = f"{commits:,} commits, {'all active' if options else 'most archived'}"
        tell_ms(f"{kept}: range of one commit planned", planned, "< 50 ms")
        tell_ms("  with opening the table", opened)
        tell_ms("  its rows read", read)
        found[name] = {"planned": planned, "opened": opened, "read": read}
    calls = calls_of_one_range(min(commits, 200))
    print(f"storage calls on data: {dict(calls)}; files that the commit wrote: 1")
    return {**found, "calls": dict(calls)}


def range_spent(path: str, begin: str, end: str) -> tuple[Spent, Spent, Spent]:
    """Of a range: opening the table and planning, planning by itself, reading the rows."""
    opened, planned, read = Spent(), Spent(), Spent()
    storage = open_storage(path)
    for _ in range(RANGE_REPEATS):
        opened.run(lambda: planned_range(MetaClient.load(storage), begin, end))
        meta = MetaClient.load(storage)
        planned.run(partial(planned_range, meta, begin, end))
        plan = planned_range(meta, begin, end)
        read.run(lambda plan=plan: list(read_batches(plan, storage)))
    return opened, planned, read


def many_commits(path: str, commits: int, options: dict[str, str]) -> list[str]:
    """A table of so many commits, each with rows of its own; when they completed."""
    table = HudiTable.create(path, SCHEMA, record_key="id", partition_by="p", ordering="ts")
    completed = []
    for number in range(commits):
        rows = [{"id": f"{number}-{n}", "p": str(number % 10), "ts": 1, "v": n / 2} for n in range(RANGE_ROWS)]
        table.insert(rows, options={**NEW_GROUPS, **options})
        newest = table.timeline.last_commit()
        completed.append("" if newest is None else newest.completion_time or "")
    return completed


def planned_range(meta: MetaClient, begin: str, end: str) -> ReadPlan:
    wanted = incremental_range(meta, "incremental", begin, end)
    assert wanted is not None
    return plan_incremental(meta, wanted)


def calls_of_one_range(commits: int) -> Counter[str]:
    """Calls that a range of one commit makes outside `.hoodie`, by verb; more than one file is an error."""
    begins = many_commits("memory://time-bench", commits, ALL_ACTIVE)
    storage = open_storage("memory://time-bench")
    assert isinstance(storage, MemoryStorage)
    meta = MetaClient.load(storage)
    storage.reset_faults()
    plan = planned_range(meta, *begins[commits // 2 : commits // 2 + 2])
    assert sum(batch.num_rows for batch in read_batches(plan, storage)) == RANGE_ROWS
    data = [(verb, path) for verb, path in storage.log if not path.startswith(".hoodie")]
    assert len({path for _, path in data}) == 1, data
    bodies = [path for verb, path in storage.log if verb == "read" and path.endswith("commit")]
    assert len(set(bodies)) <= 2, (
        f"bodies of {len(bodies)} commits were read"
    )  # the range's, and the newest: its schema
    return Counter(verb for verb, _ in data)


# ---- change logs -----------------------------------------------------------------------------------------------------


def change_logging(folder: Path, rows: int, repeats: int) -> dict[str, object]:
    """An upsert of 10 % of the rows of a copy-on-write table; who begins changes."""
    paths = {logs: str(folder / f"changes-{logs}") for logs in (True, False)}
    for logs, path in paths.items():
        write(path, wide_rows(rows, 0, 1), "bulk_insert", logs=logs)
    spent = {logs: Spent() for logs in paths}
    for repeat in range(repeats + 1):
        batch = wide_rows(rows, repeat % 10, 10)
        for logs in (True, False) if repeat % 2 else (False, True):
            os.sync()
            run = Spent() if repeat == 0 else spent[logs]  # the first warms
            run.run(lambda batch=batch, logs=logs: write(paths[logs], batch, "upsert", logs=logs))
    walls, processors = (
        statistics.median(a / b for a, b in zip(getattr(spent[True], name), getattr(spent[False], name), strict=True))
        for name in ("wall_s", "processor_s")
    )
    what = f"upsert of 10 % of {rows:,} rows x {CHANGED_COLUMNS} columns"
    tell_ms(f"{what}, change logs", spent[True])
    tell_ms(f"{what}, none", spent[False])
    tell("  ratio, median of the pairs", f"**{walls:.2f}**", f"{processors:.2f}", "<= 1.20")
    return {"with": spent[True], "without": spent[False], "ratio_wall": walls, "ratio_processor": processors}


def wide_rows(rows: int, offset: int, step: int) -> pa.Table:
    """Every `step`-th row from `offset` on: keys, texts of low and high cardinality, numbers."""
    numbers = np.arange(offset, rows, step)
    values = np.random.default_rng(offset + step)
    columns = {
        "id": pa.array([f"{n * 2654435761 % 2**32:08x}-{n}" for n in numbers.tolist()]),
        "p": pa.array([str(n % CHANGED_FILES) for n in numbers.tolist()]),
        "ts": pa.array(np.full(len(numbers), time.monotonic_ns())),
        "status": pa.array(values.choice(["new", "paid", "sent", "back"], len(numbers))),
        "city": pa.array([f"city-{n}" for n in values.integers(0, 3000, len(numbers)).tolist()]),
        "comment": pa.array([f"{n:040x}" for n in values.integers(0, 2**62, len(numbers)).tolist()]),
    }
    for number in range(CHANGED_COLUMNS - len(columns)):
        whole = number % 2 == 0
        count = len(numbers)
        columns[f"c{number}"] = pa.array(values.integers(0, 10**6, count) if whole else values.random(count).round(4))
    return pa.table(columns)


def write(path: str, rows: pa.Table, operation: str, *, logs: bool) -> None:
    options = {
        "hoodie.table.name": "bench",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.table.cdc.enabled": str(logs).lower(),
        "hoodie.datasource.write.operation": operation,
    }
    write_hudi(path, rows, options=options, mode="append")


# ---- a stream --------------------------------------------------------------------------------------------------------


def stream(spark: SparkSession, folder: Path, batches: int) -> dict[str, object]:
    """Batches of small files, as fast as they go; compactions and cleaning next to them, archiving in them."""
    source, path = folder / "source", folder / "streamed"
    schema = stream_files(source, batches)
    options = {
        "hoodie.table.name": "streamed",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.clean.async.enabled": "true",
    }
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(batches + 10))
    rows = spark.readStream.schema(spark.read.parquet(str(schema)).schema).option("maxFilesPerTrigger", 1)
    began, processor = time.perf_counter(), processor_s()
    query = (
        rows.parquet(str(source))
        .writeStream.foreachBatch(write_batches_to(path, options))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    total_s, total_processor_s = time.perf_counter() - began, processor_s() - processor
    walls = [each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress if each["numInputRows"]]
    assert len(walls) == batches, len(walls)
    tell(
        f"batch of {BATCH_ROWS:,} rows, median of {batches}",
        f"**{statistics.median(walls):.2f} s**",
        f"{total_processor_s / batches:.2f} s",
        "< 1 s",
    )
    for name, part in (("the first 20", walls[:20]), ("the last 20", walls[-20:])):
        tell(f"  median of {name}", f"{statistics.median(part):.2f} s", "-")
    tell("  slowest but 5 %", f"{sorted(walls)[int(len(walls) * 0.95)]:.2f} s", "-")
    tell("  all, services included", f"{total_s:.0f} s", f"{total_processor_s:.0f} s")
    return {"batches_s": walls, "processor_s": total_processor_s, "reads": reads_after(spark, path)}


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
    for name, work in ways.items():
        work()
        before = Spent()
        for _ in range(READS):
            before.run(work, processor_s)
        found[name] = [before]
    table.compact()
    assert int(HudiTable.open(path).scan(["id"]).count()) == expected
    for name, work in ways.items():
        work()
        after = Spent()
        for _ in range(READS):
            after.run(work, processor_s)
        before = found[name][0]  # type: ignore[index]
        ratio = [a / b for a, b in zip(before.medians, after.medians, strict=True)]
        tell(f"read after the stream, {name}: as it is", *(f"{s:.2f} s" for s in before.medians))
        tell("  compacted", *(f"{s:.2f} s" for s in after.medians))
        tell("  ratio", f"**{ratio[0]:.2f}**", f"{ratio[1]:.2f}", "<= 2")
        found[name] = [before, after]
    return found


def stream_files(folder: Path, batches: int) -> Path:
    """A Parquet file for each batch: updates of old keys and new ones. The first of them."""
    folder.mkdir(parents=True)
    values = np.random.default_rng(1)
    for number in range(batches):
        keys = values.choice(STREAM_KEYS, BATCH_ROWS, replace=False)
        rows = pa.table(
            {
                "id": pa.array([f"k{key:06d}" for key in keys.tolist()]),
                "p": pa.array([str(key % 4) for key in keys.tolist()]),
                "ts": pa.array(np.full(BATCH_ROWS, number)),
                "v": pa.array(values.random(BATCH_ROWS)),
            }
        )
        file = folder / f"{number:05d}.parquet"
        pq.write_table(rows, file)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # the source takes them by age
    return folder / "00000.parquet"


def processor_s() -> float:
    """Processor seconds of this process and all below it, ended ones included."""
    parents: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        pid = int(stat.parent.name)
        parents.setdefault(int(fields[1]), []).append(pid)
        times[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += times.get(pid, 0.0)
        waiting += parents.get(pid, [])
    return total


# ---- all of them -----------------------------------------------------------------------------------------------------


def run(folder: Path, session: Callable[[], SparkSession], *, quick: bool, only: Sequence[str]) -> dict[str, object]:
    """The cases, printed as rows of a table. Seconds by case. `session`: makes a Spark session, if one is needed."""
    print("| what | elapsed | processor | aim |\n|---|---|---|---|")
    found: dict[str, object] = {}
    folder.mkdir(parents=True, exist_ok=True)
    if "range" in only:
        found["range"] = one_commit_of_many(folder, 60 if quick else COMMITS)
    if "changes" in only:
        found["changes"] = change_logging(folder, CHANGED_ROWS // (20 if quick else 1), 2 if quick else CHANGED_REPEATS)
    if "stream" in only:
        spark = session()
        try:
            found["stream"] = stream(spark, folder, 12 if quick else BATCHES)
        finally:
            spark.stop()
    return found
