"""Columns and types in Spark SQL, `id INT NOT NULL COMMENT 'the key'`: written to text and read from text.

Types become those of Spark: timestamps are moments in UTC, TIMESTAMP_NTZ has no zone, CHAR and VARCHAR are texts.
Integers smaller than INT become INT, as Hudi has none.
Source: Spark's SQL reference, "Data Types", "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as at

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.sql.tokens import Reader, TokenKind, tokens_of

__all__ = ["column_text", "columns_text", "comment_of", "literal", "quoted", "schema_of_columns", "type_text"]


_WORDS: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time32("ms"): "int",
    pa.time64("us"): "bigint",
    pa.null(): "void",
}


def type_text(kind: pa.DataType, *, quotes: bool = False) -> str:
    """Write a type as DESCRIBE prints it, `struct<a:int>`. `quotes`: names get backticks, as statements need them."""
    word = _WORDS.get(kind)
    if word is not None:
        return word
    if is_text(kind):
        return "string"
    if is_bytes(kind):
        return "binary"
    if at.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if at.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if at.is_map(kind):
        return f"map<{type_text(kind.key_type, quotes=quotes)},{type_text(kind.item_type, quotes=quotes)}>"
    if is_list(kind):
        return f"array<{type_text(kind.value_type, quotes=quotes)}>"
    if at.is_struct(kind):
        inner = (
            f"{quoted(part.name) if quotes else part.name}:{type_text(part.type, quotes=quotes)}"
            for part in kind.fields
        )
        return f"struct<{','.join(inner)}>"
    return str(kind)


def columns_text(schema: pa.Schema, separator: str = ", ") -> str:
    """Write the columns of a schema as a statement lists them."""
    return separator.join(column_text(field) for field in schema)


def column_text(field: pa.Field) -> str:
    """Write a column as a statement lists it."""
    comment = comment_of(field)
    comment_clause = f" COMMENT {literal(comment)}" if comment else ""
    null_clause = "" if field.nullable else " NOT NULL"
    return f"{quoted(field.name)} {type_text(field.type, quotes=True)}{null_clause}{comment_clause}"


def comment_of(field: pa.Field) -> str | None:
    """The comment of a column, if it has one."""
    comment = (field.metadata or {}).get(DOC_KEY)
    return comment.decode() if comment else None


def quoted(*parts: str) -> str:
    """Quote a name and its qualifiers, each in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """Quote a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_PLAIN: dict[str, pa.DataType] = {
    **dict.fromkeys(("BOOLEAN",), pa.bool_()),
    **dict.fromkeys(("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER"), pa.int32()),
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    **dict.fromkeys(("DOUBLE",), pa.float64()),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR", "CHARACTER"), pa.string()),
    **dict.fromkeys(("BINARY",), pa.binary()),
    **dict.fromkeys(("DATE",), pa.date32()),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), pa.timestamp("us", "UTC")),
    **dict.fromkeys(("TIMESTAMP_NTZ",), pa.timestamp("us")),
}
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_DECIMAL_DIGITS = 38  # of a decimal: as many as 128 bits hold
MAX_TYPE_DEPTH = 100  # nested types, which are read recursively


def schema_of_columns(text: str) -> pa.Schema:
    """Read a list of columns. Raises ConfigError for an unknown type, and for a name that occurs twice."""
    fields: list[pa.Field] = []
    reader = Reader(f"({text})", tokens_of(f"({text})"))
    for part in _columns(reader):
        fields.append(part)
    names = [field.name.lower() for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"SQL: the column {twice[0]!r:.100} is listed twice.")
    return pa.schema(fields)


def _columns(reader: Reader) -> list[pa.Field]:
    reader.expect_symbol("(")
    fields: list[pa.Field] = []
    while not reader.accept_symbol(")"):
        fields.append(_column(reader, 0))
        if not reader.sees_symbol(")"):
            reader.expect_symbol(",")
    reader.expect_end()
    return fields


def _column(reader: Reader, depth: int) -> pa.Field:
    name = reader.identifier("the name of a column")
    reader.accept_symbol(":")
    kind = _type(reader, depth)
    nullable = not reader.accept("NOT NULL")
    comment = reader.value("a comment") if reader.accept("COMMENT") else None
    return pa.field(name, kind, nullable, None if comment is None else {"comment": comment})


def _type(reader: Reader, depth: int) -> pa.DataType:
    if depth > MAX_TYPE_DEPTH:
        raise ConfigError(f"SQL: types are nested deeper than {MAX_TYPE_DEPTH} levels.")
    name = reader.identifier("a type").upper()
    if name in _DECIMAL:
        digits = _numbers(reader) or [10, 0]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not 1 <= precision <= _DECIMAL_DIGITS or scale > precision:
            raise ConfigError(f"SQL: DECIMAL takes 1 to {_DECIMAL_DIGITS} digits, found {precision}, {scale}.")
        return pa.decimal128(precision, scale)
    if name == "ARRAY":
        (item,) = _inside(reader, 1, depth)
        return pa.list_(item)
    if name == "MAP":
        key, value = _inside(reader, 2, depth)
        return pa.map_(key, value)
    if name == "STRUCT":
        return _struct(reader, depth)
    if name not in _PLAIN:
        raise ConfigError(f"SQL: {name!r:.100} is no type that a Hudi table can have.")
    _numbers(reader)  # the length of CHAR and VARCHAR, which files do not know
    return _PLAIN[name]


def _numbers(reader: Reader) -> list[int]:
    """Read integers in parentheses; [] without parentheses."""
    numbers: list[int] = []
    if reader.accept_symbol("("):
        while not reader.accept_symbol(")"):
            token = reader.take("a number")
            if token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
                raise ConfigError(f"SQL: expected a whole number in a type, found {token.text!r:.100}.")
            numbers.append(int(token.text))
            reader.accept_symbol(",")
    return numbers


def _inside(reader: Reader, count: int, depth: int) -> list[pa.DataType]:
    reader.expect_symbol("<")
    types = []
    for place in range(count):
        if place:
            reader.expect_symbol(",")
        types.append(_type(reader, depth + 1))
    reader.expect_symbol(">")
    return types


def _struct(reader: Reader, depth: int) -> pa.DataType:
    reader.expect_symbol("<")
    fields = [_column(reader, depth + 1)]
    while reader.accept_symbol(","):
        fields.append(_column(reader, depth + 1))
    reader.expect_symbol(">")
    return pa.struct(fields)
