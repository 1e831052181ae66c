"""Structured Streaming: tables as sinks and as sources, on a classic session and on Spark Connect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

import pyhudi
from pyhudi import ConfigError, HudiTable, StorageError, TableError, TableExists
from pyhudi.services import beside
from pyhudi.session import stream_sink
from pyhudi.session.stream_services import wait_for_services
from pyhudi.session.stream_source import FollowedTable
from pyhudi.spark import capabilities
from pyhudi.storage.clock import FixedClock

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
        path = self.folder / f"{self.files:04d}.parquet"
        pq.write_table(pa.Table.from_pylist(data, SCHEMA), path)
        # Spark takes files by their time; those of one tick of the system's clock would come in any order.
        os.utime(path, (2e9 + self.files, 2e9 + self.files))
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


def run(writer: Any, checkpoint: Path, *args: Any, call: str = "start", **more: Any) -> None:
    """Until all that is there is written.

    Spark waits ten seconds for the Python of a stream, whatever the settings say; a busy machine takes longer.
    """
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    for attempt in range(10):
        try:
            assert getattr(writer, call)(*args, **more).awaitTermination(300)
            return
        except Exception as error:
            if attempt == 9 or "failed to connect back" not in str(error):
                raise


def values(table: HudiTable) -> dict[int, int]:
    return {row["id"]: row["v"] for row in table.scan(["id", "v"]).to_arrow().to_pylist()}


def batches(table: HudiTable) -> list[str | None]:
    """What the commits say of the stream, oldest first."""
    meta = table.state()
    return [meta.commits.metadata(instant).extra_metadata.get(SINK_CHECKPOINT) for instant in meta.timeline.commits()]


def forget_last_batch(checkpoint: Path) -> None:
    """As when the driver is killed after the commit of a batch and before Spark notes that it is done."""
    newest = max((checkpoint / "commits").iterdir(), key=lambda file: int(file.name) if file.name.isdigit() else -1)
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


@pytest.mark.thorough
def test_each_batch_is_written_once_however_often_spark_asks(spark: Any, tmp_path: Path, source: Source) -> None:
    checkpoint, path = tmp_path / "checkpoint", tmp_path / "t"
    write = pyhudi.write_batches_to(path, WRITE)
    source.add((1, 1), (2, 2))
    source.add((2, 20), (3, 3), ts=2)
    source.add((1, 1), ts=3, deleted=True)
    run(source.stream(spark).writeStream.foreachBatch(write), checkpoint)
    table = HudiTable.open(path)
    assert values(table) == {2: 20, 3: 3}
    notes = [f'{{"default_single_writer":"{n}"}}' for n in range(3)]
    assert batches(table) == notes

    forget_last_batch(checkpoint)
    table.upsert([{"id": 1, "v": 100, "ts": 4, "_hoodie_is_deleted": False}])
    source.add((4, 4))
    run(source.stream(spark).writeStream.foreachBatch(write), checkpoint)
    assert batches(table) == [*notes, None, '{"default_single_writer":"3"}'], "batch 2 was not written again"
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
    assert table.state().config.partition_fields == ("ts",)
    assert batches(table) == ['{"default_single_writer":"0"}']
    assert table.metadata.partitions == ("column_stats", "files", "partition_stats")
    assert table.metadata.validate() == ()


def test_a_function_of_a_batch_reads_and_writes_by_format_hudi_and_by_sql(
    spark: Any, tmp_path: Path, source: Source
) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")

    def upserted(batch: Any, batch_id: int) -> None:
        batch.write.format("hudi").options(**WRITE).option("hoodie.table.name", "t").mode("append").save(path)
        session = batch.sparkSession
        session.sql(f"DELETE FROM hudi.`{path}` WHERE v = 0")
        rows = session.read.format("hudi").load(path).select("id", "v", "ts")
        rows.write.format("hudi").options(**WRITE).option("hoodie.table.name", "copy").mode("overwrite").save(copy)

    source.add((1, 1), (2, 0))
    source.add((1, 10), (3, 3), ts=2)
    with enabled(spark):
        run(source.stream(spark).writeStream.foreachBatch(upserted), tmp_path / "checkpoint")
    assert values(HudiTable.open(path)) == values(HudiTable.open(copy)) == {1: 10, 3: 3}


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
    outcomes = Seen(folder)
    stream = spark.readStream.format("hudi").options(**options).load(table.path)
    run(stream.writeStream.foreachBatch(outcomes), tmp_path / "checkpoint")
    return outcomes.batches(column)


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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_a_batch_is_read_again_as_it_was_and_hudis_offsets_are_in_the_checkpoint(spark: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "t")
    upsert(table, (1, 1))
    assert follow(spark, table, tmp_path, {}) == [[1]]
    first = table.state().timeline.last_commit()
    assert first is not None
    offset = (tmp_path / "checkpoint/offsets/0").read_text().splitlines()[-1]
    assert json.loads(offset) == {"offsetCommitTime": first.completion_time}

    forget_last_batch(tmp_path / "checkpoint")
    upsert(table, (2, 2))
    assert follow(spark, table, tmp_path, {}) == [[1], [2]]


@pytest.mark.thorough
def test_a_stream_begins_where_its_option_says(spark: Any, tmp_path: Path) -> None:
    table = small_table(tmp_path / "t")
    upsert(table, (1, 1))
    upsert(table, (2, 2))
    first = str(table.state().timeline.commits().instants[0].completion_time)
    with enabled(spark):  # the session's readStream knows the older name of the format as well
        stream = spark.readStream.format("org.apache.hudi").option(START, first).load(table.path)
        run(stream.writeStream.foreachBatch(Seen(tmp_path / "seen")), tmp_path / "other")
    assert [file.name for file in (tmp_path / "seen").iterdir()] == ["0000.parquet"]
    assert pq.read_table(tmp_path / "seen")["v"].to_pylist() == [2]
    assert not any(follow(spark, table, tmp_path, {START: "latest"}))


def test_limits_are_refused_where_spark_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "PRESENT", replace(capabilities.PRESENT, limits_streams=False))

    with pytest.raises(ConfigError, match=r"max\.commits\.per\.batch.*limits need Spark 4\.2"):
        FollowedTable({COMMITS: "2"}, StructType())
    assert not FollowedTable({}, StructType()).is_limited


@pytest.mark.thorough
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


# ---- what a batch does; a static DataFrame is a batch, too


def batch(spark: Any, *rows: tuple[int, int], ts: int = 1) -> Any:
    return spark.createDataFrame([(key, value, ts) for key, value in rows], "id long, v long, ts long")


def actions(table: HudiTable) -> list[str]:
    return [instant.action.value for instant in table.state().timeline.completed()]


@pytest.mark.thorough
@pytest.mark.classic
def test_compaction_and_cleaning_run_beside_the_batches(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {
        **WRITE,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.async.enabled": "true",
        "hoodie.clean.commits.retained": "1",
    }
    write = pyhudi.write_batches_to(path, options)
    for number in range(7):
        write(batch(spark, (1, number), (2, number), ts=number), number)
        storage = HudiTable.open(path).state().storage
        wait_for_services(storage, 60)
    table = HudiTable.open(path)
    done = actions(table)
    assert done.count("deltacommit") == 7
    assert "commit" in done, "a compaction"
    assert "clean" in done
    assert values(table) == {1: 6, 2: 6}


@pytest.mark.thorough
@pytest.mark.classic
def test_a_service_that_fails_stops_the_stream_before_the_next_batch(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"

    def fail(context: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(beside, "compact_waiting", fail)
    write = pyhudi.write_batches_to(path, {**WRITE, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    write(batch(spark, (1, 1)), 0)
    wait_for_services(HudiTable.open(path).state().storage, 60)
    with pytest.raises(TableError, match=r"service next to the stream has failed.*the disk is full"):
        write(batch(spark, (2, 2)), 1)
    assert values(HudiTable.open(path)) == {1: 1}
    monkeypatch.undo()
    write(batch(spark, (2, 2)), 1)
    assert values(HudiTable.open(path)) == {1: 1, 2: 2}


@pytest.mark.thorough
@pytest.mark.classic
def test_a_batch_is_tried_again_and_left_out_only_if_asked(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock, failures = tmp_path / "t", FixedClock(0), [2]
    real = stream_sink.write

    def shaky(*args: Any) -> Any:
        result = real(*args)
        if failures[0]:
            failures[0] -= 1
            raise StorageError("the answer of the store was lost")
        return result

    monkeypatch.setattr(stream_sink, "write", shaky)
    options = {**WRITE, "hoodie.datasource.write.streaming.retry.interval.ms": "1000"}
    write = stream_sink.BatchWriter(str(path), options, clock=clock)
    write(batch(spark, (1, 1)), 0)
    table = HudiTable.open(path)
    assert batches(table) == ['{"default_single_writer":"0"}'], "it was there after the first try"
    assert clock.slept_s == 1

    monkeypatch.setattr(stream_sink, "write", lambda *args: (_ for _ in ()).throw(StorageError("no room")))
    with pytest.raises(StorageError, match="no room"):
        write(batch(spark, (2, 2)), 1)
    assert clock.slept_s == 1 + 1 + 2, "twice as long from try to try"
    ignoring = {**options, "hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    with pytest.warns(UserWarning, match="batch 1 of the stream 'default_single_writer' is left out"):
        stream_sink.BatchWriter(str(path), ignoring, clock=clock)(batch(spark, (2, 2)), 1)


@pytest.mark.thorough
def test_batches_of_a_new_checkpoint_are_refused_not_lost(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    pyhudi.write_batches_to(path, WRITE)(batch(spark, (1, 1)), 4)
    with pytest.raises(ConfigError, match=r"begins batch 0, but the table has its batch 4"):
        pyhudi.write_batches_to(path, WRITE)(batch(spark, (2, 2)), 0)
    other = {**WRITE, "hoodie.datasource.write.streaming.checkpoint.identifier": "second"}
    pyhudi.write_batches_to(path, other)(batch(spark, (2, 2)), 0)
    assert values(HudiTable.open(path)) == {1: 1, 2: 2}


@pytest.mark.thorough
def test_a_stream_with_a_new_checkpoint_loses_no_batch(spark: Any, tmp_path: Path, source: Source) -> None:
    """Two sources, or a checkpoint that was deleted: both streams begin with batch 0."""
    path = tmp_path / "t"
    source.add((1, 1), (2, 2))
    with enabled(spark):
        for checkpoint in ("first", "second", "second"):
            run(source.stream(spark).writeStream.format("hudi").options(**WRITE), tmp_path / checkpoint, str(path))
            source.add((3, 3))
    table = HudiTable.open(path)
    assert batches(table) == [f'{{"default_single_writer":"{n}"}}' for n in (0, 0, 1, 2)]
    assert values(table) == {1: 1, 2: 2, 3: 3}

    forget_last_batch(tmp_path / "second")
    before = batches(table)
    with enabled(spark):
        run(source.stream(spark).writeStream.format("hudi").options(**WRITE), tmp_path / "second", str(path))
    assert batches(table)[: len(before)] == before
    assert len(batches(table)) == len(before) + 1, "only the file that came last"


@pytest.mark.thorough
def test_a_function_for_foreach_batch_knows_the_queries_apart(spark: Any, tmp_path: Path, source: Source) -> None:
    path = tmp_path / "t"
    source.add((1, 1))
    write = pyhudi.write_batches_to(path, WRITE)
    run(source.stream(spark).writeStream.foreachBatch(write), tmp_path / "first")
    source.add((2, 2))
    placed = pyhudi.write_batches_to(path, {**WRITE, "checkpointLocation": str(tmp_path / "second")})
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    second = source.stream(spark).writeStream.foreachBatch(placed if is_connect else write)
    if is_connect:
        with pytest.raises(Exception, match="begins batch 0, but the table has its batch 0"):
            run(second, tmp_path / "second")
        named = {**WRITE, "hoodie.datasource.write.streaming.checkpoint.identifier": "second"}
        second = source.stream(spark).writeStream.foreachBatch(pyhudi.write_batches_to(path, named))
    run(second, tmp_path / "second")
    assert values(HudiTable.open(path)) == {1: 1, 2: 2}


@pytest.mark.thorough
def test_output_mode_complete_replaces_all_rows_in_one_commit(spark: Any, tmp_path: Path, source: Source) -> None:
    checkpoint, path = tmp_path / "checkpoint", tmp_path / "t"
    source.add((1, 1), (2, 1), (3, 2))
    source.add((4, 2))
    options = {"hoodie.datasource.write.recordkey.field": "v"}
    with enabled(spark):
        counts = source.stream(spark).groupBy("v").count()
        writer = counts.writeStream.format("hudi").options(**options)
        with pytest.raises(ConfigError, match="Output mode update"):
            writer.outputMode("update").start(str(path))
        run(writer.outputMode("complete"), checkpoint, str(path))
    table = HudiTable.open(path)
    assert {row["v"]: row["count"] for row in table.scan(["v", "count"]).to_arrow().to_pylist()} == {1: 2, 2: 2}
    assert actions(table).count("replacecommit") == 2
    with pytest.raises(ConfigError, match="with output mode complete"):
        pyhudi.write_batches_to(path, {"hoodie.datasource.write.operation": "delete"}, complete=True)


@pytest.mark.thorough
def test_another_format_of_writeStream_is_sparks_own(spark: Any, tmp_path: Path, source: Source) -> None:  # noqa: N802
    source.add((1, 1))
    with enabled(spark):
        writer = source.stream(spark).writeStream.format("parquet").partitionBy("v")
        run(writer, tmp_path / "checkpoint", str(tmp_path / "files"))
    assert [folder.name for folder in (tmp_path / "files").glob("v=*")] == ["v=1"]


@pytest.mark.thorough
def test_streams_make_write_and_follow_tables_by_name(spark: Any, tmp_path: Path, source: Source) -> None:
    source.add((1, 1), (2, 2))
    stream_only = {"hoodie.datasource.write.streaming.checkpoint.identifier": "one", "fs.s3a.secret.key": "secret"}
    with enabled(spark):
        try:
            writer = source.stream(spark).writeStream.format("hudi").options(**WRITE, **stream_only)
            with pytest.raises(ConfigError, match="Output mode update"):
                writer.toTable("streamed", outputMode="update")
            for wrong in ({"hoodie.datasource.write.operation": "upend"}, {"hoodie.parquet.max.file.size": "large"}):
                refused = source.stream(spark).writeStream.format("hudi").options(**WRITE, **wrong)
                with pytest.raises(ConfigError):
                    refused.option("checkpointLocation", str(tmp_path / "refused")).toTable("streamed")
            whole = source.stream(spark).writeStream.format("hudi").options(**WRITE)
            with pytest.raises(Exception, match=r"(?i)complete"):  # Spark's own word, when the query is to start
                whole.option("checkpointLocation", str(tmp_path / "refused")).toTable("streamed", outputMode="complete")
            assert not spark.catalog.tableExists("streamed"), "what is refused makes no table"
            run(writer, tmp_path / "one", "streamed", call="toTable", partitionBy="v")
            source.add((2, 20), (3, 3), ts=2)
            second = source.stream(spark).writeStream.options(**stream_only)
            run(second, tmp_path / "one", "streamed", call="toTable")

            found = spark.sql("SELECT id, v FROM streamed").collect()
            properties = {row[0] for row in spark.sql("SHOW TBLPROPERTIES streamed").collect()}
            followed = Seen(tmp_path / "followed")
            run(spark.readStream.table("streamed").writeStream.foreachBatch(followed), tmp_path / "two")
        finally:
            spark.sql("DROP TABLE IF EXISTS streamed")

    assert sorted(tuple(row) for row in found) == [(1, 1), (2, 2), (2, 20), (3, 3)], "partitions are by v"
    assert "hoodie.datasource.write.recordkey.field" in properties
    assert not [key for key in properties if key.startswith(("fs.", "hoodie.datasource.write.streaming."))]
    assert followed.batches() == [[1, 2, 3, 20]]


@pytest.mark.thorough
def test_a_stream_by_name_goes_to_a_path_and_to_no_other_format(spark: Any, tmp_path: Path, source: Source) -> None:
    source.add((1, 1))
    path = tmp_path / "t"
    with enabled(spark):
        writer = source.stream(spark).writeStream.format("hudi").options(**WRITE)
        run(writer, tmp_path / "checkpoint", f"hudi.`{path}`", call="toTable")
        assert spark.readStream.table(f"hudi.`{path}`").columns[5:] == SCHEMA.names
        spark.sql("CREATE TABLE files (id BIGINT) USING parquet")
        try:
            with pytest.raises(TableExists, match="no Hudi table"):
                writer.toTable("files")
            assert spark.readStream.table("files").columns == ["id"]
        finally:
            spark.sql("DROP TABLE files")
    assert values(HudiTable.open(path)) == {1: 1}


@pytest.mark.thorough
@pytest.mark.classic
def test_a_clustering_that_a_batch_has_planned_runs_beside_the_next(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {**WRITE, "hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "2"}
    write = pyhudi.write_batches_to(path, {**options, "hoodie.datasource.write.operation": "insert"})
    for number in range(3):
        write(batch(spark, (number, number)), number)
        wait_for_services(HudiTable.open(path).state().storage, 60)
    table = HudiTable.open(path)
    assert "replacecommit" in actions(table)
    assert values(table) == {0: 0, 1: 1, 2: 2}
