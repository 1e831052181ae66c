"""The files that LocalStorage syncs to the disk, and when, observed by its system calls."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import StorageError
from pyhudi.formats.base.base import BaseFileOptions, Footer
from pyhudi.formats.base.parquet import ParquetFormat
from pyhudi.meta_client import MetaClient
from pyhudi.storage import LocalStorage, MemoryStorage, synced_file, with_sync

Calls = list[tuple[str, str]]
ROWS = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "y"], "v": [1, 2, 3]})
OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The names of files and folders of the test that are synced or put in place, in this order."""
    found: Calls = []

    def named(verb: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **more: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{given[0]}") if verb == "sync" else given[-1]
            answer = call(*given, **more)
            if str(path).startswith(str(tmp_path)):  # not what a thread of another test still does
                found.append((verb, str(path)))
            return answer

        return noted

    monkeypatch.setattr(os, "fsync", named("sync", os.fsync))
    monkeypatch.setattr(os, "link", named("put", os.link))
    monkeypatch.setattr(os, "replace", named("put", os.replace))
    return found


pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no /proc here to see what is synced")


def test_a_name_comes_after_its_content_and_is_kept_when_the_call_returns(tmp_path: Path, calls: Calls) -> None:
    storage = LocalStorage(str(tmp_path))

    storage.create_synced("a/b/f", b"1")

    assert [verb for verb, _ in calls][:2] == ["sync", "put"]
    assert calls[0][1].startswith(f"{tmp_path}/a/b/.")  # the temporary file, with the content
    assert calls[1] == ("put", f"{tmp_path}/a/b/f")
    assert sorted(calls[2:]) == sorted(("sync", str(folder)) for folder in (tmp_path, tmp_path / "a", tmp_path / "a/b"))


def test_a_replaced_file_is_the_old_or_the_new_one(tmp_path: Path, calls: Calls) -> None:
    storage = LocalStorage(str(tmp_path))

    storage.write("f", b"1")

    assert [verb for verb, _ in calls] == ["sync", "put"]


def test_what_others_wrote_and_deleted_is_synced_with_all_folders_above(tmp_path: Path, calls: Calls) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "p/q").mkdir(parents=True)
    (tmp_path / "r").mkdir()
    subprocess.run([sys.executable, "-c", f"open({str(tmp_path / 'p/q/f')!r}, 'w').write('1')"], check=True)

    storage.sync(["p/q/f", "r/gone", "not/there"])

    wanted = {str(tmp_path), *(f"{tmp_path}/{name}" for name in ("p", "p/q", "p/q/f", "r"))}
    assert {path for _, path in calls} == wanted
    assert len(calls) == len(wanted)


def test_the_table_folder_is_kept_by_those_above_it(tmp_path: Path, calls: Calls) -> None:
    storage = LocalStorage(str(tmp_path / "new/table"))
    storage.make_folder(".hoodie")

    storage.sync([""])

    assert {("sync", str(path)) for path in (tmp_path / "new/table", tmp_path / "new", tmp_path)} <= set(calls)


def test_every_file_of_a_commit_is_kept_before_it_completes_and_its_name_afterwards(
    tmp_path: Path, calls: Calls
) -> None:
    table = tmp_path / "t"
    write_hudi(table, ROWS, options=OPTIONS)
    first = len(calls)
    write_hudi(table, ROWS, options=OPTIONS)

    (completed,) = [n for n, (verb, path) in enumerate(calls) if n >= first and verb == "put" and ".commit" in path]
    before = {path for verb, path in calls[first:completed] if verb == "sync"}
    meta = MetaClient.load(LocalStorage(str(table)))
    written = [stat.path for stat in meta.commits.metadata(meta.timeline.commits().instants[-1]).stats()]
    assert len(written) == 2
    for path in written:
        assert {str(table / str(path)), os.path.dirname(table / str(path)), str(table)} <= before
    assert any(path.endswith(".inflight") for path in before)
    assert calls[completed - 1][1].startswith(f"{table}/.hoodie/timeline/.")  # the completed file's content
    assert ("sync", f"{table}/.hoodie/timeline") in calls[completed:]


def test_a_new_table_is_in_its_folder_when_its_properties_are(tmp_path: Path, calls: Calls) -> None:
    write_hudi(tmp_path / "new/t", ROWS, options=OPTIONS)

    properties = next(n for n, (_, path) in enumerate(calls) if path.endswith("/hoodie.properties"))
    then = [path for verb, path in calls[properties:] if verb == "sync"]
    assert {str(tmp_path / name) for name in ("new/t/.hoodie", "new/t", "new", "")} <= set(then)


@pytest.mark.parametrize("sync", ["true", "false"])
def test_nothing_waits_for_the_disk_when_an_option_says_so(tmp_path: Path, calls: Calls, sync: str) -> None:
    options = {**OPTIONS, "hoodie.pyhudi.storage.sync": sync}
    write_hudi(tmp_path / "t", ROWS, options=options)
    write_hudi(tmp_path / "t", ROWS, options=options)
    write_hudi(tmp_path / "t", ROWS, options=options, mode="overwrite")
    table = HudiTable.open(tmp_path / "t")
    table.clean(options={"hoodie.pyhudi.storage.sync": sync})

    assert any(verb == "sync" for verb, _ in calls) == (sync == "true")
    assert table.scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("sync", [True, False], ids=["synced", "not synced"])
def test_a_file_that_is_closed_begins_its_way_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    begun: list[bytes] = []

    def begin(descriptor: int, start: int, size: int, how: int) -> None:
        begun.append(Path(f"/proc/self/fd/{descriptor}").read_bytes())

    monkeypatch.setattr(synced_file, "_write_behind", lambda: begin)
    with with_sync(LocalStorage(tmp_path), sync).open_output("a/b") as sink:
        sink.write(b"content")
        sink.close()  # what the writers of formats do; leaving the block closes once more
    assert begun == ([b"content"] if sync else [])
    assert (tmp_path / "a" / "b").read_bytes() == b"content"


def test_each_row_group_of_a_base_file_begins_its_way_to_the_disk_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(
        synced_file, "_write_behind", lambda: lambda descriptor, *_: sizes.append(os.fstat(descriptor).st_size)
    )
    writer = ParquetFormat.create(LocalStorage(tmp_path), "f.parquet", ROWS.schema, BaseFileOptions())
    for written in (1, 2):
        writer.write(ROWS)
        assert len(sizes) == written

    size = writer.close(Footer())

    assert 0 < sizes[0] < sizes[1] < sizes[2] == size == (tmp_path / "f.parquet").stat().st_size


def test_a_system_that_can_begin_no_write_writes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synced_file, "_write_behind", lambda: None)
    with LocalStorage(tmp_path).open_output("a") as sink:
        sink.write(b"content")
    assert (tmp_path / "a").read_bytes() == b"content"


def test_a_child_process_syncs_with_threads_of_its_own(tmp_path: Path) -> None:
    """A child has none of its parent's threads, so waiting for them would never end."""
    program = (
        "import os, sys, signal; from pyhudi.storage import LocalStorage\n"
        "storage = LocalStorage(sys.argv[1])\n"
        "def write(name): storage.write(name, b'x'); storage.sync([name])\n"
        "write('of the parent'); child = os.fork()\n"
        "if not child: signal.alarm(20); write('of the child'); os._exit(7)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 7


def test_other_storages_have_nothing_to_switch_off() -> None:
    storage = MemoryStorage()
    assert with_sync(storage, False) is storage


def test_a_disk_that_fails_fails_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_hudi(tmp_path / "t", ROWS, options=OPTIONS)
    real = os.fsync

    def broken(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".parquet"):
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match="the file system refused: Input/output error"):
        write_hudi(tmp_path / "t", ROWS.slice(0, 1), options=OPTIONS)
    monkeypatch.setattr(os, "fsync", real)

    table = HudiTable.open(tmp_path / "t")
    assert table.scan().to_arrow().num_rows == 3
    timeline = MetaClient.load(LocalStorage(str(tmp_path / "t"))).timeline
    assert len(timeline.commits()) == 1
    assert not timeline.pending().instants


def test_a_folder_that_cannot_be_synced_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network mounts say so; they keep names by themselves or not at all."""
    real = os.fsync

    def refusing(descriptor: int) -> None:
        if os.path.isdir(os.readlink(f"/proc/self/fd/{descriptor}")):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    write_hudi(tmp_path / "t", ROWS, options=OPTIONS)
    assert HudiTable.open(tmp_path / "t").scan().to_arrow().num_rows == 3
