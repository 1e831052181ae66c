"""Storages of this machine: names without a look at the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.place import file_names_in, is_local
from pyhudi.storage.subfolder import Subfolder


def test_disks_and_the_memory_of_this_machine_are_near_and_their_subfolders_too(tmp_path: Path) -> None:
    for near in (LocalStorage(str(tmp_path)), MemoryStorage()):
        assert is_local(near)
        assert is_local(Subfolder(near, "a"))
    far = ArrowStorage("fs://t", filesystem=pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()))
    assert not is_local(far)
    assert not is_local(Subfolder(far, "a"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of all that a folder may hold: `a` has files, a half-written one, folders, and links to each and to nothing."""
    found = tmp_path / "a"
    found.mkdir()
    for name in ("file", "ä", ".pyhudi-1.tmp"):
        (found / name).write_text("x")
    for name in ("inner", ".pyhudi-folder.tmp"):
        (found / name).mkdir()
    for name, target in {"to_file": "file", "to_folder": "inner", "to_nothing": "nothing", "round": "round"}.items():
        (found / name).symlink_to(target)
    (found / ".pyhudi-round.tmp").symlink_to(".pyhudi-round.tmp")
    return tmp_path


def test_names_of_files_are_those_of_what_is_listed(folder: Path) -> None:
    near = LocalStorage(str(folder))
    assert file_names_in(near, "a") == {"file", "ä", "to_file"}
    assert file_names_in(near, "a") == {entry.name for entry in near.list("a") if not entry.is_dir}
    assert file_names_in(Subfolder(near, "a"), "") == file_names_in(near, "a")


def test_a_folder_that_is_not_there_has_no_names(folder: Path) -> None:
    near = LocalStorage(str(folder))
    assert file_names_in(near, "b") == file_names_in(near, "a/file") == frozenset()


@pytest.mark.parametrize("inner", [MemoryStorage(), Subfolder(MemoryStorage(), "below")], ids=["memory", "subfolder"])
def test_other_storages_list_for_it(inner: Storage) -> None:
    inner.write("a/one", b"1")
    inner.write("a/two", b"2")
    assert file_names_in(inner, "a") == {"one", "two"}
