"""Keys of metadata records: how they are spelled, which file group each belongs to, and how they are sorted.

    column_stats     B64(xx64(column)) B64(xx64(partition)) B64(md5(file name))     48 characters
    partition_stats  B64(xx64(column)) B64(xx64(partition))                         24
    bloom_filters    B64(xx64(partition)) B64(md5(file name))                       36
    secondary index  escaped secondary key "$" escaped record key

A key names a partition as the table stores it (`stored_partition`): "." in a table without partitions.

`KeysByGroup` splits the rows of an update among file groups and puts each group's rows in the order that its files
have. It processes keys piece by piece, as the tasks reported them, so that several threads can share the work.

`in_order` sorts rows with keys in bounded memory; `GroupStream` returns them file group by file group.

Source: docs/formats/metadata-table.md, "Keys", "File groups of a key", "Building"; docs/formats/hfile.md, "Entries".
"""

from __future__ import annotations

import base64
import hashlib
import re
from binascii import b2a_base64
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from pyhudi.arrow.buffers import is_ascending, order_of_bytes
from pyhudi.engine.sorted_ranges import SortedRanges
from pyhudi.java.hashes import java_string_hash
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.model.table_format import TableFormat

__all__ = [
    "ALL_PARTITIONS_KEY",
    "BUILDING_BYTES",
    "NON_PARTITIONED",
    "PARTITION_STATS_MARK",
    "GroupStream",
    "KeysByGroup",
    "bloom_filter_key",
    "column_stats_key",
    "column_stats_prefix",
    "expression_partition_key",
    "file_keys",
    "group_numbers",
    "groups_by_prefix",
    "in_order",
    "one_per_key",
    "partition_stats_key",
    "secondary_key",
    "secondary_key_prefix",
    "secondary_parts",
    "shards",
    "sorted_by_key",
    "stored_partition",
]


ALL_PARTITIONS_KEY = "__all_partitions__"
NON_PARTITIONED = "."  # partition path of a table without partitions, in `files` and in the keys of statistics
PARTITION_STATS_MARK = "__partition_stat__"  # in keys of an expression index's statistics of whole partitions

_NAMES = 4096  # columns and partitions whose hashes are cached: keys of many files begin with the same ones
_SEED = 0xFFFFFFFFDABADABA
_MD5_CHARACTERS = 24
_PADDING = b"\x00\x00"  # 16 bytes and 2 are 24 characters; the last two carry nothing
_NULL = "\x00"
_SEPARATOR = "$"
_PREFIX_END = r"^(?:[^\\$]|\\.)*\$"  # up to the first separator that is not escaped


def stored_partition(partition_path: str) -> str:
    """The spelling of a partition path in `files` and in the keys of statistics."""
    return partition_path or NON_PARTITIONED


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """Key of a column's statistics in one file; `file_name` without folders."""
    return _hash64(column) + _hash64(partition) + _md5(file_name)


def column_stats_prefix(column: str, partition: str | None = None) -> str:
    """The prefix of the keys of a column's statistics, in all partitions or in one."""
    return _hash64(column) + ("" if partition is None else _hash64(partition))


def partition_stats_key(column: str, partition: str) -> str:
    """Key of a column's statistics in a whole partition."""
    return _hash64(column) + _hash64(partition)


def expression_partition_key(column: str, partition: str) -> str:
    """Key of an expression index's statistics of a whole partition."""
    return _hash64(column) + _hash64(PARTITION_STATS_MARK) + _hash64(partition)


def bloom_filter_key(partition: str, file_name: str) -> str:
    """Key of a base file's bloom filter."""
    return _hash64(partition) + _md5(file_name)


def file_keys(partitions: Iterable[str], file_names: Iterable[str]) -> list[str]:
    """The parts of the keys of a column's statistics in these files that follow the `column_stats_prefix`."""
    new = hashlib.md5(usedforsecurity=False).copy  # takes half the time of a new one
    digests = list[bytes]()
    for name in file_names:
        md5 = new()
        md5.update(name.encode())
        digests.append(md5.digest())
    texts = b2a_base64(_PADDING.join([*digests, b""]), newline=False).decode()
    ends = range(0, len(texts), _MD5_CHARACTERS)
    starts = map(_hash64, partitions)
    return [start + texts[at : at + _MD5_CHARACTERS - 2] + "==" for start, at in zip(starts, ends, strict=True)]


def secondary_key_prefix(value: str | None) -> str:
    """The prefix of the keys of all rows with this secondary value."""
    return (_NULL if value is None else _escaped(value)) + _SEPARATOR


def secondary_key(value: str | None, record_key: str) -> str:
    """Key of a row in a secondary index."""
    return secondary_key_prefix(value) + _escaped(record_key)


def secondary_parts(key: str) -> tuple[str | None, str]:
    """The secondary value and the record key of a key of a secondary index; ("", "") parts where it has none."""
    position = 0
    while position < len(key) and key[position] != _SEPARATOR:
        position += 2 if key[position] == "\\" else 1
    value, record_key = key[:position], key[position + 1 :]
    return (None if value == _NULL else _unescaped(value)), _unescaped(record_key)


def shards(keys: pa.Array, groups: int, *, by_secondary_value: bool = False) -> npt.NDArray[np.int32]:
    """Number of the file group, among `groups`, that each key belongs to.

    Args: by_secondary_value: only what comes before the record key counts (secondary indexes of version V2).
    """
    hashed = _secondary_prefixes(keys) if by_secondary_value else keys
    # Java's Math.abs leaves the least number negative, and its % has the sign of the dividend, which Hudi then drops.
    # The result is the remainder of 2^31, which an unsigned number holds.
    absolute = np.abs(java_string_hash(hashed)).view(np.uint32)
    return (absolute % np.uint32(groups)).astype(np.int32)


def _secondary_prefixes(keys: pa.Array) -> pa.Array:
    matches = pc.extract_regex(keys, f"(?P<prefix>{_PREFIX_END})")
    return pc.fill_null(pc.struct_field(matches, "prefix"), keys)


@lru_cache(maxsize=_NAMES)
def _hash64(text: str) -> str:
    return base64.b64encode(xxhash.xxh64(text.encode(), seed=_SEED).digest()).decode()


def _md5(text: str) -> str:
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in ("\\", _SEPARATOR, _NULL) else c for c in text)


def _unescaped(text: str) -> str:
    parts, position = [], 0
    while position < len(text):
        position += text[position] == "\\"
        parts.append(text[position : position + 1])
        position += 1
    return "".join(parts)


_GROUP_NUMBER = re.compile(r"\d{4}(-0)?$", re.ASCII)  # in a file id: its number among the file groups


def groups_by_prefix(file_ids: Iterable[str]) -> Mapping[str, list[str]]:
    """File ids by the prefix before their number, in order. There is one prefix, except in a record index with file
    groups for each partition of the table.
    """
    groups: dict[str, list[str]] = {}
    for file_id in sorted(file_ids):
        groups.setdefault(_GROUP_NUMBER.sub("", file_id), []).append(file_id)
    return groups


def group_numbers(partition: str, keys: pa.Array, groups: int, table_version: int) -> npt.NDArray[np.int32]:
    """The number of the file group, among `groups`, that each key belongs to."""
    by_value = kind_of(partition) is MetadataKind.SECONDARY_INDEX and TableFormat(table_version).shards_pairs_by_value
    return shards(keys, groups, by_secondary_value=by_value)


_PIECE_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class KeysByGroup:
    """Keys in pieces, and for each key the number of its file group."""

    pieces: Sequence[pa.Array]
    numbers: Sequence[npt.NDArray[np.int32]]

    @classmethod
    def of(
        cls, partition: str, keys: pa.ChunkedArray, groups: int, table_version: int, pool: Executor | None = None
    ) -> KeysByGroup:
        """Args: keys: text without nulls; pool: its threads share the work, None: this thread does it."""
        starts = [(chunk, start) for chunk in keys.chunks for start in range(0, len(chunk), _PIECE_ROWS)]
        pieces = [chunk.slice(start, _PIECE_ROWS) for chunk, start in starts]

        def numbers(piece: pa.Array) -> npt.NDArray[np.int32]:
            return group_numbers(partition, piece, groups, table_version)

        return cls(pieces, list(map(numbers, pieces) if pool is None else pool.map(numbers, pieces)))

    def groups(self) -> npt.NDArray[np.int32]:
        """The numbers of the file groups that get keys."""
        return np.unique(np.concatenate([np.zeros(0, np.int32), *map(np.unique, self.numbers)]))

    def rows(self, group: int) -> tuple[pa.Array, pa.Array]:
        """The rows of a file group, and their keys, as `one_per_key` returns them."""
        rows, keys, first = [np.zeros(0, np.int64)], [pa.array([], pa.string())], 0
        for piece, numbers in zip(self.pieces, self.numbers, strict=True):
            in_group = np.flatnonzero(numbers == group)
            rows.append(in_group + first)
            keys.append(piece.take(pa.array(in_group)))
            first += len(piece)
        return one_per_key(pa.concat_arrays(keys), np.concatenate(rows))


def one_per_key(keys: pa.Array, rows: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """The rows with these keys in ascending order of the keys' bytes, and their keys as binary. Of several rows with
    one key only the last is kept.
    """
    texts = keys.cast(pa.binary())
    if not is_ascending(texts):  # those of a sorted batch are
        order = order_of_bytes(texts)
        rows, texts = rows[order], texts.take(pa.array(order))
        is_last = np.append(pc.not_equal(texts.slice(0, len(texts) - 1), texts.slice(1)).to_numpy(False), True)
        if not is_last.all():
            rows, texts = rows[is_last], texts.filter(pa.array(is_last))
    return pa.array(rows), texts


def sorted_by_key(records: pa.Table) -> pa.Table:
    """The records in ascending order of the keys' bytes, as an HFile has them."""
    keys = records.column("key").combine_chunks().cast(pa.binary())
    return records if is_ascending(keys) else records.take(pa.array(order_of_bytes(keys)))


BUILDING_BYTES = 64 << 20  # keys held in memory; sorting takes several times as much
_RANGE_BYTES = 16 << 20  # keys sorted at a time when there are more
_RECORDS = 1 << 17  # in a returned batch

Group = TypeVar("Group", bound=Hashable)


def in_order(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], memory_bytes: int = BUILDING_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows in ascending order of all columns of the schema; above `memory_bytes` they spill to temporary files."""
    ranges = SortedRanges(schema, schema.names, 0, memory_bytes, min(_RANGE_BYTES, memory_bytes))
    table = ranges.load(batches)
    if table is None:
        yield from ranges.share(0, 1, _RECORDS)
        return
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in schema.names])
    rows = table.combine_chunks()
    for first in range(0, len(order), _RECORDS):
        yield from rows.take(order.slice(first, _RECORDS)).combine_chunks().to_batches()


class GroupStream(Generic[Group]):
    """A stream of tables, ordered by file group, read one file group at a time."""

    def __init__(self, tables: Iterator[tuple[Group, pa.Table]]) -> None:
        self._tables = tables
        self._next: tuple[Group, pa.Table] | None = None

    def of(self, group: Group) -> Iterator[pa.Table]:
        """The tables of one file group. Read the groups in the order of the stream, each once."""
        while True:
            self._next = self._next or next(self._tables, None)
            if self._next is None or self._next[0] != group:
                return
            _, table = self._next
            self._next = None
            yield table
