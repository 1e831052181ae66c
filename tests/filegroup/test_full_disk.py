"""A store that takes no more bytes, wherever a file is by then: an error of ours, and the table as it was."""

from __future__ import annotations

import errno
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import StorageError
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
