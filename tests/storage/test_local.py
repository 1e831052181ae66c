"""LocalStorage: no reader sees a partial file, only one creator wins, temporary files are hidden."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyhudi.errors import PathExists, StorageError
from pyhudi.storage import LocalStorage
from pyhudi.storage.paths import is_temporary


def test_of_many_creators_exactly_one_wins(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    def create(number: int) -> bool:
        try:
            storage.create_new("lock", str(number).encode() * 1000)
        except PathExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        wins = [number for number, won in enumerate(pool.map(create, range(40))) if won]

    assert len(wins) == 1
    assert storage.read("lock") == str(wins[0]).encode() * 1000
    assert os.listdir(tmp_path) == ["lock"]


def test_a_reader_next_to_a_writer_sees_whole_files_only(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    contents = [bytes([number]) * 200_000 for number in (1, 2)]
    storage.write("f", contents[0])
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for content in contents:
                storage.write("f", content)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        found = {storage.read("f") for _ in range(200)}
    finally:
        stop.set()
        writer.join()

    assert found <= set(contents)


def test_temporary_files_of_a_dead_writer_are_not_listed(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("p/f", b"x")
    (tmp_path / "p" / ".pyhudi-1-abc-0.tmp").write_bytes(b"half")

    assert is_temporary(".pyhudi-1-abc-0.tmp")
    assert [info.name for info in storage.list("p")] == ["f"]
    assert [info.path for info in storage.walk("")] == ["p/f"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "folder").mkdir()

    with pytest.raises(StorageError):
        storage.write("folder", b"a folder can't be replaced by a file")

    assert os.listdir(tmp_path) == ["folder"]


def test_new_files_take_the_permissions_of_the_process(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    before = os.umask(0o027)
    try:
        storage.write("written", b"x")
        storage.create_new("created", b"x")
        storage.create_new("empty", b"")
    finally:
        os.umask(before)

    assert {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)} == {0o640}


def test_a_mount_without_hard_links_still_creates_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    storage = LocalStorage(str(tmp_path))

    storage.create_new("lock", b"first")

    with pytest.raises(PathExists):
        storage.create_new("lock", b"second")
    assert storage.read("lock") == b"first"
    assert os.listdir(tmp_path) == ["lock"]


def test_symbolic_links_inside_the_table_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f").write_bytes(b"x")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "p").symlink_to(tmp_path / "elsewhere")

    storage = LocalStorage(str(tmp_path / "table"))

    assert [info.path for info in storage.walk("")] == ["p/f"]
    assert storage.read("p/f") == b"x"


def test_full_paths_are_what_spark_reads(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    assert storage.full_path("p=a%20b/f.parquet") == f"file:{tmp_path}/p=a%20b/f.parquet"
    assert storage.full_path("") == f"file:{tmp_path}"


def test_a_relative_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage("table")
    monkeypatch.chdir("/")

    storage.write("f", b"x")

    assert (tmp_path / "table" / "f").read_bytes() == b"x"


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "table"))

    storage.make_folder(".hoodie/.aux/deep")
    storage.make_folder(".hoodie/.aux/deep")

    assert (tmp_path / "table" / ".hoodie" / ".aux" / "deep").is_dir()


def test_what_hadoop_remembers_of_a_file_is_forgotten_when_the_file_changes(tmp_path: Path) -> None:
    """Hadoop's local file system keeps checksums in `.<name>.crc` and refuses a file that does not fit its own."""
    storage = LocalStorage(str(tmp_path))
    for change in (
        lambda: storage.write("hoodie.properties", b"new"),
        lambda: storage.open_output("hoodie.properties").close(),
        lambda: storage.delete("hoodie.properties"),
    ):
        (tmp_path / "hoodie.properties").write_bytes(b"old")
        (tmp_path / ".hoodie.properties.crc").write_bytes(b"crc\0of old")
        change()
        assert not (tmp_path / ".hoodie.properties.crc").exists()
