"""Reopened HFiles: nothing is read again while the file is unchanged, and no file stays open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.formats.hfile import HFileWriter
from pyhudi.formats.hfile.cached_reader import open_hfile
from pyhudi.storage import LocalStorage
from tests.support.storages.settled import settled_files


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from settled_files(monkeypatch)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    write(tmp_path / "a", "one")
    return LocalStorage(str(tmp_path))


def write(path: Path, value: str) -> None:
    with open(path, "wb") as sink:
        writer = HFileWriter(sink)
        for key in ("key", *(f"other {number:03}" for number in range(40))):  # more than is read at first
            writer.append_columns(pa.array([key.encode()]), pa.array([value.encode() + os.urandom(1 << 16)]))
        writer.close()


def value(storage: LocalStorage) -> bytes:
    with open_hfile(storage, "a", "a") as reader:
        return dict(reader.lookup([b"key"]))[b"key"][:3]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_is_the_reader_that_was_there_before(storage: LocalStorage) -> None:
    with open_hfile(storage, "a", "a") as first:
        pass
    with open_hfile(storage, "a", "a") as second:
        assert second is first
        with open_hfile(storage, "a", "a") as meanwhile:
            assert meanwhile is not first


def test_a_file_that_was_rewritten_is_read_again(storage: LocalStorage, tmp_path: Path) -> None:
    assert value(storage) == value(storage) == b"one"
    write(tmp_path / "b", "two")
    os.replace(tmp_path / "b", tmp_path / "a")
    assert value(storage) == b"two"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list open files")
def test_no_file_stays_open(storage: LocalStorage) -> None:
    before = open_files()
    assert value(storage) == value(storage) == b"one"
    assert open_files() == before
