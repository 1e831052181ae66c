"""Space-filling curves: one number for the values of several columns, so that similar rows become neighbours.

    column → uint64 in the column's order → coordinates of `bits` bits → Z-order or Hilbert index

Coordinates are made from the values (DIRECT: the column's range is stretched to all bits), or from ranks in a sample
(SAMPLE: each coordinate has equally many rows for any distribution). Only numpy is used.
Source: Hudi's documented layout options; G. M. Morton 1966; J. Skilling, "Programming the Hilbert curve", 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError

__all__ = ["bits_of", "coordinates", "hilbert_index", "ordered_values", "z_index"]

Numbers = npt.NDArray[np.uint64]

_WORD = 64
_BITS_MAX = 16  # 2^16 steps along a column are finer than row groups can distinguish
_CHUNK_ROWS = 1 << 16  # so that the many passes over a chunk stay in the processor's cache
_SIGN = np.uint64(1 << 63)
_TEXT_BYTES = 8


# ---- values to numbers -----------------------------------------------------------------------------------------------


def ordered_values(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """Numbers in the order of the column's values; nulls sort first. Text sorts by its first eight bytes.

    Raises ConfigError for types without an order.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # no chunk, or more than one array can hold
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        coded = cast("pa.DictionaryArray", column)
        numbers = ordered_values(coded.dictionary)
        codes = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
        values = numbers[codes] if len(numbers) else np.zeros(len(column), np.uint64)
    else:
        values = _numbers(column, kind)
    if column.null_count:
        values = values.copy()
        values[pc.is_null(column).to_numpy(zero_copy_only=False)] = 0
    return values


def _numbers(column: pa.Array, kind: pa.DataType) -> Numbers:
    types = pa.types
    if types.is_unsigned_integer(kind):
        return _filled(column.cast(pa.uint64())).astype(np.uint64, copy=False)
    if types.is_floating(kind) or types.is_decimal(kind):
        return _of_doubles(_filled(column.cast(pa.float64(), safe=False)))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return _of_text(column.cast(pa.large_binary()))
    if types.is_boolean(kind) or types.is_signed_integer(kind):
        return _of_longs(_filled(column.cast(pa.int64())))
    if types.is_date32(kind) or types.is_time32(kind):
        return _of_longs(_filled(column.cast(pa.int32()).cast(pa.int64())))
    if types.is_temporal(kind):
        return _of_longs(_filled(column.cast(pa.int64())))
    raise ConfigError(f"Rows can't be laid out by a column of type {kind}; choose columns of numbers, text or times.")


def _filled(column: pa.Array) -> npt.NDArray[np.generic]:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))


def _of_longs(values: npt.NDArray[np.generic]) -> Numbers:
    bits: Numbers = values.astype(np.int64, copy=False).view(np.uint64)
    return bits ^ _SIGN


def _of_doubles(values: npt.NDArray[np.generic]) -> Numbers:
    doubles = values.astype(np.float64)
    doubles[np.isnan(doubles)] = np.inf
    bits: Numbers = doubles.view(np.uint64)
    ordered: Numbers = np.where(bits & _SIGN != 0, ~bits, bits | _SIGN)
    return ordered


def _of_text(column: pa.Array) -> Numbers:
    """The first eight bytes of each value, big endian; short values are padded with zeros."""
    count = len(column)
    if count == 0:
        return np.zeros(0, np.uint64)
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(cast("memoryview", offsets_buffer), np.int64)[column.offset : column.offset + count + 1]
    data = np.zeros(0, np.uint8)
    if data_buffer is not None:
        data = np.frombuffer(cast("memoryview", data_buffer), np.uint8)
    values = np.zeros(count, np.uint64)
    if not len(data):
        return values
    for at in range(_TEXT_BYTES):
        places = offsets[:-1] + at
        has_byte = places < offsets[1:]
        byte = np.where(has_byte, data[np.minimum(places, len(data) - 1)], 0).astype(np.uint64)
        values = values << np.uint64(8) | byte
    return values


# ---- numbers to coordinates ------------------------------------------------------------------------------------------


def bits_of(columns: int) -> int:
    """The bits per column for a number of columns. Raises ConfigError for more columns than a word has bits."""
    if not 1 <= columns <= _WORD:
        raise ConfigError(f"A space-filling curve takes 1 to {_WORD} columns, found {columns}.")
    return min(_BITS_MAX, _WORD // columns)


def coordinates(values: Numbers, bits: int, sample: Numbers | None = None) -> Numbers:
    """Numbers below 2^bits in the order of `values`; by rank in `sample` if it is given."""
    if not len(values):
        return values
    if sample is None:
        least = values.min()
        span = int(values.max() - least).bit_length()
        offsets = values - least
        stretched: Numbers = offsets >> np.uint64(span - bits) if span > bits else offsets << np.uint64(bits - span)
        return stretched
    ranks = np.searchsorted(np.sort(sample), values, side="right").astype(np.uint64)
    # At most len(sample) steps; 2^bits of them fit into a word because bits is at most 16.
    even: Numbers = (ranks << np.uint64(bits)) // np.uint64(len(sample) + 1)
    return np.minimum(even, np.uint64((1 << bits) - 1))


# ---- coordinates to positions on a curve -----------------------------------------------------------------------------


def z_index(columns: Sequence[Numbers], bits: int) -> Numbers:
    """The interleaved bits of the coordinates, starting with the first column's."""
    count = len(columns)
    spread = _spread_table(count)
    index = np.zeros(len(columns[0]), np.uint64)
    for number, column in enumerate(columns):
        for byte in range(-(-bits // 8)):
            part = spread[(column >> np.uint64(8 * byte)) & np.uint64(0xFF)]
            index |= part << np.uint64(8 * byte * count + count - 1 - number)
    return index


def _spread_table(stride: int) -> Numbers:
    """A table that spreads a byte's bits `stride` places apart, as far as they fit."""
    table = np.zeros(256, np.uint64)
    values = np.arange(256, dtype=np.uint64)
    for bit in range(8):
        if bit * stride < _WORD:
            table |= ((values >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * stride)
    return table


def hilbert_index(columns: Sequence[Numbers], bits: int) -> Numbers:
    """Positions on the Hilbert curve through the coordinates: neighbours on it differ in one column, by one."""
    rows = len(columns[0])
    index = np.empty(rows, np.uint64)
    for first in range(0, rows, _CHUNK_ROWS):
        part = slice(first, min(first + _CHUNK_ROWS, rows))
        index[part] = z_index(_transposed([column[part].copy() for column in columns], bits), bits)
    return index


def _transposed(axes: list[Numbers], bits: int) -> list[Numbers]:
    """Skilling's transformation of coordinates, in place; its interleaved bits are the index."""
    if len(axes) == 1:
        return axes
    one = np.uint64(1)
    first = axes[0]
    for bit in range(bits - 1, 0, -1):  # undo the excess work of the curve's turns, from the coarsest step on
        q = np.uint64(1 << bit)
        below = q - one
        for axis in axes:
            turned = axis & q != 0
            exchanged = np.where(turned, np.uint64(0), (first ^ axis) & below)
            first ^= np.where(turned, below, exchanged)
            if axis is not first:
                axis ^= exchanged
    for number in range(1, len(axes)):  # Gray code
        axes[number] ^= axes[number - 1]
    turns = np.zeros(len(first), np.uint64)
    for bit in range(bits - 1, 0, -1):
        q = np.uint64(1 << bit)
        turns ^= np.where(axes[-1] & q != 0, q - one, np.uint64(0))
    for axis in axes:
        axis ^= turns
    return axes
