"""Log block DELETE: keys removed by one instant, with their ordering values.

    content version i32 = 3 | length i32 | Avro binary of HoodieDeleteRecordList        big-endian

An ordering value is a union of wrappers. IntWrapper 0, and null, mean "no ordering value": a commit-time delete, which
removes all earlier versions. Source: docs/formats/log.md, "Delete block"; docs/formats/merging.md, "Deletes".
"""

from __future__ import annotations

import decimal
import io
import json
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.timeline.bodies import AvroType, Body
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from fastavro.types import Schema

__all__ = ["EMPTY", "DeleteRecords", "can_hold", "decode", "decoded_parts", "encode"]

_Ordering: TypeAlias = tuple[str, Body]  # a wrapper's name and its record

CONTENT_VERSION = 3

_DELETE_BYTES = 3  # at least: each of the three fields has a byte that marks it as null
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


def _schema() -> tuple[AvroType, Schema, Schema]:
    """Return the schema of one delete, and parsed with that of a list of deletes."""
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
    listed = {"type": "record", "name": "HoodieDeleteRecordList", "namespace": _MODEL, "fields": [items_field]}
    return record, fastavro.parse_schema(record), fastavro.parse_schema(listed)


_SCHEMA, _RECORD, _PARSED = _schema()
_DECODED_ROWS = 1 << 14  # number of deletes that are decoded at once
_READ_BYTES = 1 << 20  # of content that is decoded in parts
_NULL, _TEXT = 0, 2  # branches, as their bytes
_UNUSUAL, _VARINT, _LENGTH = -1, -2, -3
# The branch of an ordering value, as its byte → bytes of the value. A list, the last branch, is missing.
_SIZES = (0, 1, _VARINT, _VARINT, 4, 8, _LENGTH, _LENGTH, _VARINT, _LENGTH, _VARINT, _VARINT)
_VALUE_BYTES = {2 * branch: size for branch, size in enumerate(_SIZES)}


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
    """Decode the deletes of a block. Raises CorruptFile, and UnsupportedTable for content versions 1 and 2."""
    length = _list_bytes(content[: _HEAD.size], len(content), where)
    with as_corrupt(where, "the delete list"):
        body = io.BufferedReader(_Section(io.BytesIO(memoryview(content)[_HEAD.size :]), length), _READ_BYTES)
        return _join_parts([_columns([]), *_parts(body, length, where)], where)


def decoded_parts(content: BinaryIO, size_bytes: int, where: str = "log block") -> Iterator[DeleteRecords]:
    """Like `decode`, some thousand deletes at a time; only their part of the content is in memory.

    Args: content: a file, positioned at the content's first byte; size_bytes: of the content.
    """
    length = _list_bytes(content.read(min(_HEAD.size, size_bytes)), size_bytes, where)
    kinds: dict[int, set[str]] = {}
    with as_corrupt(where, "the delete list"):
        for part in _parts(io.BufferedReader(_Section(content, length), _READ_BYTES), length, where):
            for field, values in enumerate(part.values):
                kinds.setdefault(field, set()).update(values)
                _check_kinds(kinds[field], where)
            yield _join_parts([part], where)


class _Section(io.RawIOBase):
    """A limited number of the next bytes of a file."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file, self._left_bytes = file, size_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer, /) -> int:
        target = memoryview(into)
        data = self._file.read(min(len(target), self._left_bytes))
        target[: len(data)] = data
        self._left_bytes -= len(data)
        return len(data)


def _list_bytes(head: bytes, size_bytes: int, where: str) -> int:
    """Return the length of the list, from the first bytes of a content of this size."""
    if len(head) < _HEAD.size:
        raise CorruptFile(f"{where}: a delete block of {size_bytes} bytes.")
    version, length = _HEAD.unpack(head)
    if version != CONTENT_VERSION:
        raise UnsupportedTable(
            f"{where}: delete block content version {version} holds serialized Java objects; compact the table with "
            f"Apache Hudi first."
        )
    if not 0 <= length <= size_bytes - _HEAD.size:
        raise CorruptFile(f"{where}: a delete list of {length} bytes does not fit into its block.")
    return int(length)


def _parts(body: io.BufferedReader[_Section], length: int, where: str) -> Iterator[_Part]:
    """Yield the deletes of a list, which consists of blocks. Raises CorruptFile for a count that the bytes can't hold.

    The records have no lengths, so each one's position depends on all before it: `_ends` walks over them, and columns
    are decoded at once. fastavro decodes records that `_ends` does not know or that extend beyond the bytes read.
    """
    while count := cast("int", fastavro.schemaless_reader(body, "long", None)):
        if count < 0:
            fastavro.schemaless_reader(body, "long", None)  # the size of the block in bytes
        if abs(count) * _DELETE_BYTES > length:
            raise CorruptFile(f"{where}: a delete list of {length} bytes can't hold {abs(count)} deletes.")
        left = abs(count)
        while left:
            most = min(left, _DECODED_ROWS)
            ends, is_unusual = _ends(body.peek(_READ_BYTES), most)
            if ends:
                count_read = len(ends)
                yield _decode_ordinary(body.read(ends[-1]), ends, where)
            else:
                count_read = most if is_unusual else 1
                rows = [
                    fastavro.schemaless_reader(body, _RECORD, None, return_record_name=True) for _ in range(count_read)
                ]
                yield _columns(cast("list[Body]", rows))
            left -= count_read


def _ends(content: bytes, most: int) -> tuple[list[int], bool]:
    """Return where the first complete records end, and whether the next is unusual: a long text, several values."""
    ends: list[int] = []
    at, size = 0, len(content)
    try:
        while len(ends) < most:
            for _ in ("recordKey", "partitionPath"):
                branch = content[at]
                at = at + 1 if branch == _NULL else _text_end(content, at + 1) if branch == _TEXT else _UNUSUAL
                if at == _UNUSUAL:
                    return ends, True
            value_bytes = _VALUE_BYTES.get(content[at], _UNUSUAL)
            at += 1
            if value_bytes == _VARINT:
                while content[at] & 0x80:
                    at += 1
                at += 1
            elif value_bytes == _LENGTH:
                at = _text_end(content, at)
            else:
                at = _UNUSUAL if value_bytes == _UNUSUAL else at + value_bytes
            if at == _UNUSUAL:
                return ends, True
            if at > size:
                break
            ends.append(at)
    except IndexError:
        pass  # the content ends inside a record
    return ends, False


def _text_end(content: bytes, at: int) -> int:
    """Return the position after a text with its length; _UNUSUAL for a length of three bytes or more, or below zero."""
    low = content[at]
    if low & 1:
        return _UNUSUAL
    if low < 0x80:
        return at + 1 + (low >> 1)
    high = content[at + 1]
    return _UNUSUAL if high & 0x80 else at + 2 + ((low & 0x7F | high << 7) >> 1)


def _decode_ordinary(content: bytes, ends: list[int], where: str) -> _Part:
    """Decode ordinary records, which end at these positions."""
    behind = np.array(ends, np.int64)
    rows = _decoder().decode(content, np.concatenate([[0], behind[:-1]]), behind, where)
    keys, paths, union = (column.combine_chunks() for column in rows.columns)
    members = cast("list[pa.StructArray]", cast("pa.StructArray", union).flatten())
    values = {name: member.field(0) for name, member in zip(_ARROW, members, strict=False)}
    none = pc.or_(union.is_null(), pc.fill_null(pc.equal(values[_NO_ORDERING[0]], 0), False))
    bare = {name: pc.if_else(none, pa.scalar(None, array.type), array) for name, array in values.items()}
    typed = {name: array.cast(_ARROW[name]) for name, array in bare.items() if array.null_count < len(array)}
    return _Part(pa.record_batch([keys, paths], [RECORD_KEY, PARTITION_PATH]), none, [typed] if typed else [])


@cache
def _decoder() -> AvroDecoder:
    return AvroDecoder(json.dumps(_SCHEMA), unions=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some deletes: their keys, which of them lack ordering values, and the others' values by field and wrapper."""

    keys: pa.RecordBatch
    none: pa.Array
    values: Sequence[Mapping[str, pa.Array]]


def _columns(rows: list[Body]) -> _Part:
    keys = pa.RecordBatch.from_arrays(
        [pa.array([row[name] for row in rows], pa.string()) for name in ("recordKey", "partitionPath")],
        names=[RECORD_KEY, PARTITION_PATH],
    )
    ordering = [row["orderingVal"] for row in rows]
    none = [value is None or value == _NO_ORDERING for value in ordering]
    lists = [[] if empty else _fields(value) for value, empty in zip(ordering, none, strict=True)]
    width = max(map(len, lists), default=0)
    columns = ([row[at] if at < len(row) else None for row in lists] for at in range(width))
    return _Part(keys, pa.array(none, pa.bool_()), [_by_wrapper(cells) for cells in columns])


def _join_parts(parts: Sequence[_Part], where: str) -> DeleteRecords:
    batches = pa.Table.from_batches([part.keys for part in parts]).combine_chunks().to_batches()
    keys = batches[0] if batches else parts[0].keys
    commit_time = pa.concat_arrays([part.none for part in parts])
    width = max(len(part.values) for part in parts)
    return DeleteRecords(keys, commit_time, tuple(_join_wrappers(parts, field, where) for field in range(width)))


def encode(keys: pa.RecordBatch, ordering: Sequence[pa.Array] = (), several: bool | None = None) -> bytes:
    """Encode the content of a block that deletes these keys.

    Args:    keys: RECORD_KEY and PARTITION_PATH; ordering: one array per ordering field, null = commit-time delete;
             several: write lists of values (tables with several ordering fields); default: when there are several.
    """
    values = _wrap(ordering, keys.num_rows, len(ordering) > 1 if several is None else several)
    columns = (keys.column(RECORD_KEY).to_pylist(), keys.column(PARTITION_PATH).to_pylist(), values)
    rows = [{"recordKey": k, "partitionPath": p, "orderingVal": o} for k, p, o in zip(*columns, strict=True)]
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, _PARSED, {"deleteRecordList": rows})
    body = sink.getvalue()
    return _HEAD.pack(CONTENT_VERSION, len(body)) + body


_NO_ORDERING = (f"{_MODEL}.IntWrapper", {"value": 0})


def _wrap(ordering: Sequence[pa.Array], rows: int, several: bool) -> list[_Ordering]:
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
    # Times and days as plain numbers: with the wrappers of these names, Hudi 1.x compares objects of other classes than
    # those of its log rows, and fails on the whole slice.
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    name, arrow = _wrapper_of(array.type)
    plain: pa.Array = array.cast(arrow)
    return [None if value is None else (name, {"value": value}) for value in plain.to_pylist()]


def can_hold(kind: pa.DataType) -> bool:
    """True if every ordering value of this type can be written into a delete block."""
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
    for name, data_type in _ARROW.items():
        if arrow == data_type:
            return name, data_type
    if pa.types.is_integer(arrow):
        wide = pa.int32() if arrow.bit_width < 32 else pa.int64()
        return _wrapper_of(wide)
    if pa.types.is_decimal(arrow):
        return f"{_MODEL}.DecimalWrapper", pa.decimal128(_PRECISION, _SCALE)
    raise UnsupportedTable(f"An ordering value of type {arrow} can't be written into a delete block.")


def _fields(value: _Ordering) -> list[_Ordering]:
    name, record = value
    return (record["wrappedValues"] or []) if name == _ARRAY_WRAPPER else [value]


def _by_wrapper(cells: list[_Ordering | None]) -> dict[str, pa.Array]:
    """Return for each wrapper among the values an array that is null where the value has another one."""
    names = dict.fromkeys(cell[0] for cell in cells if cell is not None)
    plain = {n: [None if cell is None or cell[0] != n else cell[1]["value"] for cell in cells] for n in names}
    # `_join_wrappers` reports a wrapper without a value.
    return {n: _arrow_of(plain[n], _ARROW[n]) if n in _ARROW else pa.nulls(len(cells)) for n in names}


def _join_wrappers(parts: Sequence[_Part], field: int, where: str) -> pa.Array:
    """Return one array for the values of a field, which have one wrapper; numbers of several widths are widened."""
    columns = [part.values[field] if field < len(part.values) else {} for part in parts]
    names = list(dict.fromkeys(name for column in columns for name in column))
    unknown = next((name for name in names if name not in _ARROW), None)
    if unknown is not None:
        raise CorruptFile(f"{where}: an ordering value inside an ordering value ({unknown}).")
    arrays = [
        pa.concat_arrays(
            [c[n] if n in c else pa.nulls(len(p.none), _ARROW[n]) for p, c in zip(parts, columns, strict=True)]
        )
        for n in names
    ]
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return pa.nulls(sum(len(part.none) for part in parts))
    _check_kinds(names, where)
    wide = pa.float64() if any(pa.types.is_floating(a.type) for a in arrays) else pa.int64()
    return pc.coalesce(*(a.cast(wide) for a in arrays))


def _check_kinds(names: Collection[str], where: str) -> None:
    """Raise CorruptFile when values of these wrappers can't be compared with each other."""
    kinds = [_ARROW[name] for name in names if name in _ARROW]
    if len(kinds) > 1 and not all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        raise CorruptFile(
            f"{where}: ordering values of several types in one delete block ({', '.join(sorted(names))})."
        )


def _arrow_of(plain: list[object], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow):
        return pa.array(plain, pa.int64()).cast(arrow)
    if pa.types.is_date(arrow):
        return pa.array(plain, pa.int32()).cast(arrow)
    if pa.types.is_decimal(arrow):
        numbers = cast("list[decimal.Decimal | None]", plain)
        return pa.array([None if number is None else decimal.Decimal(number) for number in numbers], arrow)
    return pa.array(plain, arrow)
