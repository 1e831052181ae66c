"""Combining a batch with itself, against a row-by-row model, and comparing ordering values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.merge import MERGE_MODES, combine, merge_mode, winners
from pyhudi.merge.combine import deletes_of
from pyhudi.model.keys import ARRIVAL, IS_DELETE, PARTITION_PATH, RECORD_KEY
from tests.support.sweeps import examples
from tests.support.values.reduced_rows import Row, reduce_rows

MODES = ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"]
COMMIT, EVENT = MODES

rows = st.lists(
    st.tuples(
        st.sampled_from("abcde"),  # key
        st.sampled_from(["p", "q"]),  # partition
        st.none() | st.integers(1, 4),  # first ordering field
        st.none() | st.sampled_from(["x", "y", "é", "\uffff", "\U0001f600"]),  # second
        st.booleans(),  # delete
    ),
    max_size=40,
)


def _table(data: list[tuple[Any, ...]], arrival: list[int] | None = None) -> pa.Table:
    columns = {
        RECORD_KEY: pa.array([row[0] for row in data], pa.string()),
        PARTITION_PATH: pa.array([row[1] for row in data], pa.string()),
        "ts": pa.array([row[2] for row in data], pa.int64()),
        "tie": pa.array([row[3] for row in data], pa.string()),
        IS_DELETE: pa.array([row[4] for row in data], pa.bool_()),
        "n": pa.array(range(len(data)), pa.int64()),
    }
    if arrival is not None:
        columns[ARRIVAL] = pa.array(arrival, pa.int64())
    return pa.table(columns)


@pytest.mark.parametrize("flags", [None, [True, False, True]])
def test_deletes_of_some_rows_are_as_many_as_these_rows(flags: list[bool] | None) -> None:
    table = _table([(key, "p", 1, "x", False) for key in "abc"]).drop_columns([IS_DELETE])
    if flags is not None:
        table = table.append_column(IS_DELETE, pa.array(flags))

    assert deletes_of(table).tolist() == (flags or [False] * 3)
    assert deletes_of(table, pa.array([2, 1])).tolist() == ([True, False] if flags else [False, False])


def _java_text(value: str | None) -> Any:
    return None if value is None else value.encode("utf-16-be")


@settings(max_examples=examples(300), deadline=None)
@given(
    data=rows,
    mode=st.sampled_from(MODES),
    fields=st.sampled_from([("ts",), ("ts", "tie"), ("tie", "ts"), ()]),
    keys=st.sampled_from([(RECORD_KEY,), (RECORD_KEY, PARTITION_PATH)]),
    order=st.randoms(use_true_random=False),
)
def test_combining_agrees_with_the_row_by_row_rules(
    data: list[tuple[Any, ...]], mode: str, fields: tuple[str, ...], keys: tuple[str, ...], order: Any
) -> None:
    arrival = list(range(len(data)))
    order.shuffle(arrival)
    table = _table(data, arrival)
    versions: dict[tuple[Any, ...], list[Row]] = {}
    values = {"ts": lambda row: row[2], "tie": lambda row: _java_text(row[3])}
    for _, number in sorted(zip(arrival, range(len(data)), strict=True)):
        row = data[number]
        ordering = tuple(values[field](row) for field in fields)
        key = tuple({RECORD_KEY: row[0], PARTITION_PATH: row[1]}[name] for name in keys)
        versions.setdefault(key, []).append(Row(ordering, row[4], number))
    wanted_mode = mode if fields else COMMIT
    expected = sorted(reduce_rows(of_key, wanted_mode).payload for of_key in versions.values())

    combined = combine(table, mode, fields, keys)

    assert combined.column("n").to_pylist() == expected
    assert combined.schema == table.schema


def test_without_an_arrival_column_the_row_order_counts() -> None:
    table = _table([("a", "p", 1, None, False), ("a", "p", 1, None, False)])

    assert combine(table, EVENT, ["ts"]).column("n").to_pylist() == [1]


def test_a_batch_without_repeated_keys_comes_back_untouched() -> None:
    table = _table([("a", "p", 1, None, False), ("a", "q", 1, None, False)])

    assert combine(table, EVENT, ["ts"]) is table


def test_combining_is_idempotent_and_takes_record_batches() -> None:
    table = _table([("a", "p", n % 3, None, n % 2 == 0) for n in range(9)])
    once = combine(table.to_batches()[0], EVENT, ["ts"])

    assert combine(once, EVENT, ["ts"]) is once


def test_deletes_by_key_need_no_ordering_column() -> None:
    keys = pa.table({RECORD_KEY: ["a", "a"], PARTITION_PATH: ["p", "p"], IS_DELETE: [True, True]})

    assert len(combine(keys, EVENT, ["ts"])) == 1


def test_rows_without_the_ordering_column_are_refused() -> None:
    table = pa.table({RECORD_KEY: ["a", "a"], PARTITION_PATH: ["p", "p"]})
    with pytest.raises(SchemaMismatch, match="'ts'"):
        combine(table, EVENT, ["ts"])


def test_a_nested_ordering_field_is_followed() -> None:
    table = pa.table({RECORD_KEY: ["a", "a"], PARTITION_PATH: ["p", "p"], "s": [{"ts": 2}, {"ts": 1}], "n": [0, 1]})

    assert combine(table, EVENT, ["s.ts"]).column("n").to_pylist() == [0]


def test_custom_merging_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"CUSTOM .* Write this table with real Hudi"):
        merge_mode("CUSTOM")


def test_an_int_zero_delete_has_no_ordering_value_but_a_long_zero_has() -> None:
    for kind, removed in ((pa.int32(), True), (pa.int64(), False)):
        found = winners([pa.array([5], kind)], [pa.array([0], kind)], np.array([True]), EVENT)
        assert found.tolist() == [removed], kind


def _pairs(low: Any, high: Any, kind: pa.DataType) -> None:
    smaller, greater = pa.array([low], kind), pa.array([high], kind)
    assert winners([smaller], [greater], None, EVENT).tolist() == [True]
    assert winners([greater], [smaller], None, EVENT).tolist() == [False]
    assert winners([greater], [greater], None, EVENT).tolist() == [True]


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-5, 3, pa.int32()),
        (-(2**63), 2**63 - 1, pa.int64()),
        (None, -(2**63), pa.int64()),
        (-0.0, 0.0, pa.float64()),
        (float("inf"), float("nan"), pa.float64()),
        (None, float("-inf"), pa.float32()),
        (-1.5, -1.25, pa.float32()),
        (False, True, pa.bool_()),
        (None, False, pa.bool_()),
        ("Z", "a", pa.string()),
        (None, "", pa.string()),
        ("\U00010000", "\uffee", pa.string()),  # Java compares UTF-16 units
        (b"\x7f", b"\x80", pa.binary()),
        (Decimal("-1.10"), Decimal("-1.09"), pa.decimal128(5, 2)),
        (Decimal(9), Decimal(10), pa.decimal128(38, 0)),
        (dt.date(1969, 12, 31), dt.date(1970, 1, 1), pa.date32()),
        (dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1), pa.timestamp("us")),
        (None, dt.datetime(1960, 1, 1), pa.timestamp("us", "UTC")),
        (dt.time(1), dt.time(2), pa.time64("us")),
    ],
)
def test_ordering_values_compare_as_java_does(low: Any, high: Any, kind: pa.DataType) -> None:
    _pairs(low, high, kind)


@pytest.mark.parametrize(
    ("stored", "incoming"),
    [
        (pa.array([3], pa.int32()), pa.array([2**40], pa.int64())),
        (pa.array([3], pa.int64()), pa.array([3.5])),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), pa.array([Decimal("1.51")], pa.decimal128(9, 2))),
        (pa.array([1], pa.int32()), pa.array([Decimal("1.51")], pa.decimal128(9, 2))),
        (pa.array([1000], pa.timestamp("ms", "UTC")), pa.array([1000001], pa.timestamp("us", "UTC"))),
        (pa.nulls(1), pa.array([1])),
        (pa.array(["a"], pa.large_string()), pa.array(["b"])),
    ],
)
def test_widths_do_not_matter_when_ordering_values_compare(stored: pa.Array, incoming: pa.Array) -> None:
    assert winners([stored], [incoming], None, EVENT).tolist() == [True]
    assert winners([incoming], [stored], None, EVENT).tolist() == [False]


def test_types_that_do_not_compare_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="can't be compared"):
        winners([pa.array([1])], [pa.array(["1"])], None, EVENT)
    with pytest.raises(SchemaMismatch, match="can't order rows"):
        winners([pa.array([[1]])], [pa.array([[1]])], None, EVENT)


@pytest.mark.parametrize("mode", list(MERGE_MODES.entries))
def test_every_mode_gives_one_winner_per_key(mode: str) -> None:
    table = _table([("abc"[n % 3], "p", n % 4, None, n % 5 == 0) for n in range(50)])

    assert sorted(combine(table, mode, ["ts"]).column(RECORD_KEY).to_pylist()) == ["a", "b", "c"]
