"""Buffers of Arrow arrays as numbers, without a copy, and the order of binary values by their bytes.

The numbers are offsets of strings, bytes or decimals.

Most keys differ in the first bytes after their common prefix. `order_of_bytes` sorts these bytes as whole numbers,
which is several times as fast as comparing texts.
"""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["buffer_numbers", "is_ascending", "order_of_bytes"]


Number = TypeVar("Number", bound=np.generic)


def buffer_numbers(
    buffer: pa.Buffer | None, number: type[Number], count: int = -1, offset_bytes: int = 0
) -> npt.NDArray[Number]:
    """Return `count` numbers from `offset_bytes` on (-1: all of them); none if the buffer is absent or empty."""
    if buffer is None or not buffer.size:
        return np.zeros(0, number)
    # A Buffer has Python's buffer protocol, which types can't express before Python 3.12.
    return np.frombuffer(cast("memoryview", buffer), number, count, offset_bytes)


_FEW = 4096  # values compared at once
_HEAD = 8  # bytes of a whole number


def is_ascending(values: pa.Array) -> bool:
    """True if each of the binary values is less than the next one."""
    return len(values) < 2 or bool(pc.all(pc.less(values.slice(0, len(values) - 1), values.slice(1))).as_py())


def order_of_bytes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the row numbers of binary values (without nulls) in ascending order of their bytes; a stable sort."""
    if len(values) <= _FEW:
        return _sort_by_comparison(values)
    heads = _heads(values)
    order = np.argsort(heads)
    ascending = heads[order]
    is_same = ascending[1:] == ascending[:-1]
    tied = np.append(is_same, False) | np.append(False, is_same)
    rows = np.sort(order[tied])
    if len(rows) > len(values) // 2:
        return _sort_by_comparison(values)
    # Rows of all tied heads are compared at once: values with different heads already have the order of their heads.
    order[tied] = rows[_sort_by_comparison(values.take(pa.array(rows)))]
    return order


def _sort_by_comparison(values: pa.Array) -> npt.NDArray[np.int64]:
    return pc.sort_indices(values).to_numpy().astype(np.int64)


def _heads(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the bytes after the common prefix of all values, as whole numbers; missing bytes count as 0."""
    least, greatest = pc.min(values).as_py(), pc.max(values).as_py()
    both = zip(least, greatest, strict=False)
    same = next((at for at, (one, other) in enumerate(both) if one != other), len(least))
    _, offsets, content = values.buffers()
    places = buffer_numbers(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    data = np.append(buffer_numbers(content, np.uint8)[: places[-1]], np.zeros(same + _HEAD, np.uint8))
    starts = places[:-1] + same
    heads = np.lib.stride_tricks.sliding_window_view(data, _HEAD)[starts].view(">u8")[:, 0].astype(np.uint64)
    missing = np.clip(_HEAD - (places[1:] - starts), 0, _HEAD)
    if missing.any():
        bits = (missing * 8).astype(np.uint64)
        heads = np.where(missing == _HEAD, np.uint64(0), heads >> np.minimum(bits, 63) << np.minimum(bits, 63))
    return heads
