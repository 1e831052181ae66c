"""`python -m bench.driver_bench --rows 50000000`: memory of a Spark driver in one commit of many keys.

A bulk insert of three columns with a record index into a new table, then an upsert of 1,000 of its rows. The keys are
in order, so the index is as small as it gets. Wall seconds, and the most memory of the driver's Python, of its JVM and
of a Python worker, from Linux's /proc. At the end the table must have all its rows, and one of its keys be found.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.__main__ import session
from bench.memory import WorkerMemory, peak_bytes
from bench.metadata_bench import INDEXED
from pyhudi import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = {
    "hoodie.table.name": "keys",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "v",
    **INDEXED,
}
UPDATED = 1000


def write(rows: DataFrame, path: Path, operation: str) -> None:
    """Writes the rows, and prints a line of the table."""
    writer = rows.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.operation", operation)
    began = time.perf_counter()
    with WorkerMemory() as workers:
        writer.mode("append").save(str(path))
    sizes = (peak_bytes(), peak_bytes(java_pid()), workers.peak_bytes)
    print(f"| {operation} | {time.perf_counter() - began:.1f} | {' | '.join(f'{size >> 20}' for size in sizes)} |")


def java_pid() -> int:
    """The JVM that this process started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        name, _, fields = stat.read_text().partition(" (")[2].rpartition(")")
        if name == "java" and int(fields.split()[1]) == os.getpid():
            return int(stat.parent.name)
    raise SystemExit("bench.driver_bench needs a JVM below this process, and Linux's /proc")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.driver_bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="2g", help="of the Spark driver")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyhudi-driver-", dir=given.work) as name:
        path, spark = Path(name) / "table", session(given, Path(name))
        rows = spark.range(0, given.rows, 1, 4 * given.cores).selectExpr(
            "concat('key-', lpad(id, 9, '0')) AS id", "id AS v", "id % 7 AS w"
        )
        print("| write | wall s | driver, MiB | JVM, MiB | worker, MiB |\n|---|---|---|---|---|")
        write(rows, path, "bulk_insert")
        write(rows.limit(UPDATED), path, "upsert")
        table = HudiTable.open(path)
        assert table.count() == given.rows
        assert table.scan(where="id = 'key-000000077'").to_arrow().num_rows == 1


if __name__ == "__main__":
    main()
