"""Blocks of an HFile: a header of 33 bytes, a body (compressed), a checksum of 4 bytes per 16 KiB.

    magic 8 | size on disk without header i32 | size of the body before compression i32 | previous block of the kind i64
    | kind of checksum u8 | bytes per checksum i32 | size on disk with header, without checksums i32     big-endian

Source: docs/formats/hfile.md, "Blocks".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol, cast

try:
    from isal import isal_zlib as deflate

    LEVEL = 2  # smaller than zlib's third level, in a quarter of the time (docs/dependencies.md)
except ImportError:  # no wheel for this platform: the same interface, slower
    import zlib as deflate  # type: ignore[no-redef]

    LEVEL = 1

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.damage import check_inflated

__all__ = [
    "BLOCK_HEADER_BYTES",
    "CODECS",
    "DATA",
    "FILE_INFO",
    "INDEX",
    "INTERMEDIATE",
    "LEAF",
    "META",
    "Block",
    "Seekable",
    "behind_block",
    "block_bytes",
    "encode_block",
    "gzipped",
    "read_block",
]

DATA, LEAF, INTERMEDIATE = b"DATABLK*", b"IDXLEAF2", b"IDXINTE2"
INDEX, META, FILE_INFO = b"IDXROOT2", b"METABLKc", b"FILEINF2"
CODECS = {"gz": 1, "none": 2}

_HEADER = struct.Struct(">8siiqBii")
BLOCK_HEADER_BYTES = _HEADER.size
_GZIP = 31  # zlib's window bits for a gzip member
_BYTES_PER_CHECKSUM = 16384
_NO_CHECKSUM, _CRC32 = 0, 1
MAX_BODY_BYTES = 1 << 30  # a forged size must not exhaust the memory; Hudi's blocks have 1 MiB plus one value
_FREE_BODY_BYTES = 64 << 20  # bodies up to here may consist of zeros, for a single large value
_MAX_BODY_RATIO = 100  # of larger ones: far above that of distinct keys


class Seekable(Protocol):
    """A file, or a part of one."""

    def seek(self, position: int, /) -> object: ...

    def read(self, length: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `next_offset`: where the next one begins."""

    magic: bytes
    body: bytes
    offset: int
    next_offset: int


def read_block(
    source: Seekable, offset: int, limit: int, codec: int, where: str, *, expected: bytes | None = None
) -> Block:
    """Read the block at an offset of the file; it must end before `limit`.

    Args:    source: seekable, with `read`; codec: its number in the trailer; expected: the required magic.
    Raises:  CorruptFile, UnsupportedTable for another codec.
    """
    where = f"{where} at byte {offset}"
    if not 0 <= offset <= limit - _HEADER.size:
        raise CorruptFile(f"{where}: no block of an HFile can begin here; its blocks end at {limit}.")
    header = _read(source, offset, _HEADER.size, where)
    magic, size, body_size, _, kind, chunk, data_size = _HEADER.unpack(header)
    if expected is not None and magic != expected:
        raise CorruptFile(f"{where}: expected an HFile block {expected!r}, found {magic!r}.")
    end = offset + _HEADER.size + size
    if not (size >= 0 and end <= limit and _HEADER.size <= data_size <= _HEADER.size + size):
        raise CorruptFile(f"{where}: a block of {size} bytes ({data_size} with header) does not fit before {limit}.")
    if not 0 <= body_size <= MAX_BODY_BYTES:
        raise CorruptFile(f"{where}: a block of {body_size} bytes; at most {MAX_BODY_BYTES} are read.")
    check_inflated(body_size, size, where, free_bytes=_FREE_BODY_BYTES, ratio=_MAX_BODY_RATIO)
    stored = _read(source, offset + _HEADER.size, size, where)
    packed, checksums = stored[: data_size - _HEADER.size], stored[data_size - _HEADER.size :]
    if kind == _CRC32 and chunk > 0:
        _check(header + packed, checksums, chunk, where)
    return Block(magic, _unpacked(packed, body_size, codec, where), offset, end)


def block_bytes(header: bytes) -> int:
    """Return the number of bytes of the block according to its header, unchecked."""
    return _HEADER.size + int(_HEADER.unpack(header)[1])


def encode_block(magic: bytes, body: bytes, previous: int, codec: int) -> bytes:
    """Encode the bytes of a block. `previous`: offset of the last block of this kind, -1 for none."""
    packed = _packed(body, codec)
    data_size = _HEADER.size + len(packed)
    checksums = bytes(4 * -(-data_size // _BYTES_PER_CHECKSUM))  # the format requires their space, not their values
    size = len(packed) + len(checksums)
    header = _HEADER.pack(magic, size, len(body), previous, _NO_CHECKSUM, _BYTES_PER_CHECKSUM, data_size)
    return header + packed + checksums


def behind_block(stored: bytes, previous: int) -> bytes:
    """Return a stored block with another previous block. Its checksums, which cover the header, become invalid."""
    magic, size, body_size, _, _, chunk, data_size = _HEADER.unpack_from(stored)
    return _HEADER.pack(magic, size, body_size, previous, _NO_CHECKSUM, chunk, data_size) + stored[_HEADER.size :]


def gzipped(data: bytes) -> bytes:
    """Return a gzip member, without a time."""
    compressor = deflate.compressobj(LEVEL, deflate.DEFLATED, _GZIP)
    return bytes(compressor.compress(data) + compressor.flush())


def _packed(body: bytes, codec: int) -> bytes:
    if codec == CODECS["none"]:
        return body
    return gzipped(body)


def _unpacked(packed: bytes, size: int, codec: int, where: str) -> bytes:
    if codec == CODECS["none"]:
        return packed
    if codec != CODECS["gz"]:
        raise UnsupportedTable(
            f"{where}: an HFile with the codec {codec}; Hudi writes and reads 1 (gzip) and 2 (none)."
        )
    inflate = deflate.decompressobj(_GZIP)
    try:
        body = inflate.decompress(packed, size + 1)
    except cast("type[Exception]", deflate.error) as error:  # a class, though its type stubs say an instance
        raise CorruptFile(f"{where}: the block can't be decompressed ({error}).") from error
    if len(body) != size or not inflate.eof:
        raise CorruptFile(f"{where}: a block of {size} bytes says its header; decompressed it has another size.")
    return body


def _check(data: bytes, checksums: bytes, chunk: int, where: str) -> None:
    for number, start in enumerate(range(0, len(data), chunk)):
        stored = checksums[4 * number : 4 * number + 4]
        if len(stored) < 4 or deflate.crc32(data[start : start + chunk]) != int.from_bytes(stored, "big"):
            raise CorruptFile(f"{where}: the checksum of the block is wrong.")


def _read(source: Seekable, offset: int, length: int, where: str) -> bytes:
    source.seek(offset)
    data = bytes(source.read(length))
    if len(data) != length:
        raise CorruptFile(f"{where}: {length} bytes expected, {len(data)} found.")
    return data
