"""The contract of a storage, tested on each of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import PathExists, PathNotFound, StorageError
from pyhudi.storage import LocalStorage, MemoryStorage, Storage
from pyhudi.storage.arrow import ArrowStorage
from tests.support.servers.object_stores import OBJECT_STORES, ObjectStoreServer

ESCAPES = ["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/.", "a/", "a\x00b", ".."]


@pytest.fixture(params=["local", "memory", "arrow", *OBJECT_STORES])
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, start_server: Callable[[str], ObjectStoreServer]
) -> Storage:
    if request.param not in ("local", "memory", "arrow"):
        return start_server(request.param).table()
    root = tmp_path / "table"
    if request.param == "local":
        return LocalStorage(str(root))
    if request.param == "memory":
        return MemoryStorage()
    root.mkdir()
    return ArrowStorage("fs://table", filesystem=pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem()))


@pytest.fixture
def exclusive(storage: Storage) -> Storage:
    """Storages that can create exclusively; pyarrow's local one can't, see test_arrow.py."""
    return LocalStorage(storage._filesystem.base_path) if storage.root == "fs://table" else storage


def test_it_is_a_storage(storage: Storage) -> None:
    assert isinstance(storage, Storage)


def test_what_was_written_is_read(storage: Storage) -> None:
    storage.write("a/b/c.bin", b"one")
    storage.write("a/b/c.bin", b"two, longer")

    assert storage.read("a/b/c.bin") == b"two, longer"


def test_reading_what_is_not_there_is_path_not_found(storage: Storage) -> None:
    storage.write("a", b"")

    for read in (storage.read, storage.open_input):
        with pytest.raises(PathNotFound, match="nothing"):
            read("nothing")


def test_a_new_file_is_created_once(exclusive: Storage) -> None:
    exclusive.create_new("deep/er/lock", b"first")

    for data in (b"second", b""):
        with pytest.raises(PathExists, match="lock"):
            exclusive.create_new("deep/er/lock", data)
    assert exclusive.read("deep/er/lock") == b"first"


def test_an_empty_new_file_is_created_once(exclusive: Storage) -> None:
    exclusive.create_new("deep/empty", b"")

    with pytest.raises(PathExists):
        exclusive.create_new("deep/empty", b"x")
    assert exclusive.read("deep/empty") == b""


def test_parquet_goes_through_output_and_input(storage: Storage) -> None:
    table = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})

    with storage.open_output("p=1/f.parquet") as sink:
        pq.write_table(table, sink)
    with storage.open_input("p=1/f.parquet") as source:
        found = pq.read_table(source)

    assert found.equals(table)
    info = storage.stat("p=1/f.parquet")
    assert info is not None
    assert info.size_bytes == len(storage.read("p=1/f.parquet"))


def test_an_existing_file_is_replaced_by_an_output(storage: Storage) -> None:
    storage.write("f", b"old and long")

    with storage.open_output("f") as sink:
        sink.write(b"new")

    assert storage.read("f") == b"new"


def test_a_listing_is_sorted_and_one_level_deep(storage: Storage) -> None:
    for path in ("b/2.txt", "b/1.txt", "a.txt", "b/c/3.txt"):
        storage.write(path, b"12345")

    assert [(info.path, info.is_dir, info.size_bytes) for info in storage.list("")] == [
        ("a.txt", False, 5),
        ("b", True, 0),
    ]
    assert [info.name for info in storage.list("b")] == ["1.txt", "2.txt", "c"]


def test_listing_a_missing_folder_or_a_file_is_empty(storage: Storage) -> None:
    assert storage.list("") == ()
    assert storage.list("missing/folder") == ()
    assert list(storage.walk("missing")) == []


def test_a_walk_finds_all_files_below(storage: Storage) -> None:
    for path in ("t/a/1", "t/b/c/2", "t/3", "other/4"):
        storage.write(path, b"x")

    assert sorted(info.path for info in storage.walk("t")) == ["t/3", "t/a/1", "t/b/c/2"]
    assert sorted(info.path for info in storage.walk("")) == ["other/4", "t/3", "t/a/1", "t/b/c/2"]


def test_stat_tells_files_folders_and_nothing_apart(storage: Storage) -> None:
    storage.write("a/f", b"123")

    file, folder = storage.stat("a/f"), storage.stat("a")
    assert file is not None
    assert folder is not None
    assert (file.size_bytes, file.is_dir, folder.is_dir) == (3, False, True)
    assert storage.stat("a/g") is None
    assert storage.stat("a/f/deeper") is None


def test_delete_says_whether_there_was_a_file(storage: Storage) -> None:
    storage.write("a/f", b"1")

    assert storage.delete("a/f")
    assert not storage.delete("a/f")
    assert not storage.delete("nowhere/f")


def test_a_tree_is_deleted_with_all_it_holds_and_twice(storage: Storage) -> None:
    for path in ("t/a/1", "t/2", "tt/3"):
        storage.write(path, b"x")

    storage.delete_tree("t")
    storage.delete_tree("t")

    assert [info.path for info in storage.walk("")] == ["tt/3"]
    assert storage.stat("t") is None


def test_the_whole_table_can_be_deleted(storage: Storage) -> None:
    storage.write("t/1", b"x")

    storage.delete_tree("")

    assert list(storage.walk("")) == []


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leaves_the_table_is_refused_by_every_verb(storage: Storage, path: str) -> None:
    verbs = [
        storage.read,
        storage.open_input,
        storage.open_output,
        storage.list,
        lambda p: list(storage.walk(p)),
        storage.stat,
        storage.delete,
        storage.delete_tree,
        storage.full_path,
        lambda p: storage.write(p, b""),
        lambda p: storage.create_new(p, b""),
    ]
    for verb in verbs:
        with pytest.raises(StorageError, match="leaves the table"):
            verb(path)


@pytest.mark.parametrize("path", ["..a", "a..", "a/...", "p=a%2Fb/f", "p=a b/ü", "p=a:b/c?d", "a\\b", ".hoodie/x"])
def test_unusual_names_that_stay_inside_are_taken(storage: Storage, path: str) -> None:
    if "\\" in path and storage.root.startswith("abfs:"):
        pytest.skip("a backslash is a slash on Azure")
    storage.write(path, b"x")

    assert storage.read(path) == b"x"
    assert [info.path for info in storage.walk("")] == [path]


def test_a_storage_can_travel(storage: Storage) -> None:
    storage.write("f", b"x")

    copy = pickle.loads(pickle.dumps(storage))

    assert copy.read("f") == b"x"
    assert copy.root == storage.root


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_modification_times_can_be_set(kind: str, tmp_path: Path) -> None:
    storage: Storage = LocalStorage(str(tmp_path)) if kind == "local" else MemoryStorage()
    storage.write("f", b"x")

    storage.set_modified("f", 1_600_000_000_123)

    info = storage.stat("f")
    assert info is not None
    assert info.modified_ms == 1_600_000_000_123
    assert storage.list("")[0].modified_ms == 1_600_000_000_123


def test_a_folder_called_like_a_temporary_file_is_listed_with_what_is_in_it(storage: Storage) -> None:
    """Half-written files are hidden; folders have their names from partition values."""
    name = ".pyhudi-x.tmp"
    storage.write(f"{name}/f", b"x")
    storage.write(f"p/{name}/{name}/g", b"x")

    assert [(info.path, info.is_dir) for info in storage.list("")] == [(name, True), ("p", True)]
    assert [(info.path, info.is_dir) for info in storage.list("p")] == [(f"p/{name}", True)]
    assert sorted(info.path for info in storage.walk("")) == [f"{name}/f", f"p/{name}/{name}/g"]
