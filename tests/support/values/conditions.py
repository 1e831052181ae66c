"""Conditions beyond the predicate tree over a small table, and the ids of the rows that Spark keeps."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa

__all__ = ["ANSWERS", "ROWS"]

_DAYS = [datetime(2024, 1, 1 + i, tzinfo=timezone.utc) for i in range(20)]
_FLOATS = [float("nan") if i == 4 else None if i == 5 else i / 4 for i in range(20)]
ROWS = pa.table(
    {
        "id": range(20),
        "City": ["oslo", "Rome"] * 10,
        "n": [None if i % 7 == 0 else i for i in range(20)],
        "d": [i % 3 for i in range(20)],
        "f": _FLOATS,
        "t": pa.array(_DAYS, pa.timestamp("us", "UTC")),
        "st": [{"X": i} for i in range(20)],
        "l": [[i, i + 1] for i in range(20)],
    }
)

ANSWERS: dict[str, list[int]] = {
    "city = 'oslo' AND n + 1 > 15": [16, 18],
    "n + d = 12": [12],
    "CITY RLIKE '^[oR]o?s' AND n BETWEEN 1 AND 5": [2, 4],
    r"city RLIKE '\\w{4}' AND n * 2 = 8": [4],
    "CASE WHEN n > 10 THEN d = 0 ELSE false END": [12, 15, 18],
    "CASE d WHEN 0 THEN n > 9 WHEN 1 THEN n < 5 END": [1, 4, 12, 15, 18],
    "cast(n AS string) LIKE '1_'": [10, 11, 12, 13, 15, 16, 17, 18, 19],
    "cast(n / 4 AS int) = 2": [8, 9, 10, 11],
    "st.x % 5 = 0 AND id > 0": [5, 10, 15],
    "exists(l, x -> x > 18)": [18, 19],
    "size(l) = 2 AND l[0] + 1 = l[1] AND id < 3": [0, 1, 2],
    "n DIV 4 = 3": [12, 13, 15],
    "n / 4 = 3": [12],
    "-n < -17": [18, 19],
    "coalesce(n, -1) < 0": [0, 7, 14],
    "n + 1 IS NULL": [0, 7, 14],
    "NOT (n + 1 > 3)": [1, 2],
    "n + 1 > 18 OR d + n = 2": [1, 18, 19],
    "f + 0 > 4.5": [4, 19],
    "concat(city, '-', cast(id AS string)) = 'Rome-7'": [7],
    "city ILIKE 'OS%' AND n < 6": [2, 4],
    "substr(city, 2, 1) IN ('s') AND n < 6": [2, 4],
    "greatest(n, d * 10) = 20": [2, 5, 8, 11, 14, 17],
    "dayofmonth(t) + 1 > 19": [18, 19],
    "t > TIMESTAMP '2024-01-17 00:00:00Z' + INTERVAL 1 DAY": [18, 19],
    "date_add(to_date(t), 1) = DATE '2024-01-03'": [1],
}
