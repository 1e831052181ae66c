"""Structured Streaming: tables as sinks and as sources, on a classic session and on Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
SINK_CHECKPOINT = "_hudi_streaming_sink_checkpoint"
WRITE = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.streaming.retry.interval.ms": "1",
}


class Source:
    """A folder of Parquet files, each a batch of a stream."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0
        folder.mkdir()

    def add(self, *rows: tuple[int, int], ts: int = 1, deleted: bool = False) -> None:
        data = [{"id": key, "v": value, "ts": ts, "_hoodie_is_deleted": deleted} for key, value in rows]
        pq.write_table(pa.Table.from_pylist(data, SCHEMA), self.folder / f"{self.files:04d}.parquet")
        self.files += 1

    def stream(self, spark: Any) -> Any:
        schema = "id long, v long, ts long, _hoodie_is_deleted boolean"
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "source")


@contextmanager
def enabled(spark: Any) -> Iterator[None]:
    pyhudi.enable(spark)
    try:
        yield
    finally:
        pyhudi.disable(spark)


def run(writer: Any, checkpoint: Path, *args: Any, **more: Any) -> None:
    """Until all that is there is written."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(*args, **more)
    assert query.awaitTermination(120)


def values(table: HudiTable) -> dict[int, int]:
    return {row["id"]: row["v"] for row in table.scan(["id", "v"]).to_arrow().to_pylist()}


def batches(table: HudiTable) -> list[str | None]:
    """What the commits say of the stream, oldest first."""
    meta = table._meta.reload()
    return [meta.commits.metadata(instant).extra_metadata.get(SINK_CHECKPOINT) for instant in meta.timeline.commits()]


def forget_last_batch(checkpoint: Path) -> None:
    """As when the driver is killed after the commit of a batch and before Spark notes that it is done."""
    newest = max((checkpoint / "commits").iterdir(), key=lambda file: int(file.name) if file.name.isdigit() else -1)
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def test_each_batch_is_written_once_however_often_spark_asks(spark: Any, tmp_path: Path, source: Source) -> None:
    checkpoint, path = tmp_path / "checkpoint", tmp_path / "t"
    write = pyhudi.write_batches_to(path, WRITE)
    source.add((1, 1), (2, 2))
    source.add((2, 20), (3, 3), ts=2)
    source.add((1, 1), ts=3, deleted=True)
    run(source.stream(spark).writeStream.foreachBatch(write), checkpoint)
    table = HudiTable.open(path)
    assert values(table) == {2: 20, 3: 3}
    said = [f'{{"default_single_writer":"{n}"}}' for n in range(3)]
    assert batches(table) == said

    forget_last_batch(checkpoint)
    table.upsert([{"id": 1, "v": 100, "ts": 4, "_hoodie_is_deleted": False}])
    source.add((4, 4))
    run(source.stream(spark).writeStream.foreachBatch(write), checkpoint)
    assert batches(table) == [*said, None, '{"default_single_writer":"3"}'], "batch 2 was not written again"
    assert values(table) == {1: 100, 2: 20, 3: 3, 4: 4}


def test_format_hudi_is_the_same_writer(spark: Any, tmp_path: Path, source: Source) -> None:
    checkpoint, path = tmp_path / "checkpoint", tmp_path / "t"
    source.add((1, 1), (2, 2))
    with enabled(spark):
        stream = source.stream(spark)
        assert stream.isStreaming
        writer = stream.writeStream.format("hudi").options(**WRITE).outputMode("append").partitionBy("ts")
        run(writer.queryName("to_hudi"), checkpoint, str(path))
    table = HudiTable.open(path)
    assert values(table) == {1: 1, 2: 2}
    assert table.config.partition_fields == ("ts",)
    assert batches(table) == ['{"default_single_writer":"0"}']
