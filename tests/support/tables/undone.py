"""Tables for tests of savepoints, rollbacks and restores, and what happens to them in one word."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
from pyhudi.model.options import WriteOptions
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import call
from pyhudi.services.savepoint import Savepoint, savepoint
from pyhudi.table.calls import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.support.tables.archived import rows_of_one
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import TestTable

BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}


def copy_on_write(version: str) -> TestTable:
    return TestTable(options={"hoodie.write.table.version": version, **BY_HAND})


def merge_on_read(version: str) -> TestTable:
    return MergeOnRead(version, archive_automatic="false", clean_automatic="false")


TABLES: dict[str, Callable[[str], TestTable]] = {"copy on write": copy_on_write, "merge on read": merge_on_read}


def served(table: TestTable, service: Any, **options: str) -> Any:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    parsed = WriteOptions.parse(given, table=load_table_config(table.storage))
    return serve(table.storage, service, parsed, table.engine)


def saved(table: TestTable, time: str | None = None, **words: str) -> Savepoint:
    found = served(table, partial(savepoint, instant_time=time, **words))
    assert isinstance(found, Savepoint)
    return found


def restored(table: TestTable, to: str) -> RestoreResult:
    found = served(table, partial(restore, to=to))
    assert isinstance(found, RestoreResult)
    return found


def rolled_back(table: TestTable, **to: str) -> RollbackResult:
    found = served(table, partial(roll_back, **to))
    assert isinstance(found, RollbackResult)
    return found


def data_files(table: TestTable) -> list[str]:
    return sorted(
        info.path
        for info in table.storage.walk("")
        if not info.path.startswith(".hoodie/") and not info.name.startswith(".hoodie_")
    )


def compact(table: TestTable, *, schedule_only: bool = False) -> None:
    served(table, partial(call, COMPACTION, schedule_only=schedule_only), compact_inline_max_delta_commits="1")


def log_compact(table: TestTable) -> None:
    served(table, partial(call, LOG_COMPACTION), log_compaction_blocks_threshold="1")


def overwrite(table: TestTable) -> None:
    table.write("insert_overwrite", rows_of_one("over"))


def clustering(table: TestTable) -> None:
    served(table, partial(cluster), clustering_plan_strategy_sort_columns="ts")


def upsert(table: TestTable) -> None:
    table.upsert(("a", "x", 20, 20), ("new", "z", 1, 1))


def delete(table: TestTable) -> None:
    table.delete(("b", "x"))
