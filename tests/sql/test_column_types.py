"""Columns of a CREATE TABLE without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi import ConfigError
from pyhudi.sql.columns import MAX_TYPE_DEPTH, schema_of_columns


def test_types_are_what_spark_makes_of_them():
    text = (
        "a BOOLEAN, b tinyint, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(12, 3), h DECIMAL, i STRING, "
        "j VARCHAR(9), k BINARY, l DATE, m TIMESTAMP, n TIMESTAMP_NTZ"
    )
    assert [str(field.type) for field in schema_of_columns(text)] == [
        "bool", "int32", "int32", "int64", "float", "double", "decimal128(12, 3)", "decimal128(10, 0)", "string",
        "string", "binary", "date32[day]", "timestamp[us, tz=UTC]", "timestamp[us]",
    ]  # fmt: skip


def test_types_nest_and_columns_have_comments():
    schema = schema_of_columns("`a b` MAP<STRING, ARRAY<STRUCT<x: INT, y: STRING>>> NOT NULL COMMENT 'it''s'")
    assert schema.field(0).name == "a b"
    assert not schema.field(0).nullable
    assert schema.field(0).metadata == {b"comment": b"it's"}
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
    assert schema.field(0).type == pa.map_(pa.string(), pa.list_(inner))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a POINT", "'POINT'"),
        ("a INT, A STRING", "twice"),
        ("a DECIMAL(39, 2)", "1 to 38"),
        ("a ARRAY<INT", "expected"),
        ("a", "a type"),
        ("a " + "ARRAY<" * (MAX_TYPE_DEPTH + 2) + "INT" + ">" * (MAX_TYPE_DEPTH + 2), "nested deeper"),
    ],
)
def test_a_wrong_list_of_columns_is_refused(text: str, message: str):
    with pytest.raises(ConfigError, match=message):
        schema_of_columns(text)
