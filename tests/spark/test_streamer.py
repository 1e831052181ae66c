"""Pipelines by Spark's tasks: the same rows, checkpoints and quarantine as in one process, either going on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.streamer.sources.debezium.unavailable import UNAVAILABLE
from pyhudi.streamer.streamer import StreamerRun
from tests.support.change_events import Message, MockTopics, postgres_event
from tests.support.kafka import no_topic_ids  # noqa: F401  (a fixture for all tests here)

SET_ASIDE = {"hoodie.errortable.enable": True, "hoodie.pyhudi.streamer.quarantine.max.share": 0.9}


def put(folder: Path, name: str, *rows: object, second: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    os.utime(folder / name, (1_700_000_000 + second,) * 2)


def config(tmp_path: Path, table: str = "t", source: str = "JsonDFSSource", **more: object) -> dict[str, Any]:
    return {
        "target-base-path": str(tmp_path / table),
        "record_key": "id",
        "source-class": source,
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        **more,
    }


def run(settings: Mapping[str, Any], spark: SparkSession | None = None, until_empty: bool = False) -> StreamerRun:
    streamer = Streamer(settings, spark=spark)
    try:
        return streamer.run(until_empty=until_empty)
    finally:
        streamer.close()


def rows(tmp_path: Path, table: str = "t") -> list[dict[str, Any]]:
    found = HudiTable.open(tmp_path / table).scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row.get("id")))


def test_one_process_and_spark_go_on_from_each_others_checkpoints_and_late_columns_come_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = config(tmp_path, op="INSERT")
    for number in range(4):
        put(tmp_path / "in", f"a{number}", {"id": number, "v": "x"}, {"id": 10 + number}, second=number)
    put(tmp_path / "in", "b", {"id": 20, "late": {"deep": [1.5]}}, second=5)

    first = run(settings, spark)
    again = run(settings)
    put(tmp_path / "in", "c", {"id": 21, "v": "y"}, second=6)
    second = run(settings)
    put(tmp_path / "in", "d", {"id": 22, "w": True}, second=3)  # late, and with an older time
    put(tmp_path / "in", "e", {"id": 23}, second=7)
    third = run(settings, spark)

    assert (first.rows, first.checkpoint) == (9, "1700000005000")
    assert (again.rounds, second.rows, third.rows) == (0, 1, 2)
    assert run(settings, spark).rounds == run(settings).rounds == 0
    found = rows(tmp_path)
    assert [row["id"] for row in found] == sorted([*range(4), *range(10, 14), *range(20, 24)], key=str)
    by_id = {row["id"]: row for row in found}
    assert by_id[20] == {"id": 20, "v": None, "late": {"deep": [1.5]}, "w": None}
    assert (by_id[0]["v"], by_id[22]["w"]) == ("x", True)


def test_the_rows_and_the_table_are_those_of_one_process_for_every_type_of_a_parquet_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {
        "id": pa.array([1, 2, None], pa.int64()),
        "small": pa.array([1, None, 3], pa.int8()),
        "at": pa.array([1, None, 3], pa.timestamp("us", tz="UTC")),
        "local": pa.array([1, None, 3], pa.timestamp("us")),
        "day": pa.array([1, None, 3], pa.date32()),
        "price": pa.array([None, "1.25", "2.50"]).cast(pa.decimal128(10, 2)),
        "bytes": pa.array([b"\xff", None, b""], pa.binary()),
        "word": pa.array(["a", None, "b"]).dictionary_encode(),
        "tags": pa.array([["a", None], None, []], pa.list_(pa.string())),
        "deep": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
        "pairs": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    }
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "in" / "a")
    pq.write_table(pa.table(columns).slice(0, 1).set_column(0, "id", pa.array([7])), tmp_path / "in" / "b")
    aside = {**SET_ASIDE, "hoodie.errortable.base.path": str(tmp_path / "q")}

    one = run(config(tmp_path, "one", "ParquetDFSSource", **aside))
    aside["hoodie.errortable.base.path"] = str(tmp_path / "p")
    other = run(config(tmp_path, "other", "ParquetDFSSource", **aside, **{"hoodie.pyhudi.engine": "spark"}), spark)

    assert (one.rows, one.rejected) == (other.rows, other.rejected) == (3, 1)
    assert rows(tmp_path, "one") == rows(tmp_path, "other")
    assert HudiTable.open(tmp_path / "one").schema() == HudiTable.open(tmp_path / "other").schema()
    positions = [HudiTable.open(tmp_path / name).scan(["position"]).to_arrow().to_pylist() for name in "qp"]
    assert positions[0] == positions[1]


def test_what_does_not_fit_goes_into_the_same_quarantine_also_rows_of_a_part_that_has_no_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "in", "a", {"id": 1, "v": 1}, "{broken", {"id": None, "v": 2}, second=1)
    put(tmp_path / "in", "b", {"v": 3}, "[]", second=2)  # no row of it has the key
    put(tmp_path / "in", "c", {"id": 4, "v": 4}, second=3)

    found = []
    for table, session in (("one", None), ("other", spark)):
        aside = {**SET_ASIDE, "hoodie.errortable.base.path": str(tmp_path / f"{table}-aside")}
        done = run(config(tmp_path, table, **aside), session)
        kept = HudiTable.open(tmp_path / f"{table}-aside").scan(["text", "reason"]).to_arrow().to_pylist()
        texts = [json.loads(row["text"]) if row["text"] != "{broken" else row["text"] for row in kept]
        reasons = sorted(row["reason"] for row in kept)
        found.append((done, rows(tmp_path, table), sorted(texts, key=str), reasons))

    assert found[0] == found[1]
    assert (found[1][0].rows, found[1][0].rejected) == (2, 4)
    with pytest.raises(SchemaMismatch, match="4 of 6 rows don't fit the table; the first is a:2: no JSON"):
        run(config(tmp_path, "refused"), spark)
    assert not (tmp_path / "refused" / ".hoodie").exists()


def test_a_batch_without_any_key_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", {"v": 1}, second=1)

    with pytest.raises(SchemaMismatch, match="No row of the batch has the key column id"):
        run(config(tmp_path, **{"commit-on-errors": True}), spark)


def on_frames(frame: Any) -> Any:
    return frame.selectExpr("*", "uuid() AS random")


def nothing(frame: Any) -> None:
    return None


def test_transformers_get_dataframes_and_are_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", {"id": 1, "s": {"a": {"b": 2}}, "p": 3}, second=1)
    put(tmp_path / "in", "b", {"id": 2, "s": {"a": None}, "p": -1}, {"id": 3, "s": None, "p": 4, "q": "{x}"}, second=2)
    chain = ["SqlQueryBasedTransformer", "FlatteningTransformer", f"{__name__}:on_frames"]
    query = "SELECT id, s, p * 2 AS doubled, q, '{x}' AS braces FROM <SRC> WHERE p > 0"
    settings = config(
        tmp_path,
        **{"transformer-class": chain, "hoodie.streamer.transformer.sql": query, "hoodie.pyhudi.engine": "spark"},
    )

    assert run(settings, spark).rows == 2

    found = rows(tmp_path)
    assert [{name: row[name] for name in row if name != "random"} for row in found] == [
        {"id": 1, "s_a_b": 2, "doubled": 6, "q": None, "braces": "{x}"},
        {"id": 3, "s_a_b": None, "doubled": 8, "q": "{x}", "braces": "{x}"},
    ]
    index = HudiTable.open(tmp_path / "t").scan(["_hoodie_record_key", "random"]).to_arrow().to_pylist()
    assert len({row["random"] for row in index}) == 2
    put(tmp_path / "in", "c", {"id": 9, "p": 1}, second=3)
    with pytest.raises(ConfigError, match="nothing returned NoneType; on Spark it gets a DataFrame"):
        run(config(tmp_path, "u", **{"transformer-class": f"{__name__}:nothing"}), spark)


def test_a_schema_of_a_file_holds_and_a_check_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "price", "type": ["null", "double"], "default": None}]
    (tmp_path / "s.avsc").write_text(json.dumps({"type": "record", "name": "r", "fields": fields}))
    put(tmp_path / "in", "a", {"id": 1, "price": 2, "other": "x"}, {"id": 2}, second=1)
    settings = config(tmp_path, **{"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")})

    checked = Streamer(settings, spark=spark).check()

    assert (checked.columns, checked.waiting) == ({"id": "int64", "price": "double"}, 2)
    assert checked.rows == [{"id": 1, "price": 2.0}, {"id": 2, "price": None}]
    assert not (tmp_path / "t").exists()
    run(settings, spark)
    assert rows(tmp_path) == checked.rows
    assert [field.nullable for field in HudiTable.open(tmp_path / "t").schema()] == [False, True]


def test_values_that_spark_can_not_hold_and_nulls_where_a_schema_takes_none_are_refused_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    settings = config(tmp_path, source="ParquetDFSSource", **{"hoodie.pyhudi.engine": "spark"})
    for column, words in (
        (
            pa.array([1001], pa.timestamp("ns")),
            "Column 'x' is of type timestamp.us. and can't hold 1970-01-01 .*001001",
        ),
        (pa.array([1], pa.uint64()), "Spark has no type for these columns: x .uint64."),
    ):
        pq.write_table(pa.table({"id": [1], "x": column}), tmp_path / "in" / "a")
        with pytest.raises(SchemaMismatch, match=words):
            run(settings, spark)
    fields = [{"name": "id", "type": "long"}, {"name": "must", "type": "long"}]
    (tmp_path / "s.avsc").write_text(json.dumps({"type": "record", "name": "r", "fields": fields}))
    put(tmp_path / "in", "a", {"id": 1, "must": 1}, {"id": 2}, second=1)
    provided = {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")}

    with pytest.raises(SchemaMismatch, match="the column 'must' is NOT NULL"):
        run(config(tmp_path, **provided), spark)
    assert not list((tmp_path / "t").rglob("*.parquet"))


class Numbers:
    def __init__(self, settings: dict[str, str]) -> None:
        pass

    def read(self, checkpoint: str | None, limit: int | None) -> tuple[dict[str, list[int]], str] | None:
        first = int(checkpoint or 0)
        return ({"id": list(range(first, first + 3))}, str(first + 3)) if first < 6 else None


def test_a_hudi_table_and_a_class_of_ones_own_are_sources_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    own = run(config(tmp_path, "own", f"{__name__}:Numbers"), spark, until_empty=True)
    write_hudi(tmp_path / "s", [{"id": 1, "v": 1}, {"id": 2, "v": 2}], record_key="id")
    more = {
        "hoodie.streamer.source.hoodieincr.path": str(tmp_path / "s"),
        "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": "READ_UPTO_LATEST_COMMIT",
    }
    first = run(config(tmp_path, "h", "HoodieIncrSource", **more), spark)
    write_hudi(tmp_path / "s", [{"id": 2, "v": 3}, {"id": 3, "v": 3}], record_key="id")
    second = run(config(tmp_path, "h", "HoodieIncrSource", **more))
    write_hudi(tmp_path / "s", [{"id": 4, "v": 4}], record_key="id")
    third = run(config(tmp_path, "h", "HoodieIncrSource", **more), spark)

    assert (own.rows, own.commits, own.checkpoint) == (6, 2, "6")
    assert [row["id"] for row in rows(tmp_path, "own")] == [0, 1, 2, 3, 4, 5]
    assert (first.rows, second.rows, third.rows) == (2, 2, 1)
    assert [(row["id"], row["v"]) for row in rows(tmp_path, "h")] == [(1, 1), (2, 3), (3, 3), (4, 4)]


def test_of_two_rows_of_a_key_the_later_one_in_the_source_wins(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path / "in", f"a{number:02}", {"id": 1, "v": number}, {"id": 2, "v": -number}, second=number)
    mode = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.pyhudi.engine": "spark"}

    assert run(config(tmp_path, **mode), spark).rows == 60
    assert rows(tmp_path) == [{"id": 1, "v": 29}, {"id": 2, "v": -29}]


def test_the_command_takes_the_session_of_spark(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "in", "a", {"id": 1}, second=1)
    (tmp_path / "p.properties").write_text("\n".join(f"{key}={value}" for key, value in config(tmp_path).items()))

    assert main(["stream", str(tmp_path / "p.properties"), "--spark", "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    assert rows(tmp_path) == [{"id": 1}]


class TestKafka:
    def test_events_of_all_partitions_come_once_by_tasks_with_clients_of_their_own(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        kafka = pytest.importorskip("confluent_kafka")
        producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
        broker = next(iter(producer.list_topics("t", timeout=10).brokers.values()))

        def send(first: int, last: int) -> None:
            for number in range(first, last):
                producer.produce("t", json.dumps({"id": number, "v": number}), partition=number % 2)
            assert producer.flush(10) == 0

        settings = config(
            tmp_path,
            "t",
            "JsonKafkaSource",
            op="INSERT",
            **{
                "hoodie.streamer.source.kafka.topic": "t",
                "hoodie.streamer.kafka.source.maxEvents": 150,
                "hoodie.streamer.source.kafka.append.offsets": True,
                "bootstrap.servers": f"{broker.host}:{broker.port}",
                "auto.offset.reset": "earliest",
            },
        )
        send(0, 200)
        first = run(settings, spark)
        second = run(settings)
        producer.produce("t", b"{broken", partition=0)
        send(200, 210)
        with pytest.raises(SchemaMismatch, match="the first is t/0@100: no JSON"):
            run(settings, spark)
        third = run({**settings, "commit-on-errors": True}, spark)

        assert (first.rows, first.checkpoint) == (150, "t,0:75,1:75,2:0,3:0")
        assert (second.rows, second.checkpoint) == (50, "t,0:100,1:100,2:0,3:0")
        assert (third.rows, third.rejected, third.checkpoint) == (10, 1, "t,0:106,1:105,2:0,3:0")
        found = sorted(rows(tmp_path), key=lambda row: row["id"])
        assert [row["id"] for row in found] == list(range(210))
        assert found[7]["_hoodie_kafka_source_offset"] == 3


def test_compactions_run_beside_the_rounds_of_a_continuous_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    more = {"table-type": "MERGE_ON_READ", "continuous": True, "hoodie.compact.inline.max.delta.commits": "1"}
    for number in range(3):
        put(tmp_path / "in", f"a{number}", {"id": 1, "v": number}, {"id": 2, "v": number}, second=number)
    done = run(config(tmp_path, **more, **{"source-limit": 10}), spark, until_empty=True)

    assert (done.rows, done.commits) == (6, 3)
    operations = [entry.operation for entry in HudiTable.open(tmp_path / "t").history()]
    assert any("compact" in str(one).lower() for one in operations)
    assert [row["v"] for row in rows(tmp_path)] == [2, 2]


def test_changes_of_postgresql_take_values_that_were_not_sent_from_each_other_and_from_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    pytest.importorskip("confluent_kafka")
    topics = MockTopics()
    text = "org.apache.kafka.common.serialization.StringDeserializer"
    settings = {
        "target-base-path": str(tmp_path / "t"),
        "record_key": "id",
        "source-class": "PostgresDebeziumSource",
        "hoodie.streamer.source.kafka.topic": "items",
        "hoodie.streamer.source.kafka.value.deserializer.class": text,
        "bootstrap.servers": topics.address,
        "auto.offset.reset": "earliest",
    }

    def change(op: str, lsn: int, key: str, big: str | None, **more: Any) -> Message:
        return postgres_event(op, lsn, {"id": key, "v": lsn, "big": big}, tx=lsn, **more)

    topics.send("items", [change("c", 1, "a", "x"), change("c", 2, "b", "y"), change("u", 3, "b", UNAVAILABLE)])
    assert run(settings, spark).rows == 3
    topics.send("items", [change("d", 4, "a", None, new_key="c"), change("c", 4, "c", UNAVAILABLE, old_key="a")])
    assert run(settings, spark).rows == 2

    assert [(row["id"], row["v"], row["big"]) for row in rows(tmp_path)] == [("b", 3, "y"), ("c", 4, "x")]
    with pytest.raises(ConfigError, match="with transformers does not run on Spark"):
        run({**settings, "transformer-class": "FlatteningTransformer"}, spark)
