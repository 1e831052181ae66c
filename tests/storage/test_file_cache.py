"""Values derived from files are cached as long as the files are unchanged, and no longer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.errors import PathNotFound
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage
from pyhudi.storage import file_cache as files
from pyhudi.storage.file_cache import FileCache, FileState, SameFile, get_or_load, load_on_second_use, state_of
from pyhudi.storage.subfolder import Subfolder
from tests.support.storages.settled import settled_files


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from settled_files(monkeypatch)


def texts(storage: LocalStorage | MemoryStorage | Subfolder, path: str = "a") -> tuple[bytes, list[str]]:
    """The text of a file, and a word for each time that it was read."""
    read: list[str] = []

    def make() -> bytes:
        read.append("read")
        return storage.read(path)

    return get_or_load(storage, path, "text", make, len), read


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    assert texts(LocalStorage(str(tmp_path))) == (b"one", ["read"])
    assert texts(LocalStorage(str(tmp_path))) == (b"one", [])
    assert texts(Subfolder(LocalStorage(str(tmp_path.parent)), tmp_path.name)) == (b"one", [])


def test_a_replaced_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    storage = LocalStorage(str(tmp_path))
    assert texts(storage)[0] == b"one"
    before = os.stat(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"two")
    os.utime(tmp_path / "b", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(tmp_path / "b", tmp_path / "a")
    assert texts(storage) == (b"two", ["read"])


def test_a_file_that_grows_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    storage = LocalStorage(str(tmp_path))
    assert texts(storage)[0] == b"one"
    with open(tmp_path / "a", "ab") as file:
        file.write(b" more")
    assert texts(storage) == (b"one more", ["read"])


def test_a_file_that_was_written_just_now_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"one")
    written_ms = os.stat(tmp_path / "a").st_ctime_ns // 1_000_000
    monkeypatch.setattr(files, "_CLOCK", FixedClock(written_ms + 50, step_ms=0))
    assert texts(LocalStorage(str(tmp_path))) == (b"one", ["read"])
    assert texts(LocalStorage(str(tmp_path))) == (b"one", ["read"])


@pytest.mark.parametrize(
    ("modified_ns", "age_ms", "settled"),
    [(5_000_001, 90, False), (5_000_001, 120, True), (5_000_000, 4000, False), (5_000_000, 6000, True)],
)
def test_times_of_coarse_steps_settle_later(modified_ns: int, age_ms: int, settled: bool) -> None:
    state = FileState(1, 2, 3, modified_ns, modified_ns)
    assert state.is_settled(5 + age_ms) is settled


def test_a_file_of_a_store_without_states_is_read_each_time() -> None:
    storage = MemoryStorage("file-memory")
    storage.write("a", b"one")
    assert texts(storage) == (b"one", ["read"])
    storage.write("a", b"two")
    assert texts(storage) == (b"two", ["read"])


def test_what_is_dear_is_made_when_it_is_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    state = state_of(LocalStorage(str(tmp_path)), "a")
    assert state is not None
    assert load_on_second_use(state, "a", "dear", lambda: 7, lambda _: 8) is None
    assert load_on_second_use(state, "a", "dear", lambda: 7, lambda _: 8) == 7
    assert load_on_second_use(state, "a", "dear", lambda: 9, lambda _: 8) == 7


def test_the_memory_is_bounded_and_forgets_what_was_not_used_for_longest() -> None:
    memory = FileCache(8000)
    for number in range(4):
        memory.put(number, str(number), 1300)
    assert memory.get(0) == "0"
    memory.put(4, "4", 1300)
    assert [number in memory for number in range(5)] == [True, False, True, True, True]
    assert memory.size_bytes <= 8000
    memory.put(5, "too large", 3000)
    assert 5 not in memory
    memory.put(0, "smaller", 100)
    assert memory.size_bytes == 3 * 1800 + 600
    assert memory.pop(0) == "smaller"
    assert memory.pop(0) is None
    assert memory.size_bytes == 3 * 1800


def test_the_same_file_is_opened_again_and_refused_when_it_was_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one two")
    storage = LocalStorage(str(tmp_path))
    state = state_of(storage, "a")
    assert state is not None
    file = SameFile(storage, "a", state)
    file.seek(4)
    assert (file.size(), file.read(3)) == (7, b"two")
    file.close()
    file.seek(0)
    assert file.read(3) == b"one"
    file.close()
    (tmp_path / "b").write_bytes(b"six ten")
    os.replace(tmp_path / "b", tmp_path / "a")
    with pytest.raises(PathNotFound, match="was replaced"):
        file.read(3)
