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
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.spent import Spent, tell, tell_ms
from bench.stream_bench import BATCHES, stream
from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage import open_storage
from pyhudi.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
ALL_ACTIVE = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
NEW_GROUPS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "false",
    "hoodie.pyhudi.storage.sync": "false",
}
COMMITS, RANGE_ROWS, RANGE_REPEATS = 1_000, 20, 15
CHANGED_ROWS, CHANGED_COLUMNS, CHANGED_FILES, CHANGED_REPEATS = 400_000, 16, 4, 9
CASES = ("range", "changes", "stream")


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
