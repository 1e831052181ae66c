"""A table in memory for tests of file groups, and its rows read back by plain pyarrow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.write.spec import BaseFileOptions, WriteSpec
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import BaseFile
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage

TASK = TaskContext(3, 5, 7)
FIRST = "20240101000000000"
SECOND = "20240102000000000"
THIRD = "20240103000000000"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("tie", pa.string()),
        pa.field("city", pa.string()),
    ]
)


class Table:
    """One table in memory, and shortcuts to write and look."""

    def __init__(self, schema: pa.Schema = SCHEMA, **changes: Any) -> None:
        self.storage = MemoryStorage()
        self.clock = FixedClock(1_700_000_000_000)
        options = BaseFileOptions(**changes.pop("file", {"bloom_num_entries": 50}))
        self.spec = WriteSpec(self.storage, FIRST, "trips", 9, schema, file=options, **changes)

    def at(self, instant_time: str, **changes: Any) -> WriteSpec:
        return replace(self.spec, instant_time=instant_time, **changes)

    def file(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(pa.BufferReader(self.storage.read(path)))

    def rows(self, path: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.file(path).read().to_pylist()
        return rows


def base_of(status: WriteStatus, instant_time: str) -> BaseFile:
    """The file that a status tells of, as the file system view would."""
    stat = status.stat
    assert stat.path is not None
    assert stat.partition_path is not None
    return BaseFile(stat.path, stat.partition_path, stat.file_id, instant_time, stat.file_size_in_bytes)
