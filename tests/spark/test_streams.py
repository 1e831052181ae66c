"""Structured Streaming: tables as sinks and as sources, on a classic session and on Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

import pyhudi
from pyhudi import ConfigError, HudiTable
from pyhudi.session.stream_source import FollowedTable

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


PLAIN = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])
START = "hoodie.datasource.streaming.startOffset"
COMMITS, BYTES = (f"hoodie.pyhudi.streaming.max.{what}.per.batch" for what in ("commits", "bytes"))
TYPE, FORMAT = "hoodie.datasource.query.type", "hoodie.datasource.query.incremental.format"


class Seen:
    """What the batches of a stream brought, in files: on Spark Connect another process sees them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def __call__(self, df: Any, batch_id: int) -> None:
        rows = df.toArrow()
        pq.write_table(rows, self.folder / f"{batch_id:04d}.parquet")

    def batches(self, column: str = "v") -> list[list[Any]]:
        return [sorted(pq.read_table(file)[column].to_pylist()) for file in sorted(self.folder.iterdir())]


def follow(spark: Any, table: HudiTable, tmp_path: Path, options: Mapping[str, str], column: str = "v") -> list[Any]:
    """The batches since the last call."""
    folder = tmp_path / f"seen{len(list(tmp_path.iterdir()))}"
    seen = Seen(folder)
    stream = spark.readStream.format("hudi").options(**options).load(table.path)
    run(stream.writeStream.foreachBatch(seen), tmp_path / "checkpoint")
    return seen.batches(column)


def small_table(path: Path, version: str = "9", table_type: str = "COPY_ON_WRITE", **more: Any) -> HudiTable:
    return HudiTable.create(
        path,
        PLAIN,
        record_key="id",
        ordering="ts",
        table_type=table_type,
        options={"hoodie.write.table.version": version},
        **more,
    )


def upsert(table: HudiTable, *rows: tuple[int, int], ts: int = 1) -> None:
    table.upsert([{"id": key, "v": value, "ts": ts} for key, value in rows])


@pytest.mark.parametrize(("version", "table_type"), [("9", "MERGE_ON_READ"), ("6", "COPY_ON_WRITE")])
def test_a_stream_follows_a_table_and_goes_on_after_a_restart(
    spark: Any, tmp_path: Path, version: str, table_type: str
) -> None:
    table = small_table(tmp_path / "t", version, table_type)
    upsert(table, (1, 1), (2, 2))
    upsert(table, (2, 20), ts=2)
    assert follow(spark, table, tmp_path, {}) == [[1, 20]]

    upsert(table, (3, 3))
    upsert(table, (1, 10), ts=2)
    upsert(table, (4, 4))
    assert follow(spark, table, tmp_path, {COMMITS: "2"}) == [[3, 10], [4]]
    assert follow(spark, table, tmp_path, {}) == []


def test_a_batch_is_read_again_as_it_was_and_hudis_offsets_are_in_the_checkpoint(spark: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "t")
    upsert(table, (1, 1))
    assert follow(spark, table, tmp_path, {}) == [[1]]
    first = table.timeline.last_commit()
    assert first is not None
    offset = (tmp_path / "checkpoint/offsets/0").read_text().splitlines()[-1]
    assert json.loads(offset) == {"offsetCommitTime": first.completion_time}

    forget_last_batch(tmp_path / "checkpoint")
    upsert(table, (2, 2))
    assert follow(spark, table, tmp_path, {}) == [[1], [2]]


def test_a_stream_begins_where_it_is_told(spark: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "t")
    upsert(table, (1, 1))
    upsert(table, (2, 2))
    first = str(table.timeline.commits().instants[0].completion_time)
    with enabled(spark):  # the session's readStream knows the older name of the format as well
        stream = spark.readStream.format("org.apache.hudi").option(START, first).load(table.path)
        run(stream.writeStream.foreachBatch(Seen(tmp_path / "seen")), tmp_path / "other")
    assert [file.name for file in (tmp_path / "seen").iterdir()] == ["0000.parquet"]
    assert pq.read_table(tmp_path / "seen")["v"].to_pylist() == [2]
    assert not any(follow(spark, table, tmp_path, {START: "latest"}))


def test_a_stream_of_changes_has_deletes_too(spark: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "t", cdc=True)
    upsert(table, (1, 1), (2, 2))
    table.delete([{"id": 1}])
    options = {TYPE: "incremental", FORMAT: "cdc", COMMITS: "1"}
    assert follow(spark, table, tmp_path, options, "op") == [["i", "i"], ["d"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({FORMAT: "cdc"}, "needs hoodie.datasource.query.type=incremental"),
        ({"as.of.instant": "20240101"}, "says nothing to a stream"),
        ({TYPE: "read_optimized"}, "rows of log files"),
        ({COMMITS: "0"}, "at least 1"),
    ],
)
def test_options_that_mean_nothing_for_a_stream_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        FollowedTable({"path": "/t", **options}, StructType([]))
