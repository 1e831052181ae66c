"""Writing an HFile that every release of Hudi reads: full keys of HBase, one level of index.

Source: docs/formats/hfile.md, "Two writers".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Protocol

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.hfile.block import CODECS, DATA, FILE_INFO, INDEX, META, encode_block
from pyhudi.formats.hfile.entries import MAX_KEY_BYTES, encode_entry, full_key
from pyhudi.formats.hfile.index import IndexEntry, encode_root_index
from pyhudi.formats.hfile.trailer import Trailer, encode_file_info

__all__ = ["HFileWriter"]

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_KEY_OVERHEAD = 12


class Sink(Protocol):
    """What an HFile is written to."""

    def write(self, data: bytes, /) -> object: ...


class HFileWriter:
    """One HFile being written.

    Args: sink: with `write`; info: entries of the file info in addition to those that every file has, such as `schema`;
          codec: "gz" or "none"; block_bytes: a data block is closed before an entry would take it past this;
          created_ms: when the file was made.
    """

    def __init__(
        self, sink: Sink, *, info: Mapping[str, bytes] | None = None, codec: str = "gz", block_bytes: int = 1 << 20,
        created_ms: int = 0,
    ) -> None:  # fmt: skip
        self._sink, self._info, self._codec = sink, dict(info or {}), CODECS[codec]
        self._block_bytes, self._created_ms = block_bytes, created_ms
        self._position = self._count = self._key_bytes = self._value_bytes = self._body_bytes = 0
        self._last: bytes | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._first_waiting = b""
        self._index: list[IndexEntry] = []
        self._meta: dict[str, bytes] = {}

    def append(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Add (key, value) in ascending order of the keys' bytes. Raises SchemaMismatch for another order."""
        for key, value in entries:
            if self._last is not None and key <= self._last:
                raise SchemaMismatch(f"The keys of an HFile ascend; {key!r} came after {self._last!r}.")
            if len(key) > MAX_KEY_BYTES:
                raise SchemaMismatch(f"A key of {len(key)} bytes; an HFile takes {MAX_KEY_BYTES}.")
            entry = encode_entry(key, value)
            if self._waiting and self._waiting_bytes + len(entry) > self._block_bytes:
                self._flush()
            if not self._waiting:
                self._first_waiting = key
            self._waiting.append(entry)
            self._waiting_bytes += len(entry)
            self._last = key
            self._count += 1
            self._key_bytes += len(key) + _KEY_OVERHEAD
            self._value_bytes += len(value)

    def put_meta(self, name: str, body: bytes) -> None:
        """Keep bytes under a name."""
        self._meta[name] = body

    def close(self) -> int:
        """Write what is left; the file's size in bytes. The sink stays open."""
        if self._waiting:
            self._flush()
        meta_index = [self._meta_block(name, self._meta[name]) for name in sorted(self._meta)]
        load_on_open = self._position
        root = encode_root_index(self._index)
        self._write(encode_block(INDEX, root, -1, self._codec))
        self._write(encode_block(INDEX, encode_root_index(meta_index), -1, self._codec))
        file_info_offset = self._position
        self._write(encode_block(FILE_INFO, encode_file_info(self._file_info()), -1, self._codec))
        offsets = [entry.offset for entry in self._index] or [-1]
        trailer = Trailer(
            file_info_offset=file_info_offset,
            load_on_open_offset=load_on_open,
            data_index_bytes=len(root),
            total_bytes=self._body_bytes,
            data_index_count=len(self._index),
            meta_index_count=len(meta_index),
            entry_count=self._count,
            levels=1,
            first_data_offset=offsets[0],
            last_data_offset=offsets[-1],
            codec=self._codec,
        )
        self._write(trailer.encode())
        return self._position

    def _flush(self) -> None:
        body = b"".join(self._waiting)
        previous = self._index[-1].offset if self._index else -1
        block = encode_block(DATA, body, previous, self._codec)
        self._index.append(IndexEntry(full_key(self._first_waiting), self._position, len(block)))
        self._write(block)
        self._body_bytes += len(body)
        self._waiting, self._waiting_bytes = [], 0

    def _meta_block(self, name: str, body: bytes) -> IndexEntry:
        block = encode_block(META, body, -1, self._codec)
        entry = IndexEntry(name.encode(), self._position, len(block))
        self._write(block)
        return entry

    def _file_info(self) -> dict[str, bytes]:
        entries = max(1, self._count)
        info = {
            "hfile.AVG_KEY_LEN": _INT.pack(self._key_bytes // entries),
            "hfile.AVG_VALUE_LEN": _INT.pack(self._value_bytes // entries),
            "hfile.CREATE_TIME_TS": _LONG.pack(self._created_ms),
            "KEY_VALUE_VERSION": _INT.pack(1),
            "MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
            **self._info,
        }
        if self._last is not None:
            info["hfile.LASTKEY"] = full_key(self._last)
        return info

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._position += len(data)
