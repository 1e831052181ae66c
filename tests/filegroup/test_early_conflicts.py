"""EarlyConflicts: a task gives way to a live writer that has announced a file of the same file group."""

from __future__ import annotations

import pytest

from pyhudi.errors import WriteConflict
from pyhudi.filegroup.write.markers import MERGE, EarlyConflicts, create_marker
from pyhudi.model.filenames import heartbeat_path
from pyhudi.storage import FixedClock, MemoryStorage

EARLIER, OURS, LATER = "20250713010535797", "20250713010535798", "20250713010535799"
NAME = "{group}-0_0-1-2_{time}.parquet"
INTERVAL_MS, MISSES = 60_000, 2


def announced(storage: MemoryStorage, time: str, partition: str, group: str, *, by_server: bool) -> None:
    """A writer's marker, in a file of its own or in one that Hudi's timeline server keeps; its heartbeat is fresh."""
    name = NAME.format(group=group, time=time)
    path = f"{partition}/{name}" if partition else name
    if by_server:
        storage.write(f".hoodie/.temp/{time}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        storage.write(f".hoodie/.temp/{time}/MARKERS0", f"{path}.marker.{MERGE}\n".encode())
    else:
        create_marker(storage, time, path, MERGE)
    storage.write(heartbeat_path(time), b"")
    storage.set_modified(heartbeat_path(time), 1_000_000)


def check(storage: MemoryStorage, partition: str, group: str, *, now_ms: int = 1_000_000, ignored: str = "") -> None:
    name = NAME.format(group=group, time=OURS)
    looking = EarlyConflicts(frozenset({ignored}), INTERVAL_MS, MISSES, FixedClock(now_ms, step_ms=0))
    looking.check(storage, OURS, f"{partition}/{name}" if partition else name)


@pytest.mark.parametrize("by_server", [False, True])
@pytest.mark.parametrize("partition", ["x", "a/b", ""])
def test_a_file_group_that_an_earlier_writer_announced_is_left_to_it(partition: str, by_server: bool) -> None:
    storage = MemoryStorage()
    announced(storage, EARLIER, partition, "one", by_server=by_server)

    with pytest.raises(WriteConflict, match=f"one-0 in {partition!r}, which the writer {EARLIER} is changing"):
        check(storage, partition, "one")


@pytest.mark.parametrize("by_server", [False, True])
def test_other_file_groups_and_partitions_are_free(by_server: bool) -> None:
    storage = MemoryStorage()
    announced(storage, EARLIER, "x", "one", by_server=by_server)

    check(storage, "x", "two")
    check(storage, "y", "one")
    check(storage, "", "one")


@pytest.mark.parametrize("time", [OURS, LATER])
def test_writers_that_began_later_and_we_ourselves_are_not_in_the_way(time: str) -> None:
    storage = MemoryStorage()
    announced(storage, time, "x", "one", by_server=False)

    check(storage, "x", "one")


def test_plans_that_wait_are_not_in_the_way() -> None:
    storage = MemoryStorage()
    announced(storage, EARLIER, "x", "one", by_server=False)

    check(storage, "x", "one", ignored=EARLIER)


def test_a_dead_writer_is_not_in_the_way() -> None:
    storage = MemoryStorage()
    announced(storage, EARLIER, "x", "one", by_server=False)
    last_moment_ms = 1_000_000 + INTERVAL_MS * MISSES

    with pytest.raises(WriteConflict):
        check(storage, "x", "one", now_ms=last_moment_ms)
    check(storage, "x", "one", now_ms=last_moment_ms + 1)


def test_the_living_writer_behind_a_dead_one_is_seen() -> None:
    storage = MemoryStorage()
    dead = "20250713010535000"
    announced(storage, dead, "x", "one", by_server=False)
    storage.delete(heartbeat_path(dead))
    announced(storage, EARLIER, "x", "one", by_server=False)

    with pytest.raises(WriteConflict, match=EARLIER):
        check(storage, "x", "one")
