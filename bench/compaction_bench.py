"""`python -m bench.compaction_bench`: compaction of a merge-on-read table against reading and writing its base files.

The table gets five delta commits of 1 % each, spread over all file groups. The floor is pyarrow at its best on the same
base files, on as many threads: strings of few values stay dictionaries, no merging, no bloom filter, no log files.
Both are timed in turns, in wall and CPU seconds (all threads), and so is a compaction of the same table again.
"""

from __future__ import annotations

import argparse
import json
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
from pyhudi.formats.base import open_base_file
from pyhudi.storage.local import LocalStorage

QUIET = {"hoodie.compact.inline": "false"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compaction_bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=pa.cpu_count())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyhudi-compaction-") as name:
        print(json.dumps(measure(given.rows, given.partitions, given.repeats, given.threads, Path(name)), indent=1))


def measure(rows: int, partitions: int, repeats: int, threads: int, folder: Path) -> dict[str, Any]:
    """Medians of compactions and of rewrites, made in `folder`."""
    pa.set_cpu_count(threads)
    table, copy = folder / "table", folder / "copy"
    make(table, rows, partitions)
    before = rows_of(table)
    ours: list[tuple[float, float]] = []
    floor: list[tuple[float, float]] = []
    result: Any = None
    for turn in range(repeats + 1):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table, copy)
        bases = sorted(path for path in copy.rglob("*.parquet"))
        opened = HudiTable.open(str(copy))
        rewritten = timed(lambda bases=bases: rewrite(bases, folder / "rewritten", threads))
        began = time.perf_counter(), time.process_time()
        result = opened.compact()
        compacted = time.perf_counter() - began[0], time.process_time() - began[1]
        if turn:  # the first one warms
            ours.append(compacted)
            floor.append(rewritten)
    assert rows_of(copy) == before
    wall, cpu = ([statistics.median(pair[at] for pair in pairs) for pairs in (ours, floor)] for at in (0, 1))
    ratios = f"{wall[0] / wall[1]:.2f}x wall, {cpu[0] / cpu[1]:.2f}x CPU"
    print(f"compaction {wall[0]:.2f} s, floor {wall[1]:.2f} s: {ratios}", file=sys.stderr)
    return {
        "rows": rows,
        "file_groups": result.runs[0].file_slices,
        "log_files": result.runs[0].log_files,
        "wall_s": {"compaction": wall[0], "floor": wall[1], "ratio": wall[0] / wall[1]},
        "cpu_s": {"compaction": cpu[0], "floor": cpu[1], "ratio": cpu[0] / cpu[1]},
        "phases_s": dict(result.runs[0].seconds),
    }


def make(table: Path, rows: int, partitions: int) -> None:
    data = generate(rows, 1)
    names = pa.array([f"p{n:02d}" for n in range(partitions)])
    random = np.random.default_rng(7)
    data = data.append_column("region", names.take(pa.array(random.integers(0, partitions, rows))))
    kind = {"record_key": "id", "partition_by": "region", "ordering": "ts", "table_type": "MERGE_ON_READ"}
    write_hudi(str(table), data, "bulk_insert", options=QUIET, table_name="bench", **kind)
    for turn in range(5):
        at = pa.array(np.sort(random.choice(rows, rows // 100, replace=False)))
        keys = data.select(["id", "region"]).take(at).combine_chunks()
        change = generate(len(at), 2 + turn, keys.column("id").chunk(0)).append_column("region", keys.column("region"))
        write_hudi(str(table), change, "upsert", options=QUIET)


def rows_of(table: Path) -> tuple[int, int]:
    found = HudiTable.open(str(table)).scan(columns=["ts"]).to_arrow()
    return found.num_rows, sum(found.column("ts").to_pylist())


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    began = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def rewrite(paths: list[Path], folder: Path, threads: int) -> None:
    """Read and write base files as they are, row group by row group."""
    folder.mkdir()

    def one(path: Path) -> None:
        with open_base_file(LocalStorage(str(path.parent)), path.name) as reader:
            few = set(reader.low_cardinality_columns())
        how: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "store_schema": False}
        with (
            pq.ParquetFile(path, read_dictionary=sorted(few)) as file,
            pq.ParquetWriter(folder / path.name, file.schema_arrow, use_dictionary=sorted(few), **how) as writer,
        ):
            for group in range(file.num_row_groups):
                writer.write_table(file.read_row_group(group, use_threads=False))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, paths))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
