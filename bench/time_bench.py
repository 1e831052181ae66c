"""`python -m bench --only h`: incremental reads, change logs and streams.

    range     the rows of one commit of 1,000: what is opened, and how long planning takes
    changes   an upsert of 10 % with change logs and without, in turns
    stream    batches of 1,000 rows into a merge-on-read table with services next to it, and reads of what they leave
    read      changes of the last commit, by the benchmark of the peers

Processor time is that of this process and, of the stream, of the JVM and its workers. Medians count; on a machine with
other work the processor's time says more than the elapsed one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.spent import Spent, tell, tell_ms
from bench.stream_bench import stream
from bench.timeline_bench import make_history, time_of
from pyhudi import HudiTable, write_hudi
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, format_instant_time, parse_instant_time
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage import open_storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.archived_timeline import lsm_history
from pyhudi.transaction.instants import TimelineWriter

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
COMMITS, ACTIVE, RANGE_ROWS, RANGE_REPEATS = 1_000, 20, 20, 15  # archiving keeps some 20 active
CHANGED_ROWS, CHANGED_COLUMNS, CHANGED_FILES, CHANGED_REPEATS = 200_000, 16, 4, 7
CASES = ("range", "changes", "stream", "read")


# ---- one commit of many ----------------------------------------------------------------------------------------------


def one_commit_of_many(folder: Path, commits: int) -> dict[str, object]:
    """A range of one commit in the middle of a long timeline; once of active commits only, once with archived ones."""
    found: dict[str, object] = {}
    for name, active in (("active", commits), ("archived", ACTIVE)):
        path = str(folder / name)
        end = long_timeline(path, commits, active)
        opened, planned, read = range_spent(path, end)
        tell_ms(f"{commits:,} commits, {active:,} of them active: range of one planned", planned, "< 50 ms")
        tell_ms("  with opening the table", opened)
        tell_ms("  its rows read", read)
        found[name] = {"planned": planned, "opened": opened, "read": read}
    calls = calls_of_one_range(commits)
    print(f"| files of the table that were opened: 1; calls on it: {dict(calls)} | - | - | 1 |")
    return {**found, "calls": dict(calls)}


def long_timeline(path: str, commits: int, active: int) -> str:
    """A table of so many commits, one of which has written its file; when that one completed.

    Half of the active ones are newer than that. What the others wrote is named in their bodies, and never looked for.
    """
    table = HudiTable.create(path, SCHEMA, record_key="id", partition_by="p", ordering="ts")
    table.insert([{"id": f"k{n}", "p": "0", "ts": 1, "v": n / 2} for n in range(RANGE_ROWS)])
    storage = open_storage(path)
    meta = MetaClient.load(storage)
    real = meta.timeline.commits().instants[0]
    data = body_like(meta, meta.commits.metadata(real))
    if commits > active:
        make_history(storage, lsm_history(storage, meta.config).folder, commits)
    writer, now = TimelineWriter(storage, meta.config), datetime.now(timezone.utc)
    begin = parse_instant_time(time_of(commits), timezone.utc)
    for number in range(active - 1):
        later = number >= active // 2
        drawn = (now if later else begin) + timedelta(minutes=number)
        times = [format_instant_time(drawn + timedelta(milliseconds=ms), timezone.utc) for ms in (0, 900)]
        instant = writer.start(writer.request(times[0], ActionKind.COMMIT), data)
        writer.complete(instant, times[1], data)
    return real.completion_time or real.requested_time


def body_like(meta: MetaClient, real: CommitMetadata) -> bytes:
    """The body of a commit that updated ten files."""
    stats = tuple(
        replace(real.stats()[0], file_id=name, path=f"0/{name}_0-1-2_20240101000000000.parquet")
        for name in (f"{number:08d}-0000-0000-0000-000000000000-0" for number in range(10))
    )
    return encode_commit(
        replace(real, partition_to_write_stats={"0": stats}), ActionKind.COMMIT, meta.config.table_version
    )


def range_spent(path: str, end: str) -> tuple[Spent, Spent, Spent]:
    """Of a range: opening the table and planning, planning by itself, reading the rows."""
    opened, planned, read = Spent(), Spent(), Spent()
    storage = open_storage(path)
    for _ in range(RANGE_REPEATS):
        opened.run(lambda: planned_range(MetaClient.load(storage), end))
        meta = MetaClient.load(storage)
        planned.run(partial(planned_range, meta, end))
        plan = planned_range(meta, end)
        read.run(lambda plan=plan: list(read_batches(plan, storage)))
    return opened, planned, read


def planned_range(meta: MetaClient, end: str) -> ReadPlan:
    """The plan of a query for the rows of the commit that completed then."""
    wanted = incremental_range(meta, "incremental", str(int(end) - 1), end)
    assert wanted is not None
    return plan_incremental(meta, wanted)


def calls_of_one_range(commits: int) -> Counter[str]:
    """Calls that a range of one commit makes outside `.hoodie`, by verb; more than one file is an error."""
    path = "memory://time-bench"
    end = long_timeline(path, commits, commits)
    storage = open_storage(path)
    assert isinstance(storage, MemoryStorage)
    meta = MetaClient.load(storage)
    storage.reset_faults()
    plan = planned_range(meta, end)
    assert sum(batch.num_rows for batch in read_batches(plan, storage)) == RANGE_ROWS
    data = [(verb, path) for verb, path in storage.log if not path.startswith(".hoodie")]
    assert len({path for _, path in data}) == 1, data
    bodies = [path for verb, path in storage.log if verb == "read" and path.endswith("commit")]
    # The range's, and the newest, which has the schema.
    assert len(set(bodies)) <= 2, f"bodies of {len(bodies)} commits were read"
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


def run(
    folder: Path, session: Callable[[], SparkSession], cases: Sequence[str], *, quick: bool, batches: int
) -> dict[str, object]:
    """The cases, printed as rows of a table. Seconds by case. `session`: makes a Spark session, if one is needed."""
    print("| what | elapsed | processor | aim |\n|---|---|---|---|")
    found: dict[str, object] = {}
    folder.mkdir(parents=True, exist_ok=True)
    if "range" in cases:
        found["range"] = one_commit_of_many(folder, 100 if quick else COMMITS)
    if "changes" in cases:
        found["changes"] = change_logging(folder, CHANGED_ROWS // (20 if quick else 1), 2 if quick else CHANGED_REPEATS)
    if "stream" in cases:
        spark = session()
        try:
            found["stream"] = stream(spark, folder, batches)
        finally:
            spark.stop()
    return found
