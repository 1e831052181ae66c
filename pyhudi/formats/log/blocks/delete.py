"""Log block DELETE: keys removed by one instant, with their ordering values.

    content version i32 = 3 | length i32 | Avro binary of HoodieDeleteRecordList        big-endian

An ordering value is a union of wrappers. IntWrapper 0, and null, mean "no ordering value": a commit-time delete, which
removes whatever came before. Source: docs/formats/log.md, "Delete block"; docs/formats/merging.md, "Deletes".
"""

from __future__ import annotations

import decimal
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.bodies import AvroType, Body
from pyhudi.formats.damage import as_corrupt
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY

if TYPE_CHECKING:
    from fastavro.types import Schema

__all__ = ["EMPTY", "DeleteRecords", "can_hold", "decode", "encode"]

_Ordering: TypeAlias = tuple[str, Body]  # a wrapper's name and its record

CONTENT_VERSION = 3

_DELETE_BYTES = 3  # at least: a byte of each of the three fields says that it is null
_HEAD = struct.Struct(">ii")
_MODEL = "org.apache.hudi.avro.model"
_PRECISION, _SCALE = 30, 15
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": _PRECISION, "scale": _SCALE}
# Branches 1 to 11 of the union, in order: wrapper, Avro type of its value, Arrow type.
_WRAPPERS: Sequence[tuple[str, AvroType, pa.DataType]] = (
    ("BooleanWrapper", "boolean", pa.bool_()),
    ("IntWrapper", "int", pa.int32()),
    ("LongWrapper", "long", pa.int64()),
    ("FloatWrapper", "float", pa.float32()),
    ("DoubleWrapper", "double", pa.float64()),
    ("BytesWrapper", "bytes", pa.binary()),
    ("StringWrapper", "string", pa.string()),
    ("DateWrapper", "int", pa.date32()),
    ("DecimalWrapper", _DECIMAL, pa.decimal128(_PRECISION, _SCALE)),
    ("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
    ("TimestampMicrosWrapper", "long", pa.timestamp("us", tz="UTC")),
)
_ARROW = {f"{_MODEL}.{name}": arrow for name, _, arrow in _WRAPPERS}
_ARRAY_WRAPPER = f"{_MODEL}.ArrayWrapper"


def _wrapper(name: str, avro: AvroType) -> AvroType:
    return {"type": "record", "name": name, "namespace": _MODEL, "fields": [{"name": "value", "type": avro}]}


def _schema() -> Schema:
    union: list[AvroType] = ["null", *(_wrapper(name, avro) for name, avro, _ in _WRAPPERS)]
    items = ["null", *(f"{_MODEL}.{name}" for name, _, _ in _WRAPPERS)]
    wrapped = {"name": "wrappedValues", "type": ["null", {"type": "array", "items": items}]}
    union.append({"type": "record", "name": "ArrayWrapper", "namespace": _MODEL, "fields": [wrapped]})
    fields = [
        {"name": "recordKey", "type": ["null", "string"], "default": None},
        {"name": "partitionPath", "type": ["null", "string"], "default": None},
        {"name": "orderingVal", "type": union, "default": None},
    ]
    record = {"type": "record", "name": "HoodieDeleteRecord", "namespace": _MODEL, "fields": fields}
    items_field = {"name": "deleteRecordList", "type": {"type": "array", "items": record}}
    return fastavro.parse_schema(
        {"type": "record", "name": "HoodieDeleteRecordList", "namespace": _MODEL, "fields": [items_field]}
    )


_PARSED = _schema()


EMPTY = _HEAD.pack(CONTENT_VERSION, 1) + b"\x00"  # content of a block that deletes nothing


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The deletes of one block.

    `keys`: RECORD_KEY and PARTITION_PATH, one row per delete. `commit_time`: bool, true where the delete has no
    ordering value. `ordering`: one array per ordering field, null where `commit_time`; () when all are commit-time.
    """

    keys: pa.RecordBatch
    commit_time: pa.Array
    ordering: tuple[pa.Array, ...] = ()


def decode(content: bytes, where: str = "log block") -> DeleteRecords:
    """The deletes of a block's content. Raises CorruptFile, and UnsupportedTable for content versions 1 and 2."""
    if len(content) < _HEAD.size:
        raise CorruptFile(f"{where}: a delete block of {len(content)} bytes.")
    version, length = _HEAD.unpack_from(content)
    if version != CONTENT_VERSION:
        raise UnsupportedTable(
            f"{where}: delete block content version {version} holds serialized Java objects; compact the table with "
            f"Apache Hudi first."
        )
    if not 0 <= length <= len(content) - _HEAD.size:
        raise CorruptFile(f"{where}: a delete list of {length} bytes does not fit into its block.")
    with as_corrupt(where, "the delete list"):
        # Row by row in C: the records have no lengths, so each one's place depends on all before it.
        body = io.BytesIO(content[_HEAD.size : _HEAD.size + length])
        _check_count(body, length, where)
        found = fastavro.schemaless_reader(body, _PARSED, None, return_record_name=True)
        rows = cast("Body", found)["deleteRecordList"]
        keys = pa.RecordBatch.from_arrays(
            [pa.array([row[name] for row in rows], pa.string()) for name in ("recordKey", "partitionPath")],
            names=[RECORD_KEY, PARTITION_PATH],
        )
        return _with_ordering(keys, [row["orderingVal"] for row in rows], where)


def _check_count(body: io.BytesIO, length: int, where: str) -> None:
    """Refuse a count of deletes that the bytes can't hold before any of them is decoded."""
    count = abs(cast("int", fastavro.schemaless_reader(body, "long", None)))  # negative where a size in bytes follows
    body.seek(0)
    if count * _DELETE_BYTES > length:
        raise CorruptFile(f"{where}: a delete list of {length} bytes can't hold {count} deletes.")


def encode(keys: pa.RecordBatch, ordering: Sequence[pa.Array] = (), several: bool | None = None) -> bytes:
    """The content of a block that deletes these keys.

    Args:    keys: RECORD_KEY and PARTITION_PATH; ordering: one array per ordering field, null = commit-time delete;
             several: write lists of values (tables with several ordering fields), by default when there are several.
    """
    values = _wrapped(ordering, keys.num_rows, len(ordering) > 1 if several is None else several)
    columns = (keys.column(RECORD_KEY).to_pylist(), keys.column(PARTITION_PATH).to_pylist(), values)
    rows = [{"recordKey": k, "partitionPath": p, "orderingVal": o} for k, p, o in zip(*columns, strict=True)]
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, _PARSED, {"deleteRecordList": rows})
    body = sink.getvalue()
    return _HEAD.pack(CONTENT_VERSION, len(body)) + body


_NO_ORDERING = (f"{_MODEL}.IntWrapper", {"value": 0})


def _wrapped(ordering: Sequence[pa.Array], rows: int, several: bool) -> list[_Ordering]:
    if not ordering:
        return [_NO_ORDERING] * rows
    columns = [_wrapped_column(array) for array in ordering]
    if not several:
        return [_NO_ORDERING if value is None else value for value in columns[0]]
    return [
        _NO_ORDERING if all(value is None for value in row) else (_ARRAY_WRAPPER, {"wrappedValues": list(row)})
        for row in zip(*columns, strict=True)
    ]


def _wrapped_column(array: pa.Array) -> list[_Ordering | None]:
    # Times and days as their bare numbers: with the wrappers that are named after them Hudi 1.x compares objects of
    # other classes than those of its log rows, and fails on the whole slice.
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    name, arrow = _wrapper_of(array.type)
    plain: pa.Array = array.cast(arrow)
    return [None if value is None else (name, {"value": value}) for value in plain.to_pylist()]


def can_hold(kind: pa.DataType) -> bool:
    """Can every ordering value of this type be written into a delete block?"""
    if isinstance(kind, pa.Decimal128Type):
        return bool(kind.scale <= _SCALE and kind.precision - kind.scale <= _PRECISION - _SCALE)
    if pa.types.is_timestamp(kind):
        return True
    try:
        _wrapper_of(kind)
    except UnsupportedTable:
        return False
    return True


def _wrapper_of(arrow: pa.DataType) -> tuple[str, pa.DataType]:
    for name, known in _ARROW.items():
        if arrow == known:
            return name, known
    if pa.types.is_integer(arrow):
        wide = pa.int32() if arrow.bit_width < 32 else pa.int64()
        return _wrapper_of(wide)
    if pa.types.is_decimal(arrow):
        return f"{_MODEL}.DecimalWrapper", pa.decimal128(_PRECISION, _SCALE)
    raise UnsupportedTable(f"An ordering value of type {arrow} can't be written into a delete block.")


def _with_ordering(keys: pa.RecordBatch, values: list[_Ordering | None], where: str) -> DeleteRecords:
    none = [value is None or value == _NO_ORDERING for value in values]
    commit_time = pa.array(none, pa.bool_())
    if all(none):
        return DeleteRecords(keys, commit_time)
    rows = [None if empty or value is None else _fields(value) for value, empty in zip(values, none, strict=True)]
    width = max(len(row) for row in rows if row is not None)
    columns = []
    for field in range(width):
        cells = [None if row is None or field >= len(row) else row[field] for row in rows]
        columns.append(_typed(cells, where))
    return DeleteRecords(keys, commit_time, tuple(columns))


def _fields(value: _Ordering) -> list[_Ordering]:
    name, record = value
    return (record["wrappedValues"] or []) if name == _ARRAY_WRAPPER else [value]


def _typed(cells: list[_Ordering | None], where: str) -> pa.Array:
    """One array for values of one wrapper; numbers of several widths are widened."""
    types = {cell[0] for cell in cells if cell is not None}
    arrays = []
    for name in types:
        arrow = _ARROW.get(name)
        if arrow is None:
            raise CorruptFile(f"{where}: an ordering value inside an ordering value ({name}).")
        plain = [None if cell is None or cell[0] != name else cell[1]["value"] for cell in cells]
        arrays.append(_arrow_of(plain, arrow))
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return pa.nulls(len(cells))
    if not all(pa.types.is_integer(a.type) or pa.types.is_floating(a.type) for a in arrays):
        raise CorruptFile(
            f"{where}: ordering values of several types in one delete block ({', '.join(sorted(types))})."
        )
    wide = pa.float64() if any(pa.types.is_floating(a.type) for a in arrays) else pa.int64()
    return pc.coalesce(*(a.cast(wide) for a in arrays))


def _arrow_of(plain: list[object], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow):
        return pa.array(plain, pa.int64()).cast(arrow)
    if pa.types.is_date(arrow):
        return pa.array(plain, pa.int32()).cast(arrow)
    if pa.types.is_decimal(arrow):
        numbers = cast("list[decimal.Decimal | None]", plain)
        return pa.array([None if number is None else decimal.Decimal(number) for number in numbers], arrow)
    return pa.array(plain, arrow)
