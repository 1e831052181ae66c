"""`python -m bench.engines_bench`: what it costs to show other engines a commit.

Exports: a commit that changed one file, into the Delta log and into Iceberg metadata (SQLite catalog) of tables with
many files. Sync: a Hive metastore of its own (`make servers`), as a first sync, with nothing new, with 10 changed
partitions, and with all partitions compared; the floor is the time in the metastore's own calls.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable, write_hudi
from pyhudi.sync.hive import HiveCatalog
from tests.support.servers.metastore import hive_metastore

SYNC = "hoodie.datasource.hive_sync."


def table_of(path: Path, files: int) -> HudiTable:
    """A table with a file in each partition."""
    rows = pa.table({"id": range(files), "part": [f"p{number:06}" for number in range(files)], "v": [0] * files})
    write_hudi(
        str(path), rows, operation="bulk_insert", record_key="id", partition_by="part",
        options={"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"},
    )  # fmt: skip
    return HudiTable.open(str(path))


def spent(run: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds, and seconds of the processor."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began_s, time.process_time() - began_cpu_s


def middle(times: Sequence[tuple[float, float]]) -> str:
    """Medians of both."""
    wall_s, cpu_s = (statistics.median(one) for one in zip(*times, strict=True))
    return f"{wall_s:.3f} s, processor {cpu_s:.3f} s"


def iceberg_options(folder: Path, files: int) -> dict[str, str]:
    """Options of an export into a SQLite catalog."""
    prefix = "hoodie.pyhudi.export.iceberg"
    return {
        f"{prefix}.table": f"bench.t{files}",
        f"{prefix}.catalog.type": "sql",
        f"{prefix}.catalog.uri": f"sqlite:///{folder}/{files}.db",
        f"{prefix}.catalog.warehouse": f"file://{folder}/warehouse-{files}",
    }


def export(folder: Path, files: int, repeats: int) -> None:
    """Exports of commits that change one file."""
    for format_name in ("delta", "iceberg"):
        table = table_of(folder / f"{format_name}-{files}", files)
        options = {} if format_name == "delta" else iceberg_options(folder, files)
        run = partial(table.export_metadata, format_name, options=options)

        print(f"{format_name}, {files:,} files: first {middle([spent(run)])}", flush=True)
        times = []
        for number in range(repeats):
            table.upsert([{"id": number, "part": f"p{number:06}", "v": 1}])
            times.append(spent(run))
        print(f"{format_name}, {files:,} files: later {middle(times)}", flush=True)


class MetastoreCalls:
    """Counts the calls to the metastore, and the seconds in them."""

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0
        call = HiveCatalog._call

        def counted(catalog: HiveCatalog, *given: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return call(catalog, *given)
            finally:
                self.count, self.seconds = self.count + 1, self.seconds + time.perf_counter() - began_s

        setattr(HiveCatalog, "_call", counted)  # noqa: B010

    def reset(self) -> None:
        """Begin to count."""
        self.count, self.seconds = 0, 0.0


def sync(folder: Path, partitions: int) -> None:
    """Syncs with a metastore."""
    with hive_metastore(folder, 300) as uri:
        table = table_of(folder / "synced", partitions)
        options = {f"{SYNC}database": "bench", f"{SYNC}metastore.uris": uri}
        changed = [{"id": n, "part": f"p{n:06}", "v": 1} for n in range(8)]
        new = [{"id": partitions + n, "part": f"q{n}", "v": 1} for n in range(2)]
        cases: list[tuple[str, list[dict[str, Any]], dict[str, str]]] = [
            ("first", [], {}),
            ("nothing new", [], {}),
            ("10 partitions changed, 2 of them new", [*changed, *new], {}),
            ("all compared", [], {"hoodie.meta.sync.incremental": "false"}),
        ]
        calls = MetastoreCalls()
        for name, rows, more in cases:
            if rows:
                table.upsert(rows)
            calls.reset()
            seconds, _ = spent(partial(table.sync, "hive", options={**options, **more}))
            ratio = f", {seconds / calls.seconds:.2f} x their time" if calls.seconds else ""
            print(f"sync, {partitions:,} partitions, {name}: {seconds:.2f} s, {calls.count} calls{ratio}", flush=True)


def main() -> None:
    """Both, in one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", default="1000,10000")
    parser.add_argument("--partitions", type=int, default=35_000, help="0: no sync")
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyhudi-engines-bench-") as folder:
        for files in given.files.split(",") if given.files else ():
            export(Path(folder), int(files), given.repeats)
        if given.partitions:
            sync(Path(folder), given.partitions)


if __name__ == "__main__":
    main()
