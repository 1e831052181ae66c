"""Readers of Avro fields, and the walk over many Avro binaries of one schema (`Walk`), with one position per record.

Each function makes a reader for an Avro type that goes into a column of the given Arrow type. Some fields are single
values: numbers, text, bytes, decimals, enums. Others contain fields: unions, records, arrays and maps. A reader raises
CorruptFile for bytes that are not a value of its type.

If a field may be null, its reader visits only the positions with a value. Arrays and maps are read in waves: the k-th
item of every record.

Source: Avro specification 1.11, "Binary encoding", "Logical Types", "Complex Types".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.varint import Buffer, Positions, decode_varints

__all__ = [
    "FieldValues",
    "Reader",
    "Walk",
    "boolean",
    "enum",
    "fixed",
    "integer",
    "nullable",
    "number",
    "record",
    "repeated",
    "sole_branch",
    "union",
    "variable",
]


# The result of a reader: the array, None when it was not built, and the positions after the field.
FieldValues: TypeAlias = tuple[pa.Array | None, Positions]


@dataclass(frozen=True, slots=True)
class Walk:
    """The bytes of the records. `where`: for messages."""

    buffer: Buffer
    where: str

    def check(self, positions: Positions, limits: Positions) -> Positions:
        """Return the positions. Raises CorruptFile if one is beyond the end of its record."""
        if (positions > limits).any():
            raise CorruptFile(f"{self.where}: an Avro record ends in the middle of a field.")
        return positions

    def varints(self, positions: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
        """Return the numbers at the positions, and the positions after them. Raises CorruptFile."""
        self.check(positions + 1, limits)
        values, behind = decode_varints(self.buffer, positions, self.where)
        return values, self.check(behind, limits)


# Reads one field: (walk, positions, limits, build).
Reader: TypeAlias = Callable[[Walk, Positions, Positions, bool], FieldValues]


def integer(arrow: pa.DataType, bits: int) -> Reader:
    """Return a reader of `int` (32 bits) and `long` (64)."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        values, behind = walk.varints(at, limits)
        if not build:
            return None, behind
        if bits == 32:
            narrow = values.astype(np.int32)
            if not np.array_equal(narrow, values):
                raise CorruptFile(f"{walk.where}: an Avro int of more than 32 bits.")
            return _typed(pa.array(narrow), arrow), behind
        return _typed(pa.array(values), arrow), behind

    return read


def _typed(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    return array if array.type == arrow else array.view(arrow)


def number(dtype: np.dtype[np.floating], arrow: pa.DataType) -> Reader:
    """Return a reader of `float` and `double`, which are stored as in memory."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        behind = walk.check(at + dtype.itemsize, limits)
        if not build:
            return None, behind
        raw = walk.buffer.words[at].astype("<u8")
        values = raw.view("<f8") if dtype.itemsize == 8 else (raw & np.uint64(0xFFFFFFFF)).astype("<u4").view("<f4")
        return _typed(pa.array(values), arrow), behind

    return read


def boolean(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
    """Reads `boolean`."""
    behind = walk.check(at + 1, limits)
    return (pa.array(walk.buffer.data[at] != 0) if build else None), behind


def variable(arrow: pa.DataType) -> Reader:
    """Return a reader of `string` and `bytes`, decimals included."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        lengths, starts = walk.varints(at, limits)
        if (lengths < 0).any() or (lengths > limits - starts).any():
            raise CorruptFile(f"{walk.where}: an Avro string or bytes of a length beyond its record.")
        behind = starts + lengths
        if not build:
            return None, behind
        binary = _views(walk.buffer, starts, lengths).cast(pa.binary())
        if pa.types.is_decimal(arrow):
            return _decimal_of_bytes(binary, arrow, walk.where), behind
        if not pa.types.is_string(arrow):
            return binary, behind
        try:
            return binary.cast(pa.string()), behind
        except pa.ArrowInvalid as error:
            raise CorruptFile(f"{walk.where}: an Avro string is not UTF-8 ({error}).") from error

    return read


def _views(buffer: Buffer, starts: Positions, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Return binary views into the buffer: {length, 12 bytes} when short, else {length, prefix, buffer, offset}."""
    views = np.zeros((len(starts), 2), dtype="<u8")
    first, second = buffer.words[starts], buffer.words[starts + 8 if len(starts) else starts]
    keep = np.clip(lengths, 0, 12)
    low, high = np.minimum(keep, 8), np.maximum(keep - 8, 0)
    first &= np.where(low == 8, ~np.uint64(0), (np.uint64(1) << (8 * low).astype(np.uint64)) - np.uint64(1))
    second &= (np.uint64(1) << (8 * high).astype(np.uint64)) - np.uint64(1)
    short = lengths <= 12
    size = lengths.astype(np.uint64)
    views[:, 0] = size | (first << np.uint64(32))
    views[:, 1] = np.where(short, (first >> np.uint64(32)) | (second << np.uint64(32)), starts.astype(np.uint64) << 32)
    data = pa.py_buffer(buffer.bytes)
    return pa.Array.from_buffers(pa.binary_view(), len(starts), [None, pa.py_buffer(views), data])


def fixed(size: int, arrow: pa.DataType) -> Reader:
    """Return a reader of `fixed`, decimals included."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        behind = walk.check(at + size, limits)
        if not build:
            return None, behind
        matrix = walk.buffer.data[at[:, None] + np.arange(size)]
        if pa.types.is_decimal(arrow):
            return _decimals(matrix, arrow, walk.where), behind
        content = pa.py_buffer(np.ascontiguousarray(matrix))
        return pa.Array.from_buffers(pa.binary(size), len(at), [None, content]), behind

    return read


def _decimals(matrix: npt.NDArray[np.uint8], arrow: pa.DataType, where: str) -> pa.Array:
    """Return decimals from big-endian two's complement rows of one width."""
    rows, size = matrix.shape
    wide = np.empty((rows, 16), dtype=np.uint8)
    sign = np.where(matrix[:, 0] >= 0x80, 0xFF, 0).astype(np.uint8) if size else np.zeros(rows, np.uint8)
    if size > 16:
        if (matrix[:, : size - 16] != sign[:, None]).any():
            raise CorruptFile(f"{where}: a decimal of more than 128 bits.")
        wide[:] = matrix[:, size - 16 :]
    else:
        wide[:, : 16 - size] = sign[:, None]
        wide[:, 16 - size :] = matrix
    little = np.ascontiguousarray(wide[:, ::-1])
    return pa.Array.from_buffers(arrow, rows, [None, pa.py_buffer(little)])


def _decimal_of_bytes(binary: pa.Array, arrow: pa.DataType, where: str) -> pa.Array:
    """Return decimals from byte strings of any width: padded on the left with their sign, one width at a time."""
    lengths = pc.binary_length(binary).to_numpy(zero_copy_only=False)
    out = np.zeros((len(binary), 16), dtype=np.uint8)
    for size in np.unique(lengths):
        rows = np.flatnonzero(lengths == size)
        content = b"".join(cast("list[bytes]", binary.take(pa.array(rows)).to_pylist()))
        matrix = np.frombuffer(content, np.uint8).reshape(len(rows), size)
        decimals = _decimals(matrix, arrow, where)
        out[rows] = buffer_numbers(decimals.buffers()[1], np.uint8)[: 16 * len(rows)].reshape(-1, 16)
    return pa.Array.from_buffers(arrow, len(binary), [None, pa.py_buffer(out)])


def enum(symbols: tuple[str, ...]) -> Reader:
    """Return a reader of `enum`, as text."""
    words = pa.array(symbols, pa.string())

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        values, behind = walk.varints(at, limits)
        if (values < 0).any() or (values >= len(symbols)).any():
            raise CorruptFile(f"{walk.where}: an Avro enum beyond its {len(symbols)} symbols.")
        return (words.take(pa.array(values)) if build else None), behind

    return read


_MOST_PIECES = 1024  # arrays with one item of each record: each takes more memory than its values

_Repeated: TypeAlias = pa.ListType | pa.MapType


def sole_branch(inner: Reader) -> Reader:
    """Return a reader of a union of one type."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        branches, behind = walk.varints(at, limits)
        if branches.any():
            raise CorruptFile(f"{walk.where}: an Avro union has no branch {int(branches.max())}.")
        return inner(walk, behind, limits, build)

    return read


def nullable(inner: Reader, null_branch: int, arrow: pa.DataType) -> Reader:
    """Return a reader of a union of null and one type."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        branches, behind = walk.varints(at, limits)
        if ((branches < 0) | (branches > 1)).any():
            raise CorruptFile(f"{walk.where}: an Avro union of two has no branch {int(branches.max())}.")
        present = branches != null_branch
        if present.all():
            return inner(walk, behind, limits, build)
        rows = np.flatnonzero(present)
        if not len(rows):
            return (pa.nulls(len(at), arrow) if build else None), behind
        array, ends = inner(walk, behind[rows], limits[rows], build)
        behind[rows] = ends
        if array is None:
            return None, behind
        indices = np.cumsum(present) - 1
        return array.take(pa.array(indices, mask=~present)), behind

    return read


def union(readers: Sequence[Reader | None], arrow: pa.StructType) -> Reader:
    """Return a reader of a union of several types as a struct; at most one member of a row is not null, none for null.

    Args:    readers: of the branches in their order, None for null; arrow: a struct of the non-null branches.
    """
    inner = {branch: reader for branch, reader in enumerate(readers) if reader is not None}
    members = list(inner)

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        branches, behind = walk.varints(at, limits)
        if ((branches < 0) | (branches >= len(readers))).any():
            raise CorruptFile(f"{walk.where}: an Avro union of {len(readers)} has no branch {int(branches.max())}.")
        arrays: list[pa.Array] = []
        for number, branch in enumerate(members):
            rows = np.flatnonzero(branches == branch)
            if not len(rows):
                arrays.append(pa.nulls(len(at) if build else 0, arrow.field(number).type))
                continue
            array, behind[rows] = inner[branch](walk, behind[rows], limits[rows], build)
            if array is not None:
                present = branches == branch
                arrays.append(array.take(pa.array(np.cumsum(present) - 1, mask=~present)))
        if not build:
            return None, behind
        absent = pa.array(~np.isin(branches, members))
        return pa.StructArray.from_arrays(arrays, fields=list(arrow), mask=absent), behind

    return read


def record(inner: list[Reader], arrow: pa.StructType) -> Reader:
    """Return a reader of a record, from the readers of its fields."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        arrays: list[pa.Array] = []
        for field in inner:
            array, at = field(walk, at, limits, build)
            if array is not None:
                arrays.append(array)
        if not build:
            return None, at
        if not arrays:
            return pa.array([{}] * len(at), arrow), at
        return pa.StructArray.from_arrays(arrays, fields=list(arrow)), at

    return read


def repeated(item: Reader, arrow: _Repeated) -> Reader:
    """Return a reader of an array or a map, from the reader of its items."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> FieldValues:
        at = at.copy()
        pieces: list[pa.Array] = []
        owners: list[npt.NDArray[np.int64]] = []
        joined: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        open_rows = np.arange(len(at))
        rest = limits - at
        while len(open_rows):
            counts, at[open_rows] = _block_counts(walk, at[open_rows], limits[open_rows])
            # An item takes at least a byte, so a larger count is forged; this also limits the waves.
            rest[open_rows] -= counts
            if (rest < 0).any():
                raise CorruptFile(f"{walk.where}: an Avro array or map of more items than its record has bytes.")
            open_rows = open_rows[counts != 0]
            counts = counts[counts != 0]
            done = 0
            rows = open_rows
            while len(rows):
                array, at[rows] = item(walk, at[rows], limits[rows], build)
                if array is not None:
                    pieces.append(array)
                    owners.append(rows)
                    if len(pieces) == _MOST_PIECES:
                        joined.append((pa.concat_arrays(pieces), np.concatenate(owners)))
                        pieces, owners = [], []
                done += 1
                rows = open_rows[counts > done]
        if not build:
            return None, at
        pieces = [*(array for array, _ in joined), *pieces]
        owners = [*(rows for _, rows in joined), *owners]
        return _lists(pieces, owners, len(at), arrow), at

    return read


def _block_counts(walk: Walk, at: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
    """Return item counts of the next blocks; a negative count is followed by the block's size in bytes."""
    counts, behind = walk.varints(at, limits)
    sized = counts < 0
    if sized.any():
        rows = np.flatnonzero(sized)
        _, behind[rows] = walk.varints(behind[rows], limits[rows])
        counts = np.abs(counts)
    if (counts < 0).any():
        raise CorruptFile(f"{walk.where}: an Avro array or map with a count of more than 63 bits.")
    return counts, behind


def _lists(pieces: list[pa.Array], owners: list[npt.NDArray[np.int64]], rows: int, arrow: _Repeated) -> pa.Array:
    item_type = pa.struct([arrow.key_field, arrow.item_field]) if pa.types.is_map(arrow) else arrow.value_type
    offsets = np.zeros(rows + 1, dtype=np.int32)
    values: pa.Array = pa.array([], item_type)
    if pieces:
        owner = np.concatenate(owners)
        np.cumsum(np.bincount(owner, minlength=rows), out=offsets[1:])
        # Waves are in item order, so a stable sort by record restores each list.
        values = pa.concat_arrays(pieces).take(pa.array(np.argsort(owner, kind="stable")))
    if pa.types.is_map(arrow):
        assert isinstance(values, pa.StructArray)
        return pa.MapArray.from_arrays(pa.array(offsets), values.field(0), values.field(1), type=arrow)  # type: ignore[call-overload,no-any-return]
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=arrow)
