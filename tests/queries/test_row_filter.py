"""Filters of one column by a list of values keep the rows that their Arrow expression keeps."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import RowFilter, to_arrow
from pyhudi.expressions.predicates import Column, Compare, Constant, In, Predicate
from pyhudi.expressions.where import parse_where
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES

ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from(values)) for name, values in VALUES.items()}),
    max_size=8,
)


@st.composite
def lists_of_values(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(VALUES)))
    values = draw(st.lists(st.sampled_from(VALUES[name]), max_size=4))
    if values and draw(st.booleans()):
        return Compare(Column((name,)), "=", values[0])
    return In(Column((name,)), tuple(values), has_null=draw(st.booleans()))


@settings(deadline=None)
@given(ROWS, st.one_of(lists_of_values(), PREDICATES))
def test_a_batch_keeps_the_rows_that_the_expression_is_true_for(rows: list[dict[str, Any]], wanted: Predicate) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    numbered = batch.append_column("row", pa.array(range(len(rows)), pa.int64()))
    predicate = bind(wanted, SCHEMA)
    expected = pa.Table.from_batches([numbered]).filter(to_arrow(predicate, SCHEMA))
    assert RowFilter.of(predicate, SCHEMA).filter(numbered)["row"].to_pylist() == expected["row"].to_pylist()


def test_a_list_of_values_needs_no_expression() -> None:
    schema = pa.schema([("id", pa.string()), ("x", pa.float64())])
    for where in ("id IN ('a', 'b')", "id = 'a'"):
        assert RowFilter.of(bind(parse_where(where), schema), schema).expression is None
    for where in ("x IN (1.0, 2.0)", "id > 'a'", "id IN ('a') AND x = 1"):
        assert RowFilter.of(bind(parse_where(where), schema), schema).expression is not None


def test_not_a_number_is_found_in_a_list() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1.0, math.nan, None]})
    predicate = bind(In(Column(("x",)), (math.nan,)), batch.schema)
    assert RowFilter.of(predicate, batch.schema).filter(batch).num_rows == 1


def test_without_a_filter_a_batch_stays_as_it_is() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, None]})
    assert RowFilter.of(Constant(True), batch.schema).filter(batch) is batch


def test_what_arrow_cannot_compute_is_an_error_of_the_filter() -> None:
    batch = pa.RecordBatch.from_pydict({"x": ["a"]})
    with pytest.raises(ConfigError, match="where can't be evaluated"):
        RowFilter(pc.field("x") + 1 > 0).filter(batch)
