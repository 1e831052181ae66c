"""Record positions of a log block: at which rows of the base file the keys of its records stand.

They stand in the block's header, or, in a block of Parquet, as notes in the metadata of the Parquet file, where Hudi
does not look: after an incremental query Hudi 1.2.0 drops rows of such a block by the filter of a query, takes the
positions of those that it dropped for those of the next ones, and returns old rows beside the new.

Base64 of a 64-bit Roaring bitmap in the portable form: the k-th set bit belongs to the k-th record of the block.

    u64 buckets | { u32 high half | 32-bit bitmap } ...                                            little-endian
    32-bit bitmap: cookie | { u16 key | u16 values - 1 } ... | { u32 offset } ... | containers
    container: up to 4096 values as u16 | 8192 bytes of bits | u16 runs, { u16 start | u16 length - 1 } ...

Source: spec, files and records 2.6; Roaring's format specification.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pyhudi.errors import CorruptFile
from pyhudi.formats.log.envelope import HeaderKey

__all__ = ["POSITION_NOTES", "decode_positions", "encode_positions"]

POSITION_NOTES = {
    HeaderKey.RECORD_POSITIONS: b"pyhudi.record_positions",
    HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: b"pyhudi.record_positions.base_instant",
}

_NO_RUNS, _WITH_RUNS = 12346, 12347
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4  # containers; with run containers fewer than these have no offsets
_MAX_POSITIONS = 1 << 31  # rows of a file; a forged run must not take the memory
_MAX_HIGH = (1 << 31) - 1  # positions are not negative
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

Positions = npt.NDArray[np.int64]


def encode_positions(positions: Positions) -> str:
    """The header's text for distinct positions in ascending order."""
    high = positions >> 32
    parts = [_U64.pack(len(np.unique(high)))]
    for bucket in np.unique(high).tolist():
        parts.append(_U32.pack(bucket) + _bitmap((positions[high == bucket] & 0xFFFFFFFF).astype(np.int64)))
    return base64.b64encode(b"".join(parts)).decode("ascii")


def decode_positions(text: str, where: str) -> Positions:
    """The positions in a header's text, ascending. Raises CorruptFile."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFile(f"{where}: the record positions are no Base64 ({error}).") from error
    reader = _Reader(data, where)
    (buckets,) = _U64.unpack(reader.take(8))
    found = []
    for _ in range(min(buckets, len(data))):
        (high,) = _U32.unpack(reader.take(4))
        if high > _MAX_HIGH:
            raise CorruptFile(f"{where}: a record position of {high} << 32.")
        found += [(high << 32) + (key << 16) + values for key, values in reader.containers()]
    if buckets > len(data) or reader.left:
        raise CorruptFile(f"{where}: {buckets} buckets of record positions in {len(data)} bytes.")
    positions = np.concatenate(found) if found else np.zeros(0, np.int64)
    if len(positions) > 1 and not (np.diff(positions) > 0).all():
        raise CorruptFile(f"{where}: the record positions do not ascend.")
    return positions


def _bitmap(values: Positions) -> bytes:
    keys = values >> 16
    containers = [(int(key), values[keys == key] & 0xFFFF) for key in np.unique(keys)]
    bodies = [_container(low) for _, low in containers]
    head = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers)
    runs = [is_run for is_run, _ in bodies]
    if any(runs):
        flags = np.packbits(np.array(runs, np.uint8), bitorder="little").tobytes()
        cookie = _U32.pack(_WITH_RUNS | (len(containers) - 1) << 16) + flags
        with_offsets = len(containers) >= _OFFSETS_FROM
    else:
        cookie, with_offsets = struct.pack("<II", _NO_RUNS, len(containers)), True
    offsets = b""
    if with_offsets:
        first = len(cookie) + len(head) + 4 * len(containers)
        ends = np.cumsum([0, *(len(body) for _, body in bodies)])[:-1] + first
        offsets = ends.astype("<u4").tobytes()
    return b"".join((cookie, head, offsets, *(body for _, body in bodies)))


def _container(low: Positions) -> tuple[bool, bytes]:
    """Whether it is a run container, and its bytes: the smallest of the three forms."""
    starts = np.flatnonzero(np.diff(low, prepend=-2) != 1)
    plain = 2 * len(low) if len(low) <= _ARRAY_MAX else _BITMAP_BYTES
    if 2 + 4 * len(starts) < plain:
        lengths = np.diff(starts, append=len(low)) - 1
        pairs = np.stack([low[starts], lengths], axis=1).astype("<u2")
        return True, struct.pack("<H", len(starts)) + pairs.tobytes()
    if len(low) <= _ARRAY_MAX:
        return False, low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[low] = 1
    return False, np.packbits(bits, bitorder="little").tobytes()


class _Reader:
    """Cuts a 64-bit bitmap; every length is checked against what is left."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data, self._where, self._at, self._count = data, where, 0, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, length: int) -> bytes:
        if not 0 <= length <= self.left:
            raise CorruptFile(f"{self._where}: record positions of {length} bytes, where {self.left} are left.")
        self._at += length
        return self._data[self._at - length : self._at]

    def containers(self) -> Iterator[tuple[int, Positions]]:
        """(key, low halves) of one 32-bit bitmap."""
        (cookie,) = _U32.unpack(self.take(4))
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = np.frombuffer(self.take((count + 7) // 8), np.uint8)
            runs = np.unpackbits(flags, count=count, bitorder="little").astype(bool).tolist()
        elif cookie == _NO_RUNS:
            (count,) = _U32.unpack(self.take(4))
            runs = []
        else:
            raise CorruptFile(f"{self._where}: the record positions begin with {cookie}, which no Roaring bitmap does.")
        head = np.frombuffer(self.take(4 * count), "<u2").reshape(-1, 2).astype(np.int64)
        if not runs or count >= _OFFSETS_FROM:
            self.take(4 * count)  # offsets: the containers follow each other
        for number, (key, size) in enumerate(head.tolist()):
            yield key, self._values(size + 1, bool(runs) and runs[number])

    def _values(self, size: int, is_run: bool) -> Positions:
        self._count += size
        if self._count > _MAX_POSITIONS:
            raise CorruptFile(f"{self._where}: more record positions than rows of a file.")
        if is_run:
            (runs,) = struct.unpack("<H", self.take(2))
            pairs = np.frombuffer(self.take(4 * runs), "<u2").reshape(-1, 2).astype(np.int64)
            if int((pairs[:, 1] + 1).sum()) != size:
                raise CorruptFile(f"{self._where}: runs of record positions that do not hold {size}.")
            ends = np.cumsum(pairs[:, 1] + 1)
            shifts = np.repeat(pairs[:, 0] - np.concatenate(([0], ends[:-1])), pairs[:, 1] + 1)
            return shifts + np.arange(size)
        if size <= _ARRAY_MAX:
            return np.frombuffer(self.take(2 * size), "<u2").astype(np.int64)
        bits = np.unpackbits(np.frombuffer(self.take(_BITMAP_BYTES), np.uint8), bitorder="little")
        values = np.flatnonzero(bits).astype(np.int64)
        if len(values) != size:
            raise CorruptFile(f"{self._where}: a bitmap of record positions that does not hold {size}.")
        return values
