"""Symbolic links, pipes and other entries of a table's folder: read as decided, or refused at once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.save_modes import remove_table
from pyhudi.errors import HudiError, PathExists, StorageError
from pyhudi.model.filenames import PROPERTIES_PATH, heartbeat_path, marker_folder
from pyhudi.storage import LocalStorage

ROWS = [{"id": "a", "p": "x", "n": 1}, {"id": "b", "p": "y", "n": 2}]
KEYS = {"record_key": "id", "partition_by": "p"}


LONG_S = 60  # nothing takes so long, on a busy machine either


@pytest.fixture(autouse=True)
def no_test_waits_for_ever() -> Iterator[None]:
    """A call that blocks in the kernel ends with an error, and the test with it."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("blocked")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONG_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Without a metadata table: its readers walk through the folders."""
    write_hudi(tmp_path / "t", ROWS, **KEYS, options={"hoodie.metadata.enable": "false"})
    return tmp_path / "t"


def rows(path: Path) -> list[tuple[str, int]]:
    found = HudiTable.open(path).to_arrow(["id", "n"]).to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


# ---- links to folders


def test_a_partition_on_another_disk_is_read_written_and_cleaned_through_its_link(table: Path) -> None:
    disk = table.parent / "disk"
    os.rename(table / "x", disk)
    (table / "x").symlink_to(disk)

    assert rows(table) == [("a", 1), ("b", 2)]
    write_hudi(table, [{"id": "a", "p": "x", "n": 3}, {"id": "c", "p": "x", "n": 4}])
    assert rows(table) == [("a", 3), ("b", 2), ("c", 4)]
    assert (table / "x").is_symlink()
    assert len(list(disk.glob("*.parquet"))) == 2


def test_links_behind_links_are_followed_while_each_folder_is_there_once(table: Path) -> None:
    disks = [table.parent / "one", table.parent / "two"]
    for disk in disks:
        disk.mkdir()
    os.rename(table / "x", disks[1] / "x")
    (table / "more").symlink_to(disks[0])
    (disks[0] / "x").symlink_to(disks[1] / "x")

    assert [info.path for info in LocalStorage(str(table)).walk("more")] != []
    assert sorted(HudiTable.open(table).inspect.partitions()["partition_path"].to_pylist()) == ["more/x", "y"]


@pytest.mark.parametrize("target", [".", "..", "/", "x", ".hoodie", "y/.."])
def test_a_link_up_or_into_the_table_ends_every_walk_with_its_name(table: Path, target: str) -> None:
    for name in ("again", "and_again"):
        (table / name).symlink_to(target)

    for walk in (
        lambda: HudiTable.open(table).to_arrow(),
        lambda: list(LocalStorage(str(table)).walk("")),
        lambda: HudiTable.open(table).delete_partitions(matching="*"),
    ):
        with pytest.raises(StorageError, match=r"again.*symbolic link.*Remove the link"):
            walk()
    for name in ("again", "and_again"):
        (table / name).unlink()
    assert rows(table) == [("a", 1), ("b", 2)]


def test_links_that_multiply_on_other_disks_end_where_the_first_folder_comes_again(table: Path) -> None:
    """Two links to the next folder in each of forty: without a circle, and with 2^40 paths."""
    folders = [table.parent / f"d{number}" for number in range(41)]
    for folder in folders:
        folder.mkdir()
    for folder, deeper in pairwise(folders):
        for name in "ab":
            (folder / name).symlink_to(deeper)
    (table / "z").symlink_to(folders[0])

    with pytest.raises(StorageError, match="would be in the table twice"):
        rows(table)


def test_a_circle_over_two_disks_is_found(table: Path) -> None:
    other = table.parent / "other"
    other.mkdir()
    (other / "back").symlink_to(other)
    (table / "z").symlink_to(other)

    with pytest.raises(StorageError, match="z/back"):
        rows(table)


def test_deleting_a_tree_takes_its_links_and_leaves_what_they_lead_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "photo").write_bytes(b"x")
    storage = LocalStorage(str(tmp_path / "t"))
    storage.write("folder/f", b"x")
    (tmp_path / "t/folder/inner").symlink_to(kept)
    (tmp_path / "t/link").symlink_to(kept)
    (tmp_path / "t/nowhere").symlink_to("nothing")

    for path in ("folder", "link", "nowhere"):
        storage.delete_tree(path)

    assert os.listdir(tmp_path / "t") == []
    assert (kept / "photo").exists()


def test_a_table_whose_path_is_a_link_can_be_deleted_whole(tmp_path: Path) -> None:
    LocalStorage(str(tmp_path / "t")).write("p/f", b"x")
    (tmp_path / "link").symlink_to(tmp_path / "t")

    LocalStorage(str(tmp_path / "link")).delete_tree("")

    assert not (tmp_path / "t").exists()


def test_replacing_takes_the_links_in_the_table_and_not_what_they_lead_to(table: Path) -> None:
    kept = table.parent / "kept"
    kept.mkdir()
    (kept / "photo").write_bytes(b"x")
    (table / "album").symlink_to(kept)
    (table / "up").symlink_to("..")

    write_hudi(table, [{"id": "z", "p": "x", "n": 9}], mode="replace", **KEYS)

    assert rows(table) == [("z", 9)]
    assert (kept / "photo").exists()
    assert not (table / "album").is_symlink()


def test_a_link_at_the_metadata_table_does_not_stop_writes(table: Path) -> None:
    kept = table.parent / "kept"
    kept.mkdir()
    (kept / "photo").write_bytes(b"x")
    (table / ".hoodie/metadata").symlink_to(kept)

    write_hudi(table, [{"id": "a", "p": "x", "n": 5}])

    assert rows(table) == [("a", 5), ("b", 2)]
    assert (kept / "photo").exists()


def test_links_that_lead_nowhere_are_not_there(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "nothing").symlink_to("gone")
    (tmp_path / "itself").symlink_to("itself")
    (tmp_path / ".pyhudi-x.tmp").symlink_to(".pyhudi-x.tmp")

    assert storage.list("") == ()
    assert [storage.stat(name) for name in ("nothing", "itself", "itself/f")] == [None, None, None]
    with pytest.raises(PathExists, match="leads nowhere"):
        storage.create_new("nothing", b"x")


def test_a_new_file_takes_the_place_of_a_link_and_does_not_go_through_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    storage = LocalStorage(str(tmp_path / "t"))
    storage.make_folder("")
    for name, target in (("written", outside), ("streamed", outside), ("nowhere", tmp_path / "made")):
        (tmp_path / "t" / name).symlink_to(target)

    storage.write("written", b"x")
    for name in ("streamed", "nowhere"):
        with storage.open_output(name) as sink:
            sink.write(b"x")

    assert [storage.read(name) for name in ("written", "streamed", "nowhere")] == [b"x"] * 3
    assert outside.read_bytes() == b"mine"
    assert not (tmp_path / "made").exists()


# ---- what is no regular file


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as server:
        folder = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            server.bind(path.name)
        finally:
            os.chdir(folder)


@pytest.mark.parametrize(("make", "kind"), [(a_pipe, "named pipe"), (a_socket, "socket|refused")])
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], None], kind: str) -> None:
    storage = LocalStorage(str(tmp_path))
    make(tmp_path / "f")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "folder").mkdir()
    for call in (storage.read, storage.open_input):
        for name in ("f", "link"):
            with pytest.raises(StorageError, match=kind):
                call(name)
        with pytest.raises(StorageError, match="a folder"):
            call("folder")
    with pytest.raises(StorageError, match=kind):
        storage.open_output("f")
    with pytest.raises(PathExists):
        storage.create_new("f", b"x")
    storage.write("f", b"x")
    assert storage.read("f") == b"x"


def test_a_pipe_with_a_reader_is_not_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    reader = os.open(tmp_path / "f", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(StorageError, match="named pipe"):
            LocalStorage(str(tmp_path)).open_output("f")
    finally:
        os.close(reader)


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def completed_commit(table: Path) -> Path:
    (found,) = (table / ".hoodie/timeline").glob("*_*.*commit")
    return found


def base_file(table: Path) -> Path:
    (found,) = (table / "x").glob("*.parquet")
    return found


@pytest.mark.parametrize(
    "place",
    [
        lambda table: table / PROPERTIES_PATH,
        lambda table: table / f"{PROPERTIES_PATH}.backup",
        completed_commit,
        base_file,
        lambda table: table / ".hoodie/timeline/20200101000000000.commit.requested",
        lambda table: table / marker_folder("20200101000000000") / "MARKERS.type",
        lambda table: table / marker_folder("20200101000000000") / "x/f.parquet.marker.CREATE",
        lambda table: table / heartbeat_path("20200101000000000"),
        lambda table: table / ".hoodie/metadata",
        lambda table: table / ".hoodie/.locks/table_lock.json",
        lambda table: table / ".hoodie/.locks/.pyhudi-table_lock.json.tmp",
        lambda table: table / ".hoodie/lock",
        lambda table: table / ".hoodie/timeline/history/_version_",
        lambda table: table / ".hoodie/.schema/20200101000000000.schemacommit",
        lambda table: table / "x/.hoodie_partition_metadata",
    ],
)
def test_a_pipe_in_the_place_of_any_file_of_a_table_never_blocks(table: Path, place: Callable[[Path], Path]) -> None:
    replaced_by_a_pipe(place(table))
    provider = "FILESYSTEM" if place(table).name == "lock" else "STORAGE"
    options = {"hoodie.write.lock.provider": provider, "hoodie.write.lock.wait_time_ms": "20"}
    for call in (
        lambda: rows(table),
        lambda: HudiTable.open(table).history(),
        lambda: write_hudi(table, [{"id": "a", "p": "x", "n": 7}], options=options),
        lambda: HudiTable.open(table).clean(options=options),
    ):
        with suppress(HudiError):
            call()


# ---- overwriting


def test_a_table_that_can_not_be_deleted_keeps_its_properties(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("/y"))

    with pytest.raises(StorageError, match=r"t/y can't be deleted.*nothing was deleted"):
        write_hudi(table, ROWS, mode="replace", **KEYS)

    assert rows(table) == [("a", 1), ("b", 2)]
    monkeypatch.undo()
    remove_table(LocalStorage(str(table)))
    assert os.listdir(table) == []


def test_a_mount_point_in_a_table_is_seen_before_anything_is_deleted(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path).endswith(("/x", "/t")))

    with pytest.raises(StorageError, match="t/x can't be deleted"):
        write_hudi(table, ROWS, mode="replace", **KEYS)

    assert rows(table) == [("a", 1), ("b", 2)]


def test_folders_that_lie_too_deep_to_be_deleted_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.13 a tree is deleted by recursion, and a path has room for two thousand folders."""

    def too_deep(path: str) -> None:
        raise RecursionError

    storage = LocalStorage(str(tmp_path))
    storage.make_folder("d/d/d")
    monkeypatch.setattr(shutil, "rmtree", too_deep)

    with pytest.raises(StorageError, match="too deep"):
        storage.delete_tree("d")
