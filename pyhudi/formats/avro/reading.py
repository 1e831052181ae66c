"""Avro schema → Arrow types.

Every Avro type has one Arrow type; what Spark and Hudi can't hold either (recursive records, real unions) is refused.
Nullable is the union of a type with null, in either order. A field's `doc` travels as Arrow field metadata `doc`.
Records of Hudi's own (the metadata table) have real unions: on request such a union is a struct with a nullable member
for each of its types, `member0` and so on, as Hudi's table function `hudi_metadata` shows it.
Source: docs/formats/base-files.md, "Avro schema of a table"; Avro specification 1.11, "Schema declaration" and
"Logical types".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.avro.checked import CheckedSchema, checked_schema
from pyhudi.formats.timeline.bodies import AvroType, Body

__all__ = ["DOC_KEY", "arrow_from_avro", "arrow_from_checked", "nullable_branch"]

DOC_KEY = b"doc"  # key of an Arrow field's metadata that holds the column's comment

_ARROW_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

# Keyed by (Avro type, logical type). A logical type on another base type means nothing, as Avro says.
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


@lru_cache(maxsize=256)
def arrow_from_avro(text: str, *, unions: bool = False) -> pa.Schema:
    """The Arrow schema of an Avro record schema, all fields in order, meta columns too when it has them.

    Args:    text: the schema as JSON; unions: a union of several types is a struct, instead of an error.
    Returns: list items are named `element`, map entries `key` and `value`; enums and UUIDs are strings.
    Raises:  CorruptFile when the text is no Avro record schema; UnsupportedTable for recursive records, for too many
             types or levels, for unions of several types and for decimals of more than 38 digits.
    """
    return arrow_from_checked(checked_schema(text), unions=unions)


def arrow_from_checked(schema: CheckedSchema, *, unions: bool = False) -> pa.Schema:
    """The same of a schema that was checked."""
    return pa.schema(_fields(schema.record, "", unions))


def nullable_branch(union: Sequence[AvroType]) -> tuple[AvroType | None, bool]:
    """A union's one type that is not null (None when there are several or none), and whether null is in it."""
    types = [branch for branch in union if branch != "null"]
    return (types[0] if len(types) == 1 else None), len(types) < len(union)


def _fields(record: Body, path: str, unions: bool) -> list[pa.Field]:
    return [_arrow_field(field, path, unions) for field in record["fields"]]


def _arrow_field(field: Body, path: str, unions: bool) -> pa.Field:
    where = f"{path}.{field['name']}" if path else field["name"]
    data_type, nullable = _arrow_type(field["type"], where, unions)
    doc = field.get("doc")
    metadata = {DOC_KEY: doc.encode()} if isinstance(doc, str) and doc else None
    return pa.field(field["name"], data_type, nullable=nullable, metadata=metadata)


def _arrow_type(avro: AvroType, path: str, unions: bool) -> tuple[pa.DataType, bool]:
    """The Arrow type of a type without references, and whether it may be null."""
    if not isinstance(avro, list):
        plain = _plain(avro, path, unions)
        return plain, pa.types.is_null(plain)
    branch, nullable = nullable_branch(avro)
    if branch is None and unions:
        types = [_plain(one, path, unions) for one in avro if one != "null"]
        return pa.struct([pa.field(f"member{number}", data_type) for number, data_type in enumerate(types)]), nullable
    if branch is None:
        raise UnsupportedTable(
            f"Column {path!r} is a union of {len(avro)} Avro types; only a union of null and one type is a column type."
        )
    plain = _plain(branch, path, unions)
    return plain, nullable or pa.types.is_null(plain)


def _plain(avro: AvroType, path: str, unions: bool) -> pa.DataType:
    if isinstance(avro, str):
        return _ARROW_PRIMITIVES[avro]
    assert isinstance(avro, dict), avro
    kind = avro["type"]
    if not isinstance(kind, str):
        return _arrow_type(kind, path, unions)[0]
    if kind in ("record", "error"):
        return pa.struct(_fields(avro, path, unions))
    if kind == "array":
        data_type, nullable = _arrow_type(avro["items"], f"{path}.element", unions)
        return pa.list_(pa.field("element", data_type, nullable=nullable))
    if kind == "map":
        data_type, nullable = _arrow_type(avro["values"], f"{path}.value", unions)
        return pa.map_(pa.string(), pa.field("value", data_type, nullable=nullable))
    if kind == "enum":
        return pa.string()
    if kind == "fixed":
        return _fixed(avro, path)
    if kind == "bytes" and avro.get("logicalType") == "decimal":
        return _arrow_decimal(avro, path)
    logical = avro.get("logicalType")
    if isinstance(logical, str) and (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, logical]
    return _ARROW_PRIMITIVES[kind]


def _fixed(avro: Body, path: str) -> pa.DataType:
    size = avro["size"]
    if not size:
        raise CorruptFile(f"Avro schema: fixed of size {size!r} at {path!r}.")
    if avro.get("logicalType") == "decimal":
        return _arrow_decimal(avro, path)
    return pa.binary(size)


def _arrow_decimal(avro: Body, path: str) -> pa.DataType:
    precision, scale = avro.get("precision"), avro.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or precision < 1 or not 0 <= scale <= precision:
        raise CorruptFile(f"Avro schema: decimal({precision}, {scale}) at {path!r}.")
    if precision > 38:
        raise UnsupportedTable(f"Column {path!r} is decimal({precision}, {scale}); at most 38 digits are supported.")
    return pa.decimal128(precision, scale)
