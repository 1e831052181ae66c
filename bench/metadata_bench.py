"""`python -m bench.metadata_bench`: what the metadata table costs writes, and what it saves reads.

    upkeep    the same writes with and without it, in turns, on two tables: bulk insert, commits of 1,000 rows
    lookup    10 keys, and 100,000, in a record index
    listing   a table of many files: the listing, and files skipped by column statistics
    size      bytes per key of a record index

All without Spark. Wall and processor time, median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from pyhudi import HudiTable, write_hudi
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.stored_ranges import stats_rows
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.partitions.base import PartitionUpdate
from pyhudi.metadata.partitions.files import files_of_listing
from pyhudi.metadata.partitions.stats_updates import column_stats_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import next_instant_time
from pyhudi.queries.plan import ReadPlan, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.storage.local import LocalStorage

OPTIONS = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
OFF = {"hoodie.metadata.enable": "false"}
FILES = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
STATS = {"hoodie.metadata.enable": "true"}
INDEXED = {**STATS, "hoodie.metadata.global.record.level.index.enable": "true"}
SETTINGS: Mapping[str, Mapping[str, str]] = {"off": OFF, "files": FILES, "+ stats": STATS, "+ record index": INDEXED}
COMMIT_ROWS = 1_000
FEW, MANY = 10, 100_000
_PARTS, _A_PART, _APART = 1_000, 100, 10**6


def rows(numbers: np.ndarray, seed: int) -> pa.Table:
    values = np.random.default_rng(seed)
    columns = {"key": [f"key-{number:010d}" for number in numbers.tolist()], "ts": np.full(len(numbers), seed)}
    return pa.table({**columns, **{f"c{column}": values.random(len(numbers)) for column in range(8)}})


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


def shown(name: str, times: list[tuple[float, float]]) -> None:
    walls, processors = zip(*times, strict=True)
    print(f"| {name} | {statistics.median(walls):.3f} | {statistics.median(processors):.3f} |", flush=True)


def write(path: Path, batch: pa.Table, operation: str, setting: Mapping[str, str]) -> None:
    options = {**OPTIONS, **setting, "hoodie.datasource.write.operation": operation}
    write_hudi(str(path), batch, options=options, mode="append")


def upkeep(folder: Path, count: int, repeats: int) -> None:
    """Bulk inserts of `count` rows, then upserts of 1,000, with each setting in turns."""
    batch = rows(np.arange(count), 1)
    loads: dict[str, list[tuple[float, float]]] = {name: [] for name in SETTINGS}
    commits: dict[str, list[tuple[float, float]]] = {name: [] for name in SETTINGS}
    for turn in range(repeats):
        for name, setting in SETTINGS.items():
            path = folder / f"{name}-{turn}"
            loads[name].append(timed(lambda p=path, s=setting: write(p, batch, "bulk_insert", s)))
    spread = np.random.default_rng(7)
    for turn in range(repeats * 3):
        some = rows(np.sort(spread.choice(count, COMMIT_ROWS, replace=False)), turn + 2)
        for name, setting in SETTINGS.items():
            path = folder / f"{name}-0"
            commits[name].append(timed(lambda p=path, s=setting, b=some: write(p, b, "upsert", s)))
    for name in SETTINGS:
        shown(f"bulk insert of {count:,}, {name}", loads[name])
    for name in SETTINGS:
        shown(f"upsert of {COMMIT_ROWS:,} of {count:,}, {name}", commits[name])


def lookup(path: Path, count: int, repeats: int) -> None:
    """Keys found by the record index of a table that `upkeep` made; the table is opened anew each time."""
    spread = np.random.default_rng(3)
    for wanted in (FEW, min(MANY, count)):
        keys = [f"key-{number:010d}" for number in spread.choice(count, wanted, replace=False).tolist()]

        def find(keys: list[str] = keys) -> None:
            table = MetadataTable.open(MetaClient.load(LocalStorage(str(path))))
            assert table is not None
            assert table.lookup("record_index", keys).num_rows == len(keys)

        find()
        shown(f"{wanted:,} keys of {count:,} in the record index", [timed(find) for _ in range(repeats)])
    few = ", ".join(f"'key-{number:010d}'" for number in spread.choice(count, FEW, replace=False).tolist())
    unique = {"hoodie.pyhudi.read.unique.keys": "true"}

    def read() -> object:
        return HudiTable.open(str(path)).scan(where=f"key IN ({few})", options=unique).to_arrow()

    shown(f"{FEW} rows of {count:,} by key", [timed(read) for _ in range(repeats)])


def listing(path: Path, repeats: int) -> None:
    """What planning a query costs with the metadata table and without."""
    for name, used in (("by the metadata table", True), ("by folders", False)):
        shown(
            f"planning, {name}",
            [
                timed(lambda u=used: plan_snapshot(MetaClient.load(LocalStorage(str(path))), Query(use_metadata=u)))
                for _ in range(repeats)
            ],
        )


def many_files(folder: Path, repeats: int) -> None:
    """Planning of a table whose metadata table tells 100,000 files in 1,000 partitions; there is no file of them."""
    path = folder / "many"
    first = pa.table({"key": ["a"], "ts": [1], "p": ["p000"], "v": pa.array([-1], pa.int64())})
    partitioned = {**STATS, "hoodie.datasource.write.partitionpath.field": "p"}
    write(path, first, "insert", {**partitioned, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    table = MetadataTable.open(MetaClient.load(LocalStorage(str(path))))
    assert table is not None
    made = table.data.timeline.completed().instants[-1].requested_time
    names = {
        f"p{part:03d}": [
            f"{part:04d}{number:04d}-0000-0000-0000-000000000000-0_0-0-0_{made}.parquet" for number in range(_A_PART)
        ]
        for part in range(_PARTS)
    }
    listed = files_of_listing(((part, dict.fromkeys(own, 1_000)) for part, own in names.items()), 9)
    # Each partition has the same ranges, but for one file.
    one = [stats_rows(9, "", [ColumnRange("v", pa.int64(), number, number, 9, 0)]) for number in range(_A_PART)]
    apart = stats_rows(9, names["p007"][0], [ColumnRange("v", pa.int64(), _APART, _APART, 9, 0)])
    same = pa.concat_tables(one).combine_chunks()
    at = same.schema.get_field_index("fileName")
    stats = {part: [same.set_column(at, same.schema.field(at), pa.array(own))] for part, own in names.items()}
    stats["p007"] = [apart, stats["p007"][0].slice(1)]
    nothing = pa.array([], pa.string())
    updates = {"files": PartitionUpdate(listed, nothing), "column_stats": column_stats_update(9, stats)}
    write_delta_commit(table, next_instant_time(made), updates)

    def plan(where: str | None = None) -> ReadPlan:
        return plan_snapshot(MetaClient.load(LocalStorage(str(path))), Query(where=where))

    files = len(plan().slices)
    wanted = f"v = {_APART}"
    assert len(plan(wanted).slices) == 1
    shown(f"listing of {files:,} files in {_PARTS:,} partitions", [timed(plan) for _ in range(repeats)])
    shown("the same, all but one skipped by column statistics", [timed(lambda: plan(wanted)) for _ in range(repeats)])


def bytes_per_key(path: Path, count: int) -> float:
    folder = path / ".hoodie/metadata/record_index"
    return sum(file.stat().st_size for file in folder.iterdir()) / count


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rows", type=int, default=1_000_000)
    given.add_argument("--repeats", type=int, default=5)
    parsed = given.parse_args()
    print("| what | wall s | processor s |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="pyhudi-metadata-") as name:
        folder = Path(name)
        upkeep(folder, parsed.rows, parsed.repeats)
        indexed = folder / "+ record index-0"
        lookup(indexed, parsed.rows, parsed.repeats)
        listing(indexed, parsed.repeats)
        many_files(folder, parsed.repeats)
        print(f"record index: {bytes_per_key(indexed, parsed.rows):.1f} bytes per key")


if __name__ == "__main__":
    main()
