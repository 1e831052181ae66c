"""Plans that a power cut has emptied, of writers that don't wait for the disk: the next writer takes them back."""

from __future__ import annotations

import random

import pytest

from pyhudi.errors import CorruptFile
from tests.support.storages.power import Event, PowerStorage
from tests.support.writers.every_fault import in_order
from tests.support.writers.power_cuts import check_no_strays, on, read
from tests.support.writers.power_plays import recorded

LATE = ("late", "y", 9, 1)


def pending_bodies(events: list[Event]) -> list[tuple[str, list[int]]]:
    """Requested and inflight files with something in them, and moments at which their instants are pending."""
    found = []
    for number, event in enumerate(events, 1):
        if event.verb.startswith("put") and event.data and event.path.endswith((".requested", ".inflight")):
            time = event.path.rpartition("/")[2][:17]
            later = [n for n, e in enumerate(events) if n >= number and is_completion(e, time)]
            found.append((event.path, [number, max(number, (later or [len(events)])[0] - 1)]))
    return found


def is_completion(event: Event, time: str) -> bool:
    name = event.path.rpartition("/")[2]
    return name.startswith(time) and event.path.startswith(".hoodie") and not name.endswith(("requested", "inflight"))


@pytest.mark.filterwarnings("ignore:.*died half-way.*")
@pytest.mark.parametrize(
    "name",
    [
        "upsert, merge on read, version 6",
        "insert_overwrite",
        "insert_overwrite, version 6",
        "compaction",
        "compaction, version 6",
        "log compaction",
        "clustering",
        "clustering, merge on read, version 6",
        "clean",
        "clean, version 6",
        "rollback",
        "rollback, merge on read, version 6",
        "restore",
        "restore, merge on read, version 6",
    ],
)
def test_the_next_writer_takes_back_what_has_lost_its_plan(name: str) -> None:
    action = recorded(name)
    bodies = pending_bodies(action.storage.events)
    assert bodies
    for path, moments in bodies:
        for moment in moments:
            kept = action.storage.after_cut(moment, random.Random(0), luck=1.0)
            whole = kept.read(path) if kept.stat(path) is not None else b""
            for left in (b"", whole[: len(whole) // 2], bytes(len(whole))) if whole else ():
                storage = PowerStorage(kept)
                storage.write(path, left)
                table, where = on(action.table, storage), f"{path}: {len(left)} bytes at {moment}"
                found = read(table)
                assert found in action.states, where

                table.upsert(LATE)

                assert read(table) in [in_order([*rows, LATE]) for rows in (found, action.states[-1])], where
                check_no_strays(table, where)


@pytest.mark.thorough
def test_a_writer_who_may_be_alive_keeps_its_plan() -> None:
    """LAZY: under a heartbeat that goes on, a plan that can't be read yet is being written."""
    action = recorded("compaction")
    path, (moment, _) = pending_bodies(action.storage.events)[0]
    table = on(action.table, action.storage.after_cut(moment, random.Random(0), luck=1.0))
    table.storage.write(path, b"")
    table.storage.write(f".hoodie/.heartbeat/{path.rpartition('/')[2][:17]}", b"")
    table.failed_writes_policy = "LAZY"

    with pytest.raises(CorruptFile):
        table.upsert(LATE)

    assert table.storage.stat(path) is not None
