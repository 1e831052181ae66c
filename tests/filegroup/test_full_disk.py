"""A store that takes no more bytes, wherever a file is by then: an error of ours, and the table as it was."""

from __future__ import annotations

import errno
import gc
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.engine.sorted_ranges import SortedRanges
from pyhudi.errors import StorageError
from pyhudi.filegroup.read import spill as spill_files
from pyhudi.filegroup.rewrite.sort import RowOrder, SortedRows
from pyhudi.storage import MemoryStorage
from tests.support.tables.small import TestTable

KINDS = [
    {},
    {"hoodie.table.base.file.format": "ORC"},
    {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
]


class FullStorage(MemoryStorage):
    """From `fill` on, streams take `room` more bytes each."""

    room: int | None = None

    def open_output(self, path: str) -> Any:
        sink = super().open_output(path)
        return sink if self.room is None else pa.PythonFile(Full(sink, self.room), mode="w")  # type: ignore[arg-type]


class Full:
    closed = False

    def __init__(self, sink: Any, room: int) -> None:
        self._sink, self._room = sink, room

    def write(self, data: bytes) -> int:
        self._room -= len(bytes(data))
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self._sink.write(data))

    def tell(self) -> int:
        return int(self._sink.tell())

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True
        self._sink.close()


@pytest.mark.parametrize("room", [0, 100, 1000])
@pytest.mark.parametrize("options", KINDS, ids=["parquet", "orc", "log"])
def test_a_full_disk_is_an_error_of_ours_and_the_table_stays_as_it_was(options: dict[str, str], room: int) -> None:
    storage = FullStorage()
    table = TestTable(storage, options, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))

    storage.room = room
    for write in (
        lambda: table.upsert(("a", "x", 2, 11), ("b", "y", 2, 21)),
        lambda: table.bulk_insert(("c", "x", 1, 30)),
    ):
        with pytest.raises(StorageError, match=r"could not be written.*No space left"):
            write()
    storage.room = None

    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20)]
    table.upsert(("a", "x", 3, 12))
    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20)]


@contextmanager
def no_room(file_bytes: int) -> Iterator[None]:
    """Files of this process can't become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def many_rows() -> pa.Table:
    return pa.table({"a": pa.array(np.random.default_rng(1).integers(0, 1 << 60, 20_000))})


def sort_in_ranges() -> None:
    rows = many_rows()
    SortedRanges(rows.schema, ["a"], 0, 0, 10_000).load(rows.to_batches(1000))


def sort_rows() -> None:
    with SortedRows(RowOrder(("a",)), 1) as rows:
        for batch in many_rows().to_batches(1000):
            rows.add(pa.Table.from_batches([batch]))
        list(rows.pieces(100))


def keep_log_rows() -> None:
    spill = spill_files._Spill(many_rows().schema, None)
    spill.write([many_rows()])
    spill.read()


@pytest.mark.thorough
@pytest.mark.parametrize("file_bytes", [0, 1000, 20_000])
@pytest.mark.parametrize("work", [sort_in_ranges, sort_rows, keep_log_rows])
def test_a_temporary_folder_without_room_is_an_error_of_ours_that_says_how_to_name_another(
    work: Callable[[], None], file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with no_room(file_bytes), pytest.raises(StorageError, match=r"can't be kept there: .*(TMPDIR|spillable.map.path)"):
        work()

    gc.collect()
    assert list(tmp_path.iterdir()) == []
