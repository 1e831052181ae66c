"""A small table to clean, and what tests of cleaning ask of it."""

from __future__ import annotations

from functools import partial

from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.clean.runs import CleanResult
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.small import TestTable

VERSIONS = ("6", "8", "9")
START = [("a", "x", 1, 0), ("b", "x", 1, 2), ("c", "y", 1, 3)]
RETAINED = "hoodie.clean.commits.retained"
NEVER = {"hoodie.clean.automatic": "false"}


def table_of(version: str = "9", **options: str) -> TestTable:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": version, **options})
    table.bulk_insert(*START)
    return table


def update(table: TestTable, times: int) -> None:
    first = len(table.meta.timeline.commits())
    for i in range(first, first + times):
        table.upsert(("a", "x", i + 1, i))


def call(table: TestTable, dry_run: bool = False, schedule_only: bool = False, **options: str) -> CleanResult:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    run = partial(clean, dry_run=dry_run, schedule_only=schedule_only)
    return serve(table.storage, run, WriteOptions.parse(given), table.engine, dry_run=dry_run)


def commits(table: TestTable) -> list[str]:
    return [instant.requested_time for instant in table.meta.timeline.commits()]


def cleans(table: TestTable) -> list[str]:
    return [i.requested_time for i in table.meta.timeline.completed() if i.action is ActionKind.CLEAN]


def files(table: TestTable, partition: str = "x") -> list[str]:
    return sorted(i.name for i in table.storage.list(partition) if not i.name.startswith(".hoodie"))
