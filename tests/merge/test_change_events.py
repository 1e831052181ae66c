"""Change events become rows: whatever their order and their batches, those of a model that sorts all events once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.merge.change_events import (
    CLOSE,
    DELETE,
    END_AT,
    INSERT,
    NEW,
    SEQUENCE,
    START_AT,
    UPDATE,
    histories,
    newest_rows,
)
from pyhudi.model.keys import IS_DELETE
from tests.support.scd_model import Event, history_of, newest_of

EVENTS = pa.schema(
    [("k", pa.int64()), ("a", pa.int64()), ("b", pa.string()), (SEQUENCE, pa.int64()), (IS_DELETE, pa.bool_())]
)
HISTORY = pa.schema([*list(EVENTS)[:3], (START_AT, pa.int64()), (END_AT, pa.int64())])
NEWEST = pa.schema([*list(EVENTS)[:3], (SEQUENCE, pa.int64())])


def as_table(events: list[Event]) -> pa.Table:
    return pa.table([pa.array([e[i] for e in events], field.type) for i, field in enumerate(EVENTS)], schema=EVENTS)


def with_history(stored: pa.Table, hidden: pa.Table, batch: list[Event]) -> tuple[pa.Table, pa.Table]:
    """The rows and the hidden events after a batch."""
    changes = histories(stored, hidden, as_table(batch), ["k"], ["a"])
    rows: list[Any] = stored.to_pylist()
    new = []
    for row, kind, place in zip(changes.rows.to_pylist(), changes.kinds, changes.places, strict=True):
        if kind == INSERT:
            assert place == NEW
            new.append(row)
        elif kind == DELETE:
            rows[place] = None
        else:
            assert (row["k"], row[START_AT]) == (rows[place]["k"], rows[place][START_AT])
            assert kind == UPDATE or {**row, END_AT: None} == {**rows[place], END_AT: None}
            rows[place] = row
    left = [row for row in rows if row is not None] + new
    return pa.Table.from_pylist(left, HISTORY), pa.concat_tables([hidden, changes.hidden])


def with_newest(stored: pa.Table, hidden: pa.Table, batch: list[Event]) -> tuple[pa.Table, pa.Table]:
    changes = newest_rows(stored.select(["k", SEQUENCE]), hidden, as_table(batch), ["k"])
    moments = {(event[0], event[1], event[2]): event[3] for event in batch}
    rows: dict[int, Any] = dict(enumerate(stored.to_pylist()))
    for row, kind, place in zip(changes.rows.to_pylist(), changes.kinds, changes.places, strict=True):
        at = len(rows) + 1000 if kind == INSERT else int(place)
        rows.pop(at, None)
        if kind != DELETE:
            rows[at] = {**row, SEQUENCE: moments[(row["k"], row["a"], row["b"])]}
    return pa.Table.from_pylist(list(rows.values()), NEWEST), pa.concat_tables([hidden, changes.hidden])


@st.composite
def batches(draw: st.DrawFn) -> list[list[Event]]:
    """Events of a few keys, out of order, in batches that repeat some of them."""
    moments = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 15)), unique=True, max_size=14))
    events = [
        (key, draw(st.integers(0, 1)), f"{key} at {moment}", moment, draw(st.booleans() if key < 3 else st.just(False)))
        for key, moment in draw(st.permutations(moments))
    ]
    cut, at = [], 0
    while at < len(events):
        size = draw(st.integers(1, 6))
        again = draw(st.lists(st.sampled_from(events[:at]), max_size=2)) if at else []
        cut.append([*events[at : at + size], *again])
        at += size
    return cut


@given(batches())
def test_histories_of_any_order_and_any_batches_are_those_of_all_events_at_once(cut: list[list[Event]]) -> None:
    stored, hidden = HISTORY.empty_table(), EVENTS.empty_table()
    for batch in cut:
        stored, hidden = with_history(stored, hidden, batch)

    rows = sorted((tuple(row.values()) for row in stored.to_pylist()), key=repr)
    assert rows == history_of([event for batch in cut for event in batch])


@given(batches())
def test_newest_rows_of_any_order_and_any_batches_are_those_of_all_events_at_once(cut: list[list[Event]]) -> None:
    stored, hidden = NEWEST.empty_table(), EVENTS.empty_table().select(["k", SEQUENCE, IS_DELETE])
    for batch in cut:
        stored, hidden = with_newest(stored, hidden, batch)

    rows = sorted(tuple(row.values()) for row in stored.to_pylist())
    assert rows == newest_of([event for batch in cut for event in batch])


def test_a_delete_counts_before_an_upsert_of_the_same_moment_in_either_order() -> None:
    upsert, delete = (1, 0, "x", 5, False), (1, 0, "x", 5, True)
    for first, second in ((upsert, delete), (delete, upsert)):
        stored, hidden = with_history(HISTORY.empty_table(), EVENTS.empty_table(), [first])
        assert len(with_history(stored, hidden, [second])[0]) == 0
        no_deletes = EVENTS.empty_table().select(["k", SEQUENCE, IS_DELETE])
        stored, hidden = with_newest(NEWEST.empty_table(), no_deletes, [first])
        assert len(with_newest(stored, hidden, [second])[0]) == 0


def test_a_row_that_only_ends_is_closed_and_not_rewritten() -> None:
    stored, hidden = with_history(HISTORY.empty_table(), EVENTS.empty_table(), [(1, 0, "x", 5, False)])
    changes = histories(stored, hidden, as_table([(1, 1, "y", 7, False)]), ["k"], ["a"])

    assert changes.kinds.tolist() == [INSERT, CLOSE]
    assert changes.rows.column(END_AT).to_pylist() == [None, 7]
    assert len(changes.hidden) == 0


@pytest.mark.parametrize(
    ("kind", "same", "others"),
    [
        (pa.list_(pa.int64()), [[1, None], [1, None], [], [], None, None], [[1], [1, 2], [2, 1], None, [], [None]]),
        (pa.struct([("x", pa.float64())]), [{"x": float("nan")}] * 2, [{"x": 1.0}, {"x": None}, None, {"x": 2.0}]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("a", 1)]], [[("a", 1)], [("a", 2)], [("b", 2)], [], None]),
    ],
    ids=["list", "struct", "map"],
)
def test_nested_values_and_nulls_are_compared_whole(kind: pa.DataType, same: list[Any], others: list[Any]) -> None:
    def runs(values: list[Any]) -> int:
        count = len(values)
        events = pa.table(
            {
                "k": pa.repeat(1, count),
                "v": pa.array(values, kind),
                SEQUENCE: pa.array(range(count), pa.int64()),
                IS_DELETE: pa.repeat(False, count),
            }
        )
        times = [(START_AT, pa.int64()), (END_AT, pa.int64())]
        stored = pa.schema([events.field("k"), events.field("v"), *times]).empty_table()
        return len(histories(stored, events.slice(0, 0), events, ["k"], ["v"]).rows)

    assert runs(same) == len(same) // 2
    assert runs(others) == len(others)
