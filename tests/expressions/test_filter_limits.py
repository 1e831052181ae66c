"""Filters of any size and any text: they work, or ConfigError says in a short text what is too much."""

from __future__ import annotations

import functools
import itertools
import operator
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import ConfigError, HudiTable
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow
from pyhudi.expressions.limits import MAX_DEPTH, MAX_EXPRESSION_CALLS, MAX_TERMS, MAX_WHERE_CHARS
from pyhudi.expressions.predicates import And, Column, Compare, In, Not, Or, Predicate
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from pyhudi.redaction import MAX_NUMBER_DIGITS
from tests.support.source import ROOT
from tests.support.sweeps import SAMPLED

AT = datetime(2024, 1, 1, 0, 0, 0, 5000, tzinfo=timezone.utc)
TABLE = pa.table(
    {
        "i": pa.array([0, 1, 2, None], pa.int64()),
        "f": pa.array([-0.0, 1.5, float("nan"), None], pa.float64()),
        "g": pa.array([0.0, 0.1, float("nan"), None], pa.float32()),
        "d": pa.array([Decimal("0.00"), Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(9, 2)),
        "s": pa.array(["a", "b", "c", None]),
        "ms": pa.array([AT, None, None, None], pa.timestamp("ms", "UTC")),
        "ns": pa.array([AT, None, None, None], pa.timestamp("ns", "UTC")),
        "raw": pa.array([b"ab", b"cd", None, None], pa.binary(2)),
    }
)
SCHEMA = TABLE.schema
I_COLUMN = Column(("i",))
LONG_LIST = "i IN (" + "1," * (50_000 if SAMPLED else 200_000)
_NAMES = itertools.count()


def kept(where: object) -> list[Any]:
    """Numbers of the rows that pass."""
    numbered = TABLE.append_column("row", pa.array([0, 1, 2, 3]))
    found: list[Any] = numbered.filter(to_arrow(bind(parse_where(where), SCHEMA), SCHEMA))["row"].to_pylist()
    return found


def refused(where: object) -> str:
    """What is said; never long, and always printable."""
    with pytest.raises(ConfigError) as caught:
        kept(where)
    message = str(caught.value)
    assert len(message) < 2000
    assert message.encode().decode() == message
    return message


def run_apart(code: str) -> None:
    """In a process of its own, which code that goes wrong may end."""
    code = f"from tests.expressions.test_filter_limits import *\n{code}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.thorough
def test_ten_thousand_comparisons_work_whatever_joins_them() -> None:
    """Arrow calls itself for each term of a chain, and the stack is gone at some 8,000."""
    run_apart("""
assert kept(" OR ".join(f"i < -{n}" for n in range(1, 9_990)) + " OR i = 2") == [2]
assert kept([("i", ">", -n) for n in range(1, 9_990)]) == [0, 1, 2]
""")


@pytest.mark.thorough
def test_more_comparisons_than_the_limit_are_refused_and_the_list_that_does_it_is_named() -> None:
    message = refused(" OR ".join(f"i < {n}" for n in range(MAX_TERMS + 1)))

    assert f"more than {MAX_TERMS} comparisons" in message
    assert "IN (1, 2, 3)" in message


@pytest.mark.thorough
@pytest.mark.parametrize(("column", "value"), [("i", "{}"), ("f", "{}.5"), ("d", "{}.25"), ("s", "'{}'")])
def test_lists_have_a_hundred_thousand_values_of_any_kind(column: str, value: str) -> None:
    values = ", ".join(value.format(n) for n in range(10, 100_010))

    assert kept(f"{column} NOT IN ({values})") == [0, 1, 2]


@pytest.mark.thorough
def test_many_comparisons_with_values_of_one_column_are_one_list() -> None:
    many = " OR ".join(f"i = {n}" for n in range(2, 5_000))
    bound = bind(parse_where(f"{many} OR s = 'a'"), SCHEMA)

    assert isinstance(bound, Or)
    assert [type(child) for child in bound.children] == [In, Compare]
    assert kept(f"{many} OR s = 'a'") == [0, 2]
    assert kept(" AND ".join(f"i <> {n}" for n in range(2, 5_000))) == [0, 1]


@pytest.mark.parametrize("count", [1, 15, 16, 40])
@pytest.mark.parametrize("null", ["", " OR i IN (NULL)"])
def test_a_merged_list_means_what_its_comparisons_mean(count: int, null: str) -> None:
    either = " OR ".join(f"i = {n}" for n in range(1, count + 1)) + null

    assert kept(either) == [n for n in (1, 2) if n <= count]
    assert kept(f"NOT ({either})") == ([] if null else [n for n in (0, 2) if n == 0 or n > count])


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (("f", "in", [0.0, 9.0]), [0]),
        (("f", "in", [float("nan")]), [2]),
        (("f", "not in", [float("nan"), 1.5]), [0]),
        (("g", "in", [0.1]), []),  # no value of four bytes is 0.1
        (("g", "in", [-0.0, 1e300]), [0]),
        (("ms", "in", [AT]), [0]),
        (("ms", "in", [AT.replace(microsecond=5001)]), []),
        (("ns", "in", [AT, datetime(9999, 1, 1)]), [0]),
        (("raw", "in", [b"ab", b"abc"]), [0]),
        (("d", "in", [Decimal("1.5"), Decimal("1.505"), 2]), [1, 2]),
        (("i", "in", []), []),
    ],
)
def test_a_list_holds_a_value_exactly_when_a_comparison_does(
    where: tuple[str, str, list[Any]], rows: list[int]
) -> None:
    assert kept(where) == rows


@pytest.mark.parametrize(
    "where",
    [
        "(" * 100_000 + "i = 1",
        "(" * (MAX_DEPTH + 1) + "i = 1" + ")" * (MAX_DEPTH + 1),
        "NOT (" * (MAX_DEPTH + 1) + "i = 1" + ")" * (MAX_DEPTH + 1),
        functools.reduce(lambda inner, _: [inner], range(5_000), [("i", "=", 1)]),
        functools.reduce(lambda inner, _: Not(inner), range(50_000), Compare(I_COLUMN, "=", 1)),
        functools.reduce(lambda inner, _: And((inner,)), range(50_000), Compare(I_COLUMN, "=", 1)),
    ],
    ids=["open", "brackets", "not", "lists", "tree of not", "tree of and"],
)
def test_what_is_nested_too_deep_is_refused(where: object) -> None:
    assert f"more than {MAX_DEPTH} nested" in refused(where)


@pytest.mark.thorough
def test_what_is_nested_as_deep_as_allowed_works() -> None:
    inside = MAX_DEPTH - 1

    assert kept("(" * inside + "i = 1" + ")" * inside) == [1]
    assert kept("NOT (" * inside + "i = 1" + ")" * inside) == [0, 2]
    assert kept("NOT " * 99_999 + "i = 1") == [0, 2]
    tree: Predicate = functools.reduce(lambda inner, _: Not(inner), range(inside), Compare(I_COLUMN, "=", 1))
    assert kept(tree) == kept(to_sql(tree)) == [0, 2]


@pytest.mark.parametrize(
    "where",
    [
        "i = " + "9" * 5_000,
        "d < 0." + "9" * 5_000,
        "d < 1e99999999BD",
        "i < 1e99999999L",
        "i < 1e" + "9" * 30 + "L",
        ("i", "<", 10**5_000),
        ("d", "<", Decimal("1e99999999")),
        ("d", "<", Decimal("1e-99999999")),
        ("i", "in", [1, 10**5_000]),
        ("i", "<", "9" * 5_000),
    ],
    ids=lambda where: type(where).__name__,
)
def test_numbers_of_too_many_digits_are_refused(where: object) -> None:
    assert "digits" in refused(where) or "no value of that type" in refused(where)


@pytest.mark.parametrize(
    "where", ["i < " + "9" * MAX_NUMBER_DIGITS, "f < DOUBLE('1e9999')", "f < " + "9" * 900, "d < 1e900BD"]
)
def test_numbers_that_no_column_can_hold_but_have_a_size_are_compared(where: str) -> None:
    assert kept(where)[:2] == [0, 1]


def test_a_negative_number_keeps_all_its_digits() -> None:
    digits = "1.2345678901234567890123456789012345678901"

    assert parse_where(f"d < -{digits}") == Compare(Column(("d",)), "<", Decimal(f"-{digits}"))


@pytest.mark.parametrize(
    "where",
    [
        "s = '\ud800'",
        "s LIKE '\ud800%'",
        "\ud800 = 1",
        "`\ud800` = 1",
        ("s", "=", "\ud800"),
        ("s", "in", ["\ud800"]),
        ("s", "=", "x" * 100_000 + "\ud800"),
        ("i", "=", "x" * 1_000_000),
        ("i", "=", object()),
        ("i", "=", [1] * 100_000),
        ("nope" * 10_000, "=", 1),
        "s = " + "x" * 1_000_000,
        "s = 'x" + "y" * 1_000_000,
        "i = 1 AND " + "+" * 1_000_000,
        "s LIKE '" + "_" * 200_000 + "'",
        "DOUBLE(" + "9" * 400 + ") < f",
        "s = i",
        "ms = 'x'",
        pc.field("nope") == 1,
        pc.field("s") + 1,
        "(" * 3_000_000,
        "s = '" + "y" * MAX_WHERE_CHARS + "'",
    ],
    ids=lambda where: type(where).__name__,
)
def test_whatever_is_wrong_with_a_filter_is_said_in_a_short_text(where: object) -> None:
    refused(where)


def chain(terms: int) -> pc.Expression:
    return functools.reduce(operator.or_, [pc.field("i") == n for n in range(terms)])


@pytest.mark.thorough
def test_a_pyarrow_expression_that_would_end_the_process_is_refused() -> None:
    """The limit counts both the comparisons and what joins them."""
    assert kept(chain(MAX_EXPRESSION_CALLS // 2)) == [0, 1, 2]
    assert kept(pc.field("i").isin(list(range(100_000)))) == [0, 1, 2]
    assert kept([chain(MAX_EXPRESSION_CALLS // 2)] * 4) == [0, 1, 2], "each becomes one list of values"
    run_apart("""
from pyhudi.expressions.predicates import Opaque
for where in (chain(10_000), chain(40_000), Not(Opaque(chain(10_000)))):
    assert f"at most {MAX_EXPRESSION_CALLS}" in refused(where)
""")


@pytest.mark.thorough
def test_a_hostile_text_takes_little_memory() -> None:
    """The first one is a number of a hundred million digits in sixteen characters."""
    run_apart("""
import resource
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (500 << 20),) * 2)
numbers = ("d < 1e99999999BD", "i < 1e999999999L")
for where in (*numbers, "(" * 3_000_000, "s = '" + "y'" * 3_000_001, LONG_LIST):
    refused(where)
""")


DOORS: dict[str, Callable[[HudiTable, Any], object]] = {
    "scan": lambda table, where: table.scan(where=where).to_arrow(),
    "count": lambda table, where: table.scan(where=where).count(),
    "delete": lambda table, where: table.delete(where=where),
    "update": lambda table, where: table.update(set={"v": 1}, where=where),
    "merge": lambda table, where: table.merge([{"id": 1, "v": 5}]).when_matched_update_all(where).execute(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("door", DOORS)
def test_each_way_in_refuses_what_is_too_much_and_writes_nothing(door: str) -> None:
    table = HudiTable.create(
        f"memory://filter-limits-{next(_NAMES)}", pa.schema([("id", pa.int64()), ("v", pa.int64())]), record_key="id"
    )
    table.insert([{"id": 1, "v": 0}])
    column = "target.v" if door == "merge" else "v"
    for where in (
        "(" * 10_000,
        f"{column} = " + "9" * 10_000,
        " OR ".join(f"{column} < {n}" for n in range(MAX_TERMS)) + " OR 1 = 1",
        functools.reduce(operator.or_, [pc.field("v") == n for n in range(MAX_EXPRESSION_CALLS)]),
    ):
        with pytest.raises(ConfigError):
            DOORS[door](table, where)

    assert table.to_arrow(columns=["id", "v"]).to_pylist() == [{"id": 1, "v": 0}]
    DOORS[door](table, " OR ".join(f"{column} = {n}" for n in range(1, 2_000)))
    assert table.to_arrow(columns=["id", "v"]).to_pylist() == [{"id": 1, "v": 0}]


def test_an_expression_that_sets_a_column_has_the_same_limit() -> None:
    table = HudiTable.create(
        f"memory://filter-limits-{next(_NAMES)}", pa.schema([("id", pa.int64()), ("v", pa.int64())]), record_key="id"
    )
    table.insert([{"id": 1, "v": 0}])
    large = functools.reduce(operator.add, [pc.field("v")] * (MAX_EXPRESSION_CALLS + 2))

    with pytest.raises(ConfigError, match="functions"):
        table.update(set={"v": large}, where="id = 1")


def test_a_scan_shows_a_long_filter_in_part() -> None:
    table = HudiTable.create(
        f"memory://filter-limits-{next(_NAMES)}", pa.schema([("id", pa.int64()), ("v", pa.int64())]), record_key="id"
    )
    table.insert([{"id": 1, "v": 0}])
    scan = table.scan(where=("id", "in", list(range(100_000))))

    assert len(repr(scan)) < 500
    assert len(str(scan.explain())) < 5_000
