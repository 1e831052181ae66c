"""`python -m fuzz.expressions`: random expressions of typed values, evaluated by Spark and without it.

A difference is printed with its text, and the run ends with exit code 1. Refusals are counted: what Spark answers and
PyHudi refuses is no finding. Needs PySpark, Java and DuckDB.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import warnings
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pyhudi import ConfigError, DuckDbSession

UTC = "UTC"
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "n": pa.array([7, -7, 0, None], pa.int32()),
        "l": pa.array([10, -3, 9007199254740993, None], pa.int64()),
        "x": pa.array([1.5, -2.5, float("nan"), None], pa.float64()),
        "de": pa.array([Decimal("1.25"), Decimal("-1.35"), Decimal("99999999.99"), None], pa.decimal128(10, 2)),
        "s": pa.array(["Abc ", " 12", "x.y,z", None]),
        "u": pa.array(["straße", "日本語", "", None]),
        "d": pa.array([date(2024, 1, 31), date(2023, 2, 28), date(1969, 12, 31), None]),
        "ts": pa.array([1711848600000000, -500000, 951782400000000, None], pa.timestamp("us", UTC)),
        "a": pa.array([[3, None, 1], [], [5, 5], None], pa.list_(pa.int32())),
        "bo": pa.array([True, False, None, True]),
    }
)  # fmt: skip
LEAVES = {
    "int": ["n", "id", "0", "-3", "2"],
    "long": ["l", "bigint(n)"],
    "double": ["x", "1.5D", "-0.0D", "double('NaN')"],
    "decimal": ["de", "1.25", "0.1", "3.0"],
    "text": ["s", "u", "'abc'", "' 7 '", "''", "'2024-02-03'"],
    "date": ["d", "date'2024-02-29'"],
    "moment": ["ts", "timestamp'2024-02-29 23:59:59.999999'"],
    "array": ["a", "array(1, 2, null)"],
    "truth": ["bo", "true"],
}
ANY = tuple(LEAVES)
NUMBERS = ("int", "long", "double", "decimal")
# What makes a value of a type: a text with the types of its places, several of which may be tried.
FORMS: dict[str, list[tuple[str, list[tuple[str, ...]]]]] = {
    "int": [
        ("({} + {})", [("int",), ("int",)]),
        ("({} % {})", [("int",), ("int",)]),
        ("length({})", [("text",)]),
        ("year({})", [("date", "moment")]),
        ("datediff({}, {})", [("date",), ("date", "moment")]),
        ("size({})", [("array",)]),
        ("instr({}, {})", [("text",), ("text",)]),
        ("coalesce({}, {})", [("int",), ("int",)]),
        ("cast({} as int)", [("long", "double", "decimal", "truth")]),
        ("try_cast({} as int)", [("text", "double")]),
        ("element_at({}, 1)", [("array",)]),
    ],
    "long": [
        ("({} * {})", [("long",), ("int",)]),
        ("({} div {})", [("long", "int"), ("int",)]),
        ("ceil({})", [("double",)]),
        ("cast({} as bigint)", [("moment", "double", "decimal")]),
        ("unix_timestamp({})", [("moment",)]),
    ],
    "double": [
        ("({} / {})", [("int", "long", "double"), ("int", "double")]),
        ("({} + {})", [("double",), NUMBERS]),
        ("round({}, 1)", [("double",)]),
        ("sqrt({})", [("double", "int")]),
        ("cast({} as double)", [NUMBERS]),
        ("try_cast({} as double)", [("text",)]),
        ("greatest({}, {})", [("double",), ("double", "int")]),
    ],
    "decimal": [
        ("({} + {})", [("decimal",), ("decimal", "int")]),
        ("({} * {})", [("decimal",), ("decimal",)]),
        ("({} / {})", [("decimal",), ("decimal", "int")]),
        ("round({}, 1)", [("decimal",)]),
        ("cast({} as decimal(20, 4))", [NUMBERS]),
        ("abs({})", [("decimal",)]),
    ],
    "text": [
        ("concat({}, {})", [("text",), ANY[:7]]),
        ("cast({} as string)", [("int", "long", "double", "decimal", "date", "moment", "truth", "array")]),
        ("upper({})", [("text",)]),
        ("substring({}, {}, 2)", [("text",), ("int",)]),
        ("replace({}, {}, 'q')", [("text",), ("text",)]),
        ("regexp_replace({}, '[a-c]+', '<$0>')", [("text",)]),
        ("split_part({}, '.', 1)", [("text",)]),
        ("date_format({}, 'yyyy-MM-dd HH:mm:ss.SSS')", [("moment", "date")]),
        ("if({}, {}, {})", [("truth",), ("text",), ("text",)]),
        ("lpad({}, 5, '*')", [("text",)]),
        ("trim({})", [("text",)]),
    ],
    "date": [
        ("date_add({}, {})", [("date",), ("int",)]),
        ("add_months({}, 1)", [("date",)]),
        ("last_day({})", [("date", "moment")]),
        ("cast({} as date)", [("moment",)]),
        ("trunc({}, 'month')", [("date",)]),
        ("try_cast({} as date)", [("text",)]),
    ],
    "moment": [
        ("date_trunc('hour', {})", [("moment",)]),
        ("({} + interval 1 month)", [("moment",)]),
        ("cast({} as timestamp)", [("date",)]),
        ("timestampadd(DAY, 2, {})", [("moment", "date")]),
    ],
    "array": [
        ("array_distinct({})", [("array",)]),
        ("array_union({}, {})", [("array",), ("array",)]),
        ("sort_array({})", [("array",)]),
        ("transform({}, e -> e + 1)", [("array",)]),
        ("filter({}, e -> e > 1)", [("array",)]),
        ("array({}, {})", [("int",), ("int",)]),
        ("slice({}, 1, 2)", [("array",)]),
    ],
    "truth": [
        ("({} = {})", [NUMBERS, NUMBERS]),
        ("({} < {})", [("text",), ("text",)]),
        ("({} >= {})", [("date", "moment"), ("date", "moment")]),
        ("({} <=> {})", [("int",), NUMBERS]),
        ("({} and {})", [("truth",), ("truth",)]),
        ("not {}", [("truth",)]),
        ("({} is null)", [ANY]),
        ("({} in ({}, {}))", [("int",), ("int",), ("decimal",)]),
        ("({} between {} and {})", [("double",), ("int",), ("decimal",)]),
        ("({} like 'a%')", [("text",)]),
        ("array_contains({}, {})", [("array",), ("int",)]),
    ],
}


def expression(dice: random.Random, kind: str, depth: int) -> str:
    """A random expression of a type."""
    if depth == 0 or dice.random() < 0.25:
        return dice.choice(LEAVES[kind])
    form, places = dice.choice(FORMS[kind])
    return form.format(*(expression(dice, dice.choice(kinds), depth - 1) for kinds in places))


def is_same(one: Any, other: Any) -> bool:
    """Equal values; floating-point numbers up to their last bit."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=1e-15)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return type(one) is type(other) and bool(one == other)


def type_text(kind: pa.DataType) -> str:
    """A type without the names of lists' elements."""
    return f"list<{type_text(kind.value_type)}>" if pa.types.is_list(kind) else str(kind)


def difference(ours: pa.Table | None, sparks: pa.Table | None) -> str | None:
    """How two answers differ; None where they do not, or where ours is a refusal."""
    if ours is None:
        return None
    if sparks is None:
        return f"Spark refuses it; here {ours['r'].to_pylist()}"
    here, there = ours["r"].to_pylist(), sparks["r"].to_pylist()
    if not is_same(here, there):
        return f"Spark {there}; here {here}"
    kinds = type_text(ours.schema.field("r").type), type_text(sparks.schema.field("r").type)
    return None if kinds[0] == kinds[1] else f"Spark {kinds[1]}; here {kinds[0]}"


def main() -> int:
    """Compare until the time is over; 1 when something differed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.expressions", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--depth", type=int, default=2)
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": UTC,
        "spark.sql.shuffle.partitions": "1",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.createDataFrame(ROWS).coalesce(1).createOrReplaceTempView("rows")
    session, rows, dice = DuckDbSession(), ROWS, random.Random(given.seed)
    end, played, refused, findings = time.monotonic() + given.seconds, 0, 0, 0
    while time.monotonic() < end:
        text = expression(dice, dice.choice(ANY), given.depth)
        query = f"SELECT id, {text} AS r FROM rows ORDER BY id"
        ours: pa.Table | None = None
        sparks: pa.Table | None = None
        reason = ""
        try:
            ours = session.sql(query).to_arrow()
        except ConfigError:
            refused += 1
        try:
            sparks = spark.sql(query).toArrow()
        except Exception as error:  # Spark has a class of error for each reason
            refused -= ours is None
            reason = str(error)[:150]
        played += 1
        problem = difference(ours, sparks)
        if problem is not None:
            findings += 1
            print(f"{text}: {problem} {reason}", flush=True)
    spark.stop()
    counts = f"{played} expressions of {rows.num_rows} rows, {refused} refused here alone, {findings} findings"
    print(f"seed {given.seed}: {counts}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
