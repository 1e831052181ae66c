"""Column-wise Avro against fastavro, an independent implementation."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, HudiError, SchemaMismatch
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.avro.schema import avro_from_arrow
from tests.support.sweeps import examples, stride

SCHEMA = pa.schema(
    [
        ("text", pa.string()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
        ("flag", pa.bool_()), ("bin", pa.binary()), ("day", pa.date32()), ("at", pa.timestamp("us", tz="UTC")),
        ("small", pa.decimal128(7, 2)), ("large", pa.decimal128(38, 10)),
        ("st", pa.struct([("x", pa.int64()), ("in", pa.struct([("z", pa.string())]))])),
        ("arr", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.float64())),
        ("deep", pa.list_(pa.struct([("q", pa.int32()), ("w", pa.list_(pa.string()))]))),
    ]
)  # fmt: skip
AVRO = avro_from_arrow(SCHEMA, "t", with_meta=False)

_decimals = st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2))
_large = st.integers(-(10**28), 10**28).map(lambda n: decimal.Decimal(n).scaleb(-10, decimal.Context(prec=40)))
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_longs = st.integers(-(2**63), 2**63 - 1)
_row = st.fixed_dictionaries(
    {
        "text": st.none() | _texts,
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | _longs | st.integers(-300, 300),
        "f": st.none() | st.floats(width=32, allow_nan=False),
        "d": st.none() | st.floats(allow_nan=False),
        "flag": st.none() | st.booleans(),
        "bin": st.none() | st.binary(max_size=20),
        "day": st.none() | st.dates(),
        "at": st.none()
        | st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.just(dt.timezone.utc)),
        "small": st.none() | _decimals,
        "large": st.none() | _large,
        "st": st.none()
        | st.fixed_dictionaries(
            {"x": st.none() | _longs, "in": st.none() | st.fixed_dictionaries({"z": st.none() | _texts})}
        ),
        "arr": st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=4),
        "m": st.none() | st.dictionaries(_texts, st.none() | st.floats(allow_nan=False), max_size=3),
        "deep": st.none()
        | st.lists(
            st.fixed_dictionaries({"q": st.none() | st.integers(0, 9), "w": st.none() | st.lists(_texts, max_size=2)}),
            max_size=3,
        ),
    }
)


def _by_fastavro(rows: list[dict[str, Any]], schema: str = AVRO) -> list[bytes]:
    parsed, out = fastavro.parse_schema(json.loads(schema)), []
    for row in rows:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, row)
        out.append(sink.getvalue())
    return out


def _laid_out(records: list[bytes]) -> tuple[bytes, np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, records)]).astype(np.int64)
    return b"".join(records), offsets[:-1], offsets[1:]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    as_pairs = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows]
    return pa.Table.from_pylist(as_pairs, schema=SCHEMA)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_row, min_size=1, max_size=8))
def test_rows_encode_to_the_bytes_of_fastavro_and_decode_to_the_same_values(rows: list[dict[str, Any]]) -> None:
    expected = _by_fastavro(rows)

    encoded = AvroEncoder(AVRO).encode(_table(rows).combine_chunks().to_batches()[0])
    decoded = AvroDecoder(AVRO).decode(*_laid_out(expected))

    assert encoded.to_pylist() == expected
    assert decoded.to_pylist() == _table(rows).to_pylist()


@pytest.mark.parametrize("columns", [1, 13, 40])
def test_numbers_side_by_side_encode_to_the_bytes_of_fastavro_however_many_there_are(columns: int) -> None:
    numbers = [[(-1) ** n * 3 ** (n * row % 39) for n in range(columns)] for row in range(7)]
    kinds = [("a", pa.int64()), ("b", pa.float64()), ("c", pa.bool_())]
    schema = pa.schema([(f"{name}{n}", kind) for n in range(columns) for name, kind in kinds])
    rows = [
        {
            f"{name}{n}": {"a": number, "b": number / 7, "c": number > 0}[name]
            for n, number in enumerate(row)
            for name in "abc"
        }
        for row in numbers
    ]
    avro = avro_from_arrow(schema, "t", with_meta=False)
    batch = pa.RecordBatch.from_pylist(rows, schema)

    assert AvroEncoder(avro).encode(batch).to_pylist() == _by_fastavro(rows, avro)
    assert AvroEncoder(avro).encode(batch.slice(3, 2)).to_pylist() == _by_fastavro(rows[3:5], avro)
    assert AvroEncoder(avro).encode(batch.slice(0, 0)).to_pylist() == []


def test_fields_outside_the_wanted_columns_are_walked_over() -> None:
    rows = [{"text": "a" * n, "i": n, **dict.fromkeys(SCHEMA.names[2:])} for n in range(40)]

    decoded = AvroDecoder(AVRO, columns={"i"}).decode(*_laid_out(_by_fastavro(rows)))

    assert decoded.to_pydict() == {"i": list(range(40))}


@pytest.mark.parametrize("branches", [["null", "string"], ["string", "null"]])
def test_null_may_be_either_branch_of_a_union(branches: list[str]) -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "s", "type": branches}]})

    decoded = AvroDecoder(schema).decode(*_laid_out(_by_fastavro([{"s": "x"}, {"s": None}], schema)))

    assert decoded["s"].to_pylist() == ["x", None]


def test_enums_fixed_and_decimal_bytes_of_other_writers_are_read() -> None:
    fields = [
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
        {"name": "again", "type": ["null", "e"]},
        {"name": "b", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    ]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    rows = [
        {"e": "B", "again": "A", "b": decimal.Decimal("-1.234")},
        {"e": "A", "again": None, "b": decimal.Decimal("12345678901234567.890")},
    ]

    assert AvroDecoder(schema).decode(*_laid_out(_by_fastavro(rows, schema))).to_pylist() == rows


def test_every_byte_of_a_block_may_be_damaged_without_another_error_than_ours() -> None:
    row = {
        "text": "héllo", "i": -5, "l": 2**62, "f": 1.5, "d": None, "flag": True, "bin": b"\x00" * 14,
        "day": dt.date(1960, 2, 3),
        "at": None, "small": decimal.Decimal("1.10"), "large": None, "st": {"x": 1, "in": {"z": "q"}}, "arr": [1, None],
        "m": {"k": 2.0}, "deep": [{"q": 1, "w": ["u", "v"]}],
    }  # fmt: skip
    content, starts, ends = _laid_out(_by_fastavro([row, row]))
    decoder, refused = AvroDecoder(AVRO), 0

    positions = range(0, len(content), stride())
    for position in positions:
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[position] = value
            try:
                decoder.decode(bytes(damaged), starts, ends)
            except HudiError:
                refused += 1

    assert refused > len(positions)


def test_a_null_where_the_schema_has_none_is_refused() -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "s", "type": "string"}]})

    with pytest.raises(SchemaMismatch, match="'s' has nulls"):
        AvroEncoder(schema).encode(pa.RecordBatch.from_pydict({"s": ["a", None]}))


@pytest.mark.parametrize("branches", [["string"], ["null", "string"], ["string", "null"], ["null", "string", "long"]])
@pytest.mark.parametrize("behind", [-1, 0, 1])
def test_a_branch_that_a_union_does_not_have_is_refused(branches: list[str], behind: int) -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "s", "type": branches}]})
    branch = -1 if behind < 0 else len(branches) + behind
    row = bytes([2 * branch if branch >= 0 else 1, *[2] * 20])

    with pytest.raises(CorruptFile, match=f"no branch {branch}"):
        AvroDecoder(schema, unions=True).decode(*_laid_out([row]))
