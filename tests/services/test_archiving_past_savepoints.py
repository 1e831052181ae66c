"""Archiving goes on past savepointed commits: reads as of what lies between are told from reads of the savepoint, and
what replaced files that a savepoint keeps stays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyhudi.errors import TableError
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.queries.history import load_table_history
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.plan_files import plan_schema
from pyhudi.services.planned import call
from pyhudi.services.savepoint import delete_savepoint, savepoint
from pyhudi.table.calls import serve
from tests.support.tables.altered import LAST, RENAMED, Altered, first_rows
from tests.support.tables.archived import BY_HAND, active, archived, history, rows_of_one, table_of
from tests.support.tables.small import TestTable
from tests.support.writers.interrupted import InterruptedEngine

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")
VERSIONS = ("6", "8", "9")
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
PAST_SAVEPOINTS = {"archive_beyond_savepoint": "true"}
ONE_COMMIT = {"hoodie.clean.commits.retained": "1"}
ONE_VERSION = {"hoodie.clean.fileversions.retained": "1"}
EACH_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}


def new_table(version: str, table_type: str = "COPY_ON_WRITE") -> TestTable:
    table = table_of(version, datasource_write_table_type=table_type, compact_inline="false")
    table.bulk_insert(("a", "x", 0, 0), ("b", "y", 0, 0))
    return table


def run(table: TestTable, service: Any, **options: str) -> Any:
    return serve(table.storage, service, WriteOptions.parse(options), table.engine)


def updates(table: TestTable, count: int) -> list[str]:
    """Times of upserts of one row; on merge-on-read tables each is compacted, so that there are versions to clean."""
    times = []
    for n in range(1, count + 1):
        times.append(table.upsert(("a", "x", n, n)).instant_time)
        if table.meta.config.is_merge_on_read:
            run(table, partial(call, COMPACTION), **EACH_COMMIT)
    return times


@pytest.mark.parametrize("policy", [ONE_COMMIT, ONE_VERSION], ids=["by commits", "by versions"])
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_cleaned_instant_archived_past_a_savepoint_is_refused(
    version: str, table_type: str, policy: dict[str, str]
) -> None:
    table = new_table(version, table_type)
    saved = run(table, savepoint).instant_time
    then = table.rows()
    times = updates(table, 5)
    run(table, clean, **policy)
    archived(table, **PAST_SAVEPOINTS)
    assert active(table)[0] == saved
    assert times[0] in history(table)

    with pytest.raises(TableError, match=rf"as_of={times[0]} can't be read any more: cleaning has removed"):
        table.rows(as_of=times[0])
    assert table.rows(as_of=saved) == then
    assert table.rows(as_of=str(int(times[0]) - 1)) == then, "nothing was committed in between"
    readable = {entry.instant_time: entry.readable for entry in load_table_history(table.meta)}
    assert (readable[saved], readable[times[0]], readable[active(table)[-1]]) == (True, False, True)


@pytest.mark.parametrize("policy", [ONE_COMMIT, ONE_VERSION], ids=["by commits", "by versions"])
@pytest.mark.parametrize("operation", ["insert_overwrite", "delete_partition", "cluster"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_replaced_savepointed_files_stays_until_cleaning_took_them(
    version: str, operation: str, policy: dict[str, str]
) -> None:
    table = new_table(version)
    saved = run(table, savepoint).instant_time
    then = table.rows()
    if operation == "cluster":
        run(table, cluster)
    else:
        table.write(operation, rows_of_one("new"))
    replacing = active(table)[-1]
    for n in range(4):
        table.upsert(("b", "y", n, n))
    rows = table.rows()
    run(table, clean, **policy)

    archived(table, **PAST_SAVEPOINTS)
    assert (table.rows(), table.rows(as_of=saved)) == (rows, then)
    run(table, partial(delete_savepoint, instant_time=saved))
    archived(table)
    assert table.rows() == rows
    assert replacing in active(table), "its replaced files are still there"
    table.upsert(("b", "y", 5, 5))
    run(table, clean, **policy)
    archived(table)
    assert table.rows() == sorted([*(row for row in rows if row[0] != "b"), ("b", "y", 5, 5)])
    assert replacing in history(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_overwrite_that_completes_after_a_clean_by_versions_stays(version: str) -> None:
    table = new_table(version)
    table.upsert(("b", "y", 1, 1))
    other = TestTable(table.storage, table.options)
    table.engine = InterruptedEngine(lambda: run(other, clean, **ONE_VERSION))
    overwrite = table.write("insert_overwrite", rows_of_one("new")).instant_time
    table.engine = other.engine
    cleaned = [i.requested_time for i in table.meta.timeline.of([ActionKind.CLEAN])]
    assert len(cleaned) == 1
    assert cleaned[0] > overwrite
    for n in range(2, 5):
        table.upsert(("b", "y", n, n))
    rows = table.rows()

    archived(table)
    assert table.rows() == rows
    assert overwrite in active(table)
    run(table, clean, **ONE_VERSION)
    archived(table)
    assert table.rows() == rows
    assert overwrite in history(table)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_an_overwrite_of_what_a_pending_compaction_reads_stays(version: str) -> None:
    table = new_table(version, "MERGE_ON_READ")
    table.upsert(("b", "y", 1, 1))
    run(table, partial(call, COMPACTION), **EACH_COMMIT)
    table.upsert(("a", "x", 1, 1))
    run(table, partial(call, COMPACTION, schedule_only=True), **EACH_COMMIT)
    overwrite = table.write("insert_overwrite", rows_of_one("new")).instant_time
    assert run(table, clean, **ONE_VERSION).runs[0].files_deleted
    run(table, partial(call, COMPACTION))
    for n in range(2, 5):
        table.upsert(("b", "y", n, n))
        run(table, partial(call, COMPACTION), **EACH_COMMIT)
    rows = table.rows()

    archived(table)
    assert table.rows() == rows
    assert overwrite in active(table)
    run(table, clean, **ONE_COMMIT)
    archived(table)
    assert table.rows() == rows
    assert overwrite in history(table)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_cleaning_finds_what_commits_left_that_were_archived_past_a_savepoint(version: str) -> None:
    table = new_table(version)
    run(table, savepoint)
    for n in range(1, 4):
        table.upsert(("a", "x", n, n))
    assert run(table, clean, **ONE_COMMIT).runs[0].files_deleted
    for n in range(1, 4):
        table.upsert(("b", "y", n, n))
    for n in range(4, 8):
        table.upsert(("a", "x", n, n))
    archived(table, **PAST_SAVEPOINTS)

    run(table, clean, **ONE_COMMIT)

    assert len([i for i in table.storage.list("y") if not i.name.startswith(".hoodie")]) == 2, "saved, and the newest"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_plan_has_the_columns_of_its_time_though_they_were_archived_past_a_savepoint(version: str) -> None:
    table = Altered(version)
    table.options = {**table.options, **BY_HAND}
    table.put(*first_rows(), operation="insert")
    run(table, savepoint)
    renaming = table.alter(RENAMED)
    table.put({"id": "b", "p": "y", "ts": 2, "v": 101, "title": "t1", "extra": 2})
    table.compact_now()
    run(table, partial(cluster, schedule_only=True))
    (plan,) = table.meta.timeline.pending()
    table.alter(LAST)
    archived(table, compact_inline_max_delta_commits="1", **PAST_SAVEPOINTS)
    assert renaming in history(table)
    table.publish()

    assert plan_schema(plan.requested_time, table.meta).columns.names == [name for name, _ in RENAMED.values()]
