"""Filters by functions of columns: what they keep, and the files that expression indexes leave out."""

from __future__ import annotations

import random
from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow
from pyhudi.expressions.predicates import Call, Column
from pyhudi.expressions.statistics.ranges import ValueRange
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from pyhudi.queries.skip.expressions import in_any_zone
from tests.support.tables.clustered import Clustered

DAY = 86_400
KINDS = [(version, kind) for version in ("8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
ROWS = pa.table(
    {
        "ts": pa.array([0, -1, 86_399, 1_704_067_200, None], pa.int64()),
        "s": ["Straße", " ab ", "ABC", None, "İx"],
        "at": pa.array([datetime(2024, 2, 29, 23, 59, 59, 999_999, timezone.utc)] * 5, pa.timestamp("us", "UTC")),
        "day": pa.array([date(2024, 2, 29), date(1, 1, 1), None, date(9999, 12, 31), date(1969, 12, 31)]),
    }
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-01'", [0, 2]),
        ("from_unixtime(ts) = '1969-12-31 23:59:59'", [1]),
        ("from_unixtime(ts, 'yyyyMM') LIKE '2024%'", [3]),
        ("FROM_UNIXTIME(ts) IS NULL", [4]),
        ("upper(s) = 'STRASSE'", [0]),
        ("lower(s) IN ('abc', 'i\u0307x')", [2, 4]),
        ("trim(s) = 'ab' AND length(s) = 4", [1]),
        ("NOT substring(s, 1, 2) = 'AB'", [0, 1, 4]),
        ("year(day) BETWEEN 1 AND 1969", [1, 4]),
        ("month(at) = 2 AND day(at) = 29 AND hour(at) = 23", [0, 1, 2, 3, 4]),
        ("date_format(day, \"yyyy/MM\") = '2024/02'".replace('"', "'"), [0]),
        ("to_date(at) = DATE '2024-02-29' AND date_add(day, 1) = DATE '2024-03-01'", [0]),
        ("unix_timestamp(at) = 1709251199 AND date_sub(day, 1) < day", [0, 1, 3, 4]),
    ],
)
def test_a_filter_by_a_function_keeps_the_rows_that_spark_s_function_would(where: str, expected: list[int]) -> None:
    predicate = bind(parse_where(where), ROWS.schema)
    numbered = ROWS.append_column("row", pa.array(range(ROWS.num_rows)))
    assert numbered.filter(to_arrow(predicate, ROWS.schema)).column("row").to_pylist() == expected
    assert bind(parse_where(to_sql(predicate)), ROWS.schema) == predicate


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("from_unixtime(s) = 'x'", "from_unixtime of string"),
        ("from_unixtime(ts, 'EEE') = 'x'", "format 'EEE' has other parts"),
        ("substring(s, -2, 1) = 'x'", "counted from the end"),
        ("soundexx(s) = 'x'", "soundexx is not among"),
        ("lower(nothing) = 'x'", "nothing"),
    ],
)
def test_a_function_that_neither_we_nor_duckdb_know_is_refused_by_name(where: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bind(parse_where(where), ROWS.schema)


def spread(version: str, kind: str) -> Clustered:
    """A table with one file group for each of eight days, that have sixty days between them."""
    table = Clustered(version, kind, metadata_enable="true")
    for number in range(8):
        table.bulk_insert(
            (f"k{number}", "xy"[number % 2], 1, number * 60 * DAY), (f"l{number}", "xy"[number % 2], 1, 5)
        )
        table.delete((f"l{number}", "xy"[number % 2])) if kind == "COPY_ON_WRITE" else None
    handle = HudiTable(table.meta)
    handle.indexes.create("day", expression="from_unixtime(v, 'yyyy-MM-dd')")
    if kind == "MERGE_ON_READ":
        for number in range(8):
            table.upsert((f"l{number}", "xy"[number % 2], 2, number * 60 * DAY + 7))
        table.compact_now()
    return table


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_an_expression_index_leaves_out_files_and_no_rows(version: str, kind: str) -> None:
    table = spread(version, kind)
    table.upsert(("k1", "y", 3, 400 * DAY), ("new", "z", 1, 60 * DAY))
    handle = HudiTable(table.meta)
    day = "from_unixtime(v, 'yyyy-MM-dd')"
    least = 0
    for where in (
        f"{day} = '1970-03-02'",
        f"{day} >= '1971-01-01'",
        f"{day} IN ('1970-01-01', '1971-02-05')",
        f"{day} LIKE '1970-0%' AND p = 'y'",
        f"NOT {day} < '1970-06-01' OR {day} IS NULL",
        f"{day} BETWEEN '1970-02-01' AND '1970-07-01'",
    ):
        scan = handle.scan(columns=["id", "v"], where=where)
        plain = handle.scan(columns=["id", "v"], where=where, options={"hoodie.metadata.enable": "false"})
        assert _rows(scan) == _rows(plain) != [], where
        least += scan.plan.files_skipped
        assert scan.plan.files_skipped > 0, where
    assert least > 20


def _rows(scan: Any) -> list[str]:
    return sorted(map(str, scan.to_arrow().to_pylist()))


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["8", "9"])
def test_bloom_filters_of_an_expression_leave_out_files_and_no_rows(version: str) -> None:
    table = Clustered(version, "COPY_ON_WRITE", metadata_enable="true")
    for number in range(8):
        table.bulk_insert((f"Key{number}", "xy"[number % 2], 1, number), (f"Other{number}", "x", 1, -1))
    handle = HudiTable(table.meta)
    handle.indexes.create("low", index_type="bloom_filters", expression="lower(id)")
    handle.indexes.create("next", index_type="bloom_filters", expression="length(id)")
    table.upsert(("Key3", "y", 2, 30), ("Key8", "z", 1, 8))
    for where, least in (
        ("lower(id) = 'key3'", 9),
        ("lower(id) IN ('key8', 'other1') AND v > 0", 9),
        ("length(id) = 4 OR lower(id) = 'other1'", 0),
        ("lower(id) = 'nothing'", 12),
    ):
        scan = handle.scan(columns=["id", "v"], where=where)
        plain = handle.scan(columns=["id", "v"], where=where, options={"hoodie.metadata.enable": "false"})
        assert _rows(scan) == _rows(plain), where
        assert scan.plan.files_skipped >= least, where


@pytest.mark.parametrize(
    ("pattern", "low", "high", "expected"),
    [
        ("yyyy-MM-dd", "2024-03-01", "2024-12-31", ("2024-02-29", "2025-01-01")),
        ("yyyyMM", "202401", "202401", ("202312", "202402")),
        ("yyyy-MM-dd HH:mm", "2024-01-01 00:00", "2024-01-01 00:00", ("2023-12-31 06:00", "2024-01-02 18:00")),
        ("dd.MM.yyyy", "01.01.2024", "02.01.2024", (None, None)),
        ("yyyy", "+10000", "9999", (None, None)),
        ("yyyy", "0001", "-0004", (None, None)),
    ],
)
def test_bounds_of_times_hold_for_every_time_zone(
    pattern: str, low: str, high: str, expected: tuple[str | None, str | None]
) -> None:
    call = Call("from_unixtime", Column(("ts",)), (("format", pattern),))
    found = in_any_zone(call, pa.int64(), ValueRange(low, high))
    assert (found.low, found.high) == expected
    of_days = Call("year", Column(("day",)))
    assert in_any_zone(of_days, pa.date32(), ValueRange(1, 2)) == ValueRange(1, 2)
    assert in_any_zone(of_days, pa.timestamp("us", "UTC"), ValueRange(1, 2)) == ValueRange(0, 3)
    hour = Call("hour", Column(("at",)))
    assert in_any_zone(hour, pa.timestamp("us", "UTC"), ValueRange(1, 2)) == ValueRange(None, None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("version", "kind"), [("8", "COPY_ON_WRITE"), pytest.param("9", "MERGE_ON_READ", marks=pytest.mark.slow)]
)
def test_random_filters_by_functions_return_with_indexes_what_they_return_without(version: str, kind: str) -> None:
    chance = random.Random(f"{version} {kind}")
    table = Clustered(version, kind, metadata_enable="true", compact_inline="false")

    def some(count: int, ts: int) -> list[tuple[str, str, int, int]]:
        keys = [chance.choice("abcdefghij") + str(chance.randrange(3)) for _ in range(count)]
        return [(key, "xyz"[ord(key[0]) % 3], ts, chance.randrange(-50, 400) * DAY) for key in dict.fromkeys(keys)]

    table.bulk_insert(*some(6, 1))
    handle = HudiTable(table.meta)
    calls = {
        "from_unixtime(v, 'yyyy-MM')": ["1969-12", "1970-01", "1970-07", "1971"],
        "from_unixtime(v, 'dd.MM.yyyy')": ["01.01.1970", "15.06.1970", "31"],
        "substring(id, 1, 1)": ["a", "d", "f", "k"],
        "upper(id)": ["A0", "C1", "J2"],
    }
    for number, call in enumerate(calls):
        handle.indexes.create(f"i{number}", expression=call)
    for ts in range(2, 5):
        table.bulk_insert(*((f"{key}-{ts}", *rest) for key, *rest in some(3, ts)))
        table.upsert(*some(4, ts))
        if ts == 3 and kind == "MERGE_ON_READ":
            table.compact_now()
        if ts == 4:
            table.delete(*((key, path) for key, path, _, _ in some(2, ts)))

    def term() -> str:
        call, values = chance.choice(list(calls.items()))
        one, other = (f"'{text}'" for text in chance.choices(values, k=2))
        return chance.choice(
            [f"{call} {chance.choice(['=', '<', '<=', '>', '>=', '<>'])} {one}", f"{call} IN ({one}, {other})",
             f"{call} LIKE {one[:-1]}%'", f"{call} BETWEEN {one} AND {other}", f"NOT {call} = {one}"]
        )  # fmt: skip

    skipped = 0
    for _ in range(12):
        where = f"({term()}) {chance.choice(['AND', 'OR'])} ({term()})" if chance.random() < 0.5 else term()
        scan = handle.scan(columns=["id", "v"], where=where)
        plain = handle.scan(columns=["id", "v"], where=where, options={"hoodie.metadata.enable": "false"})
        assert _rows(scan) == _rows(plain), where
        skipped += scan.plan.files_skipped
    assert skipped > 3
