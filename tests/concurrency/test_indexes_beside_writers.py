"""Writers go on while indexes are built: the indexes know every row, and no write gives way."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.validation import validate

OPTIONS = {
    "hoodie.table.name": "indexed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "IN_PROCESS",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
}
INDEXES = {"by_v": {"columns": "v"}, "day": {"expression": "from_unixtime(v, 'yyyy-MM-dd')"}}


def rows(partition: str, ts: int) -> pa.Table:
    numbers = range(ts % 3, 6 + ts % 3)
    return pa.table(
        {
            "id": [f"{partition}{number}" for number in numbers],
            "p": [partition] * len(numbers),
            "v": [number * 86_400 * (1 + ts % 4) for number in numbers],
        }
    )


@pytest.mark.slow
def test_indexes_that_are_built_beside_two_writers_have_every_row(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for partition in "xy":
        write_hudi(path, rows(partition, 0), operation="upsert", options=OPTIONS)
    failed: list[BaseException] = []
    done = threading.Event()

    def writes(partition: str) -> None:
        try:
            for ts in range(1, 40):
                write_hudi(path, rows(partition, ts), operation="upsert", options=OPTIONS)
                if done.is_set():
                    return
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=writes, args=(partition,)) for partition in "xy"]
    for writer in writers:
        writer.start()
    handle = HudiTable.open(path)
    for name, what in INDEXES.items():
        handle.indexes.create(name, while_writing=True, options=OPTIONS, **what)
    done.set()
    for writer in writers:
        writer.join()
    assert failed == []
    meta = HudiTable.open(path).state()
    assert validate(meta) == ()
    found = MetadataTable.open(meta)
    assert found is not None
    live = HudiTable.open(path).to_arrow(columns=["id", "v"]).to_pylist()
    pairs = {str(key) for key in found.records("secondary_index_by_v").column("key").to_pylist()}
    assert pairs == {f"{row['v']}${row['id']}" for row in live}
    day = "from_unixtime(v, 'yyyy-MM-dd') = '1970-01-03'"
    kept = HudiTable.open(path).scan(where=day).to_arrow().num_rows
    assert kept == sum(row["v"] == 2 * 86_400 for row in live)
