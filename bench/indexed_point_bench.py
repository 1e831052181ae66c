"""`python -m bench.indexed_point_bench`: small work on a merge-on-read table of a million rows with a record index.

    ten keys    by `scan` with a filter, unique keys, after the load, and again after the upserts
    upserts     of 1,000 rows each, spread over all partitions, a tenth of them new; keys found by the record index

Data of the benchmark in the shared folder next to the project, whose contestants have no record index. No Spark, one
process that has done the same before. Seconds: the least, and the median.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.peers import PEERS
from pyhudi import HudiTable, write_hudi

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}
UNIQUE = {"hoodie.pyhudi.read.unique.keys": "true"}
COLUMNS = ["id", "ts", "amount", "comment"]
KEYS, WARM = 10, 4


def shown(name: str, runs: list[float]) -> None:
    print(f"| {name} | {min(runs):.3f} | {statistics.median(runs):.3f} |", flush=True)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--upserts", type=int, default=12)
    parser.add_argument("--lookups", type=int, default=30)
    given = parser.parse_args()
    sys.path.insert(0, str(PEERS.parent))
    data: Any = importlib.import_module("data")
    with tempfile.TemporaryDirectory(prefix="pyhudi-points-") as name:
        made, path = data.Data(f"{name}/data", given.rows), f"{name}/table"
        loaded = ds.dataset(made.files("load"))
        batches = pa.RecordBatchReader.from_batches(loaded.schema, loaded.to_batches(batch_size=131_072))
        write_hudi(path, batches, operation="bulk_insert", options=OPTIONS)

        def ten() -> None:
            rows = data.Rows(made.spec, made.pick(5, KEYS, given.rows), np.zeros(KEYS)).table(("id",))
            keys = ", ".join(f"'{key}'" for key in rows["id"].to_pylist())
            scan = HudiTable.open(path).scan(columns=COLUMNS, where=f"id in ({keys})", options=UNIQUE)
            assert scan.to_arrow().num_rows == KEYS

        def upsert(number: int) -> float:
            batch = pa.concat_tables([pq.read_table(file) for file in made.files(f"tiny:{number}:1000")])
            return seconds(lambda: HudiTable.open(path).upsert(batch, options=OPTIONS))

        print("| what | least, s | median, s |\n|---|---|---|")
        shown("ten keys after the load", [seconds(ten) for _ in range(WARM + given.lookups)][WARM:])
        shown("upsert of 1,000 rows", [upsert(20 + number) for number in range(1 + given.upserts)][1:])
        shown("ten keys after the upserts", [seconds(ten) for _ in range(WARM + given.lookups)][WARM:])


if __name__ == "__main__":
    sys.exit(0 if Path(PEERS).exists() and main() is None else f"{PEERS} is absent")
