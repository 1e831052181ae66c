"""`python -m bench.sync_bench`: what it costs a commit to wait for the disk (hoodie.pyhudi.storage.sync).

The same commits with and without, in turns, on one table; between two of them everything is synced, so that none pays
for what the one before has left. The floor of a small commit is the same syncs by themselves: as many, of files as
large, in the same order, by nothing but `os`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from pyhudi import write_hudi

OPTIONS = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "false",  # which has files of its own to wait for
}
PARTITIONS = 4
COLUMNS = 12  # of random numbers, which no codec makes smaller
INSTANT_BYTES = 2_000  # about what an instant file holds
LARGE_ROWS, SMALL_ROWS = 1_000_000, 100


def rows(count: int, seed: int) -> pa.Table:
    values = np.random.default_rng(seed)
    keys = pa.array([f"{seed}-{number}" for number in range(count)])
    table = pa.table({"key": keys, "part": pa.array(np.arange(count) % PARTITIONS).cast(pa.string())})
    table = table.append_column("ts", pa.array(np.full(count, seed, np.int64)))
    for number in range(COLUMNS):
        table = table.append_column(f"c{number}", pa.array(values.random(count)))
    return table


def commit_s(path: Path, batch: pa.Table, operation: str, *, sync: bool) -> float:
    os.sync()
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, "hoodie.pyhudi.storage.sync": str(sync)}
    began = time.perf_counter()
    write_hudi(str(path), batch, options=options, mode="append")
    return time.perf_counter() - began


def bare_syncs_s(folder: Path, files: int, file_bytes: int) -> float:
    """The syncs of a commit: the pending instant, its files with three folders, what it says, and its name."""
    os.sync()
    paths = [folder / f"bare-{random.random()}" for _ in range(files + 2)]
    for number, path in enumerate(paths):
        path.write_bytes(os.urandom(file_bytes if 0 < number <= files else INSTANT_BYTES))
    began = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        for together in ([paths[0], folder], [*paths[1:-1], folder, folder.parent], [paths[-1]], [folder]):
            list(pool.map(sync, together))
    return time.perf_counter() - began


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def stored_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*.parquet"))


def in_turns(repeats: int, *runs: Callable[[int], float]) -> list[list[float]]:
    """Seconds of each run by repeat; who begins changes."""
    found: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats):
        for place in range(len(runs)):
            number = (place + repeat) % len(runs)
            found[number].append(runs[number](repeat))
    return found


def run(folder: Path, repeats: int, small_repeats: int) -> dict[str, list[list[float]]]:
    """Both cases, printed. Seconds by repeat: with, without, the syncs by themselves."""
    print("| commit | with, ms | without, ms | difference, ms | ratio | the syncs by themselves, ms |")
    print("|---|---|---|---|---|---|")
    return {"large": large(folder / "large", repeats), "small": small(folder / "small", small_repeats)}


def large(table: Path, repeats: int) -> list[list[float]]:
    batch = rows(LARGE_ROWS, 0)
    commit_s(table, batch, "bulk_insert", sync=True)
    commit_bytes = stored_bytes(table)
    times = in_turns(
        repeats,
        lambda repeat: commit_s(table, batch, "bulk_insert", sync=True),
        lambda repeat: commit_s(table, batch, "bulk_insert", sync=False),
        lambda repeat: bare_syncs_s(table / "0", PARTITIONS, commit_bytes // PARTITIONS),
    )
    print(line(f"bulk_insert, {commit_bytes / 1e6:.0f} MB in {PARTITIONS} files", *times))
    return times


def small(table: Path, repeats: int) -> list[list[float]]:
    batch = rows(SMALL_ROWS, 0).filter(pa.array(np.arange(SMALL_ROWS) % PARTITIONS == 0))
    commit_s(table, batch, "bulk_insert", sync=True)
    file_bytes = stored_bytes(table)
    times = in_turns(
        repeats,
        lambda repeat: commit_s(table, batch, "upsert", sync=True),
        lambda repeat: commit_s(table, batch, "upsert", sync=False),
        lambda repeat: bare_syncs_s(table / "0", 1, file_bytes),
    )
    print(line(f"upsert, {len(batch)} rows in one file", *times))
    return times


def line(what: str, on: list[float], off: list[float], bare: list[float]) -> str:
    with_ms, without_ms, bare_ms = (statistics.median(times) * 1000 for times in (on, off, bare))
    ratio = statistics.median(a / b for a, b in zip(on, off, strict=True))
    more = f"{with_ms:.1f} | {without_ms:.1f} | {with_ms - without_ms:+.1f} | **{ratio:.3f}** | {bare_ms:.1f}"
    return f"| {what} | {more} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--small-repeats", type=int, default=40)
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyhudi-bench-", dir=given.work) as name:
        run(Path(name), given.repeats, given.small_repeats)


if __name__ == "__main__":
    main()
