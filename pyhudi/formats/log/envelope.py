"""The frame around every block of a log file, and the walk from block to block.

    magic "#HUDI#" | size i64 | format version i32 = 1 | block type i32 | header | content length i64 | content
    | footer (empty map) | trailing length i64 = size + 6          all integers big-endian; size counts what follows it

A block counts only when its trailing length agrees and it is followed by the end of the file or by the next magic;
otherwise everything up to the next magic is one corrupt range. Source: docs/formats/log.md, "Block frame", "Header",
"Corrupt blocks".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.log.blocks import BlockType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAGIC", "BlockFrame", "BlockType", "CorruptRange", "HeaderKey", "encode_block", "scan_frames"]

MAGIC = b"#HUDI#"
# A file whose name reached the disk before its content: cut off in its first bytes, or zeros from the first one on.
_LEFT_BY_POWER_CUT = frozenset({MAGIC[:n] for n in range(len(MAGIC))} | {bytes(n + 1) for n in range(len(MAGIC))})
FORMAT_VERSION = 1
SEARCH_WINDOW_BYTES = 1024 * 1024
MAX_BLOCK_BYTES = 2**31 - 1  # Hudi narrows the size to 32 bits

_SIZE = struct.Struct(">q")
_TYPE = struct.Struct(">ii")
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")
_MIN_SIZE = 4 + 4 + 4 + 8 + 4 + 8  # version, type, empty header, content length, empty footer, trailing length


class HeaderKey(IntEnum):
    """Ordinals of header entries."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class BlockFrame:
    """The position of one complete block. `content_offset` and `content_size` are bytes in the file."""

    block_type: BlockType
    header: Mapping[HeaderKey, str]
    offset: int
    content_offset: int
    content_size: int
    end: int

    @property
    def instant_time(self) -> str:
        return self.header.get(HeaderKey.INSTANT_TIME, "")


@dataclass(frozen=True, slots=True)
class CorruptRange:
    """Bytes `offset` to `end` that are not a complete block; never applied."""

    offset: int
    end: int
    reason: str


def encode_block(block_type: BlockType, header: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Encode the bytes of one block, magic to trailing length."""
    entries = [_INT.pack(len(header))]
    for key, text in header.items():
        value = text.encode()
        entries += [_PAIR.pack(key, len(value)), value]
    body = (_TYPE.pack(FORMAT_VERSION, block_type), *entries, _SIZE.pack(len(content)), content, _INT.pack(0))
    size = sum(map(len, body)) + _SIZE.size
    if size > MAX_BLOCK_BYTES:
        raise CorruptFile(f"A log block of {size} bytes can't be written; readers take at most {MAX_BLOCK_BYTES}.")
    return b"".join((MAGIC, _SIZE.pack(size), *body, _SIZE.pack(size + len(MAGIC))))


def scan_frames(source: pa.NativeFile, where: str) -> Iterator[BlockFrame | CorruptRange]:
    """Yield the blocks and corrupt ranges of a log file in their order; contents are not read.

    Args:    source: the file; where: its path.
    Raises:  CorruptFile when the file does not start with the magic or a complete block's header is damaged;
             UnsupportedTable for another format version, block type or header entry. A file whose beginning was lost in
             a power cut is one corrupt range.
    """
    window = _Window(source, where)
    size, position = source.size(), 0
    while position < size:
        head = window.read(position, len(MAGIC))
        if head in _LEFT_BY_POWER_CUT:
            yield CorruptRange(position, size, "a power cut left no beginning")
            return
        if head != MAGIC:
            raise CorruptFile(f"{where} at byte {position}: expected the log magic {MAGIC!r}; this is not a log file.")
        end, reason = _block_end(window, position, size)
        if end is None:
            end = window.find(MAGIC, position + len(MAGIC), size)
            yield CorruptRange(position, end, reason)
        else:
            yield _frame(window, position, end, f"{where} at byte {position}")
        position = end


class _Window:
    """The file with the last searched bytes in memory: bytes after a damaged range are not read again."""

    def __init__(self, source: pa.NativeFile, where: str) -> None:
        self._source, self._where = source, where
        self._start, self._held = 0, b""

    def read(self, offset: int, length: int) -> bytes:
        first = offset - self._start
        if first >= 0 and first + length <= len(self._held):
            return self._held[first : first + length]
        return self._fetch(offset, length)

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        data = self.read(offset, layout.size)
        if len(data) != layout.size:
            raise CorruptFile(f"{self._where} at byte {offset}: {layout.size} bytes expected, {len(data)} found.")
        return layout.unpack(data)

    def find(self, mark: bytes, position: int, size: int) -> int:
        """Find the position of the next `mark` from `position` on; `size`, the file's, when there is none."""
        while position < size:
            if not 0 <= position - self._start <= len(self._held) - len(mark):
                self._start, self._held = position, self._fetch(position, SEARCH_WINDOW_BYTES)
            offset = self._held.find(mark, position - self._start)
            if offset >= 0:
                return self._start + offset
            behind = self._start + len(self._held)
            # The magic may begin in this window and end in the next one.
            position = size if behind >= size else max(position + 1, behind - len(mark) + 1)
        return size

    def _fetch(self, offset: int, length: int) -> bytes:
        self._source.seek(offset)
        return bytes(self._source.read(length))


def _block_end(source: _Window, position: int, size: int) -> tuple[int | None, str]:
    start = position + len(MAGIC) + _SIZE.size
    if start > size:
        return None, "the file ends in the block's size"
    (length,) = source.unpack(_SIZE, start - _SIZE.size)
    end = start + length
    if not _MIN_SIZE <= length <= MAX_BLOCK_BYTES or end > size:
        return None, f"a size of {length} bytes, where {size - start} are left"
    (trailing,) = source.unpack(_SIZE, end - _SIZE.size)
    if trailing != length + len(MAGIC):
        return None, f"size {length} at the front contradicts {trailing} at the end"
    if end < size and source.read(end, len(MAGIC)) != MAGIC:
        return None, "neither another block nor the end of the file follows"
    return end, ""


def _frame(source: _Window, position: int, end: int, where: str) -> BlockFrame:
    cursor = position + len(MAGIC) + _SIZE.size
    version, type_number = source.unpack(_TYPE, cursor)
    if version != FORMAT_VERSION:
        raise UnsupportedTable(f"{where}: log format version {version}; this release reads version {FORMAT_VERSION}.")
    try:
        block_type = BlockType(type_number)
    except ValueError:
        raise UnsupportedTable(f"{where}: log block type {type_number} is not known to this release.") from None
    limit = end - _SIZE.size - _INT.size - _SIZE.size  # trailing length, an empty footer, content length
    header, cursor = _header(source, cursor + _TYPE.size, limit, where)
    (content_size,) = source.unpack(_SIZE, cursor)
    content_offset = cursor + _SIZE.size
    if not 0 <= content_size <= end - _SIZE.size - _INT.size - content_offset:
        raise CorruptFile(f"{where}: a content of {content_size} bytes does not fit into its block.")
    return BlockFrame(block_type, header, position, content_offset, content_size, end)


def _header(source: _Window, cursor: int, limit: int, where: str) -> tuple[dict[HeaderKey, str], int]:
    (count,) = source.unpack(_INT, cursor)
    cursor += _INT.size
    header: dict[HeaderKey, str] = {}
    if not 0 <= count <= len(HeaderKey):
        raise CorruptFile(f"{where}: a header of {count} entries; at most {len(HeaderKey)} are known.")
    for _ in range(count):
        if cursor + _PAIR.size > limit:
            raise CorruptFile(f"{where}: the header runs past its block.")
        number, length = source.unpack(_PAIR, cursor)
        cursor += _PAIR.size
        if not 0 <= length <= limit - cursor:
            raise CorruptFile(f"{where}: a header entry of {length} bytes does not fit into its block.")
        try:
            header[HeaderKey(number)] = source.read(cursor, length).decode()
        except UnicodeDecodeError as error:
            raise CorruptFile(f"{where}: a header entry is not UTF-8 ({error}).") from error
        except ValueError:
            raise UnsupportedTable(f"{where}: header entry {number} is not known to this release.") from None
        cursor += length
    return header, cursor
