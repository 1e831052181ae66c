"""Columns and types as Spark's SQL says them: `id INT NOT NULL COMMENT 'the key'`.

Source: Spark's SQL reference, "Data Types", "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as at

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.formats.avro.schema import DOC_KEY

__all__ = ["column_text", "columns_text", "comment_of", "literal", "quoted", "type_text"]

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
    """A type as DESCRIBE shows it, `struct<a:int>`; `quotes`: as a statement takes it, names in backticks."""
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
    """The columns of a schema as a statement lists them."""
    return separator.join(column_text(field) for field in schema)


def column_text(field: pa.Field) -> str:
    """One column as a statement lists it."""
    comment = comment_of(field)
    shown = f" COMMENT {literal(comment)}" if comment else ""
    required = "" if field.nullable else " NOT NULL"
    return f"{quoted(field.name)} {type_text(field.type, quotes=True)}{required}{shown}"


def comment_of(field: pa.Field) -> str | None:
    """The comment of a column."""
    comment = (field.metadata or {}).get(DOC_KEY)
    return comment.decode() if comment else None


def quoted(*parts: str) -> str:
    """A name with its qualifiers, each in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """A text as a quotation."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
