"""What the LocalEngine's verbs promise; tests/spark holds SparkEngine to the same answers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.local_frame import LocalFrame
from pyhudi.errors import ConfigError
from pyhudi.merge.rules import MergeRules

ROWS = pa.table({"k": ["b", "a", "c", "a"], "n": pa.array([1, 2, 3, 4], pa.int32())})
COUNTED = pa.schema([("slot", pa.int32()), ("rows", pa.int64()), ("first", pa.string())])


@pytest.fixture(params=[1, 2, 5])
def engine(request: pytest.FixtureRequest) -> LocalEngine:
    return LocalEngine(request.param)


def in_parts(engine: LocalEngine, table: pa.Table, parts: int) -> LocalFrame:
    rows = -(-table.num_rows // parts)
    return engine.union([engine.from_arrow(table.slice(n * rows, rows)) for n in range(parts)])


def doubled(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), pa.scalar(2, pa.int32()))], names=["twice"])


def counted(context: TaskContext, slot: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches)
    yield pa.RecordBatch.from_pylist([{"slot": slot, "rows": len(table), "first": table["k"][0].as_py()}], COUNTED)


def test_select_takes_columns_in_the_given_order(engine: LocalEngine) -> None:
    assert engine.collect(engine.select(ROWS, ["n", "k"])).column_names == ["n", "k"]


@pytest.mark.thorough
def test_extend_adds_and_replaces_columns(engine: LocalEngine) -> None:
    frame = engine.extend(ROWS, ["n"], doubled, pa.schema([("twice", pa.int32())]))
    assert engine.collect(frame)["twice"].to_pylist() == [2, 4, 6, 8]
    assert engine.schema(frame).names == ["k", "n", "twice"]


@pytest.mark.thorough
def test_map_runs_once_for_each_part(engine: LocalEngine) -> None:
    def per_task(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.RecordBatch.from_pylist([{"task": context.partition_id, "rows": rows}])

    frame = engine.map(in_parts(engine, ROWS, 2), per_task, pa.schema([("task", pa.int64()), ("rows", pa.int64())]))
    assert engine.collect(frame).to_pylist() == [{"task": 0, "rows": 2}, {"task": 1, "rows": 2}]


@pytest.mark.thorough
def test_map_groups_brings_a_slot_to_one_call_in_order(engine: LocalEngine) -> None:
    slotted = ROWS.append_column("slot", pa.array([2, 0, 2, 2], pa.int32()))
    frame = engine.map_groups(in_parts(engine, slotted, 2), "slot", range(4), counted, COUNTED, sort=["k"])

    assert engine.collect(frame).to_pylist() == [
        {"slot": 0, "rows": 1, "first": "a"},
        {"slot": 2, "rows": 3, "first": "a"},
    ]


@pytest.mark.thorough
def test_a_single_slot_without_rows_gets_no_call(engine: LocalEngine) -> None:
    empty = ROWS.slice(0, 0).append_column("slot", pa.array([], pa.int32()))
    assert engine.collect(engine.map_groups(empty, "slot", range(1), counted, COUNTED)).num_rows == 0


@pytest.mark.thorough
def test_write_tokens_of_task_attempts_differ(engine: LocalEngine) -> None:
    tokens: list[str] = []

    def note(context: TaskContext, task: int) -> Iterator[pa.RecordBatch]:
        tokens.append(context.write_token)
        return iter(())

    for _ in range(2):
        engine.collect(engine.fan_out([1, 2, 3], note, pa.schema([("n", pa.int64())])))
    assert len(set(tokens)) == 6


@pytest.mark.thorough
def test_joins_match_several_rows_and_carry_nested_columns(engine: LocalEngine) -> None:
    left = ROWS.append_column("list", pa.array([[1], [2, 3], None, []]))
    right = pa.table({"k": ["a", "z", "b", "b"], "place": ["1", "2", "3", "4"]})
    inner = engine.collect(engine.join(left, right, ["k"], "inner"))
    assert [(r["n"], r["list"], r["place"]) for r in inner.to_pylist()] == [
        (1, [1], "3"), (1, [1], "4"), (2, [2, 3], "1"), (4, [], "1"),
    ]  # fmt: skip
    outer = engine.collect(engine.join(left, right, ["k"], "left"))
    assert [r["place"] for r in outer.to_pylist()] == ["3", "4", "1", None, "1"]


@pytest.mark.thorough
@pytest.mark.parametrize("scope", ["global", "partition"])
def test_arrange_sorts(engine: LocalEngine, scope: Any) -> None:
    frame = engine.arrange(in_parts(engine, ROWS, 2), sort_by=["k", "n"], scope=scope)
    assert engine.collect(frame)["n"].to_pylist() == [2, 4, 1, 3]


@pytest.mark.thorough
def test_a_stream_is_read_once_and_a_second_reading_is_an_error(engine: LocalEngine) -> None:
    frame = engine.from_arrow(ROWS.to_reader())
    assert engine.collect(frame).num_rows == 4
    with pytest.raises(ConfigError, match="once"):
        engine.collect(frame)


@pytest.mark.thorough
def test_a_cached_stream_is_read_as_often_as_one_likes(engine: LocalEngine) -> None:
    frame = engine.cache(engine.from_arrow(ROWS.to_reader()))
    assert engine.collect(frame) == engine.collect(frame)


@pytest.mark.thorough
def test_what_runs_in_tasks_can_be_pickled() -> None:
    from pyhudi.actions import rows
    from pyhudi.actions.partitioner import RowCount, Sizing, plan_slots
    from pyhudi.index.bucket import FindBucket
    from pyhudi.index.key_join import CountRows
    from pyhudi.keygen import from_options

    keygen = from_options({"hoodie.datasource.write.recordkey.field": "id"})
    plan = plan_slots([RowCount("x", None, 1)], {}, Sizing(0, 1, 1))
    for work in (
        rows.AddKeys(keygen, False),
        rows.AssignSlots(plan, False),
        CountRows(("a",)),
        rows.CombineRows(("a",), MergeRules()),
        rows.KeepUnknown(True),
        rows.MoveRows(pa.schema([]), True, MergeRules(), ()),
        FindBucket(4, (), {}),
    ):
        assert pickle.loads(pickle.dumps(work)) == work


@pytest.mark.thorough
def test_a_large_frame_is_arranged_into_parts_that_keep_equal_values_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.engine import local_frame

    monkeypatch.setattr(local_frame, "PART_BYTES", 16)

    def per_task(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [row["n"] for row in rows if row["k"] == "a"] in ([], [2, 4])
        yield pa.RecordBatch.from_pylist([{"task": context.partition_id, "keys": "".join(r["k"] for r in rows)}])

    engine = LocalEngine(3)
    frame = engine.arrange(ROWS, partition_by=["k"], sort_by=["n"])
    result = engine.collect(engine.map(frame, per_task, pa.schema([("task", pa.int64()), ("keys", pa.string())])))
    found = [row["keys"] for row in result.to_pylist() if row["keys"]]
    assert "".join(found) == "aabc"
    assert len(found) > 1


@pytest.mark.thorough
def test_rows_of_several_slots_in_one_task_have_sequence_numbers_of_their_own() -> None:
    from tests.support.tables.small import TestTable

    class OneTask(LocalEngine):
        """As Spark with more slots than tasks: every slot runs in task 0."""

        def _context(self, partition_id: int, stage_id: int) -> TaskContext:
            return super()._context(0, stage_id)

    table = TestTable(engine=OneTask(1))
    table.upsert(*((f"k{n}", f"p{n % 3}", 1, n) for n in range(9)))
    numbers = [number for (number,) in table.rows(("_hoodie_commit_seqno",))]
    assert len(set(numbers)) == 9


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["map_groups", "arrange"])
def test_streams_of_two_threads_that_wait_for_each_other_are_both_read(verb: str) -> None:
    together = Barrier(2, timeout=10)

    def rows() -> Iterator[pa.RecordBatch]:
        together.wait()
        yield pa.record_batch({"slot": pa.array([0, 1, 1], pa.int32()), "k": ["a", "b", "c"]})

    def rows_read() -> int:
        engine = LocalEngine(2)
        schema = pa.schema([("slot", pa.int32()), ("k", pa.string())])
        stream = pa.RecordBatchReader.from_batches(schema, rows())
        if verb == "arrange":
            return engine.collect(engine.arrange(stream, sort_by=["k"])).num_rows
        return sum(
            engine.collect(engine.map_groups(stream, "slot", range(2), counted, COUNTED)).column("rows").to_pylist()
        )

    with ThreadPoolExecutor(2) as pool:
        assert [read.result(timeout=20) for read in [pool.submit(rows_read), pool.submit(rows_read)]] == [3, 3]


@pytest.mark.thorough
def test_every_task_that_needs_a_stream_says_what_was_wrong_with_it() -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        raise RuntimeError("the source is gone")
        yield

    engine = LocalEngine(1)
    stream = pa.RecordBatchReader.from_batches(pa.schema([("slot", pa.int32())]), rows())
    for part in engine.map_groups(stream, "slot", range(2), counted, COUNTED).parts:
        with pytest.raises(Exception, match="the source is gone"):
            part()
