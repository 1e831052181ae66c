"""An Arrow batch → one Avro binary per row, column by column.

Each field gives one binary piece per row; Arrow joins the pieces of a row in C++. Byte-identical to a record-wise
encoder. Source: Avro specification 1.11, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.arrow.kinds import LIST_ARRAYS, is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.formats.avro.reading import arrow_from_avro, nullable_branch
from pyhudi.formats.avro.varint import encode_varints
from pyhudi.formats.bodies import AvroObject, AvroType

__all__ = ["AvroEncoder"]

# Arrow array without nulls (of the field's Arrow type) → binary pieces, one per row, to be joined in order.
Pieces = Callable[[pa.Array], list[pa.Array]]

_NOTHING = pa.scalar(b"", pa.binary())


class AvroEncoder:
    """Encodes rows under one Avro record schema (JSON); the batch has the schema's fields, in order, by name.

    `unions`: as for `arrow_from_avro`.
    """

    def __init__(self, schema: str, *, unions: bool = False) -> None:
        self.schema = arrow_from_avro(schema, unions=unions)
        fields = checked_schema(schema).record["fields"]
        self._fields = [
            (field["name"], _encoder(field["type"], self.schema.field(index).type))
            for index, field in enumerate(fields)
        ]

    def encode(self, batch: pa.RecordBatch) -> pa.Array:
        """Binary array, one Avro record per row, no nulls.

        Raises SchemaMismatch when a column is missing, of another type, or null where the schema has no null.
        """
        pieces: list[pa.Array] = []
        for name, encode in self._fields:
            index = batch.schema.get_field_index(name)
            if index < 0:
                raise SchemaMismatch(f"Column {name!r} of the Avro schema is not in the data.")
            column, expected = batch.column(index), self.schema.field(name)
            if column.type != expected.type:
                column = column.cast(expected.type)
            if column.null_count and not expected.nullable:
                raise SchemaMismatch(f"Column {name!r} has nulls, but its Avro type has none.")
            pieces.extend(encode(column))
        return _join(pieces, batch.num_rows)


def _join(pieces: list[pa.Array], rows: int) -> pa.Array:
    if not pieces:
        return pa.array([b""] * rows, pa.binary())
    return pc.binary_join_element_wise(*pieces, _NOTHING)


def _encoder(avro: AvroType, arrow: pa.DataType) -> Pieces:
    if isinstance(avro, list):
        branch, nullable = nullable_branch(avro)
        if branch is None:
            return _union(avro, arrow)
        inner = _encoder(branch, arrow)
        return _nullable(inner, avro.index("null")) if nullable else lambda a: [_constant(b"\x00", len(a)), *inner(a)]
    parts: AvroObject = {"type": avro} if isinstance(avro, str) else avro
    kind = parts["type"]
    if isinstance(kind, (list, dict)):
        return _encoder(kind, arrow)
    if kind in ("record", "error", "fixed", "enum"):
        return _named_encoder(parts, arrow)
    if kind == "map":
        assert pa.types.is_map(arrow)
        return _map(_encoder(parts["values"], arrow.item_type))
    if kind == "array":
        assert is_list(arrow)
        return _list(_encoder(parts["items"], arrow.value_type))
    return _decimal(None) if pa.types.is_decimal(arrow) else _simple(arrow)


def _named_encoder(avro: AvroObject, arrow: pa.DataType) -> Pieces:
    if avro["type"] == "enum":
        return _enum(tuple(avro["symbols"]))
    if avro["type"] == "fixed":
        return _decimal(int(avro["size"])) if pa.types.is_decimal(arrow) else lambda array: [array.cast(pa.binary())]
    assert pa.types.is_struct(arrow)
    return _struct([_encoder(field["type"], arrow.field(i).type) for i, field in enumerate(avro["fields"])])


def _simple(arrow: pa.DataType) -> Pieces:
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return _variable
    if pa.types.is_boolean(arrow):
        return lambda array: [_bytes_of(array.cast(pa.uint8()).to_numpy(zero_copy_only=False), 1)]
    if pa.types.is_floating(arrow):
        return lambda array: [_bytes_of(array.to_numpy(zero_copy_only=False), arrow.bit_width // 8)]
    if pa.types.is_null(arrow):
        return lambda array: [_constant(b"", len(array))]
    return lambda array: [_varint_array(_integers(array))]


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    if not pa.types.is_integer(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    values: npt.NDArray[np.int64] = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def _varint_array(values: npt.NDArray[np.int64]) -> pa.Array:
    data, offsets = encode_varints(values)
    content = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(values), content)


def _bytes_of(values: npt.NDArray[np.generic], width: int) -> pa.Array:
    content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def _constant(value: bytes, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.binary()), rows)


def _variable(array: pa.Array) -> list[pa.Array]:
    lengths = pc.binary_length(array).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [_varint_array(lengths), array.cast(pa.binary())]


def _enum(symbols: tuple[str, ...]) -> Pieces:
    words = pa.array(symbols, pa.string())

    def encode(array: pa.Array) -> list[pa.Array]:
        index = pc.index_in(array, value_set=words)
        if index.null_count:
            raise SchemaMismatch(f"A value is none of the Avro enum's symbols {', '.join(symbols)}.")
        return [_varint_array(index.cast(pa.int64()).to_numpy())]

    return encode


def _decimal(size: int | None) -> Pieces:
    """Big-endian two's complement: of `size` bytes (fixed), or of 16 with their length (bytes)."""

    def encode(array: pa.Array) -> list[pa.Array]:
        little = buffer_numbers(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
        big = little.reshape(-1, 16)[:, ::-1]
        width = size or 16
        if width > 16:
            sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
            big = np.concatenate([np.repeat(sign, width - 16, axis=1), big], axis=1)
        pieces = [_bytes_of_matrix(big[:, big.shape[1] - width :])]
        return pieces if size else [_constant(b"\x20", len(array)), *pieces]  # 0x20: zigzag of 16

    return encode


def _bytes_of_matrix(matrix: npt.NDArray[np.uint8]) -> pa.Array:
    return _bytes_of(np.ascontiguousarray(matrix).reshape(-1), 1) if matrix.shape[1] == 1 else _rows_of(matrix)


def _rows_of(matrix: npt.NDArray[np.uint8]) -> pa.Array:
    offsets = np.arange(len(matrix) + 1, dtype=np.int32) * np.int32(matrix.shape[1])
    content = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.Array.from_buffers(pa.binary(), len(matrix), [None, pa.py_buffer(offsets), content])


def _nullable(inner: Pieces, null_branch: int) -> Pieces:
    null_bytes, value_bytes = (b"\x00", b"\x02") if null_branch == 0 else (b"\x02", b"\x00")

    def encode(array: pa.Array) -> list[pa.Array]:
        if not array.null_count:
            return [_constant(value_bytes, len(array)), *inner(array)]
        present = array.is_valid()
        values = _join(inner(array.drop_null()), len(array) - array.null_count)
        mask = present.to_numpy(zero_copy_only=False)
        spread = values.take(pa.array(np.cumsum(mask) - 1, mask=~mask))
        tags = pc.if_else(present, pa.scalar(value_bytes, pa.binary()), pa.scalar(null_bytes, pa.binary()))
        return [tags, pc.fill_null(spread, _NOTHING)]

    return encode


def _union(avro: list[AvroType], arrow: pa.DataType) -> Pieces:
    """Of a struct with a member for each type: the one that is not null, or null for a struct without any."""
    assert pa.types.is_struct(arrow)
    members = [number for number, branch in enumerate(avro) if branch != "null"]
    inner = [_encoder(avro[branch], arrow.field(number).type) for number, branch in enumerate(members)]
    tags = _varint_array(np.array(members, np.int64))
    nothing = avro.index("null") if "null" in avro else None

    def encode(array: pa.Array) -> list[pa.Array]:
        assert isinstance(array, pa.StructArray)
        result = pa.nulls(len(array), pa.binary())
        for tag, encoder, child in zip(tags, inner, array.flatten(), strict=True):
            values = child.drop_null()
            if len(values):
                pieces = _join([pa.repeat(tag, len(values)), *encoder(values)], len(values))
                result = pc.replace_with_mask(result, child.is_valid(), pieces)
        if result.null_count and nothing is None:
            raise SchemaMismatch("A union of the Avro schema has neither a value nor null.")
        return [result if nothing is None else pc.fill_null(result, _varint_array(np.array([nothing]))[0])]

    return encode


def _struct(fields: list[Pieces]) -> Pieces:
    def encode(array: pa.Array) -> list[pa.Array]:
        assert isinstance(array, pa.StructArray)
        return [piece for field, child in zip(fields, array.flatten(), strict=True) for piece in field(child)]

    return encode


def _list(item: Pieces) -> Pieces:
    def encode(array: pa.Array) -> list[pa.Array]:
        assert isinstance(array, LIST_ARRAYS)
        values = array.flatten()
        counts = array.value_lengths().cast(pa.int64()).to_numpy(zero_copy_only=False)
        return _blocks(counts, _join(item(values), len(values)))

    return encode


def _map(value: Pieces) -> Pieces:
    def encode(array: pa.Array) -> list[pa.Array]:
        assert isinstance(array, pa.MapArray)
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
        counts = np.diff(array.offsets.to_numpy()).astype(np.int64)
        return _blocks(counts, _join([*_variable(keys), *value(items)], len(keys)))

    return encode


def _blocks(counts: npt.NDArray[np.int64], items: pa.Array) -> list[pa.Array]:
    """One block per array or map: its count, its items, and the count 0 that ends it."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items), _NOTHING)
    filled = pc.if_else(pa.array(counts > 0), pa.scalar(b"\x00", pa.binary()), _NOTHING)
    return [_varint_array(counts), joined, filled]
