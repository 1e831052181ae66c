"""Rows as JSON texts."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.java.nested_text import image_texts

SCHEMA = pa.schema(
    [
        pa.field("text", pa.string()),
        pa.field("flag", pa.bool_()),
        pa.field("small", pa.int32()),
        pa.field("large", pa.int64()),
        pa.field("single", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("exact", pa.decimal128(20, 4)),
        pa.field("bytes", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("clock", pa.time64("us")),
        pa.field("moment", pa.timestamp("us", "UTC")),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field("struct", pa.struct([("x", pa.string()), ("y", pa.list_(pa.string()))])),
    ]
)
ROW = {
    "text": 'a "b" \\ \n\t\x01 é 字 \U0001f600',
    "flag": True,
    "small": -1,
    "large": 2**62,
    "single": 0.5,
    "double": 1e100,
    "exact": Decimal("-12.5000"),
    "bytes": b"\x00\xff",
    "day": date(2024, 1, 2),
    "clock": time(0, 0, 1),
    "moment": datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc),
    "list": [1, None, 3],
    "map": [("k", 1.0), ('"', None)],
    "struct": {"x": "y", "y": ["p", None]},
}
SAID = {
    **ROW,
    "exact": Decimal("-12.5000"),
    "bytes": "AP8=",
    "day": 19724,
    "clock": 1_000_000,
    "moment": 2_000_000,
    "map": {"k": 1.0, '"': None},
}


def texts(
    rows: list[dict[str, object] | None], schema: pa.Schema = SCHEMA, *, spaced: bool = False
) -> list[str | None]:
    array = pa.array(rows, pa.struct(list(schema)))
    found: list[str | None] = image_texts(array, spaced=spaced).to_pylist()
    return found


@pytest.mark.parametrize("spaced", [True, False])
def test_values_of_every_type_are_json(spaced: bool) -> None:
    nulls = dict.fromkeys(SCHEMA.names)
    whole, empty, absent = texts([dict(ROW), nulls, None], spaced=spaced)
    assert absent is None
    assert json.loads(whole or "", parse_float=Decimal) == {
        **SAID,
        **{name: Decimal(repr(SAID[name])) for name in ("single", "double")},
        "map": {"k": Decimal("1.0"), '"': None},
    }
    assert json.loads(empty or "") == nulls
    assert [*json.loads(empty or "")] == SCHEMA.names


def test_numbers_that_are_none_are_in_quotes() -> None:
    schema = pa.schema([("v", pa.float64())])
    rows: list[dict[str, object] | None] = [{"v": float(text)} for text in ("nan", "inf", "-inf", "-0.0")]
    assert texts(rows, schema) == ['{"v":"NaN"}', '{"v":"Infinity"}', '{"v":"-Infinity"}', '{"v":-0.0}']


def test_blanks_are_where_avro_has_them() -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.int32())), ("c", pa.map_(pa.string(), pa.int32()))])
    row: dict[str, object] = {"a": 1, "b": [1, 2], "c": [("k", 1)]}
    assert texts([row], schema, spaced=True) == ['{"a": 1, "b": [1, 2], "c": {"k": 1}}']
    assert texts([row], schema) == ['{"a":1,"b":[1,2],"c":{"k":1}}']


@given(st.lists(st.none() | st.lists(st.none() | st.text(), max_size=3), max_size=5), st.booleans(), st.integers(0, 2))
def test_any_texts_come_back(rows: list[list[str | None] | None], spaced: bool, first: int) -> None:
    """Also of a slice, whose buffers begin elsewhere."""
    schema = pa.schema([("v", pa.list_(pa.string()))])
    array = pa.array([{"v": row} for row in rows], pa.struct(list(schema)))[first:]
    found = image_texts(array, spaced=spaced).to_pylist()
    assert [json.loads(text)["v"] for text in found] == rows[first:]
