"""Writers that don't wait for each other: both append to the same buckets, and both commit."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.errors import ConfigError, WriteConflict
from pyhudi.table.calls import serve
from tests.support.tables.small import Row, TestTable, rows_of
from tests.support.writers.interrupted import InterruptedEngine

NON_BLOCKING = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "IN_PROCESS",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}
BY_TIME = {"hoodie.datasource.write.precombine.field": "", "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}


def writer(table: TestTable, **more: Any) -> TestTable:
    return TestTable(table.storage, table.options, failed_writes_policy="LAZY", **more)


def race(table: TestTable, ours: tuple[Row, ...], theirs: tuple[Row, ...]) -> None:
    """`theirs` begins after `ours` and completes before."""
    other = writer(table)
    writer(table, engine=InterruptedEngine(lambda: other.upsert(*theirs))).upsert(*ours)


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("exists", [True, False])
def test_two_writers_of_one_bucket_both_commit(version: str, exists: bool) -> None:
    table = TestTable(options={**NON_BLOCKING, "hoodie.write.table.version": version})
    writer(table).upsert(("old", "x" if exists else "y", 1, 1))
    race(table, (("a", "x", 1, 10), ("c", "x", 5, 11)), (("b", "x", 1, 20), ("c", "x", 3, 21)))

    rows = [row[0::3] for row in table.rows() if row[0] != "old"]
    assert rows == [("a", 10), ("b", 20), ("c", 11)]
    groups = {s.group.file_id for s in slices(table) if s.group.partition_path == "x"}
    assert groups == {"00000000-0000-0000-0000-000000000000-0"}


def test_of_two_rows_the_one_of_the_later_request_stays_though_it_completed_first() -> None:
    table = TestTable(options={**NON_BLOCKING, **BY_TIME})
    writer(table).upsert(("c", "x", 1, 1))
    race(table, (("c", "x", 9, 11),), (("c", "x", 3, 21),))

    assert table.rows() == [("c", "x", 3, 21)]
    compact(table)
    assert table.rows() == [("c", "x", 3, 21)]


def test_a_compaction_between_two_writers_changes_no_row() -> None:
    table = TestTable(options=NON_BLOCKING)
    writer(table).upsert(("a", "x", 1, 1), ("b", "x", 1, 2))

    def meanwhile() -> None:
        writer(table).upsert(("a", "x", 2, 20))
        compact(table)

    writer(table, engine=InterruptedEngine(meanwhile)).upsert(("b", "x", 2, 30))
    assert table.rows() == [("a", "x", 2, 20), ("b", "x", 2, 30)]
    compact(table)
    assert table.rows() == [("a", "x", 2, 20), ("b", "x", 2, 30)]
    assert not [s for s in slices(table) if s.log_files]


def test_bulk_inserts_make_base_files_and_give_way() -> None:
    table = TestTable(options=NON_BLOCKING)
    writer(table).upsert(("a", "x", 1, 1))
    other = writer(table)
    slow = writer(table, engine=InterruptedMap(lambda: other.upsert(("a", "x", 2, 20))))
    try:
        slow.bulk_insert(("b", "x", 1, 2))
    except WriteConflict:
        assert table.rows() == [("a", "x", 2, 20)]
    else:
        assert table.rows() == [("a", "x", 2, 20), ("b", "x", 1, 2)]


class InterruptedMap(InterruptedEngine):
    """The same before the tasks of a bulk insert."""

    def map(self, *args: Any, **kwargs: Any) -> Any:
        other, self._other = self._other, None
        if other is not None:
            other()
        return super().map(*args, **kwargs)


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_what_replaces_file_groups_is_refused(operation: str) -> None:
    table = TestTable(options=NON_BLOCKING)
    with pytest.raises(ConfigError, match="replaces file groups"):
        table.write(operation, rows_of(("a", "x", 1, 1)))


def slices(table: TestTable) -> list[Any]:
    from pyhudi.view.file_system_view import FileSystemView

    view = FileSystemView.load(table.meta)
    return [file_slice for path in view.partitions() for file_slice in view.slices(path)]


def compact(table: TestTable) -> None:
    from functools import partial

    from pyhudi.model.options import WriteOptions
    from pyhudi.services.compact.compaction import COMPACTION
    from pyhudi.services.planned import call
    from tests.support.tables.small import DEFAULTS

    given = {**DEFAULTS, **table.options}
    options = WriteOptions.parse({k: v for k, v in given.items() if v}, table=table.meta.config)
    serve(table.storage, partial(call, COMPACTION), options, table.engine, clock=table.clock)
