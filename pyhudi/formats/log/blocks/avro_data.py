"""Log block AVRO_DATA: rows as Avro binaries under the schema in the block's header.

    content version i32 = 3 | record count i32 | { length i32 | Avro binary } ...        big-endian
Source: docs/formats/log.md, "Avro data block".
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.damage import located

__all__ = ["decode", "encode"]

CONTENT_VERSION = 3
SAME_LAYOUT_VERSIONS = (1, 2, 3)

_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


def decode(content: bytes, schema: str, columns: Collection[str] | None = None, where: str = "log block") -> pa.Table:
    """Decode the block's rows in order, meta columns included.

    Args:    schema: Avro JSON from the block's header; columns: the columns to decode, None for all.
    Raises:  CorruptFile, UnsupportedTable.
    """
    starts, ends = _record_bounds(content, where)
    with located(where):
        decoder = AvroDecoder(schema, columns)
    return decoder.decode(content, starts, ends, where)


def encode(batch: pa.RecordBatch, schema: str) -> bytes:
    """Encode the content of a block with these rows; `batch` has the columns of `schema`."""
    records = AvroEncoder(schema).encode(batch)
    lengths = pc.binary_length(records).to_numpy(zero_copy_only=False).astype(">i4")
    offsets = pa.py_buffer(np.arange(len(records) + 1, dtype=np.int32) * np.int32(_LENGTH.size))
    prefixes = pa.Array.from_buffers(pa.binary(), len(records), [None, offsets, pa.py_buffer(lengths)])
    framed = pc.binary_join_element_wise(prefixes, records, pa.scalar(b"", pa.binary()))
    data = framed.buffers()[2]
    # Joined directly, the buffer is copied once; it has Python's buffer protocol, which type stubs don't know.
    return b"".join((_HEAD.pack(CONTENT_VERSION, len(records)), cast("bytes", data) if data is not None else b""))


def _record_bounds(content: bytes, where: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if len(content) < _HEAD.size:
        raise CorruptFile(f"{where}: an Avro block of {len(content)} bytes has no record count.")
    version, count = _HEAD.unpack_from(content)
    if version not in SAME_LAYOUT_VERSIONS:
        raise UnsupportedTable(f"{where}: Avro block content version {version}; versions 1 to 3 are read.")
    if not 0 <= count <= (len(content) - _HEAD.size) // _LENGTH.size:
        raise CorruptFile(f"{where}: an Avro block of {len(content)} bytes can't hold {count} records.")
    heads: list[int] = []
    position, unpack, note = _HEAD.size, _LENGTH.unpack_from, heads.append
    try:
        # A loop over records: each length determines where the next one starts. The lengths are checked afterwards.
        for _ in range(count):
            note(position)
            position += 4 + unpack(content, position)[0]
    except struct.error as error:
        raise CorruptFile(f"{where}: the block ends before record {len(heads) - 1} of {count}.") from error
    starts = np.array([*heads, position], np.int64) + _LENGTH.size
    starts, ends = starts[:-1], starts[1:] - _LENGTH.size
    wrong = np.flatnonzero((ends < starts) | (ends > len(content)))
    if len(wrong):
        row = int(wrong[0])
        raise CorruptFile(f"{where}: record {row} of {ends[row] - starts[row]} bytes runs past its block.")
    return starts, ends
