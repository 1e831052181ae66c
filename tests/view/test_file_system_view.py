"""Which files the view takes for the table: partitions, commits, replaced groups, slices of log files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, StorageError
from pyhudi.model.instant import ActionKind, State
from pyhudi.storage.base import FileInfo
from pyhudi.storage.local import LocalStorage
from pyhudi.view.file_system_view import FileSystemView, listed_partitions
from tests.support.tables.hand_made import HandMadeTable, base, instant, log


def names(view: FileSystemView, partition: str) -> list[str]:
    return [base_file.name for base_file in view.base_files(partition)]


def shapes(view: FileSystemView, partition: str) -> list[tuple[str, str | None, list[str]]]:
    """(base instant, base file, log files) of the newest slices."""
    return [
        (s.base_instant, s.base_file.name if s.base_file else None, [f.name for f in s.log_files])
        for s in view.slices(partition)
    ]


def test_partitions_are_folders_with_metadata_at_any_depth() -> None:
    table = HandMadeTable(9).commit(1)
    table.partition("a").partition("2024/01/15").partition("2024").partition("b", ".hoodie_partition_metadata.parquet")
    table.file(f"a/{base('f', 1)}").file(f"2024/01/15/{base('g', 1)}").file(f"2024/{base('h', 1)}")
    table.file(f"no-partition/{base('x', 1)}").file(f".hoodie/metadata/files/{base('y', 1)}")

    view = FileSystemView.load(table.meta())

    assert view.partitions() == ("2024", "2024/01/15", "a", "b")
    assert [b.path for b in view.all_base_files()] == [
        f"2024/{base('h', 1)}",
        f"2024/01/15/{base('g', 1)}",
        f"a/{base('f', 1)}",
    ]
    assert names(view, "b") == []
    assert names(view, "no such partition") == []


def test_a_table_without_partitions_has_its_files_in_the_root() -> None:
    table = HandMadeTable(9).commit(1).partition("").file(base("f", 1))

    view = FileSystemView.load(table.meta())

    assert view.partitions() == ("",)
    assert names(view, "") == [base("f", 1)]


def test_only_the_named_partitions_are_listed() -> None:
    table = HandMadeTable(9).commit(1).partition("a").partition("b")
    table.file(f"a/{base('f', 1)}").file(f"b/{base('g', 1)}")

    view = FileSystemView.load(table.meta(), partitions=["b", "c", "b"])

    assert view.partitions() == ("b",)
    with pytest.raises(StorageError):
        FileSystemView.load(table.meta(), partitions=["../elsewhere"])


def test_files_of_uncommitted_instants_are_not_there_and_older_ones_are_committed() -> None:
    table = HandMadeTable(9, "COPY_ON_WRITE").partition("a")
    table.commit(5).commit(7, state=State.INFLIGHT).commit(8, state=State.REQUESTED)
    for number in (1, 5, 6, 7, 8):  # 1 was archived; 6 was rolled back, its file left behind
        table.file(f"a/{base(f'f{number}', number)}")

    assert names(FileSystemView.load(table.meta()), "a") == [base("f1", 1), base("f5", 5)]


def test_the_newest_file_of_a_group_as_of_an_instant_counts() -> None:
    table = HandMadeTable(9).commit(1).commit(3).commit(5, state=State.INFLIGHT).partition("a")
    for number in (1, 3, 5):
        table.file(f"a/{base('f', number)}")
    meta = table.meta()

    assert names(FileSystemView.load(meta), "a") == [base("f", 3)]
    assert names(FileSystemView.load(meta, as_of=instant(2)), "a") == [base("f", 1)]
    assert names(FileSystemView.load(meta, as_of=instant(3)), "a") == [base("f", 3)]


@pytest.mark.parametrize(("earlier", "later"), [("0-1-1", "0-1-2"), ("0-1-9", "0-1-10"), ("0-9-12", "0-10-3")])
def test_of_two_attempts_files_of_one_instant_the_later_counts(earlier: str, later: str) -> None:
    table = HandMadeTable(9).commit(1).partition("a")
    for token in (earlier, later):
        table.file(f"a/f-0_{token}_{instant(1)}.parquet")

    (file_slice,) = FileSystemView.load(table.meta()).slices("a")

    assert file_slice.base_file is not None
    assert file_slice.base_file.name == f"f-0_{later}_{instant(1)}.parquet"


@pytest.mark.parametrize("version", [6, 8, 9])
def test_replaced_groups_are_gone_from_the_replace_on_and_there_before(version: int) -> None:
    table = HandMadeTable(version).commit(1).partition("a").file(f"a/{base('old', 1)}").file(f"a/{base('kept', 1)}")
    table.commit(3, action=ActionKind.REPLACECOMMIT, replaced={"a": ("old-0",)}).file(f"a/{base('new', 3)}")
    meta = table.meta()

    assert names(FileSystemView.load(meta), "a") == [base("kept", 1), base("new", 3)]
    assert names(FileSystemView.load(meta, as_of=instant(2)), "a") == [base("kept", 1), base("old", 1)]


def test_pending_clustering_changes_nothing() -> None:
    table = HandMadeTable(9).commit(1).partition("a").file(f"a/{base('f', 1)}")
    table.commit(3, action=ActionKind.CLUSTERING, state=State.INFLIGHT).file(f"a/{base('new', 3)}")

    assert names(FileSystemView.load(table.meta()), "a") == [base("f", 1)]


def test_below_version_8_a_log_names_its_slice() -> None:
    table = HandMadeTable(6).commit(1, action=ActionKind.DELTACOMMIT).partition("a").file(f"a/{base('f', 1)}")
    table.commit(3, action=ActionKind.DELTACOMMIT).file(f"a/{log('f', 1, 10)}").file(f"a/{log('f', 1, 2)}")
    table.file(f"a/{log('f', 1, 1, '.cdc')}").file(f"a/{log('only', 3)}")

    assert shapes(FileSystemView.load(table.meta()), "a") == [
        (instant(1), base("f", 1), [log("f", 1, 2), log("f", 1, 10)]),
        (instant(3), None, [log("only", 3)]),
    ]


def test_from_version_8_on_a_log_belongs_where_its_commit_was_completed() -> None:
    table = HandMadeTable(9).commit(1, action=ActionKind.DELTACOMMIT).partition("a").file(f"a/{base('f', 1)}")
    table.commit(3, 4, ActionKind.DELTACOMMIT).file(f"a/{log('f', 3)}")  # before the compaction
    table.commit(5, 9, ActionKind.DELTACOMMIT).file(f"a/{log('f', 5)}")  # begun before, completed after it
    table.commit(6, 7, ActionKind.COMPACTION).file(f"a/{base('f', 6)}")
    table.commit(10, action=ActionKind.DELTACOMMIT, state=State.INFLIGHT).file(f"a/{log('f', 10)}")
    meta = table.meta()

    assert shapes(FileSystemView.load(meta), "a") == [(instant(6), base("f", 6), [log("f", 5)])]
    assert shapes(FileSystemView.load(meta, as_of=instant(4)), "a") == [(instant(1), base("f", 1), [log("f", 3)])]


@pytest.mark.parametrize("version", [6, 9])
def test_a_pending_compaction_does_not_part_what_a_reader_sees(version: int) -> None:
    table = HandMadeTable(version).commit(1, action=ActionKind.DELTACOMMIT).partition("a").file(f"a/{base('f', 1)}")
    table.commit(3, action=ActionKind.DELTACOMMIT).file(f"a/{log('f', 1 if version < 8 else 3)}")
    table.commit(5, action=ActionKind.COMPACTION, state=State.REQUESTED)
    table.commit(7, action=ActionKind.DELTACOMMIT).file(f"a/{log('f', 5 if version < 8 else 7)}")
    before, after = (1, 5) if version < 8 else (3, 7)

    view = FileSystemView.load(table.meta())

    assert shapes(view, "a") == [(instant(1), base("f", 1), [log("f", before), log("f", after)])]
    assert names(view, "a") == [base("f", 1)]


def test_a_circle_of_symbolic_links_is_an_error_not_an_endless_walk(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = HudiTable.create(tmp_path / "table", schema, record_key="id", partition_by="p")
    table.insert([{"id": 1, "p": "a"}])
    (tmp_path / "table" / "circle").symlink_to(tmp_path / "table")

    with pytest.raises(StorageError, match="symbolic links"):
        table.inspect.partitions()


@pytest.mark.parametrize(("seconds", "in_parallel"), [(0.0, False), (0.05, True)], ids=["quick disk", "slow disk"])
def test_folders_of_a_quick_disk_are_listed_one_by_one(
    seconds: float, in_parallel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, listing, threads = [f"p{number}" for number in range(40)], LocalStorage.list, set[str]()
    for path in paths:
        (tmp_path / path).mkdir()
        (tmp_path / path / ".hoodie_partition_metadata").touch()

    def list_folder(storage: LocalStorage, path: str) -> tuple[FileInfo, ...]:
        threads.add(threading.current_thread().name.partition("_")[0])
        time.sleep(seconds)
        return listing(storage, path)

    monkeypatch.setattr(LocalStorage, "list", list_folder)

    assert sorted(path for path, _ in listed_partitions(LocalStorage(str(tmp_path)))) == sorted(paths)
    assert ("hudi-list" in threads) == in_parallel
