"""Arrow's own expressions skip files as SQL text does, and keep the rows that Arrow keeps."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow, top_level_columns
from pyhudi.expressions.foreign import columns_of_expression
from pyhudi.expressions.predicates import And, Opaque, Predicate, is_opaque
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES

ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from(values)) for name, values in VALUES.items()}),
    max_size=8,
)
_COMPARED = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: (
        st.builds(
            lambda op, value: op(pc.field(name), pa.scalar(value, SCHEMA.field(name).type)),
            st.sampled_from(
                [lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: b > a]
            ),
            st.sampled_from([*VALUES[name], None]),
        )
        | st.builds(
            lambda values: pc.field(name).isin(pa.array(values, SCHEMA.field(name).type)),
            st.lists(st.sampled_from([*VALUES[name], None]), max_size=3),
        )
        | st.sampled_from([pc.field(name).is_null(), pc.field(name).is_valid(), pc.field("b")])
        | st.builds(
            lambda part: pc.if_else(pc.field(name).is_valid(), part, pa.scalar(None, pa.bool_())),
            st.just(pc.field("b")),
        )
    )
)
EXPRESSIONS = st.recursive(
    _COMPARED,
    lambda inner: (
        st.builds(lambda a, b: a & b, inner, inner)
        | st.builds(lambda a, b: a | b, inner, inner)
        | st.builds(lambda a: ~a, inner)
        | st.builds(lambda a, b: pc.Expression._call("and", [a, b]), inner, inner)
    ),
    max_leaves=5,
)


def _kept(rows: pa.Table, predicate: Predicate) -> list[int]:
    return rows.filter(to_arrow(predicate, SCHEMA))["row"].to_pylist()  # type: ignore[no-any-return]


def _numbered(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA).append_column("row", pa.array(range(len(rows)), pa.int64()))


@pytest.mark.thorough
@settings(deadline=None)
@given(ROWS, EXPRESSIONS)
def test_an_expression_keeps_the_rows_that_arrow_keeps(rows: list[dict[str, Any]], expression: pc.Expression) -> None:
    table = _numbered(rows)
    assert _kept(table, bind(parse_where(expression), SCHEMA)) == table.filter(expression)["row"].to_pylist()


@settings(deadline=None)
@given(ROWS, EXPRESSIONS | PREDICATES.map(lambda p: to_arrow(bind(p, SCHEMA), SCHEMA)))
def test_what_files_are_skipped_by_keeps_every_row_of_the_expression(
    rows: list[dict[str, Any]], expression: pc.Expression
) -> None:
    table = _numbered(rows)
    bound = bind(parse_where(expression), SCHEMA)
    parts = bound.children if isinstance(bound, And) else (bound,)
    for part in parts:
        if not isinstance(part, Opaque):
            assert set(table.filter(expression)["row"].to_pylist()) <= set(_kept(table, part))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pc.field("i") > 5, "i > 5"),
        (pc.scalar(5) < pc.field("i"), "i > 5"),
        (pc.field("s").isin(["a", "b"]), "s IN ('a', 'b')"),
        ((pc.field("i") >= 1) & (pc.field("s") == "x"), "i >= 1 AND s = 'x'"),
        (pc.field("day") >= date(2024, 1, 1), "day >= DATE '2024-01-01'"),
        (pc.field("d") == Decimal("1.50"), "d = 1.50"),
        (~pc.field("b"), "NOT b = TRUE"),
    ],
)
def test_an_expression_that_means_the_same_here_becomes_the_predicate(expression: pc.Expression, text: str) -> None:
    assert bind(parse_where(expression), SCHEMA) == bind(parse_where(text), SCHEMA)


def test_an_expression_of_fractions_stays_beside_the_predicate() -> None:
    bound = bind(parse_where((pc.field("f") > 1.5) & (pc.field("i") == 1)), SCHEMA)
    assert is_opaque(bound)
    assert to_sql(bound).startswith("(f > 1.5D AND i = 1) AND ")


@pytest.mark.parametrize("name", ["a'\nliteral: '0", "it's", "a\nb", "call", "-- schema metadata --\n"])
def test_strange_names_of_columns_deceive_nobody(name: str) -> None:
    schema = pa.schema([(name, pa.int64()), ("0", pa.int64())])
    rows = pa.table([[1, 7], [7, 1]], schema)
    bound = bind(parse_where((pc.field(name) == 7) & (pc.field(name) > 1)), schema)
    assert rows.filter(to_arrow(bound, schema)).to_pylist() == [{name: 7, "0": 1}]
    assert name in top_level_columns(bound, schema)


def test_the_columns_of_an_expression_are_reported() -> None:
    nested = (pc.field("n", "i") == 1) & (pc.field("valid") > pc.field("s"))
    assert columns_of_expression(nested) == {"n", "valid", "s"}
    schema = pa.schema(
        [("n", pa.struct([("i", pa.int64())])), ("i", pa.int64()), ("valid", pa.int64()), ("s", pa.int64())]
    )
    assert top_level_columns(Opaque(nested), schema) == {"n", "valid", "s"}


@pytest.mark.thorough
@pytest.mark.metadata_table
def test_files_and_partitions_are_skipped_by_expressions(tmp_path: Path) -> None:
    for day in range(4):
        rows = [
            {
                "id": day * 10 + n,
                "day": f"d{day}",
                "f": day + n / 10,
                "at": datetime(2024, 1, 1 + day, tzinfo=timezone.utc),
            }
            for n in range(5)
        ]
        write_hudi(tmp_path / "t", rows, "insert", record_key="id", partition_by="day")
    table = HudiTable.open(tmp_path / "t")
    for where in (
        pc.field("id") >= 30,
        pc.field("day") == "d3",
        (pc.field("f") >= 3.0) & (pc.field("id") > 25),
        pc.field("at") > datetime(2024, 1, 3, 12, tzinfo=timezone.utc),
        pc.field("id").isin([31, 32, 33, 30, 34]),
    ):
        scan = table.scan(["id"], where)
        assert scan.files().num_rows == 1, (where, scan.explain())
        assert sorted(scan.to_arrow()["id"].to_pylist()) == [30, 31, 32, 33, 34]


def test_a_long_chain_of_comparisons_is_read_without_recursion() -> None:
    expression = pc.field("i") == 0
    for number in range(1, 1000):
        expression = expression | (pc.field("i") == number)
    assert bind(parse_where(expression), SCHEMA).children == (
        bind(parse_where(("i", "in", list(range(1000)))), SCHEMA),
    )


def test_an_unknown_column_of_an_expression_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing"):
        bind(parse_where(pc.field("nothing") == 1), SCHEMA)
