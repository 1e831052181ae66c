"""Table schemas as Avro JSON, the way Hudi's Spark writers print them, and Avro schemas as Arrow types.

`avro_from_arrow` writes the schema of a table by these rules. Illegal characters of the table name become "__":

    record `<table>_record` in namespace `hoodie.<table>`      nullable T = ["null", T] with default null
    struct column c   = record `c`, namespace = the parent's full name (for list items and map values too)
    decimal column c  = fixed `fixed` of the least size, namespace = the parent's full name + "." + c
    meta columns      = first, ["null","string"] with an empty doc

`arrow_from_avro` has one Arrow type for every Avro type. It refuses types that Spark and Hudi can't hold either:
recursive records, real unions. A union of a type with null, in either order, is nullable. A field's `doc` travels as
Arrow field metadata `doc`.

Hudi's own records (the metadata table) have real unions. On request such a union becomes a struct with a nullable
member for each of its types, `member0` and so on, as Hudi's table function `hudi_metadata` shows it.

Source: docs/formats/base-files.md, "Avro schema of a table"; golden tables `types_*`; Avro specification 1.11, "Schema
declaration" and "Logical types".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from pyhudi.arrow.kinds import is_list, is_text, value_type
from pyhudi.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.checked import CheckedSchema, checked_schema
from pyhudi.formats.timeline.bodies import AvroObject, AvroType, Body
from pyhudi.model.keys import META_COLUMNS

__all__ = [
    "DOC_KEY",
    "arrow_from_avro",
    "arrow_from_checked",
    "avro_from_arrow",
    "avro_name",
    "nullable_branch",
    "storable",
    "without_meta",
]


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
    """Return the Arrow schema of an Avro record schema, all fields in order, including any meta columns.

    Args:    text: the schema as JSON; unions: a union of several types is a struct, instead of an error.
    Returns: list items are named `element`, map entries `key` and `value`; enums and UUIDs are strings.
    Raises:  CorruptFile when the text is not an Avro record schema; UnsupportedTable for recursive records, for too
             many types or levels, for unions of several types and for decimals of more than 38 digits.
    """
    return arrow_from_checked(checked_schema(text), unions=unions)


def arrow_from_checked(schema: CheckedSchema, *, unions: bool = False) -> pa.Schema:
    """Like `arrow_from_avro`, for a checked schema."""
    return pa.schema(_fields(schema.record, "", unions))


def nullable_branch(union: Sequence[AvroType]) -> tuple[AvroType | None, bool]:
    """Return a union's single non-null type (None when there are several or none), and whether null is in it."""
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
    """Return the Arrow type of a type without references, and whether it may be null."""
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


_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_ILLEGAL_FIRST = re.compile(r"[^A-Za-z_]")
_MASK = "__"
_CACHED_SCHEMAS_MAX = 64

_META_FIELDS = tuple({"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS)

_PRIMITIVES: Mapping[pa.DataType, AvroType] = {
    pa.bool_(): "boolean",
    # Avro has no smaller integer: byte and short read back as int, as in every Hudi table.
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), "int"),
    **dict.fromkeys((pa.int64(), pa.uint32()), "long"),
    **dict.fromkeys((pa.float16(), pa.float32()), "float"),
    pa.float64(): "double",
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), "bytes"),
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.date64(): {"type": "int", "logicalType": "date"},
    pa.time32("s"): {"type": "int", "logicalType": "time-millis"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.time64("ns"): {"type": "long", "logicalType": "time-micros"},
}


def avro_from_arrow(schema: pa.Schema, table_name: str, *, with_meta: bool) -> str:
    """Return the Avro JSON of a table schema, without whitespace, equal to Hudi's for the same columns.

    Args:    schema: the columns; meta columns among them are left out and put back by `with_meta`.
             table_name: as configured; it is converted to a legal name.
             with_meta: the five meta columns come first (footers and log headers), or none (commit metadata).
    Raises:  SchemaMismatch naming every column whose name or type a Hudi table can't hold.
    """
    # Arrow considers schemas equal if only field metadata, such as docs, differs; their bytes differ.
    return _avro_json(schema.serialize().to_pybytes(), table_name, with_meta)


@lru_cache(maxsize=_CACHED_SCHEMAS_MAX)
def _avro_json(schema: bytes, table_name: str, with_meta: bool) -> str:
    """Return the Avro JSON, cached because each file and each log block needs it."""
    problems: list[str] = []
    name = avro_name(table_name)
    record = _record(
        without_meta(pa.ipc.read_schema(pa.py_buffer(schema))), f"{name}_record", f"hoodie.{name}", "", problems
    )
    if problems:
        raise SchemaMismatch(
            f"The schema of table {table_name!r} can't be stored: {'; '.join(problems)}. "
            f"Rename or cast these columns before writing."
        )
    if with_meta:
        record["fields"] = [*_META_FIELDS, *record["fields"]]
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def storable(schema: pa.Schema) -> pa.Schema:
    """Return the types of the columns as stored in a Hudi table: int8 → int32, large_string → string, zones → UTC.

    Meta columns are left out. Raises SchemaMismatch naming every column that can't be stored.
    """
    return arrow_from_avro(avro_from_arrow(schema, "table", with_meta=False))


def without_meta(schema: pa.Schema) -> pa.Schema:
    """Return the schema without the five meta columns; the same object if it has none."""
    if not any(name in META_COLUMNS for name in schema.names):
        return schema
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def avro_name(name: str) -> str:
    """Return a table name as a legal Avro name: each illegal character becomes two underscores."""
    return _ILLEGAL.sub(_MASK, _ILLEGAL_FIRST.sub(_MASK, name[:1]) + name[1:])


def _record(fields: Iterable[pa.Field], name: str, namespace: str, path: str, problems: list[str]) -> AvroObject:
    full_name = f"{namespace}.{name}"
    names: set[str] = set()
    avro_fields = []
    for field in fields:
        where = f"{path}.{field.name}" if path else field.name
        if not _is_legal_column_name(field.name):
            problems.append(f"column {where!r}: Avro allows letters, digits and underscores in names, no digit first")
        if field.name in names:
            problems.append(f"column {where!r} occurs twice")
        names.add(field.name)
        avro_fields.append(_field(field, full_name, where, problems))
    return {"type": "record", "name": name, "namespace": namespace, "fields": avro_fields}


def _is_legal_column_name(name: str) -> bool:
    # Java's Avro accepts letters of every script; so does Hudi.
    return bool(name) and not name[0].isdecimal() and all(c == "_" or c.isalpha() or c.isdecimal() for c in name)


def _field(field: pa.Field, namespace: str, path: str, problems: list[str]) -> AvroObject:
    avro_type = _type(field.type, field.name, namespace, path, problems)
    avro: AvroObject = {"name": field.name, "type": ["null", avro_type] if field.nullable else avro_type}
    doc = (field.metadata or {}).get(DOC_KEY)
    if doc:
        avro["doc"] = doc.decode()
    if field.nullable:
        avro["default"] = None
    return avro


def _type(data_type: pa.DataType, name: str, namespace: str, path: str, problems: list[str]) -> AvroType:
    """Avro type of an Arrow type. `name`, `namespace`: those of a named type of this column."""
    data_type = value_type(data_type)
    if data_type in _PRIMITIVES:
        return _PRIMITIVES[data_type]
    if pa.types.is_timestamp(data_type):
        unit = "millis" if data_type.unit in ("s", "ms") else "micros"
        local = "" if data_type.tz else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
    if pa.types.is_decimal(data_type):
        return _decimal(data_type, name, namespace, path, problems)
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            problems.append(f"column {path!r} is a struct without fields, which no file can hold")
        return _record(data_type.fields, name, namespace, path, problems)
    if pa.types.is_map(data_type):
        if not is_text(value_type(data_type.key_type)):
            problems.append(f"column {path!r} is a map with keys of type {data_type.key_type}; only strings are keys")
        return {"type": "map", "values": _element(data_type.item_field, name, namespace, path, problems)}
    if is_list(data_type):
        return {"type": "array", "items": _element(data_type.value_field, name, namespace, path, problems)}
    if pa.types.is_fixed_size_binary(data_type) and data_type.byte_width > 0:
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": data_type.byte_width}
    problems.append(f"column {path!r} is of type {data_type}, which no Hudi table can hold")
    return "null"


def _element(field: pa.Field, name: str, namespace: str, path: str, problems: list[str]) -> AvroType:
    avro_type = _type(field.type, name, namespace, path, problems)
    return ["null", avro_type] if field.nullable else avro_type


def _decimal(data_type: pa.DataType, name: str, namespace: str, path: str, problems: list[str]) -> AvroType:
    assert pa.types.is_decimal(data_type)
    precision, scale = data_type.precision, data_type.scale
    if precision > 38 or not 0 <= scale <= precision:
        problems.append(f"column {path!r} is {data_type}; decimals have at most 38 digits and 0 <= scale <= precision")
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"{namespace}.{name}",
        # The fewest bytes that hold the largest number with this many digits, and its sign.
        "size": (10**precision).bit_length() // 8 + 1,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }
