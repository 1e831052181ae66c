"""A process dies at any storage call of an overwrite or of a deletion of partitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.tables.small import TestTable, rows_of
from tests.support.writers.every_fault import START, WITH_LOGS, Rows, loaded, survive_every_fault, with_logs

NEW = [("n", "x", 1, 5), ("m", "z", 1, 6)]


def overwrite(table: TestTable, operation: str) -> object:
    return table.write(operation, rows_of(*NEW))


def drop(table: TestTable) -> object:
    return table.write_as_is(
        "delete_partition", rows_of(), {"hoodie.datasource.write.partitions.to.delete": "x", **AS_IN_TABLES}
    )


AS_IN_TABLES = {"hoodie.compact.inline": "false"}

ACTIONS: dict[str, tuple[Callable[[str], TestTable], Callable[[TestTable], object], Rows, Rows]] = {
    "insert_overwrite": (
        loaded,
        lambda t: overwrite(t, "insert_overwrite"),
        [*START],
        [START[2], *NEW],
    ),
    "merge on read: insert_overwrite_table": (
        with_logs,
        lambda t: overwrite(t, "insert_overwrite_table"),
        WITH_LOGS,
        [*NEW],
    ),
    "merge on read: delete_partition": (with_logs, drop, WITH_LOGS, [START[2]]),
}


@pytest.mark.filterwarnings("ignore:.*after it failed.*")
@pytest.mark.parametrize(("name", "version"), list(zip(ACTIONS, ["9", "6", "8"], strict=True)))
def test_a_reader_never_sees_a_part_and_the_next_writer_succeeds(name: str, version: str) -> None:
    make, act, before, after = ACTIONS[name]
    survive_every_fault(make(version), act, before, after)
