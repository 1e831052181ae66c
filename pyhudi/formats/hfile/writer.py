"""Writing an HFile that every release of Hudi reads: full keys of HBase, one level of index.

Source: docs/formats/hfile.md, "Two writers".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.bloom import BloomFilter
from pyhudi.formats.hfile.block import CODECS, DATA, FILE_INFO, INDEX, META, behind_block, encode_block
from pyhudi.formats.hfile.entries import (
    ENTRY_OVERHEAD,
    MAX_KEY_BYTES,
    decode_entries,
    encode_entries,
    first_key,
    full_key,
    value_lengths,
)
from pyhudi.formats.hfile.index import IndexEntry, encode_root_index
from pyhudi.formats.hfile.keys import Places
from pyhudi.formats.hfile.trailer import (
    BLOOM_FILTER,
    BLOOM_FILTER_TYPE,
    GREATEST_KEY,
    LEAST_KEY,
    Trailer,
    encode_file_info,
)

__all__ = ["KEY_OVERHEAD", "HFileWriter", "Sink"]

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
KEY_OVERHEAD = 12  # HBase's bytes in the length of a key
_RUN_ENTRIES, _RUN_BYTES = 4096, 4 << 20  # pairs turned into columns, and entries encoded, at once
# A look-up of a key reads a block, and an open file has the positions of all blocks in memory. So blocks are small in
# the first tens of MB, and then grow so that their number increases logarithmically. Hudi's have 1 MiB.
_LEAST_BLOCK_BYTES, _LARGEST_BLOCK_BYTES = 32 << 10, 1 << 20
_BLOCKS_BITS = 10  # a block has at least as many bytes as all earlier blocks have KiB


class Sink(Protocol):
    """The target of an HFile."""

    def write(self, data: bytes, /) -> object: ...


class HFileWriter:
    """One HFile being written.

    Args: sink: with `write`; info: entries of the file info in addition to the standard ones, such as `schema`;
          codec: "gz" or "none"; block_bytes: a data block is closed before an entry would take it past this, None: past
          32 KiB, and more in the later parts of a large file;
          created_ms: when the file was made; bloom_filter: for a base file: takes all keys, and is stored with the
              least and the greatest of them.
    """

    def __init__(
        self, sink: Sink, *, info: Mapping[str, bytes] | None = None, codec: str = "gz",
        block_bytes: int | None = None, created_ms: int = 0, bloom_filter: BloomFilter | None = None,
    ) -> None:  # fmt: skip
        self._sink, self._info, self._codec = sink, dict(info or {}), CODECS[codec]
        self._block_bytes, self._created_ms = block_bytes, created_ms
        self._bloom_filter, self._least = bloom_filter, b""
        self._position = self._count = self._key_bytes = self._value_bytes = self._body_bytes = 0
        self._last: bytes | None = None
        self._waiting: list[memoryview] = []
        self._waiting_bytes = 0
        self._first_waiting = b""
        self._index: list[IndexEntry] = []
        self._meta: dict[str, bytes] = {}

    def append(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Add (key, value) in ascending order of the keys' bytes. Raises SchemaMismatch for another order."""
        pairs = iter(entries)
        while run := _next_run(pairs):
            keys, values = zip(*run, strict=True)
            self.append_columns(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))

    def append_columns(self, keys: pa.Array, values: pa.Array) -> None:
        """Add keys and their values (text or binary; values may be a dictionary of binary), in ascending order of the
        keys' bytes.

        Raises SchemaMismatch for another order, for nulls, and for too long keys; nothing is added then.
        """
        keys = keys.cast(pa.binary())
        values = values if isinstance(values, pa.DictionaryArray) else values.cast(pa.binary())
        self._check(keys, values)
        if not len(keys):
            return
        if self._bloom_filter is not None:
            self._bloom_filter.add(_texts(keys))
        key_lengths, of_values = pc.binary_length(keys).to_numpy().astype(np.int64), value_lengths(values)
        ends = np.cumsum(key_lengths + of_values + ENTRY_OVERHEAD)
        start = 0
        while start < len(keys):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + _RUN_BYTES, "right")), start + 1)
            self._add_run(keys[start:end], values[start:end], ends[start:end] - before)
            start = end
        self._least = _bytes_at(keys, 0) if self._last is None else self._least
        self._last = _bytes_at(keys, len(keys) - 1)
        self._count += len(keys)
        self._key_bytes += int(key_lengths.sum()) + len(keys) * KEY_OVERHEAD
        self._value_bytes += int(of_values.sum())

    def _add_run(self, keys: pa.Array, values: pa.Array, ends: Places) -> None:
        """Add entries to data blocks. `ends`: where each of them ends in the run."""
        content = memoryview(encode_entries(keys, values))
        start = before = 0
        while start < len(keys):
            end = int(np.searchsorted(ends, before + self._block_room(), "right"))
            if end <= start and self._waiting:
                self._flush()
                continue
            end = max(end, start + 1)  # an entry larger than a block gets its own
            if not self._waiting:
                self._first_waiting = _bytes_at(keys, start)
            behind = int(ends[end - 1])
            self._waiting.append(content[before:behind])
            self._waiting_bytes += behind - before
            start, before = end, behind

    def write_blocks(self, body: bytes) -> None:
        """Add entries as separate blocks of about the usual size: a block that has grown by some entries stays one.
        They are neither counted nor added to the filter: see `close_of`.
        """
        if not body:
            return
        blocks = max(1, round(len(body) / self._block_room()))
        starts = [0]
        if blocks > 1:
            entries = decode_entries(body, "new entries")
            ends = np.arange(1, blocks) * len(body) // blocks
            starts += [entries.start(row) for row in np.searchsorted(entries.key_starts, ends).tolist()]
        for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
            if start < end:
                self._first_waiting = first_key(body, start)
                self._waiting = [memoryview(body)[start:end]]
                self._flush()

    def copy_block(self, block: bytes, body_bytes: int, first: bytes) -> None:
        """Add a stored data block of another file, with `first` as its key in the index. Its entries are not counted,
        either.
        """
        previous = self._index[-1].offset if self._index else -1
        self._index.append(IndexEntry(full_key(first), self._position, len(block)))
        self._write(behind_block(block, previous))
        self._body_bytes += body_bytes

    def close_of(self, count: int, key_bytes: int, value_bytes: int, least: bytes, greatest: bytes) -> int:
        """`close` for a file of copied blocks: its number of entries, the bytes of all keys with HBase's additions and
        of all values, and the first and the last key.
        """
        self._count, self._key_bytes, self._value_bytes = count, key_bytes, value_bytes
        self._least, self._last = least, greatest
        return self.close()

    def _block_room(self) -> int:
        """Return the number of bytes that still fit into the open data block."""
        if self._block_bytes is not None:
            return self._block_bytes - self._waiting_bytes
        of_file = max(_LEAST_BLOCK_BYTES, self._body_bytes >> _BLOCKS_BITS)
        return min(of_file, _LARGEST_BLOCK_BYTES) - self._waiting_bytes

    def _check(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys) != len(values) or keys.null_count or values.null_count:
            raise SchemaMismatch(
                f"{len(keys)} keys ({keys.null_count} null) and {len(values)} values ({values.null_count} null) of an "
                f"HFile: each key has a value, and none is null."
            )
        if not len(keys):
            return
        first = _bytes_at(keys, 0)
        if self._last is not None and first <= self._last:
            raise SchemaMismatch(f"The keys of an HFile ascend; {first!r} came after {self._last!r}.")
        ascends = pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))
        if not pc.all(ascends, min_count=0).as_py():
            row = ascends.index(False).as_py()
            one, other = _bytes_at(keys, row), _bytes_at(keys, row + 1)
            raise SchemaMismatch(f"The keys of an HFile ascend; {other!r} came after {one!r}.")
        longest = pc.max(pc.binary_length(keys)).as_py()
        if longest > MAX_KEY_BYTES:
            raise SchemaMismatch(f"A key of {longest} bytes; an HFile takes {MAX_KEY_BYTES}.")

    def put_meta(self, name: str, body: bytes) -> None:
        """Store bytes under a name."""
        self._meta[name] = body

    def close(self) -> int:
        """Write the rest; return the file's size in bytes. The sink stays open."""
        if self._waiting:
            self._flush()
        if self._bloom_filter is not None:
            self.put_meta(BLOOM_FILTER, self._bloom_filter.to_base64().encode())
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
        if self._bloom_filter is not None:
            info[BLOOM_FILTER_TYPE] = self._bloom_filter.kind.encode()
            if self._last is not None:
                info[LEAST_KEY], info[GREATEST_KEY] = self._least, self._last
        return info

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._position += len(data)


def _next_run(pairs: Iterator[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    run, run_bytes = [], 0
    for pair in islice(pairs, _RUN_ENTRIES):
        run.append(pair)
        run_bytes += len(pair[0]) + len(pair[1])
        if run_bytes >= _RUN_BYTES:
            break
    return run


def _bytes_at(keys: pa.Array, row: int) -> bytes:
    return cast("bytes", keys[row].as_py())


def _texts(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"A key of an HFile with a bloom filter is not UTF-8 ({error}).") from error
