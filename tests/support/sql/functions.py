"""Expressions with Spark's functions, what PySpark 4.3 answers to them, and answers in the spelling of that record."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["FUNCTIONS", "is_same", "plain"]

_FILE = Path(__file__).with_name("functions.jsonl")
FUNCTIONS: Mapping[str, list[Any]] = {
    line["sql"]: line["rows"] for line in map(json.loads, _FILE.read_text().splitlines())
}
"""What follows SELECT → the rows, each a list of its columns."""


def plain(value: Any) -> Any:
    """A value of a row in JSON's types."""
    if hasattr(value, "asDict"):  # a Row of Spark's
        return dict(zip(value.__fields__, map(plain, value), strict=True))
    match value:
        case list() | tuple():
            return [plain(part) for part in value]
        case dict():
            return {key: plain(part) for key, part in value.items()}
        case datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
            return f"time {moment.astimezone(timezone.utc).isoformat()}"
        case date():
            return f"date {value.isoformat()}"
        case timedelta():
            return f"interval {value}"
        case Decimal():
            return f"decimal {value}"
        case bytes() | bytearray():
            return f"bytes {bytes(value).hex()}"
        case float() if value != value:
            return "nan"
    return value


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same; numbers by what they count, whatever their types."""
    numbers = _number(one), _number(other)
    if None not in numbers:
        return numbers[0] == numbers[1] or math.isclose(*map(float, numbers), rel_tol=1e-12, abs_tol=1e-12)
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _number(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("decimal "):
        return Decimal(value.removeprefix("decimal "))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
