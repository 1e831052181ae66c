"""What tasks of Spark do with the rows of a source, called by hand: packed, answered for, and unpacked again."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError, MissingLibrary, SchemaMismatch, StorageError
from pyhudi.storage.clock import SystemClock
from pyhudi.streamer import spark_tasks, transforms
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.reading import Finish, TableColumns
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.registry import open_source
from pyhudi.streamer.sources.source import SourceSetting, SplitSource
from pyhudi.streamer.spark_tasks import FetchSplits, PackRows, UnpackSplits, answers_of
from pyhudi.streamer.transforms import TRANSFORMERS, frame_transforms_of

HERE = TaskContext(5, 0, 0)
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
NO_TABLE = TableColumns(pa.schema([]))
FINISH = Finish(None, NO_TABLE, ("id",), "s", is_part=True)


def packed_by(work: Any, *arguments: Any) -> pa.Table:
    return pa.Table.from_batches(pickle.loads(pickle.dumps(work))(HERE, *arguments))


def unpacked(packed: pa.Table, counts: dict[int, int], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_batches(UnpackSplits(counts, schema)(HERE, iter(packed.to_batches())), schema)


def test_rows_are_packed_in_values_of_some_size_and_those_of_other_numbers_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_tasks, "_PACKED_BYTES", 8)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text('{"id": 1, "v": "x"}\n{"v": "no key"}\n{"id": 2}\n{"id": 3}')
    (tmp_path / "in" / "b").write_text('{"v": "no key at all"}')
    given = {"target-base-path": "t", "hoodie.streamer.source.dfs.root": str(tmp_path / "in")}
    setting = SourceSetting(load_settings(given), SystemClock())
    source = open_source(setting)
    assert isinstance(source, SplitSource)
    files = sorted(source.plan(Start(None), None).files, key=lambda file: file.path)
    splits = [(3, files[:1]), (7, files[1:])]

    packed = packed_by(FetchSplits(setting, RowColumns(pa.schema([])), FINISH), splits)

    first, second = answers_of(packed)
    assert [(answer.number, answer.rows) for answer in (first, second)] == [(3, 3), (7, 0)]
    assert [one.text for answer in (first, second) for one in answer.fetched.rejected] == [
        '{"id": null, "v": "no key"}',
        '{"id": null, "v": "no key at all"}',
    ]
    assert first.fetched.rows.schema.equals(SCHEMA)
    assert packed.column("rows").null_count < packed.num_rows - 1  # several values
    assert unpacked(packed, {3: 3, 7: 0}).column("id").to_pylist() == [1, 2, 3]
    assert unpacked(packed, {7: 0}).num_rows == 0


def test_rows_that_are_computed_again_and_are_others_fail_the_write(tmp_path: Path) -> None:
    batches = [pa.record_batch({"id": [1, 2], "v": ["a", None]}), pa.record_batch({"id": [3, None], "v": ["b", "c"]})]
    packed = packed_by(PackRows(Finish(SCHEMA, NO_TABLE, ("id",), "s")), iter(batches))

    assert [(answer.number, answer.rows) for answer in answers_of(packed)] == [(5, 2), (5, 1)]
    assert unpacked(packed, {5: 3}).to_pylist()[2] == {"id": 3, "v": "b"}
    with pytest.raises(StorageError, match=r"read again, because Spark had lost its rows, and has 3 rows instead of 4"):
        unpacked(packed, {5: 4})
    required = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string(), nullable=False)])
    with pytest.raises(SchemaMismatch, match="the column 'v' is NOT NULL, and a row has no value in it"):
        unpacked(packed, {5: 3}, required)


def test_a_partition_without_rows_answers_too_so_that_it_is_missed_when_it_had_some(tmp_path: Path) -> None:
    packed = packed_by(PackRows(Finish(SCHEMA, NO_TABLE, ("id",), "s")), iter([]))

    (answer,) = answers_of(packed)
    assert (answer.number, answer.rows, answer.fetched.rows.schema) == (5, 0, SCHEMA)
    with pytest.raises(StorageError, match=r"has 0 rows instead of 2\. Nothing was written"):
        unpacked(packed, {5: 2})


def test_a_row_without_a_key_has_the_same_place_and_text_beside_any_other_rows() -> None:
    finish = Finish(None, NO_TABLE, ("id",), "s", is_part=True)
    alone = pa.Table.from_pylist([{"v": 1, "s": {"b": [{"c": 2}]}}])
    beside = pa.Table.from_pylist([
        {"s": {"a": None, "b": [{"c": 2.0, "d": None}]}, "late": None, "id": None, "v": 1.0},
        {"s": {"a": "x", "b": [{"c": 1.5, "d": 1}]}, "late": {"x": 1}, "id": 1, "v": 2.5},
    ])  # fmt: skip

    (_, (first,)), (_, (second,)) = finish(alone), finish(beside)
    assert first == second
    assert first.text == '{"id": null, "s": {"b": [{"c": 2}]}, "v": 1}'


def test_a_worker_without_the_client_of_the_source_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "target-base-path": "t",
        "source-class": "JsonKafkaSource",
        "hoodie.streamer.source.kafka.topic": "t",
        "bootstrap.servers": "x:1",
    }
    work = FetchSplits(SourceSetting(load_settings(given), SystemClock()), RowColumns(SCHEMA), None)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(MissingLibrary, match=r"^On a worker of Spark: A source of Kafka needs confluent-kafka"):
        list(work(HERE, [(0, None)]))


def only_arrow(settings: object) -> Any:
    return lambda batch: batch


@pytest.mark.parametrize("name", sorted(TRANSFORMERS.entries))
def test_every_transformer_has_a_form_on_spark(name: str, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT * FROM <SRC>")
    given = {
        "target-base-path": "t",
        "transformer-class": name,
        "hoodie.streamer.transformer.sql": "SELECT * FROM <SRC>",
        "hoodie.streamer.transformer.sql.file": str(tmp_path / "q.sql"),
    }
    (made,) = frame_transforms_of(load_settings(given))

    assert callable(made.frame)


def test_a_transformer_without_a_form_on_spark_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "TRANSFORMERS", SimpleNamespace(load=lambda name: only_arrow, canonical=str))

    with pytest.raises(ConfigError, match="the transformer OneOfArrow has no form on Spark"):
        frame_transforms_of(load_settings({"target-base-path": "t", "transformer-class": "OneOfArrow"}))
