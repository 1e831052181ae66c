"""Encoding an Arrow batch, column by column, into one Avro binary per row.

Each field gives pieces of a few bytes per row, and `joined` makes one binary of the pieces of a row. The result equals
that of a record-wise encoder byte by byte.

Arrow joins pieces in C++, but each piece of each row costs many times as much as a few bytes. So neighbouring short
pieces (numbers, branches of unions, lengths of texts) are first combined in one matrix.

Source: Avro specification 1.11, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.arrow.kinds import LIST_ARRAYS, is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.formats.avro.schema import arrow_from_avro, nullable_branch
from pyhudi.formats.avro.varint import varint_matrix
from pyhudi.formats.timeline.bodies import AvroObject, AvroType

__all__ = ["AvroEncoder", "Piece", "Short", "joined", "numbers", "varints"]


_NOTHING = b""

_MATRIX_BYTES = 96  # of a row: further columns use another matrix, so that memory stays small


@dataclass(frozen=True, slots=True)
class Short:
    """A few bytes per row. `lengths`: number of leading bytes used in each row of `matrix`; None: all."""

    matrix: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int64] | None = None


# The same bytes for all rows, a few for each, or a binary array without nulls.
Piece: TypeAlias = bytes | Short | pa.Array


def varints(values: npt.NDArray[np.int64]) -> Short:
    """Avro's integers."""
    return Short(*varint_matrix(values))


def numbers(values: npt.NDArray[np.generic]) -> Short:
    """Numbers of one width, little-endian."""
    content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    return Short(content.view(np.uint8).reshape(len(values), values.dtype.itemsize))


def joined(pieces: Iterable[Piece], rows: int) -> pa.Array:
    """Return a binary array without nulls: the joined pieces of each row, in order."""
    arrays = list(_arrays(pieces, rows))
    if len(arrays) == 1:
        return arrays[0]
    return pc.binary_join_element_wise(*arrays, _NOTHING) if arrays else _binary(np.zeros((rows, 0), np.uint8), None)


def _arrays(pieces: Iterable[Piece], rows: int) -> Iterator[pa.Array]:
    run: list[bytes | Short] = []
    width = 0
    for piece in pieces:
        piece_width = _MATRIX_BYTES if isinstance(piece, pa.Array) else _width(piece)
        if run and width + piece_width > _MATRIX_BYTES:
            yield _together(run, rows, width)
            run, width = [], 0
        if isinstance(piece, pa.Array):
            if run:
                yield _together(run, rows, width)
                run, width = [], 0
            yield piece
        elif piece_width:
            run.append(piece)
            width += piece_width
    if run:
        yield _together(run, rows, width)


def _width(piece: bytes | Short) -> int:
    return len(piece) if isinstance(piece, bytes) else int(piece.matrix.shape[1])


def _together(run: Sequence[bytes | Short], rows: int, width: int) -> pa.Array:
    """Return one binary array of neighbouring pieces."""
    matrix = np.empty((rows, width), np.uint8)
    is_used: npt.NDArray[np.bool_] | None = None
    first = 0
    for piece in run:
        behind = first + _width(piece)
        if isinstance(piece, bytes):
            matrix[:, first:behind] = np.frombuffer(piece, np.uint8)
        else:
            matrix[:, first:behind] = piece.matrix
            if piece.lengths is not None:
                is_used = np.ones((rows, width), np.bool_) if is_used is None else is_used
                is_used[:, first:behind] = np.arange(behind - first) < piece.lengths[:, None]
        first = behind
    return _binary(matrix, is_used)


def _binary(matrix: npt.NDArray[np.uint8], is_used: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Return a binary array of the matrix's rows, without unused bytes."""
    rows, width = matrix.shape
    offsets = np.zeros(rows + 1, np.int32)
    lengths = np.full(rows, width) if is_used is None else np.count_nonzero(is_used, axis=1)
    np.cumsum(lengths, out=offsets[1:])
    content = matrix.reshape(-1) if is_used is None else matrix.reshape(-1)[is_used.reshape(-1)]
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(content)])


# Arrow array without nulls (of the field's Arrow type) → pieces of each row, to be joined in order.
Pieces = Callable[[pa.Array], list[Piece]]


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
        """Encode a binary array, one Avro record per row, no nulls.

        Raises SchemaMismatch when a column is missing, has another type, or is null where the schema has no null.
        """
        pieces: list[Piece] = []
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
        return joined(pieces, batch.num_rows)


def _encoder(avro: AvroType, arrow: pa.DataType) -> Pieces:
    if isinstance(avro, list):
        branch, nullable = nullable_branch(avro)
        if branch is None:
            return _union(avro, arrow)
        inner = _encoder(branch, arrow)
        return _nullable(inner, avro.index("null")) if nullable else lambda a: [b"\x00", *inner(a)]
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
        return lambda array: [numbers(array.cast(pa.uint8()).to_numpy(zero_copy_only=False))]
    if pa.types.is_floating(arrow):
        return lambda array: [numbers(array.to_numpy(zero_copy_only=False))]
    if pa.types.is_null(arrow):
        return lambda array: [b""]
    return lambda array: [varints(_integers(array))]


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    if not pa.types.is_integer(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    values: npt.NDArray[np.int64] = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def _variable(array: pa.Array) -> list[Piece]:
    lengths = pc.binary_length(array).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [varints(lengths), array.cast(pa.binary())]


def _enum(symbols: tuple[str, ...]) -> Pieces:
    words = pa.array(symbols, pa.string())

    def encode(array: pa.Array) -> list[Piece]:
        index = pc.index_in(array, value_set=words)
        if index.null_count:
            raise SchemaMismatch(f"A value is none of the Avro enum's symbols {', '.join(symbols)}.")
        return [varints(index.cast(pa.int64()).to_numpy())]

    return encode


def _decimal(size: int | None) -> Pieces:
    """Return decimals in big-endian two's complement: `size` bytes (fixed), or 16 bytes with their length (bytes)."""

    def encode(array: pa.Array) -> list[Piece]:
        little = buffer_numbers(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
        big = little.reshape(-1, 16)[:, ::-1]
        width = size or 16
        if width > 16:
            sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
            big = np.concatenate([np.repeat(sign, width - 16, axis=1), big], axis=1)
        value = Short(big[:, big.shape[1] - width :])
        return [value] if size else [b"\x20", value]  # 0x20: zigzag of 16

    return encode


def _nullable(inner: Pieces, null_branch: int) -> Pieces:
    null_bytes, value_bytes = (b"\x00", b"\x02") if null_branch == 0 else (b"\x02", b"\x00")

    def encode(array: pa.Array) -> list[Piece]:
        if not array.null_count:
            return [value_bytes, *inner(array)]
        present = array.is_valid()
        values = joined(inner(array.drop_null()), len(array) - array.null_count)
        mask = present.to_numpy(zero_copy_only=False)
        spread = values.take(pa.array(np.cumsum(mask) - 1, mask=~mask))
        tags = pc.if_else(present, pa.scalar(value_bytes, pa.binary()), pa.scalar(null_bytes, pa.binary()))
        return [tags, pc.fill_null(spread, _NOTHING)]

    return encode


def _union(avro: list[AvroType], arrow: pa.DataType) -> Pieces:
    """Return the non-null member of a struct with a member for each type; null for a struct without one."""
    assert pa.types.is_struct(arrow)
    members = [number for number, branch in enumerate(avro) if branch != "null"]
    inner = [_encoder(avro[branch], arrow.field(number).type) for number, branch in enumerate(members)]
    tags = [joined([varints(np.array([number]))], 1)[0].as_py() for number in members]
    nothing = avro.index("null") if "null" in avro else None

    def encode(array: pa.Array) -> list[Piece]:
        assert isinstance(array, pa.StructArray)
        result = pa.nulls(len(array), pa.binary())
        for tag, encoder, child in zip(tags, inner, array.flatten(), strict=True):
            values = child.drop_null()
            if len(values):
                pieces = joined([tag, *encoder(values)], len(values))
                result = pc.replace_with_mask(result, child.is_valid(), pieces)
        if result.null_count and nothing is None:
            raise SchemaMismatch("A union of the Avro schema has neither a value nor null.")
        return [result if nothing is None else pc.fill_null(result, joined([varints(np.array([nothing]))], 1)[0])]

    return encode


def _struct(fields: list[Pieces]) -> Pieces:
    def encode(array: pa.Array) -> list[Piece]:
        assert isinstance(array, pa.StructArray)
        return [piece for field, child in zip(fields, array.flatten(), strict=True) for piece in field(child)]

    return encode


def _list(item: Pieces) -> Pieces:
    def encode(array: pa.Array) -> list[Piece]:
        assert isinstance(array, LIST_ARRAYS)
        values = array.flatten()
        counts = array.value_lengths().cast(pa.int64()).to_numpy(zero_copy_only=False)
        return _blocks(counts, joined(item(values), len(values)))

    return encode


def _map(value: Pieces) -> Pieces:
    def encode(array: pa.Array) -> list[Piece]:
        assert isinstance(array, pa.MapArray)
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
        counts = np.diff(array.offsets.to_numpy()).astype(np.int64)
        return _blocks(counts, joined([*_variable(keys), *value(items)], len(keys)))

    return encode


def _blocks(counts: npt.NDArray[np.int64], items: pa.Array) -> list[Piece]:
    """Return one block per array or map: its count, its items, and the count 0 that ends it."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    content = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items), _NOTHING)
    filled = pc.if_else(pa.array(counts > 0), pa.scalar(b"\x00", pa.binary()), _NOTHING)
    return [varints(counts), content, filled]
