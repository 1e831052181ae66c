"""The power fails at any moment of any action: what has completed is whole, and the next writer goes on.

`make power` plays 1,000 rounds; here each action gets a few.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from pyhudi.actions.undo.restore import restore
from pyhudi.model.options import WriteOptions
from pyhudi.services.archive.archiving import archive
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.savepoint import delete_savepoint, savepoint
from tests.support.tables.clustered import Clustered
from tests.support.tables.compacted import Compacted
from tests.support.tables.small import TestTable, rollback_write, rows_of
from tests.support.tables.undone import served
from tests.support.tables.versioned import take_to
from tests.support.writers.every_fault import START, empty, empty_merge_on_read, loaded, with_logs
from tests.support.writers.power_cuts import Recorded, record, survive_a_cut

SEED = int(os.environ.get("PYHUDI_POWER_SEED", "1"))
ROUNDS = int(os.environ.get("PYHUDI_POWER_ROUNDS", "60"))
MORE = (("a", "x", 2, 11), ("e", "z", 1, 50))
BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}


def upserted(make: Callable[[str], TestTable], version: str, times: int = 3) -> TestTable:
    table = make(version)
    table.options = {**table.options, **BY_HAND}
    for n in range(times):
        table.upsert(("a", "x", 2 + n, n), (f"k{n}", "z", 1, n))
    return table


def replaced(version: str) -> TestTable:
    """File groups that a clean deletes, of a write that an archiving may take."""
    table = upserted(loaded, version)
    table.write("insert_overwrite", rows_of(("n", "x", 1, 5)))
    for n in range(3):
        table.upsert(("n", "x", 2 + n, n))
    return table


def cleaned(version: str) -> TestTable:
    table = replaced(version)
    do_clean(table)
    return table


def compactable(version: str) -> Compacted:
    table = Compacted(version)
    table.start()
    return table


def planned(version: str) -> Compacted:
    table = compactable(version)
    table.compact(schedule_only=True)
    table.upsert(("c", "y", 6, 31))
    return table


def clusterable(version: str) -> Clustered:
    table = Clustered(version, "MERGE_ON_READ" if version == "6" else "COPY_ON_WRITE")
    table.bulk_insert(*START)
    table.insert(("d", "x", 1, 4))
    return table


def do_clean(table: TestTable) -> object:
    return served(table, partial(clean), clean_commits_retained="1")


def do_archive(table: TestTable) -> object:
    keep = {"keep_min_commits": "2", "keep_max_commits": "3", "timeline_compaction_batch_size": "2"}
    return served(table, archive, clean_policy="KEEP_LATEST_FILE_VERSIONS", **keep)


def do_archive_twice(table: TestTable) -> None:
    do_archive(table)
    for n in range(3):
        table.upsert(("a", "x", 20 + n, n))
    do_archive(table)


def do_roll_back(table: TestTable) -> object:
    last = table.meta.timeline.last_commit()
    assert last is not None
    return rollback_write(
        table.storage, last.requested_time, WriteOptions.parse({}, table=table.meta.config), table.engine
    )


def do_restore(table: TestTable) -> object:
    return served(table, partial(restore, to=table.meta.timeline.commits().instants[1].requested_time))


def do_save(table: TestTable) -> None:
    served(table, savepoint)
    last = table.meta.timeline.last_commit()
    assert last is not None
    served(table, partial(delete_savepoint, instant_time=last.requested_time))


def first_write(table: TestTable) -> object:
    return table.bulk_insert(*START)


def to(version: int) -> Callable[[TestTable], object]:
    return lambda table: take_to(table.storage, version)


Make = Callable[[str], Any]
ACTIONS: dict[str, tuple[Make, Callable[[Any], object], str]] = {
    "first write": (empty, first_write, "9"),
    "first write, version 6": (empty, first_write, "6"),
    "first write, merge on read": (empty_merge_on_read, first_write, "9"),
    "upsert": (loaded, lambda t: t.upsert(*MORE), "9"),
    "upsert, version 6": (loaded, lambda t: t.upsert(*MORE), "6"),
    "upsert, merge on read": (with_logs, lambda t: t.upsert(*MORE), "9"),
    "upsert, merge on read, version 6": (with_logs, lambda t: t.upsert(*MORE), "6"),
    "delete, merge on read, version 6": (with_logs, lambda t: t.delete(("b", "x")), "6"),
    "insert_overwrite": (loaded, lambda t: t.write("insert_overwrite", rows_of(("n", "x", 1, 5))), "9"),
    "insert_overwrite, version 6": (loaded, lambda t: t.write("insert_overwrite", rows_of(("n", "x", 1, 5))), "6"),
    "compaction": (compactable, lambda t: t.compact(), "9"),
    "compaction, version 6": (compactable, lambda t: t.compact(), "6"),
    "compaction of a plan, version 6": (planned, lambda t: t.compact(), "6"),
    "log compaction": (compactable, lambda t: t.log_compact(), "9"),
    "clustering": (clusterable, lambda t: t.cluster(), "9"),
    "clustering, merge on read, version 6": (clusterable, lambda t: t.cluster(), "6"),
    "clean": (replaced, do_clean, "9"),
    "clean, version 6": (replaced, do_clean, "6"),
    "archive": (cleaned, do_archive_twice, "9"),
    "archive, version 6": (cleaned, do_archive_twice, "6"),
    "rollback": (partial(upserted, loaded), do_roll_back, "9"),
    "rollback, merge on read, version 6": (partial(upserted, with_logs), do_roll_back, "6"),
    "restore": (partial(upserted, loaded), do_restore, "9"),
    "restore, merge on read, version 6": (partial(upserted, with_logs), do_restore, "6"),
    "savepoint": (loaded, do_save, "9"),
    "upgrade": (partial(upserted, loaded), to(9), "6"),
    "upgrade, merge on read": (partial(upserted, with_logs), to(8), "6"),
    "downgrade": (partial(upserted, loaded), to(6), "9"),
    "downgrade, merge on read": (partial(upserted, with_logs), to(6), "8"),
}


@cache
def recorded(name: str) -> Recorded:
    make, act, version = ACTIONS[name]
    table = make(version)
    states = []
    if "restore" in name:  # readers see each state that it comes by
        states = [table.rows(as_of=instant.requested_time) for instant in table.meta.timeline.commits()]
    if name.startswith("archive"):
        states = [sorted([r for r in table.rows() if r[0] != "a"] + [("a", "x", 20 + n, n)]) for n in range(3)]
    return record(table, act, states)


@pytest.mark.parametrize("name", ACTIONS)
def test_what_has_completed_is_whole_and_the_next_writer_goes_on(name: str) -> None:
    for n in range(-(-ROUNDS // len(ACTIONS))):
        survive_a_cut(recorded(name), random.Random(f"{SEED} {name} {n}"), f"{name}, round {n}")
