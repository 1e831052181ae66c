"""Keys of metadata records, and the file group that a key belongs to.

    column_stats     B64(xx64(column)) B64(xx64(partition)) B64(md5(file name))     48 characters
    partition_stats  B64(xx64(column)) B64(xx64(partition))                         24
    bloom_filters    B64(xx64(partition)) B64(md5(file name))                       36
    secondary index  escaped secondary key "$" escaped record key

A partition is named here as it is stored: "." (`stored_partition`) in a table without partitions.
Source: docs/formats/metadata-table.md, "Keys", "File groups of a key".
"""

from __future__ import annotations

import base64
import hashlib
from binascii import b2a_base64
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from pyhudi.java.hashes import java_string_hash

__all__ = [
    "ALL_PARTITIONS_KEY",
    "NON_PARTITIONED",
    "PARTITION_STATS_MARK",
    "bloom_filter_key",
    "column_stats_key",
    "column_stats_prefix",
    "expression_partition_key",
    "file_keys",
    "partition_stats_key",
    "secondary_key",
    "secondary_key_prefix",
    "secondary_parts",
    "shards",
    "stored_partition",
]

ALL_PARTITIONS_KEY = "__all_partitions__"
NON_PARTITIONED = "."  # partition path of a table without partitions, in `files` and in the keys of statistics
PARTITION_STATS_MARK = "__partition_stat__"  # in keys of an expression index's statistics of whole partitions

_NAMES = 4096  # columns and partitions whose hashes are kept: keys of many files begin with the same ones
_SEED = 0xFFFFFFFFDABADABA
_MD5_CHARACTERS = 24
_PADDING = b"\x00\x00"  # 16 bytes and 2 are 24 characters, of which the last two say nothing
_NULL = "\x00"
_SEPARATOR = "$"
_PREFIX_END = r"^(?:[^\\$]|\\.)*\$"  # up to the first separator that is not escaped


def stored_partition(partition_path: str) -> str:
    """How a partition path of the table is written in `files` and in the keys of statistics."""
    return partition_path or NON_PARTITIONED


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """Key of a column's statistics in one file; `file_name` without folders."""
    return _hash64(column) + _hash64(partition) + _md5(file_name)


def column_stats_prefix(column: str, partition: str | None = None) -> str:
    """What the keys of a column's statistics begin with, in all partitions or in one."""
    return _hash64(column) + ("" if partition is None else _hash64(partition))


def partition_stats_key(column: str, partition: str) -> str:
    """Key of a column's statistics in a whole partition."""
    return _hash64(column) + _hash64(partition)


def expression_partition_key(column: str, partition: str) -> str:
    """Key of the statistics that an expression index has of a whole partition."""
    return _hash64(column) + _hash64(PARTITION_STATS_MARK) + _hash64(partition)


def bloom_filter_key(partition: str, file_name: str) -> str:
    """Key of a base file's bloom filter."""
    return _hash64(partition) + _md5(file_name)


def file_keys(partitions: Iterable[str], file_names: Iterable[str]) -> list[str]:
    """What the keys of a column's statistics in these files end with, behind `column_stats_prefix` of the column."""
    new = hashlib.md5(usedforsecurity=False).copy  # in half of the time that a new one takes
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
    """What the keys of all rows with this secondary value begin with."""
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
    # Java's Math.abs leaves the least number negative, and its % has the sign of the dividend, which is taken off
    # then: the same as the remainder of 2^31, which an unsigned number holds.
    absolute = np.abs(java_string_hash(hashed)).view(np.uint32)
    return (absolute % np.uint32(groups)).astype(np.int32)


def _secondary_prefixes(keys: pa.Array) -> pa.Array:
    found = pc.extract_regex(keys, f"(?P<prefix>{_PREFIX_END})")
    return pc.fill_null(pc.struct_field(found, "prefix"), keys)


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
