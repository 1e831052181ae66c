"""Ranges of many files at once: the answers of one range after the other."""

from __future__ import annotations

import time
import timeit
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.predicates import And, Column, Compare, In, Not, Operand, Or, Predicate
from pyhudi.expressions.statistics.range_columns import NOT_COMPARABLE, RangeColumns, which_may_match
from pyhudi.expressions.statistics.ranges import ValueRange, may_match, must_match
from pyhudi.expressions.where import parse_where
from tests.support.sweeps import examples
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES

FLOATS = {"f", "g"}


def _a_range(name: str) -> st.SearchStrategy[ValueRange | None]:
    bounds = st.none() | st.sampled_from([value for value in VALUES[name] if value == value])
    return st.none() | st.builds(ValueRange, bounds, bounds, st.booleans(), st.booleans(), st.just(name in FLOATS))


# So many files, each with a range of each column.
FILES = st.integers(1, 4).flatmap(
    lambda count: st.fixed_dictionaries(
        {name: st.lists(_a_range(name), min_size=count, max_size=count) for name in VALUES}
    )
)


def _columns(name: str, ranges: list[ValueRange | None]) -> RangeColumns:
    def column(part: str, kind: pa.DataType) -> pa.Array:
        return pa.array([None if one is None else getattr(one, part) for one in ranges], kind)

    kind = SCHEMA.field(name).type
    flags = [column(part, pa.bool_()) for part in ("may_be_null", "only_null")]
    return RangeColumns(column("low", kind), column("high", kind), *flags, name in FLOATS)


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(files=FILES, predicate=PREDICATES)
def test_the_answers_are_those_of_each_file_on_its_own(
    files: dict[str, list[ValueRange | None]], predicate: Predicate
) -> None:
    try:
        bound = bind(predicate, SCHEMA)
    except ConfigError:
        return
    count = len(files["i"])
    columns: dict[Operand, RangeColumns] = {Column((name,)): _columns(name, ranges) for name, ranges in files.items()}

    def alone(number: int) -> bool:
        return may_match(bound, lambda operand: files[operand.path[0]][number] if isinstance(operand, Column) else None)

    try:
        found = which_may_match(bound, columns, count)
    except NOT_COMPARABLE:
        return
    assert found.tolist() == [alone(number) for number in range(count)]


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(files=FILES, name=st.sampled_from(sorted(VALUES)), data=st.data())
def test_a_list_holds_the_values_that_its_comparisons_hold(
    files: dict[str, list[ValueRange | None]], name: str, data: st.DataObject
) -> None:
    column, values = Column((name,)), tuple(data.draw(st.lists(st.sampled_from(VALUES[name]), max_size=5)))
    one_of, none_of = In(column, values), Not(In(column, values))
    equal, unequal = (tuple(Compare(column, op, value) for value in values) for op in ("=", "<>"))
    columns = {column: _columns(name, files[name])}
    count = len(files[name])

    # Without values there are no comparisons to compare it with: files at once and one by one have to agree.
    of_lists = [may_match(one_of, {column: one} if one else {}) for one in files[name]]
    assert which_may_match(one_of, columns, count).tolist() == of_lists
    if values:
        for listed, joined in ((one_of, Or(equal)), (none_of, And(unequal))):
            for number, one in enumerate(files[name]):
                known = {column: one} if one else {}
                assert may_match(listed, known) == may_match(joined, known)
                assert must_match(listed, known.get) == must_match(joined, known.get)  # type: ignore[arg-type]
                assert which_may_match(listed, columns, count)[number] == may_match(joined, known)


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")])
def test_a_list_of_times_is_searched_in_every_unit(kind: pa.DataType) -> None:
    bounds = pa.array([datetime(2024, 1, 1), datetime(2024, 3, 1), None], kind)
    flags = pa.array([False, False, False])
    ranges = {Column(("c",)): RangeColumns(bounds, bounds, flags, flags)}
    values = (datetime(2024, 3, 1), datetime(2024, 1, 1, 0, 0, 0, 1))
    assert which_may_match(In(Column(("c",)), values), ranges, 3).tolist() == [False, True, True]


def test_a_hundred_thousand_keys_are_compared_with_ten_thousand_files_in_a_moment() -> None:
    """A moment: ten times what Arrow and back takes. With a comparison of all files for each value it was 500 times."""
    low = pa.array(range(0, 10_000_000, 1_000))
    flags = pa.repeat(pa.scalar(False), len(low))
    ranges = {Column(("c",)): RangeColumns(low, pc.add(low, 999), flags, flags)}
    keys = tuple(range(0, 1_000_000, 10))

    def compared() -> None:
        assert which_may_match(In(Column(("c",)), keys), ranges, len(low)).sum() == 1_000

    def converted() -> None:
        assert len(pa.array(keys).to_pylist()) == len(keys)

    compared_s, converted_s = (
        min(timeit.repeat(work, number=1, repeat=3, timer=time.process_time)) for work in (compared, converted)
    )
    assert compared_s < 10 * converted_s


@pytest.mark.parametrize("name", sorted(VALUES))
def test_columns_of_every_type_are_compared(name: str) -> None:
    low, high = sorted(value for value in VALUES[name] if value == value)[:2]
    ranges = {Column((name,)): _columns(name, [ValueRange(low, low), ValueRange(high, high), None])}
    below = Compare(Column((name,)), "<", high)
    assert which_may_match(bind(below, SCHEMA), ranges, 3).tolist() == [True, False, True]


def test_ranges_become_columns_and_ranges_again() -> None:
    known = [ValueRange(1, 7, may_be_null=False), None, ValueRange(only_null=True)]
    columns = _columns("i", list(known))
    assert columns.to_ranges() == known
    assert columns.take(pa.array([2, None])).to_ranges() == [known[2], None]
    assert columns.unknown_where(np.array([True, False, False])).to_ranges() == [None, None, known[2]]
    assert columns.with_each(lambda _: ValueRange(3, None)).to_ranges() == [ValueRange(3), None, ValueRange(3)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.int64(), 1.5), (pa.decimal128(9, 2), Decimal("0.005")), (pa.date32(), datetime(2024, 1, 1, 12))],
)
def test_a_literal_that_the_type_cuts_off_is_left_to_the_other_comparison(kind: pa.DataType, value: Any) -> None:
    nothing, flag = pa.nulls(1, kind), pa.array([False])
    with pytest.raises(NOT_COMPARABLE):
        which_may_match(
            Compare(Column(("c",)), "=", value), {Column(("c",)): RangeColumns(nothing, nothing, flag, flag)}, 1
        )


def test_bounds_of_text_go_by_its_beginning() -> None:
    ranges = {Column(("s",)): _columns("s", [ValueRange("a", "b"), ValueRange("w1", "w2"), ValueRange("w", "w"), None])}
    found = which_may_match(bind(parse_where("s LIKE 'w1%'"), SCHEMA), ranges, 4)
    assert found.tolist() == [False, True, False, True]
