"""Work on streams of incoming rows: what it does to a batch it does to each that comes after."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from pyhudi.actions.rows import CombineRows, KeepUnknown, MoveRows
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError
from pyhudi.index.base import LOCATION_PARTITION
from pyhudi.merge.rules import MergeRules
from pyhudi.model.keys import ARRIVAL, IS_DELETE, LOCATION, PARTITION_PATH, RECORD_KEY

CONTEXT = TaskContext(0, 0, 0)
FOUND = pa.schema(
    [
        (RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string()), (IS_DELETE, pa.bool_()),
        (LOCATION_PARTITION, pa.string()), (LOCATION, pa.string()),
    ]
)  # fmt: skip
PLACED = pa.schema([field for field in FOUND if field.name != LOCATION_PARTITION])


def found(*rows: tuple[str, str, str | None]) -> pa.RecordBatch:
    """Rows (key, partition, where the key is): of file "f" of that partition, None: a new key."""
    return pa.RecordBatch.from_pylist(
        [dict(zip(FOUND.names, (key, own, False, there, there and "f"), strict=True)) for key, own, there in rows],
        schema=FOUND,
    )


def moved(batches: Sequence[pa.RecordBatch], *, moves: bool) -> list[tuple[str, str, bool, str | None]]:
    work = MoveRows(PLACED, moves, MergeRules(), ())
    return [tuple(row.values()) for batch in work(CONTEXT, iter(batches)) for row in batch.to_pylist()]


AT_HOME = found(("a", "x", "x"), ("b", "x", None))
AWAY = found(("c", "x", "y"), ("d", "x", "x"))
STAYS_IN_X = [("a", "x", False, "f"), ("b", "x", False, None)]


@pytest.mark.parametrize("at", range(3))
def test_rows_that_are_at_home_do_not_end_the_stream_wherever_their_batch_comes(at: int) -> None:
    batches = [AWAY, found(("e", "x", "z"))]
    batches.insert(at, AT_HOME)

    kept = {key: (partition, file_id) for key, partition, _, file_id in moved(batches, moves=False)}

    assert kept == {"a": ("x", "f"), "b": ("x", None), "c": ("y", "f"), "d": ("x", "f"), "e": ("z", "f")}


def test_a_row_that_moves_is_deleted_where_it_was_whichever_batch_it_is_of() -> None:
    rows = moved([AT_HOME, AWAY, AT_HOME, AWAY], moves=True)

    change = [("c", "x", False, None), ("d", "x", False, "f"), ("c", "y", True, "f")]
    assert rows == [*STAYS_IN_X, *change] * 2


def test_new_keys_are_kept_of_every_batch_whether_or_not_the_one_before_had_any() -> None:
    known, new = found(("a", "x", "x")), found(("b", "x", None), ("c", "x", "x"))

    kept = [row[RECORD_KEY] for batch in KeepUnknown(False)(CONTEXT, iter([known, new, known, new])) for row in
            batch.to_pylist()]  # fmt: skip

    assert kept == ["b", "b"]
    with pytest.raises(ConfigError, match="1 rows have keys that the table holds, such as 'c' in partition 'x'"):
        list(KeepUnknown(True)(CONTEXT, iter([found(("b", "x", None)), new])))


def test_versions_of_a_key_are_combined_over_batches_some_of_which_are_empty() -> None:
    schema = pa.schema([(RECORD_KEY, pa.string()), (ARRIVAL, pa.int64()), (IS_DELETE, pa.bool_()), ("v", pa.int64())])
    rows = [pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True))], schema=schema) for row in
            (("a", 0, False, 1), ("b", 1, False, 2), ("a", 2, False, 3))]  # fmt: skip
    empty = rows[0].slice(0, 0)

    combined = CombineRows((RECORD_KEY,), MergeRules())(CONTEXT, iter([empty, rows[0], empty, rows[1], rows[2]]))

    assert sorted((row[RECORD_KEY], row["v"]) for batch in combined for row in batch.to_pylist()) == [
        ("a", 3),
        ("b", 2),
    ]
    assert list(CombineRows((RECORD_KEY,), MergeRules())(CONTEXT, iter([empty]))) == []
