"""File ids in a record index: a UUID as two numbers and the count behind it, or the file id as it is.

Source: docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["file_ids", "partition_paths"]

_RAW = 1  # encoding of file ids that are no UUIDs
_DASHES = (8, 13, 18, 23)
_UUID_CHARS = 36
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def partition_paths(places: pa.Array) -> pa.Array:
    """Partition path of each place ("" in a table without partitions)."""
    return pc.struct_field(places, "partitionName")


def file_ids(places: pa.Array) -> pa.Array:
    """File id of each place (`recordIndexMetadata`), as in names of files."""
    raw = pc.struct_field(places, "fileId")
    is_raw = pc.equal(pc.struct_field(places, "fileIdEncoding"), _RAW)
    index = pc.struct_field(places, "fileIndex")
    uuids = _uuids(_numbers(places, "fileIdHighBits"), _numbers(places, "fileIdLowBits"))
    numbered = pc.binary_join_element_wise(uuids, index.cast(pa.string()), "-")
    return pc.if_else(is_raw, raw, pc.if_else(pc.equal(index, -1), uuids, numbered))


def _numbers(places: pa.Array, name: str) -> npt.NDArray[np.int64]:
    return pc.fill_null(pc.struct_field(places, name), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _uuids(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> pa.Array:
    raw = np.column_stack([high, low]).astype(">i8").view(np.uint8).reshape(-1, 16)
    digits = np.empty((len(raw), 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    chars = np.full((len(raw), _UUID_CHARS), ord("-"), np.uint8)
    chars[:, [at for at in range(_UUID_CHARS) if at not in _DASHES]] = digits
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * np.int32(_UUID_CHARS)
    content = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(chars))]
    return pa.Array.from_buffers(pa.string(), len(raw), content)
