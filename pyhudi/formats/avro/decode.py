"""Many Avro binaries of one schema → one Arrow batch, column by column.

One position is kept per record; each field is read for all records at once, nulls by reading only the positions that
have a value, arrays and maps in waves (the k-th item of every record). At the end each position must be at the end
of its record, which checks the whole walk. Chunks of 16 Ki records stay in the processor's cache.

Source: Avro specification 1.11, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.formats.avro.reading import arrow_from_avro, nullable_branch
from pyhudi.formats.avro.varint import Buffer, Positions, decode_varints
from pyhudi.formats.bodies import AvroObject, AvroType
from pyhudi.formats.damage import as_corrupt

__all__ = ["AvroDecoder"]

CHUNK_RECORDS = 16 * 1024
_MOST_PIECES = 1024  # arrays of one item of each record that are kept apart: each takes more than its values

Mask = npt.NDArray[np.bool_]
# Reads one field: (buffer, positions, limits, build) → (array or None when not built, positions behind).
_Repeated: TypeAlias = pa.ListType | pa.MapType
Reader = Callable[["_Walk", Positions, Positions, bool], tuple[pa.Array | None, Positions]]


@dataclass(frozen=True, slots=True)
class _Walk:
    buffer: Buffer
    where: str

    def check(self, positions: Positions, limits: Positions) -> Positions:
        if (positions > limits).any():
            raise CorruptFile(f"{self.where}: an Avro record ends in the middle of a field.")
        return positions

    def varints(self, positions: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
        self.check(positions + 1, limits)
        values, behind = decode_varints(self.buffer, positions, self.where)
        return values, self.check(behind, limits)


class AvroDecoder:
    """Decodes records written under one Avro record schema.

    Args:    schema: the writer's schema as JSON; columns: top-level fields to build, None for all. The other fields
             are walked over, which every Avro reader must, but not built; unions: as for `arrow_from_avro`.
    """

    def __init__(self, schema: str, columns: Collection[str] | None = None, *, unions: bool = False) -> None:
        full = arrow_from_avro(schema, unions=unions)
        kept = [field for field in full if columns is None or field.name in columns]
        self.schema = pa.schema(kept)
        fields = checked_schema(schema).record["fields"]
        self._fields = [
            (field["name"], _reader(field["type"], full.field(index).type)) for index, field in enumerate(fields)
        ]

    def decode(
        self, content: bytes | memoryview, starts: Positions, ends: Positions, where: str = "Avro records"
    ) -> pa.Table:
        """The records that lie in `content[starts[i]:ends[i]]`, in their order.

        Args:    starts, ends: int64, one per record; where: for messages.
        Raises:  CorruptFile when the bytes are not records of the schema.
        """
        if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > len(content) or (starts > ends).any()):
            raise CorruptFile(f"{where}: an Avro record lies outside its block.")
        walk = _Walk(Buffer(content), where)
        with as_corrupt(where, "Avro records"):
            batches = [
                self._decode_chunk(walk, starts[first : first + CHUNK_RECORDS], ends[first : first + CHUNK_RECORDS])
                for first in range(0, len(starts), CHUNK_RECORDS)
            ]
            return pa.Table.from_batches(batches, schema=self.schema)

    def _decode_chunk(self, walk: _Walk, starts: Positions, ends: Positions) -> pa.RecordBatch:
        positions = starts
        arrays: list[pa.Array] = []
        for name, read in self._fields:
            wanted = name in self.schema.names
            array, positions = read(walk, positions, ends, wanted)
            if array is not None:
                arrays.append(array)
        if not np.array_equal(positions, ends):
            raise CorruptFile(f"{walk.where}: Avro records are longer than their schema says.")
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(starts), pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _reader(avro: AvroType, arrow: pa.DataType) -> Reader:
    if isinstance(avro, list):
        branch, nullable = nullable_branch(avro)
        if branch is None:
            return _union(avro, arrow)
        if not nullable:
            return _sole_branch(_reader(branch, arrow))
        return _nullable(_reader(branch, arrow), avro.index("null"), arrow)
    parts: AvroObject = {"type": avro} if isinstance(avro, str) else avro
    kind = parts["type"]
    if isinstance(kind, (list, dict)):
        return _reader(kind, arrow)
    if kind in ("record", "error"):
        assert pa.types.is_struct(arrow)
        return _record([_reader(f["type"], arrow.field(i).type) for i, f in enumerate(parts["fields"])], arrow)
    if kind == "array":
        assert pa.types.is_list(arrow)
        return _repeated(_reader(parts["items"], arrow.value_type), arrow)
    if kind == "map":
        assert pa.types.is_map(arrow)
        value = _reader(parts["values"], arrow.item_type)
        entry = pa.struct([arrow.key_field, arrow.item_field])
        return _repeated(_record([_variable(pa.string()), value], entry), arrow)
    if kind == "fixed":
        return _fixed(int(parts["size"]), arrow)
    if kind == "enum":
        return _enum(tuple(parts["symbols"]))
    return _simple(kind, arrow)


def _simple(kind: str, arrow: pa.DataType) -> Reader:
    if kind in ("int", "long"):
        return _integer(arrow, 32 if kind == "int" else 64)
    if kind in ("string", "bytes"):
        return _variable(arrow)
    if kind == "float":
        return _number(np.dtype("<f4"), arrow)
    if kind == "double":
        return _number(np.dtype("<f8"), arrow)
    if kind == "boolean":
        return _boolean
    return lambda walk, at, limits, build: (pa.nulls(len(at)) if build else None, at)


def _integer(arrow: pa.DataType, bits: int) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
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


def _number(dtype: np.dtype[np.floating], arrow: pa.DataType) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
        behind = walk.check(at + dtype.itemsize, limits)
        if not build:
            return None, behind
        raw = walk.buffer.words[at].astype("<u8")
        values = raw.view("<f8") if dtype.itemsize == 8 else (raw & np.uint64(0xFFFFFFFF)).astype("<u4").view("<f4")
        return _typed(pa.array(values), arrow), behind

    return read


def _boolean(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
    behind = walk.check(at + 1, limits)
    return (pa.array(walk.buffer.data[at] != 0) if build else None), behind


def _variable(arrow: pa.DataType) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
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
    """Binary views into the buffer: {length, 12 bytes} when short, else {length, prefix, buffer, offset}."""
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


def _fixed(size: int, arrow: pa.DataType) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
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
    """Decimals from big-endian two's complement rows of one width."""
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
    """Decimals from byte strings of any width: padded on the left with their sign, one width at a time."""
    lengths = pc.binary_length(binary).to_numpy(zero_copy_only=False)
    out = np.zeros((len(binary), 16), dtype=np.uint8)
    for size in np.unique(lengths):
        rows = np.flatnonzero(lengths == size)
        content = b"".join(cast("list[bytes]", binary.take(pa.array(rows)).to_pylist()))
        matrix = np.frombuffer(content, np.uint8).reshape(len(rows), size)
        decimals = _decimals(matrix, arrow, where)
        out[rows] = buffer_numbers(decimals.buffers()[1], np.uint8)[: 16 * len(rows)].reshape(-1, 16)
    return pa.Array.from_buffers(arrow, len(binary), [None, pa.py_buffer(out)])


def _enum(symbols: tuple[str, ...]) -> Reader:
    words = pa.array(symbols, pa.string())

    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
        values, behind = walk.varints(at, limits)
        if (values < 0).any() or (values >= len(symbols)).any():
            raise CorruptFile(f"{walk.where}: an Avro enum beyond its {len(symbols)} symbols.")
        return (words.take(pa.array(values)) if build else None), behind

    return read


def _sole_branch(inner: Reader) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
        branches, behind = walk.varints(at, limits)
        if branches.any():
            raise CorruptFile(f"{walk.where}: an Avro union has no branch {int(branches.max())}.")
        return inner(walk, behind, limits, build)

    return read


def _nullable(inner: Reader, null_branch: int, arrow: pa.DataType) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
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


def _union(avro: list[AvroType], arrow: pa.DataType) -> Reader:
    """A union of several types as a struct of them; at most one member of a row is not null, none for null."""
    assert pa.types.is_struct(arrow)
    members = [number for number, branch in enumerate(avro) if branch != "null"]
    inner = {branch: _reader(avro[branch], arrow.field(number).type) for number, branch in enumerate(members)}

    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
        branches, behind = walk.varints(at, limits)
        if ((branches < 0) | (branches >= len(avro))).any():
            raise CorruptFile(f"{walk.where}: an Avro union of {len(avro)} has no branch {int(branches.max())}.")
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


def _record(inner: list[Reader], arrow: pa.StructType) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
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


def _repeated(item: Reader, arrow: _Repeated) -> Reader:
    def read(walk: _Walk, at: Positions, limits: Positions, build: bool) -> tuple[pa.Array | None, Positions]:
        at = at.copy()
        pieces: list[pa.Array] = []
        owners: list[npt.NDArray[np.int64]] = []
        joined: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        open_rows = np.arange(len(at))
        left = limits - at
        while len(open_rows):
            counts, at[open_rows] = _block_counts(walk, at[open_rows], limits[open_rows])
            # An item takes a byte at least, so more items are forged; this also bounds the waves.
            left[open_rows] -= counts
            if (left < 0).any():
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


def _block_counts(walk: _Walk, at: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
    """Item counts of the next blocks; a negative count is followed by the block's size in bytes."""
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
