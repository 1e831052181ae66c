"""SparkEngine against LocalEngine: the same verbs on the same rows give the same answers, also on a Spark that lacks
what 3.5 lacks.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.errors import HudiError, KeyGenError, TaskFailed
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine, literal_path
from tests.support.spark.lacking import WITHOUT

ROWS = pa.table(
    {
        "id": pa.array(range(2_000), pa.int64()),
        "name": pa.array([f"n{i % 97}" if i % 13 else None for i in range(2_000)]),
        "slot": pa.array([(i * 7) % 20 for i in range(2_000)], pa.int32()),
        "at": pa.array([i * 1_000_003 for i in range(2_000)], pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture(params=["local", "spark", "spark that lacks much"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "local":
        from pyhudi.engine.local import LocalEngine

        return LocalEngine(threads=2)
    if request.param == "spark that lacks much":
        monkeypatch.setattr(capabilities, "PRESENT", WITHOUT)
    return SparkEngine(request.getfixturevalue("spark"))


@dataclass(frozen=True)
class KeyOf:
    column: str

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.names == [self.column, "at"]
        assert batch.schema.field("at").type == pa.timestamp("us", "UTC")
        key = pc.binary_join_element_wise("k", pc.cast(batch.column(self.column), pa.string()), ":")
        return pa.RecordBatch.from_arrays([key, pc.cast(batch.column("at"), pa.int64())], names=["key", "micros"])


KEY_SCHEMA = pa.schema([("key", pa.string()), ("micros", pa.int64())])
COUNT_SCHEMA = pa.schema([("slot", pa.int32()), ("rows", pa.int64()), ("sorted", pa.bool_()), ("token", pa.string())])


def count_group(context: TaskContext, slot: int, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    ids = pa.concat_arrays([batch.column("id") for batch in batches]).to_numpy()
    row = [[slot], [len(ids)], [bool((np.diff(ids) >= 0).all())], [context.write_token]]
    columns = [pa.array(value, field.type) for value, field in zip(row, COUNT_SCHEMA, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, schema=COUNT_SCHEMA)


def by(table: pa.Table, *names: str) -> list[dict[str, Any]]:
    return table.sort_by([(name, "ascending") for name in names]).to_pylist()


def test_extend_adds_columns_computed_from_some_of_the_columns(engine: Any) -> None:
    frame = engine.extend(engine.from_arrow(ROWS), ["id", "at"], KeyOf("id"), KEY_SCHEMA)

    got = by(engine.collect(frame), "id")

    assert [row["key"] for row in got] == [f"k:{i}" for i in range(2_000)]
    assert [row["micros"] for row in got] == [i * 1_000_003 for i in range(2_000)]
    assert [row["name"] for row in got] == ROWS.column("name").to_pylist()


def test_a_result_column_that_exists_already_replaces_it(engine: Any) -> None:
    def upper(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pc.utf8_upper(batch.column("name"))], names=["name"])

    frame = engine.extend(engine.from_arrow(ROWS), ["name"], upper, pa.schema([("name", pa.string())]))

    assert sorted(engine.schema(frame).names) == sorted(ROWS.schema.names)
    assert engine.collect(frame).column("name").to_pylist()[1] == "N1"


def test_extend_without_columns_still_knows_the_number_of_rows(engine: Any) -> None:
    def token(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([context.partition_id] * batch.num_rows, pa.int32())], names=["p"])

    frame = engine.extend(engine.from_arrow(ROWS), [], token, pa.schema([("p", pa.int32())]))

    assert engine.collect(frame).num_rows == 2_000


@pytest.fixture(params=["with the function", "as rows"])
def tasks_travel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "as rows":
        monkeypatch.setattr("pyhudi.spark.engine._PICKLED_BYTES", -1)  # as for tasks that are large together


@pytest.mark.usefixtures("tasks_travel")
@pytest.mark.parametrize("slots", [1, 4, 20])
def test_map_groups_brings_each_slot_to_one_call_sorted(engine: Any, slots: int) -> None:
    rows = ROWS.set_column(2, "slot", pa.array([i % slots for i in range(2_000)], pa.int32()))
    shuffled = rows.take(np.random.default_rng(5).permutation(2_000))

    frame = engine.map_groups(engine.from_arrow(shuffled), "slot", range(slots), count_group, COUNT_SCHEMA, sort=["id"])
    got = by(engine.collect(frame), "slot")

    answers = [(row["slot"], row["rows"], row["sorted"]) for row in got]
    assert answers == [(s, 2_000 // slots, True) for s in range(slots)]
    assert all(len(row["token"].split("-")) == 3 for row in got)


@pytest.mark.usefixtures("tasks_travel")
def test_a_slot_without_rows_gets_no_call(engine: Any) -> None:
    rows = ROWS.filter(pc.equal(ROWS.column("slot"), 3))

    frame = engine.map_groups(engine.from_arrow(rows), "slot", range(20), count_group, COUNT_SCHEMA)

    assert engine.collect(frame).column("slot").to_pylist() == [3]


def called(context: TaskContext, task: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = pa.Table.from_batches(list(batches))
    assert rows.schema == NESTED.schema
    yield pa.RecordBatch.from_pydict({"task": [task], "sum": [pc.sum(rows.column("n")).as_py()]})


NESTED = pa.table(
    {"slot": pa.array([0, 2, 0], pa.int32()), "n": [1, 2, 4], "s": [{"a": 1}, None, {"a": 2}]},
    pa.schema(
        [
            pa.field("slot", pa.int32(), nullable=False),
            pa.field("n", pa.int64(), nullable=False),
            pa.field("s", pa.struct([pa.field("a", pa.int64())])),
        ]
    ),
)


@pytest.mark.usefixtures("tasks_travel")
def test_each_slot_has_its_task(engine: Any) -> None:
    schema = pa.schema([("task", pa.string()), ("sum", pa.int64())])

    frame = engine.map_groups(engine.from_arrow(NESTED), "slot", ("none", "no rows", "two"), called, schema)

    assert by(engine.collect(frame), "sum") == [{"task": "two", "sum": 2}, {"task": "none", "sum": 5}]


@pytest.mark.thorough
def test_rows_whose_structs_are_never_null_get_their_tasks_too(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.spark.engine._PICKLED_BYTES", -1)
    struct = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    rows = pa.table({"slot": pa.array([1, 1], pa.int32()), "s": pa.array([{"a": 1}, {"a": 2}], struct)})

    def counted(context: TaskContext, task: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"task": [f"{task}: {sum(batch.num_rows for batch in batches)}"]})

    schema = pa.schema([("task", pa.string())])
    frame = engine.map_groups(engine.from_arrow(rows), "slot", ("a", "b"), counted, schema)

    assert engine.collect(frame).column("task").to_pylist() == ["b: 2"]


class Opened:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["_pyhudi_task", "_PyHudi_Task"])
def test_a_column_of_a_caller_is_never_unpickled(
    engine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr("pyhudi.spark.engine._PICKLED_BYTES", -1)
    hostile = pickle.dumps(Opened(tmp_path / "opened"))
    rows = pa.table({"slot": pa.array([0, 1], pa.int32()), name: [hostile, hostile]})

    def counted(context: TaskContext, task: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = pa.Table.from_batches(list(batches))
        yield pa.RecordBatch.from_pydict({"task": [f"{task}: {arrived.column(name).to_pylist() == [hostile]}"]})

    schema = pa.schema([("task", pa.string())])
    frame = engine.map_groups(engine.from_arrow(rows), "slot", ("a", "b"), counted, schema)

    assert sorted(engine.collect(frame).column("task").to_pylist()) == ["a: True", "b: True"]
    assert not (tmp_path / "opened").exists()


@pytest.mark.thorough
def test_a_path_with_the_characters_of_patterns_is_read_as_it_stands(spark: Any, tmp_path: Path) -> None:
    names = ["part {a,b}*[1].parquet", "p%2Fq=1.parquet", "plain.parquet"]
    for index, name in enumerate(names):
        pq.write_table(pa.table({"k": [f"k{index}"]}), tmp_path / name)

    found = [spark.read.parquet(literal_path(f"file:{tmp_path / name}")).collect() for name in names]

    assert [[row["k"] for row in rows] for rows in found] == [["k0"], ["k1"], ["k2"]]


def test_fan_out_runs_each_task_once(engine: Any) -> None:
    schema = pa.schema([("name", pa.string()), ("square", pa.int64())])

    def work(context: TaskContext, task: tuple[str, int]) -> Iterable[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"name": [task[0]], "square": [task[1] ** 2]}, schema=schema)

    got = engine.collect(engine.fan_out([(f"t{i}", i) for i in range(30)], work, schema))

    assert by(got, "square") == [{"name": f"t{i}", "square": i * i} for i in range(30)]


@pytest.mark.thorough
def test_fan_out_takes_tasks_that_are_not_small(engine: Any) -> None:
    schema = pa.schema([("size", pa.int64()), ("first", pa.int64())])

    def work(context: TaskContext, task: bytes) -> Iterable[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"size": [len(task)], "first": [task[0]]}, schema=schema)

    got = engine.collect(engine.fan_out([bytes([i]) * 30_000 for i in range(20)], work, schema))

    assert by(got, "first") == [{"size": 30_000, "first": i} for i in range(20)]


def test_fan_out_of_nothing_is_an_empty_frame(engine: Any) -> None:
    got = engine.collect(engine.fan_out([], lambda context, task: [], KEY_SCHEMA))

    assert (got.num_rows, got.schema.names) == (0, ["key", "micros"])


def test_map_streams_the_rows_of_a_partition(engine: Any) -> None:
    schema = pa.schema([("rows", pa.int64())])

    def count(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]}, schema=schema)

    got = engine.collect(engine.map(engine.from_arrow(ROWS), count, schema))

    assert pc.sum(got.column("rows")).as_py() == 2_000


@pytest.mark.thorough
def test_arrange_sorts_the_whole_frame_or_each_task(engine: Any) -> None:
    shuffled = engine.from_arrow(ROWS.take(np.random.default_rng(7).permutation(2_000)))

    whole = engine.collect(engine.arrange(shuffled, sort_by=["id"], scope="global"))
    pieces = engine.arrange(shuffled, partition_by=["slot"], sort_by=["slot", "id"])
    found = engine.collect(engine.map(pieces, _first_of_each_run, pa.schema([("slot", pa.int32())])))

    assert whole.column("id").to_pylist() == list(range(2_000))
    assert sorted(found.column("slot").to_pylist()) == list(range(20))


def _first_of_each_run(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    slots = np.concatenate([batch.column("slot").to_numpy() for batch in batches] or [np.array([], np.int32)])
    if len(slots) == 0:
        return
    yield pa.RecordBatch.from_pydict({"slot": pa.array(slots[np.r_[True, slots[1:] != slots[:-1]]], pa.int32())})


def test_left_join_keeps_rows_without_a_match(engine: Any) -> None:
    right = pa.table({"id": pa.array([1, 3], pa.int64()), "file": ["a", "b"]})

    got = engine.collect(engine.join(engine.from_arrow(ROWS.slice(0, 5)), engine.from_arrow(right), ["id"], "left"))

    assert [row["file"] for row in by(got, "id")] == [None, "a", None, "b", None]
    assert got.schema.names.count("id") == 1


@pytest.mark.thorough
def test_inner_join_keeps_only_matches(engine: Any) -> None:
    right = pa.table({"id": pa.array([1, 3, 9_999], pa.int64()), "file": ["a", "b", "c"]})

    got = engine.collect(engine.join(engine.from_arrow(ROWS), engine.from_arrow(right), ["id"], "inner"))

    assert [(row["id"], row["file"]) for row in by(got, "id")] == [(1, "a"), (3, "b")]


def test_rows_that_work_makes_are_not_broadcast_when_they_are_said_to_be_many(spark: Any, capsys: Any) -> None:
    engine = SparkEngine(spark)

    def work(context: TaskContext, task: int) -> Iterable[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": pa.array([task], pa.int64()), "file": [f"f{task}"]}, schema=schema)

    schema = pa.schema([("id", pa.int64()), ("file", pa.string())])
    made = engine.fan_out([1, 3], work, schema)
    joined = engine.join(engine.from_arrow(ROWS.slice(0, 5)), made, ["id"], "left", right_is_large=True)
    joined.explain()

    assert "Broadcast" not in capsys.readouterr().out
    assert [row["file"] for row in by(engine.collect(joined), "id")] == [None, "f1", None, "f3", None]


def test_union_matches_columns_by_name(engine: Any) -> None:
    left = engine.from_arrow(pa.table({"a": [1], "b": ["x"]}))
    right = engine.from_arrow(pa.table({"b": ["y"], "a": [2]}))

    assert by(engine.collect(engine.union([left, right])), "a") == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.thorough
def test_a_cached_frame_is_given_back(engine: Any) -> None:
    frame = engine.cache(engine.from_arrow(ROWS))

    assert engine.collect(frame).num_rows == engine.collect(frame).num_rows == 2_000
    engine.release(frame)


def test_an_error_of_the_family_comes_back_as_itself_with_its_own_words(spark: Any) -> None:
    engine = SparkEngine(spark)
    message = "row 7: the record key 'ü' is null;\n expected a value. Fill it."

    def fail(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        raise KeyGenError(message)

    with pytest.raises(KeyGenError) as caught:
        engine.collect(engine.extend(engine.from_arrow(ROWS), ["id"], fail, KEY_SCHEMA))

    assert str(caught.value) == message


@pytest.mark.thorough
def test_any_other_error_of_a_worker_becomes_task_failed_with_the_workers_words(spark: Any) -> None:
    engine = SparkEngine(spark)

    def fail(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        raise ValueError("disk on fire")

    with pytest.raises(TaskFailed, match="ValueError: disk on fire") as caught:
        engine.collect(engine.map(engine.from_arrow(ROWS), fail, KEY_SCHEMA))

    assert "Traceback" not in str(caught.value)


def test_an_error_of_spark_itself_is_left_alone(spark: Any) -> None:
    engine = SparkEngine(spark)

    with pytest.raises(Exception, match="the disk is full") as caught:
        engine.collect(spark.sql("select if(id < 0, id, raise_error('the disk is full')) as i from range(3)"))

    assert not isinstance(caught.value, HudiError)


def test_parallelism_is_what_the_master_says(spark: Any) -> None:
    assert SparkEngine(spark).parallelism == 2
    assert SparkEngine(spark).is_local_master


class Configured:
    """A session of which only the configuration is asked."""

    def __init__(self, **conf: str) -> None:
        self.conf = conf


@pytest.mark.parametrize(
    ("conf", "cores"),
    [
        ({"spark.master": "local[7,3]"}, 7),
        ({"spark.master": "local"}, 1),
        ({"spark.master": "local[*]"}, pa.cpu_count()),
        ({"spark.master": "yarn", "spark.default.parallelism": "48"}, 48),
        ({"spark.master": "k8s://x", "spark.executor.cores": "4", "spark.executor.instances": "6"}, 24),
        ({"spark.master": "spark://x:7077", "spark.sql.shuffle.partitions": "200"}, 50),
    ],
)
def test_parallelism_of_clusters_comes_from_their_configuration(conf: dict[str, str], cores: int) -> None:
    assert SparkEngine(Configured(**conf)).parallelism == cores


@pytest.mark.thorough
def test_a_kept_frame_has_the_tasks_that_its_size_asks_for(spark: Any) -> None:
    from pyspark.sql import functions as F

    engine = SparkEngine(spark)
    setting = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    before, partitions = spark.conf.get(setting), spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "100")
    try:
        kept = engine.cache(engine.arrange(engine.from_arrow(ROWS), partition_by=["id"]))
        tasks = kept.select(F.spark_partition_id()).distinct().count()
        engine.release(kept)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions)

    assert tasks <= 2
    assert spark.conf.get(setting) == before
