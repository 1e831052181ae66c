"""An optimistic write during whatever else happens to its table: it is in it whole, or it gave way.

Another process does all of an action before the write lists a folder or opens or makes a file, unless the lock keeps
it out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import pytest

from pyhudi.actions.undo.restore import roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import LockTimeout, PathNotFound, WriteConflict
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.table.calls import serve
from tests.support.storages.film import InterruptedStorage
from tests.support.tables.clustered import Clustered
from tests.support.writers.dying import on_clone
from tests.support.writers.meanwhile import made, rows

_MANY = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "IN_PROCESS",
    "hoodie.write.lock.wait_time_ms": "20",
}


def shared(version: str, table_type: str) -> Clustered:
    table = made(version, table_type)
    table.options = {**table.options, **_MANY}
    table.failed_writes_policy = "LAZY"
    table.insert(("e", "y", 1, 1), ("f", "y", 1, 1))
    table.upsert(("e", "y", 2, 2), ("f", "y", 2, 2))
    return table


def _serve(table: Clustered, service: Callable[..., object], **options: str) -> None:
    given = {**_MANY, **{"hoodie." + name.replace("_", "."): text for name, text in options.items()}}
    serve(table.storage, service, WriteOptions.parse(given, table=table.meta.config), table.engine)


def rewritten_and_cleaned(table: Clustered) -> None:
    """The only file of a group that the write knows of goes, where no log files are in between."""
    table.upsert(("a", "x", 7, 7))
    _serve(table, clean, clean_policy="KEEP_LATEST_FILE_VERSIONS", clean_fileversions_retained="1")


def rolled_back(table: Clustered) -> None:
    _serve(table, partial(roll_back))


def the_same_rows_changed(table: Clustered) -> None:
    table.upsert(("a", "x", 7, 7), ("e", "y", 7, 7), ("other", "x", 1, 1))


def upserted(table: Clustered) -> None:
    table.upsert(("a", "x", 50, 50), ("e", "y", 50, 50), ("new", "x", 1, 1))


def outcomes(table: Clustered, act: Callable[[Clustered], None], n: int) -> tuple[bool, bool, list[tuple[object, ...]]]:
    """Did the write go in, could the other act, and the rows then. The other acts before call `n` of the write."""
    attempt = on_clone(table)
    other, could_act = copy.copy(attempt), [True]

    def do() -> None:
        try:
            act(other)
        except LockTimeout:
            could_act.clear()

    writer = copy.copy(attempt)
    writer.storage = InterruptedStorage(attempt.memory, n, do)
    for process in (other, writer):
        process.engine = LocalEngine(2)  # each counts its tasks from one on
    try:
        upserted(writer)
    except (WriteConflict, PathNotFound):  # or a file was cleaned that it was about to read
        return False, bool(could_act), rows(attempt)
    return True, bool(could_act), rows(attempt)


@pytest.mark.parametrize("act", [rewritten_and_cleaned, rolled_back, the_same_rows_changed])
@pytest.mark.parametrize(("version", "table_type"), [("9", "COPY_ON_WRITE"), ("6", "MERGE_ON_READ")])
def test_a_write_is_in_whole_or_gives_way(act: Callable[[Clustered], None], version: str, table_type: str) -> None:
    table = shared(version, table_type)
    counted = on_clone(table)
    counted.storage = InterruptedStorage(counted.memory)
    upserted(counted)
    looks = [n for n, verb in enumerate(counted.storage.verbs, 1) if verb in ("list", "open_input", "open_output")]
    alone, first, second = on_clone(table), on_clone(table), on_clone(table)
    act(alone)
    act(first)
    upserted(first)
    upserted(second)
    act(second)

    for n in looks[2:]:
        went_in, acted, found = outcomes(table, act, n)
        if acted:
            assert found in ([rows(first), rows(second)] if went_in else [rows(alone)]), f"call {n}"
