"""MemoryStorage: shared names, and faults that leave the same files as a dying process."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi.errors import PathExists, StorageError
from pyhudi.storage import FixedClock, MemoryStorage
from pyhudi.storage.memory import InjectedFault


def test_handles_of_one_name_share_content() -> None:
    MemoryStorage("shared-by-name").write("f", b"x")
    gc.collect()

    assert MemoryStorage("shared-by-name").read("f") == b"x"
    assert MemoryStorage().stat("f") is None


def test_files_carry_the_time_of_the_clock() -> None:
    storage = MemoryStorage(clock=FixedClock(1000, step_ms=0))
    storage.write("f", b"x")

    info = storage.stat("f")
    assert info is not None
    assert info.modified_ms == 1000


def test_a_fault_before_a_call_leaves_nothing_and_after_it_everything() -> None:
    for kind, expected in (("before", None), ("after", b"data")):
        storage = MemoryStorage()
        storage.write("other", b"")
        storage.fail_at(2, kind)  # type: ignore[arg-type]
        storage.stat("other")
        with pytest.raises(InjectedFault, match="call 2"):
            storage.write("f", b"data")
        storage.reset_faults()
        assert (storage.read("f") if storage.stat("f") else None) == expected


def test_a_torn_write_leaves_half_and_a_torn_creation_nothing() -> None:
    storage = MemoryStorage()
    storage.fail_at(1, "torn")
    with pytest.raises(InjectedFault):
        storage.write("f", b"123456")
    storage.fail_at(1, "torn")
    with pytest.raises(InjectedFault):
        storage.create_new("g", b"123456")

    storage.reset_faults()
    assert storage.read("f") == b"123"
    assert storage.stat("g") is None


def test_after_a_fault_the_process_is_dead_until_the_next_one_starts() -> None:
    storage = MemoryStorage()
    storage.fail_at(1)
    for _ in range(3):
        with pytest.raises(InjectedFault):
            storage.write("f", b"x")

    storage.reset_faults()

    storage.write("f", b"x")
    assert storage.calls == 1


def test_an_output_counts_at_open_and_at_close_and_is_empty_in_between() -> None:
    storage = MemoryStorage()
    sink = storage.open_output("f")
    sink.write(b"1234")

    assert storage.calls == 1
    assert storage.read("f") == b""
    sink.close()
    assert storage.read("f") == b"1234"
    assert [verb for verb, _ in storage.log] == ["open_output", "read", "close_output", "read"]


def test_an_output_whose_process_died_stays_torn() -> None:
    storage = MemoryStorage()
    storage.fail_at(2, "torn")
    sink = storage.open_output("f")
    sink.write(b"1234")
    with pytest.raises(StorageError):
        sink.close()

    storage.reset_faults()
    assert storage.read("f") == b"12"


def test_a_clone_goes_its_own_way() -> None:
    storage = MemoryStorage()
    storage.write("f", b"old")
    storage.fail_at(1)

    clone = storage.clone()
    clone.write("f", b"new")

    storage.reset_faults()
    assert (storage.read("f"), clone.read("f")) == (b"old", b"new")


def test_of_many_creators_exactly_one_wins() -> None:
    storage = MemoryStorage()

    def create(number: int) -> bool:
        try:
            storage.create_new("lock", str(number).encode())
        except PathExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(100))) == 1


def test_empty_folders_are_listed() -> None:
    storage = MemoryStorage()
    storage.make_folder("a/b")

    assert [(info.path, info.is_dir) for info in storage.list("")] == [("a", True)]
    assert storage.stat("a/b") is not None
