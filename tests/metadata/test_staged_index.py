"""Tasks of a large load write the record index in pieces: the index is the same, and nothing of the pieces is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.errors import HudiError, StorageError
from pyhudi.filegroup.write.status import from_table, to_batch
from pyhudi.metadata import delta_commit, staged_index
from pyhudi.metadata.partitions.base import TableCommit
from pyhudi.metadata.partitions.record_index import RecordIndexPartition
from pyhudi.metadata.staged_index import StagedIndexWriter, staged_content, with_keys_read_back
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import StagedIndexFile, TableChange, WriteStat, WriteStatus
from pyhudi.model.filenames import INDEX_PIECES_FOLDER
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from tests.support.tables.clustered import Clustered
from tests.support.tables.record_indexed import places
from tests.support.tables.small import Row
from tests.support.tables.staged_index import blocks_of_index, small_staged_files

ON = {"metadata_enable": "true", "metadata_global_record_level_index_enable": "true"}
FEW = {
    "metadata_global_record_level_index_min_filegroup_count": "2",
    "metadata_global_record_level_index_max_filegroup_count": "2",
}
ROWS: list[Row] = [(f"k{n:02}", f"p{n % 3}", 1, n) for n in range(30)]


def table_of(version: str = "9", kind: str = "COPY_ON_WRITE", **options: str) -> Clustered:
    return Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **{**ON, **FEW, **options})


def left_of_pieces(table: Clustered) -> list[str]:
    return [entry.path for entry in table.storage.walk(INDEX_PIECES_FOLDER)]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_index_in_pieces_has_the_keys_of_the_load_and_is_kept_up(
    version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_staged_files(monkeypatch)
    table = table_of(version, kind)
    table.bulk_insert(*ROWS)
    assert blocks_of_index(table.meta) == [3, 3]  # a block of each of the three base files
    assert left_of_pieces(table) == []
    assert validate(table.meta) == ()
    table.upsert(("k00", "p0", 2, 100), ("k99", "p1", 2, 99))
    table.delete(("k01", "p1"))
    table.bulk_insert(("n1", "p0", 1, 1), ("n2", "p2", 1, 2))
    assert validate(table.meta) == ()
    live = {(p, key) for key, p, _, _ in ROWS if key != "k01"} | {("p1", "k99"), ("p0", "n1"), ("p2", "n2")}
    assert places(table.meta).keys() == live


@pytest.mark.thorough
def test_pieces_are_written_in_files_of_so_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch, most_keys=15)
    table = table_of()
    table.bulk_insert(*ROWS)
    assert blocks_of_index(table.meta) == [2, 2]  # of the keys of two base files, and of the third
    assert validate(table.meta) == ()


def test_a_load_of_few_keys_makes_no_pieces() -> None:
    table = table_of()
    table.bulk_insert(*ROWS)
    assert blocks_of_index(table.meta) == [1, 1]
    assert validate(table.meta) == ()


@pytest.mark.thorough
def test_of_a_key_in_several_pieces_the_file_that_was_written_last_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch)
    for most in (8, 1):
        monkeypatch.setattr(staged_index, "_PIECES_MAX", most)
        table = table_of()
        result = table.bulk_insert(("k", "x", 1, 1), ("k", "y", 1, 2), ("k", "z", 1, 3), ("l", "x", 1, 4))
        last = max(stat.path or "" for stat in table.meta.commits.metadata(result_instant(table)).stats())
        assert last.startswith("z/"), result
        assert places(table.meta)["z", "k"] in last
        assert set(places(table.meta)) == {("z", "k"), ("x", "l")}


def result_instant(table: Clustered) -> Any:
    return table.meta.timeline.commits().instants[-1]


@pytest.mark.thorough
def test_pieces_of_many_tasks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch)
    monkeypatch.setattr(staged_index, "_PIECES_MAX", 2)
    table = table_of()
    table.bulk_insert(*ROWS)
    assert blocks_of_index(table.meta) == [1, 1]
    assert left_of_pieces(table) == []
    assert validate(table.meta) == ()
    assert len(places(table.meta)) == len(ROWS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("limit", "most", "blocks"),
    [
        ("_RECORDS_MAX", 1, 0),  # a joined piece that grows large is cut by ranges of keys
        ("_JOINED_MAX", 2, 2),  # more pieces than may be open, three, are joined two at a time
    ],
)
def test_joined_pieces_keep_to_their_limits_and_have_all_keys(
    limit: str, most: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_staged_files(monkeypatch)
    monkeypatch.setattr(staged_index, "_PIECES_MAX", 2)
    monkeypatch.setattr(staged_index, limit, most)
    table = table_of()
    table.bulk_insert(*ROWS)
    assert not blocks or blocks_of_index(table.meta) == [blocks, blocks]
    assert validate(table.meta) == ()
    assert len(places(table.meta)) == len(ROWS)


@pytest.mark.thorough
def test_pieces_of_tasks_that_saw_different_file_groups_are_not_joined_and_their_keys_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_staged_files(monkeypatch)
    monkeypatch.setattr(staged_index, "_PIECES_MAX", 1)
    counts = iter([2, 3, 2])
    monkeypatch.setattr(StagedIndexWriter, "_groups", lambda self: next(counts))
    table = table_of()
    table.bulk_insert(*ROWS)
    assert validate(table.meta) == ()
    assert len(places(table.meta)) == len(ROWS)


@pytest.mark.thorough
def test_an_index_of_each_partition_takes_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch)
    table = Clustered(
        "9", index_type="RECORD_LEVEL_INDEX", metadata_enable="true", metadata_record_level_index_enable="true"
    )
    table.bulk_insert(*ROWS)
    table.bulk_insert(("n1", "p0", 1, 1), ("n2", "new", 1, 2))
    assert validate(table.meta) == ()
    assert ("new", "n2") in places(table.meta)


@pytest.mark.thorough
def test_an_index_with_other_file_groups_than_the_tasks_saw_takes_the_keys_of_the_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_staged_files(monkeypatch)
    monkeypatch.setattr(StagedIndexWriter, "_groups", lambda self: 3)
    table = table_of()
    table.bulk_insert(*ROWS)
    assert blocks_of_index(table.meta) == [1, 1]
    assert validate(table.meta) == ()
    assert len(places(table.meta)) == len(ROWS)


KEYS = [pa.array(["c", "a", "ä"]), pa.array(["b", "d"])]


def reported(storage: MemoryStorage, keys: list[pa.Array]) -> list[WriteStatus]:
    """Statuses of files with these keys, in pieces for an index of two file groups."""
    paths = ["p", ""]
    statuses = [
        WriteStatus(WriteStat(f"file-{n}", f"{path}/file-{n}", path, "null"), new_keys=own)
        for n, (path, own) in enumerate(zip(paths, keys, strict=True))
    ]
    with pytest.MonkeyPatch.context() as patched:
        small_staged_files(patched, most_keys=100)
        patched.setattr(StagedIndexWriter, "_groups", lambda self: 2)
        writer = StagedIndexWriter(storage, 9, "20260101000000000", 0, 1, 100)
        return list(writer.reported(TaskContext(0, 0, 0), statuses))


def test_keys_are_read_back_for_the_file_that_has_them() -> None:
    storage = MemoryStorage()
    statuses = reported(storage, KEYS)
    assert sum(piece.records for status in statuses for piece in status.staged_index) == 5
    assert [len(status.new_keys) for status in statuses if status.new_keys is not None] == [0, 0]
    back = with_keys_read_back(storage, statuses)
    assert [sorted(status.new_keys.to_pylist()) for status in back if status.new_keys is not None] == [
        ["a", "c", "ä"],
        ["b", "d"],
    ]
    assert not any(status.staged_index for status in back)


def test_statuses_travel_with_their_pieces() -> None:
    statuses = [
        WriteStatus(WriteStat("f", "p/f", "p", "null"), staged_index=(StagedIndexFile(1, 2, "there", 3, 4, 5),)),
        WriteStatus(WriteStat("g", "p/g", "p", "null")),
    ]
    assert from_table(pa.Table.from_batches([to_batch(statuses)])) == statuses


def test_a_piece_whose_file_has_become_shorter_is_an_error_that_says_where() -> None:
    storage = MemoryStorage()
    piece = next(piece for status in reported(storage, KEYS) for piece in status.staged_index)
    assert len(staged_content(storage, piece)) == piece.size_bytes
    storage.write(piece.path, storage.read(piece.path)[: piece.size_bytes - 1])
    with pytest.raises(StorageError, match=rf"{piece.path} at byte 0: {piece.size_bytes} bytes .* expected"):
        staged_content(storage, piece)
    with pytest.raises(StorageError, match="write again"):
        with_keys_read_back(storage, [WriteStatus(WriteStat("f", "p/f", "p", "null"), staged_index=(piece,))])


@pytest.mark.thorough
@pytest.mark.filterwarnings("error::pyhudi.metadata.build.MetadataTableRebuilt")
def test_a_piece_that_is_cut_fails_the_write_and_leaves_the_metadata_table_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_staged_files(monkeypatch)
    table = table_of()
    table.bulk_insert(("a", "x", 1, 1))

    def cut(storage: MemoryStorage, piece: StagedIndexFile) -> bytes:
        storage.write(piece.path, storage.read(piece.path)[: piece.size_bytes - 1])
        return staged_content(storage, piece)

    with monkeypatch.context() as patched:
        patched.setattr(delta_commit, "staged_content", cut)
        with pytest.raises(StorageError, match="Nothing of this write is visible"):
            table.bulk_insert(*ROWS)
    table.bulk_insert(("b", "x", 1, 1))
    assert validate(table.meta) == ()
    assert [row[0] for row in table.rows()] == ["a", "b"]


@pytest.mark.thorough
def test_a_load_that_fails_leaves_no_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch)
    table = table_of()
    table.bulk_insert(("a", "x", 1, 1))

    def fails(*_: Any) -> bytes:
        assert left_of_pieces(table)
        raise HudiError("no")

    with monkeypatch.context() as patched:
        patched.setattr(delta_commit, "staged_content", fails)
        with pytest.raises(HudiError, match="no"):
            table.bulk_insert(*ROWS)
    assert left_of_pieces(table) == []
    table.bulk_insert(("b", "x", 1, 1))
    assert validate(table.meta) == ()
    assert [row[0] for row in table.rows()] == ["a", "b"]


@pytest.mark.thorough
def test_pieces_of_instants_that_are_over_are_deleted_by_the_next_clean_and_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_staged_files(monkeypatch)
    table = table_of()
    table.bulk_insert(("a", "x", 1, 1))
    first = table.meta.timeline.commits().instants[0].requested_time
    gone, later = f"{int(first) - 1}", "99990101000000000"
    for instant_time in (first, gone, later):
        table.storage.write(f"{INDEX_PIECES_FOLDER}/{instant_time}/0-0-0-0", b"left")
    table.upsert(("a", "x", 2, 2), clean_automatic="true")
    assert left_of_pieces(table) == [f"{INDEX_PIECES_FOLDER}/{later}/0-0-0-0"]


def test_what_a_status_says_of_other_columns_does_not_depend_on_pieces() -> None:
    plain = WriteStatus(WriteStat("f", "p/f", "p", "null"), 3, 1, "warning", None, pa.array(["k"]), pa.array(["r"]))
    (found,) = from_table(pa.Table.from_batches([to_batch([plain])]))
    assert found == replace(plain)


def test_keys_that_left_the_table_are_compared_with_those_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    small_staged_files(monkeypatch)
    table = table_of()
    table.bulk_insert(("a", "x", 1, 1))
    found = MetadataTable.open(table.meta)
    assert found is not None
    instant = table.meta.timeline.commits().instants[0]
    for left in ({"removed_keys": pa.array(["a", "z"])}, {}):
        came, *others = reported(table.memory, KEYS)
        replaced = {} if left else {"x": pa.array(["a", "z"])}
        commit = TableCommit(instant, TableChange(), (replace(came, **left), *others), replaced)
        update = RecordIndexPartition().update(found, "record_index", commit)
        assert update.deleted.to_pylist() == ["z"]
        assert sorted(update.records.column("key").to_pylist()) == ["a", "b", "c", "d", "ä"]
        assert not update.pieces
