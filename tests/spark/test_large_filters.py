"""Filters of thousands of terms through Spark: they are planned, and keep the rows that they keep without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


@pytest.mark.parametrize(
    "where",
    [
        " OR ".join(f"v = {n}" for n in range(2, 5_000)),
        " OR ".join(f"v > {n}" for n in range(2, 700)),
        " AND ".join(f"v > -{n}" for n in range(1, 700)) + " AND v > 1",
        ("id", "in", list(range(2, 3_000))),
    ],
    ids=["or of values", "or", "and", "in"],
)
def test_a_filter_of_many_terms_keeps_the_same_rows_on_spark(spark: Any, tmp_path: Path, where: Any) -> None:
    HudiTable.create(tmp_path / "t", SCHEMA, record_key="id").insert([{"id": n, "v": n} for n in range(4)])
    table = HudiTable.open(tmp_path / "t", spark=spark)

    rows = table.scan(["id"], where).to_spark().collect()

    assert sorted(row["id"] for row in rows) == sorted(table.to_arrow(["id"], where)["id"].to_pylist())
    assert len(rows) in (1, 2)


@pytest.mark.thorough
def test_a_long_list_holds_texts_with_any_characters_and_numbers_of_any_size(spark: Any, tmp_path: Path) -> None:
    odd = ["it's", "back\\slash", "${spark.app.name}", "`tick`", '"quoted"', "zeile\n", "ü", "", "9"]
    ends = [-(2**63), -1, 0, 2**63 - 1]
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), ("in", pa.struct([("b", pa.int32())]))])
    table = HudiTable.create(tmp_path / "t", schema, record_key="v")
    table.insert([{"id": id, "v": n, "in": {"b": n % 100}} for n, id in enumerate(odd)])
    table.insert([{"id": "end", "v": v, "in": None} for v in ends[:2] + ends[3:]])
    table = HudiTable.open(tmp_path / "t", spark=spark)
    plain = [str(n) for n in range(9, 30)]

    for where in (
        ("id", "in", [*plain, "ü", '"quoted"', "`tick`", "zeile\n", ""]),
        *(("id", "in", [*plain, text]) for text in odd),
        ("id", "not in", [*plain, "ü"]),
        ("v", "in", [*range(100, 120), *ends]),
        ("in.b", "in", [*range(5, 30)]),
    ):
        rows = table.scan(["v"], [where]).to_spark().collect()

        expected = table.to_arrow(["v"], [where])["v"].to_pylist()
        assert sorted(row["v"] for row in rows) == sorted(expected), where
        assert expected, where


_NOON = datetime(1969, 7, 20, 12, 30, 15, 1)
_IN_UTC = [moment.replace(tzinfo=timezone.utc) for moment in (datetime(2, 1, 1), _NOON, datetime(9998, 1, 1))]
# Of each type: the values of five rows, and twenty others.
_VALUES: dict[pa.DataType, tuple[list[Any], list[Any]]] = {
    pa.date32(): (
        [date(1, 1, 1), date(1582, 10, 10), date(2024, 2, 29), date(9999, 12, 31), None],
        [date(2000, 1, n) for n in range(1, 21)],
    ),
    pa.decimal128(20, 4): (
        [Decimal("-0.0001"), Decimal(0), Decimal("1E+3"), Decimal("9999999999999999.9999"), None],
        [Decimal(n) / 8 for n in range(17, 37)],
    ),
    pa.float64(): ([1e-300, 0.1, 1.7976931348623157e308, -inf, nan], [n / 7 for n in range(1, 21)]),
    pa.float32(): ([-1.5, 0.25, 2.0**100, inf, nan], [n / 8 for n in range(17, 37)]),
    pa.timestamp("us"): (
        [datetime(1, 1, 1), _NOON, datetime(2024, 3, 31, 2, 30), datetime(9999, 12, 31, 23, 59, 59, 999_999), None],
        [datetime(2000, 1, n) for n in range(1, 21)],
    ),
    pa.timestamp("us", "UTC"): (
        [*_IN_UTC, None, None],
        [datetime(2000, 1, n, tzinfo=timezone(timedelta(hours=5))) for n in range(1, 21)],
    ),
    pa.binary(): ([b"", b"\x00", b"'\\", bytes(range(256)), None], [bytes([n, n]) for n in range(20)]),
}


@pytest.fixture
def far_zone(spark: Any) -> Iterator[None]:
    """A session in the time zone of another place than Python."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.thorough
def test_a_long_list_of_any_type_keeps_the_rows_that_it_keeps_without_spark(
    spark: Any, far_zone: None, tmp_path: Path
) -> None:
    schema = pa.schema([("id", pa.int64()), *((f"v{n}", kind) for n, kind in enumerate(_VALUES))])
    columns = [pa.array(values, kind) for kind, (values, _) in _VALUES.items()]
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")
    table.insert(pa.table([pa.array(range(5)), *columns], schema=schema))
    table = HudiTable.open(tmp_path / "t", spark=spark)

    for column, (values, others) in zip(schema.names[1:], _VALUES.values(), strict=True):
        present = [value for value in values if value is not None]
        for where, expected in (
            ((column, "in", [*others, *values[1:3]]), [1, 2]),
            ((column, "not in", [*others, *values[:2]]), range(2, len(present))),
        ):
            rows = table.scan(["id"], [where]).to_spark().collect()

            assert sorted(row["id"] for row in rows) == list(expected), where
            assert sorted(table.to_arrow(["id"], [where])["id"].to_pylist()) == list(expected), where
