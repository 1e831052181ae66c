"""A process dies at any storage call, of whatever action, on a table with a metadata table: readers see before or
after, by the metadata table or without it, and the next write leaves a metadata table that is right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from pyhudi.errors import TableNotFound
from pyhudi.model.instant import ActionKind
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.services.clean.cleaning import clean
from tests.support.tables.small import SCHEMA, TestTable
from tests.support.tables.small import rows_of as arrow_rows
from tests.support.tables.undone import clustering, compact, restored, rolled_back, saved, served
from tests.support.tables.with_metadata import check, table_of
from tests.support.writers.dying import deaths, on_clone
from tests.support.writers.every_fault import NEXT, START, Rows, in_order

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
BY_HAND = {"compact_inline": "false", "clean_automatic": "false", "archive_automatic": "false"}


def new(version: str, kind: str) -> TestTable:
    """Its metadata table is compacted at each write: all that it does is in each of them."""
    return table_of(version, kind, metadata_compact_max_delta_commits="1", **BY_HAND)


def by_default(version: str, kind: str) -> TestTable:
    """Nobody says that it shall have one."""
    table = new(version, kind)
    table.options = {key: text for key, text in table.options.items() if key != "hoodie.metadata.enable"}
    table.metadata_by_default = True
    return table


def loaded(version: str, kind: str) -> TestTable:
    table = new(version, kind)
    table.bulk_insert(*START)
    return table


def written(version: str, kind: str) -> TestTable:
    table = loaded(version, kind)
    table.upsert(("a", "x", 2, 11))
    return table


def with_old_files(version: str, kind: str) -> TestTable:
    table = written(version, kind)
    table.upsert(("a", "x", 3, 12), ("c", "y", 2, 31))
    table.upsert(("a", "x", 4, 13))
    return table


def with_savepoint(version: str, kind: str) -> TestTable:
    table = loaded(version, kind)
    saved(table)
    table.upsert(("a", "x", 2, 11))
    return table


def without_metadata_table(version: str, kind: str) -> TestTable:
    table = new(version, kind)
    options, table.options = table.options, {**table.options, "hoodie.metadata.enable": "false"}
    table.bulk_insert(*START)
    table.options = options
    return table


def restore_to_savepoint(table: TestTable) -> None:
    (save,) = table.meta.timeline.of([ActionKind.SAVEPOINT]).instants
    restored(table, save.requested_time)


def upsert(table: TestTable) -> None:
    table.upsert(("b", "x", 2, 22), ("d", "z", 1, 40))


def clean_now(table: TestTable) -> None:
    served(table, clean, clean_commits_retained="1", metadata_compact_max_delta_commits="1")


Make = Callable[[str, str], TestTable]
ACTIONS: dict[str, tuple[Make, str, Callable[[TestTable], object]]] = {
    "create": (new, COPY_ON_WRITE, lambda t: t.bulk_insert(*START)),
    "made by an upsert": (without_metadata_table, COPY_ON_WRITE, upsert),
    "upsert": (written, COPY_ON_WRITE, upsert),
    "upsert of log files": (written, MERGE_ON_READ, upsert),
    "delete": (written, COPY_ON_WRITE, lambda t: t.delete(("b", "x"))),
    "insert_overwrite": (written, COPY_ON_WRITE, lambda t: t.write("insert_overwrite", arrow_rows(("n", "x", 1, 5)))),
    "made by default": (by_default, MERGE_ON_READ, lambda t: t.bulk_insert(*START)),
    "clean": (with_old_files, COPY_ON_WRITE, clean_now),
    "compaction": (written, MERGE_ON_READ, compact),
    "clustering": (loaded, COPY_ON_WRITE, clustering),
    "rollback": (written, COPY_ON_WRITE, rolled_back),
    "rollback of log files": (written, MERGE_ON_READ, rolled_back),
    "restore": (with_savepoint, COPY_ON_WRITE, restore_to_savepoint),
}


QUICK = [
    ("made by default", "9"),
    ("upsert", "9"),
    ("rollback", "6"),
    ("rollback of log files", "9"),
    ("restore", "9"),
    ("clustering", "6"),
]
CASES = [
    pytest.param(name, version, marks=() if (name, version) in QUICK else pytest.mark.slow)
    for name in ACTIONS
    for version in ("6", "8", "9")
]


def rows_of(table: TestTable, *, use_metadata: bool) -> Rows:
    try:
        plan = plan_snapshot(table.meta, Query(use_metadata=use_metadata))
    except TableNotFound:
        return []
    rows = pa.Table.from_batches(list(read_batches(plan, table.storage)), plan.schema)
    if not rows.num_rows:
        return []
    return in_order(list(zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True)))


def shown(table: TestTable, where: str) -> Rows:
    """What readers see, by the metadata table and without it."""
    rows = rows_of(table, use_metadata=False)
    assert rows_of(table, use_metadata=True) == rows, where
    return rows


@pytest.mark.filterwarnings("ignore:.*metadata table.*", "ignore:.*after it failed.*")
@pytest.mark.parametrize(("name", "version"), CASES)
def test_a_death_anywhere_leaves_rows_and_metadata_table_right(name: str, version: str) -> None:
    make, kind, act = ACTIONS[name]
    table = make(version, kind)
    before = shown(table, "before")
    done = on_clone(table)
    act(done)
    check(done, "after")
    after = shown(done, "after")
    for attempt, where in deaths(table, partial(act)):
        found = shown(attempt, where)
        assert found in (before, after), where
        attempt.upsert(NEXT)
        if name == "clean":
            act(attempt)  # a clean that died is finished by the next clean; until then the listing names what went
        check(attempt, where)
        assert shown(attempt, where) in [in_order([*rows, NEXT]) for rows in (found, after)], where
