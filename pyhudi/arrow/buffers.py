"""Numbers in the buffers of an Arrow array, without a copy: where strings end, bytes, decimals."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["buffer_numbers"]

Number = TypeVar("Number", bound=np.generic)


def buffer_numbers(
    buffer: pa.Buffer | None, number: type[Number], count: int = -1, offset_bytes: int = 0
) -> npt.NDArray[Number]:
    """`count` numbers from there on, -1: all; none where the array has no such buffer, or an empty one."""
    if buffer is None or not buffer.size:
        return np.zeros(0, number)
    # A Buffer has Python's buffer protocol, which types can't say before Python 3.12.
    return np.frombuffer(cast("memoryview", buffer), number, count, offset_bytes)
