"""The functions that filters and expression indexes know, against Spark's own."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.expressions.column_functions import FUNCTIONS, compute
from pyhudi.expressions.where import parse_call
from pyhudi.spark.engine import SparkEngine
from tests.support.spark.sessions import FLAVOUR

CHANCE = random.Random("functions")
TEXTS = ["Straße", "İstanbul", "ΑΣ", "  a b ", "", "ÀÉ", "\tx ", "a" * 40, "ǅ", "日本語", "😀b", None]
NUMBERS = [0, -1, 86_399, 253_402_300_799, 253_402_300_800, -62_135_596_801, -62_167_219_201, 2**40, -(2**38), None]
NUMBERS += [CHANCE.randrange(-(10**11), 10**11) for _ in range(200)]
DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(9999, 12, 31), date(2024, 2, 29), None]
DAYS += [date(1970, 1, 1) + timedelta(days=CHANCE.randrange(-200_000, 200_000)) for _ in range(100)]
MOMENTS = [
    None if day is None else datetime(day.year, day.month, day.day, 23, 59, 59, 999_999, timezone.utc) for day in DAYS
]
COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "s": (TEXTS, pa.string()),
    "n": (NUMBERS, pa.int64()),
    "d": (DAYS, pa.date32()),
    "t": (MOMENTS, pa.timestamp("us", "UTC")),
}
CALLS = [
    *(f"{name}(s)" for name in ("identity", "lower", "upper", "trim", "ltrim", "rtrim", "length")),
    *(f"substring(s, {pos}, {length})" for pos in (0, 1, 3, 50) for length in (-1, 0, 2, 100)),
    *(f"{name}({column})" for name in ("year", "month", "day", "to_date") for column in "dt"),
    *("hour(t)", "unix_timestamp(t)", "from_unixtime(n)", "date_add(d, 40)", "date_sub(d, 40)", "date_add(d, -1)"),
    *(f"{call}, '{form}')" for call in ("from_unixtime(n", "date_format(t", "date_format(d") for form in (
        "yyyy-MM-dd", "yyyyMMddHHmmss", "dd.MM.yyyy HH:mm", "yyyy/MM", "yyyy-MM-dd''T''HH"
    )),
]  # fmt: skip


def _spelt(call: str) -> str:
    """Two quotes inside a text are one to us and to Spark 4; Spark 3.5 takes them for two texts side by side."""
    return call.replace("''", r"\'")


@pytest.mark.skipif(FLAVOUR == "connect", reason="the functions are the same ones")
def test_functions_give_what_spark_gives(spark: Any) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    engine = SparkEngine(spark)
    assert {parse_call(text).function for text in CALLS} == set(FUNCTIONS)
    for name, (values, kind) in COLUMNS.items():
        table = pa.table({"row": pa.array(range(len(values)), pa.int32()), name: pa.array(values, kind)})
        frame = engine.from_arrow(table)
        own = {text: parse_call(text) for text in CALLS if str(parse_call(text).column) == name}
        wanted = [
            f"{name} AS c{at}" if one.function == "identity" else f"{_spelt(text)} AS c{at}"
            for at, (text, one) in enumerate(own.items())
        ]
        theirs = engine.collect(frame.selectExpr("row", *wanted).orderBy("row"))
        for at, (text, call) in enumerate(own.items()):
            ours = compute(call, table.column(name).combine_chunks())
            found = theirs.column(f"c{at}").combine_chunks().cast(ours.type)
            both = [_plain(one) for one in (ours, found)]
            different = [found for found in zip(values, *both, strict=True) if found[1] != found[2]]
            assert different == [], text


def _plain(values: pa.Array) -> list[Any]:
    """Days as numbers: Python's dates end with the year 9999."""
    return (values.cast(pa.int32()) if pa.types.is_date32(values.type) else values).to_pylist()
