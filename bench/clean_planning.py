"""`python -m bench.clean_planning`: what cleaning costs to plan for a table of very many files.

The table is a timeline of twelve commits and a listing that is made up: nothing but names, so that the figures are the
planner's, not a disk's. Groups are of one version (most), of several, and, for merge-on-read, with log files.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import table_lock
from pyhudi.engine.local import LocalEngine
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.planner import PlannedClean, plan_clean
from pyhudi.storage.base import FileInfo
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.write import write_table

OPTIONS = {
    "hoodie.table.name": "many",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
COMMITS = 12
RETAINED = 4


class ListedStorage(MemoryStorage):
    """A table in memory whose partitions hold files that are not there."""

    folders: dict[str, int]
    instants: list[str]
    logs: bool

    def list(self, path: str) -> tuple[FileInfo, ...]:
        if path == "":
            return (*super().list(path), *(FileInfo(name, 0, 0, is_dir=True) for name in self.folders))
        if path not in self.folders:
            return super().list(path)
        return (FileInfo(f"{path}/.hoodie_partition_metadata", 96, 0), *self._files(path))

    def _files(self, path: str) -> Iterator[FileInfo]:
        left, group = self.folders[path], int(path[1:]) << 40
        while left > 0:
            file_id = f"{UUID(int=group)}-0"
            versions = self.instants[:1] if group % 10 < 7 else self.instants[: min(5, left)]
            for n, instant in enumerate(versions):
                yield FileInfo(f"{path}/{file_id}_{n}-{group % 97}-{n}_{instant}.parquet", 120_000_000, 0)
            left -= len(versions)
            if self.logs and left > 0 and group % 10 < 4:
                yield FileInfo(f"{path}/.{file_id}_{self.instants[6]}.log.1_0-1-0", 1_000_000, 0)
                left -= 1
            group += 1


def table_of(files: int, partitions: int, merge_on_read: bool) -> ActionContext:
    storage = ListedStorage()
    storage.folders = {}
    kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
    options = WriteOptions.parse(
        {**OPTIONS, "hoodie.datasource.write.table.type": kind, "hoodie.clean.commits.retained": str(RETAINED)}
    )
    rows = pa.table({"id": ["a"], "p": ["first"], "v": [1]})
    for _ in range(COMMITS):
        write_table(storage, rows, LocalEngine(1), options)
    meta = MetaClient.load(storage)
    storage.instants = [instant.requested_time for instant in meta.timeline.commits()]
    storage.folders = {f"p{n:05d}": files // partitions for n in range(partitions)}
    storage.logs = merge_on_read
    clock = SystemClock()
    return ActionContext(meta, options, table_lock(options, storage, clock), clock, LocalEngine(1))


def measure(files: int, partitions: int, merge_on_read: bool) -> dict[str, Any]:
    """Seconds and memory of one plan."""
    context = table_of(files, partitions, merge_on_read)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    listed = sum(len(context.meta.storage.list(path)) for path in context.meta.storage.folders)  # type: ignore[attr-defined]
    listing_s = time.process_time() - began_cpu_s
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    planned: PlannedClean = plan_clean(context)
    planned_s, planned_cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    body = encode_clean_plan(planned.plan(), lambda path: f"/data/many/{path}")
    return {
        "kind": "merge on read" if merge_on_read else "copy on write",
        "files": listed,
        "partitions": partitions,
        "slices planned": len(planned.to_delete),
        "plan, s": round(planned_s, 2),
        "plan, CPU s": round(planned_cpu_s, 2),
        "of it making up the listing, CPU s": round(listing_s, 2),
        "plan and body, s": round(time.perf_counter() - began_s, 2),
        "body, MB": round(len(body) / 1e6, 1),
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.clean_planning", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--merge-on-read", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.files, arguments.partitions, arguments.merge_on_read), indent=1))


if __name__ == "__main__":
    main()
