"""JSON messages as rows: no value changes, and what a message is does not depend on the messages beside it."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.streamer.json_messages import Decoded, RowColumns, decode_json

NEW = pa.schema([])
# A column of bytes lets Python parse the messages: Arrow's parser has none.
BY_PYTHON = pa.field("raw", pa.binary())


def decoded(*messages: bytes, columns: pa.Schema = NEW) -> Decoded:
    return decode_json(messages, RowColumns(columns))


def reasons(got: Decoded) -> str:
    return " ".join(reason for _, reason in got.refused)


@pytest.mark.parametrize("more", [[], [BY_PYTHON]])
@pytest.mark.parametrize(
    ("kind", "unfit"),
    [
        (pa.float64(), b'{"n":9007199254740993}'),
        (pa.float32(), b'{"n":16777217}'),
        (pa.float32(), b'{"n":1e39}'),
        (pa.float64(), b'{"n":1e400}'),
        (pa.struct([("a", pa.float64())]), b'{"n":{"a":18446744073709551617}}'),
        (pa.list_(pa.float64()), b'{"n":[1.5,9007199254740993]}'),
        (pa.decimal128(6, 2), b'{"n":99999}'),
        (pa.decimal128(6, 2), b'{"n":"-99999"}'),
        (pa.decimal128(38, 20), b'{"n":%b}' % (b"5" * 29)),
        (pa.decimal128(38, 20), b'{"n": -5.5e28}'),
        (pa.struct([("a", pa.decimal128(6, 2))]), b'{"n":{"a":99999}}'),
        (pa.list_(pa.decimal128(38, 20)), b'{"n":[1,%b]}' % (b"5" * 29)),
    ],
)
def test_a_number_that_its_column_would_change_does_not_fit(
    kind: pa.DataType, unfit: bytes, more: list[pa.Field]
) -> None:
    got = decoded(b'{"id":1}', unfit, b'{"id":2}', columns=pa.schema([("n", kind), *more]))
    assert got.rows["id"].to_pylist() == [1, 2]
    assert [number for number, _ in got.refused] == [1]


@pytest.mark.parametrize("more", [[], [BY_PYTHON]])
def test_large_numbers_that_a_double_holds_come_in(more: list[pa.Field]) -> None:
    numbers = [b"9007199254740992", b"-1.5e300", b"36028797018963968", b"1e2", b"12345678901234567890.0"]
    messages = [b'{"n":%b}' % number for number in numbers]
    got = decoded(*messages, columns=pa.schema([("n", pa.float64()), *more]))
    assert got.rows["n"].to_pylist() == [float(number) for number in numbers]


@pytest.mark.parametrize("kind", [pa.decimal128(6, 2), pa.decimal128(38, 20)])
def test_decimals_of_as_many_digits_as_their_column_come_in_beside_texts_of_many_digits(
    kind: pa.Decimal128Type,
) -> None:
    largest = Decimal(10 ** (kind.precision - kind.scale) - 1)
    got = decoded(b'{"n":%d,"t":"%b"}' % (largest, b"5" * 40), b'{"n":"-0.25"}', columns=pa.schema([("n", kind)]))
    assert got.rows["n"].to_pylist() == [largest, Decimal("-0.25")]


def test_a_new_column_of_numbers_beyond_64_bits_does_not_fit_and_two_keys_dont_become_one() -> None:
    got = decoded(b'{"id":18446744073709551617}', b'{"id":18446744073709551619}')
    assert got.rows.num_rows == 0
    assert "would change 18446744073709551617" in reasons(got)


def test_a_new_column_of_large_integers_and_fractions_has_no_type_that_holds_both() -> None:
    with pytest.raises(SchemaMismatch, match="9007199254740993"):
        decoded(b'{"id":1,"n":9007199254740993}', b'{"id":2,"n":1.5}')


def test_parts_of_objects_in_several_messages_dont_become_rows_together() -> None:
    got = decoded(b'{"id":1,"x":', b'{"a":2}}', b'{"id":5}{"id":6}')
    assert [number for number, _ in got.refused] == [0, 1, 2]


@pytest.mark.parametrize("more", [[], [BY_PYTHON]])
@pytest.mark.parametrize("beside", [b'{"id":2}', b"{no"])
def test_not_a_number_and_infinity_come_in_whatever_is_beside_them(beside: bytes, more: list[pa.Field]) -> None:
    columns = pa.schema([("n", pa.float64()), *more])
    got = decoded(b'{"id":1,"n":NaN}', b'{"id":3,"n":-Infinity}', beside, columns=columns)
    values = got.rows["n"].to_pylist()
    assert math.isnan(values[0] or 0.0)
    assert values[1] == -math.inf


def test_a_new_field_of_a_struct_comes_in_where_python_parses_too() -> None:
    inner = pa.struct([("a", pa.int32())])
    columns = pa.schema([("s", inner), ("many", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)), BY_PYTHON])
    value = b'{"a":1,"b":2.5,"c":{"d":"x"}}'
    got = decoded(b'{"s":%b,"many":[%b],"m":{"k":%b}}' % (value, value, value), columns=columns)
    row = {"a": 1, "b": 2.5, "c": {"d": "x"}}
    assert got.rows.to_pylist() == [{"s": row, "many": [row], "m": [("k", row)], "raw": None}]
    assert got.rows.schema.field("s").type.field("a").type == pa.int32()


def test_a_schema_that_is_whole_leaves_new_fields_out_where_python_parses_too() -> None:
    columns = RowColumns(pa.schema([("s", pa.struct([("a", pa.int32())])), BY_PYTHON]), is_whole=True)
    assert decode_json([b'{"s":{"a":1,"b":2}}'], columns).rows["s"].to_pylist() == [{"a": 1}]
