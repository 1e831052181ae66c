"""`python -m bench.indexed_load_bench`: what a metadata table and a record index cost a bulk insert on Spark.

The same DataFrame (20 columns, 30 partitions) into new tables, in turns: without a metadata table, with `files` and
column statistics, with a record index, too. Wall seconds, and processor seconds of all processes; medians, and the
medians of the ratios to the first within a turn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

import pyhudi
from bench import data
from bench.__main__ import session
from bench.metadata_bench import INDEXED, OFF, STATS
from bench.sql_bench import timed

SETTINGS = {"none": OFF, "files and column statistics": STATS, "a record index, too": INDEXED}
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.indexed_load_bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--type", choices=sorted(TYPES), default="cow")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="3g", help="of the Spark driver")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyhudi-load-", dir=given.work) as name:
        folder = Path(name)
        spark = session(given, folder)
        pyhudi.enable(spark)
        source, times = data.source(spark, folder, given.rows), {name: [] for name in SETTINGS}
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
        for turn in range(given.repeats + 1):  # the first warms
            for name, setting in SETTINGS.items():
                path = folder / "table"
                options = {**data.HUDI, **setting, "hoodie.datasource.write.operation": "bulk_insert"}
                options["hoodie.datasource.write.table.type"] = TYPES[given.type]
                writer = source.write.format("hudi").options(**options).mode("append")
                took = timed(lambda writer=writer, path=path: writer.save(str(path)))
                shutil.rmtree(path)
                if turn:
                    times[name].append(took)
    print("| metadata table | wall s | processor s | wall ratio | processor ratio |\n|---|---|---|---|---|")
    for name, own in times.items():
        medians = [statistics.median(one[column] for one in own) for column in (0, 1)]
        pairs = list(zip(own, times["none"], strict=True))
        ratios = [statistics.median(one[column] / none[column] for one, none in pairs) for column in (0, 1)]
        print(f"| {name} | {medians[0]:.2f} | {medians[1]:.2f} | {ratios[0]:.3f} | {ratios[1]:.3f} |")


if __name__ == "__main__":
    main()
