"""Single entries of a data block, found by the bytes of their keys: for a few keys the block need not be taken apart.

    ... | key length i32 | value length i32 | row length i16 | row | 10 bytes of HBase | value | ...
                                              ^ sought together ^

What is found is an entry if the lengths before it fit, unless it may be the end of a longer key: then two more lengths
are before it, behind the last key. A key whose bytes are nowhere is not there. In all other cases the block is taken
apart as it is for many keys, so that damage is told. HBase's bytes must not be in keys and values, as they are in no
text (0xff) and in no Avro record of text and numbers.
Source: docs/formats/hfile.md, "Entries", "Lookups".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from pyhudi.formats.hfile.entries import KEY_END, Entries, full_key

__all__ = ["entries_of_pairs", "pairs_in"]

_LENGTHS = struct.Struct(">ii")
_END_BYTES = 1  # behind a value
# What may be the lengths of an entry: its key has 12 bytes of HBase and less than 32 KiB, its value less than 16 MiB.
_LENGTHS_LIKE = re.compile(rb"(?=\x00\x00(?:\x00[\x0c-\xff]|[\x01-\x80].)\x00...)", re.DOTALL)


def pairs_in(body: bytes, keys: Iterable[bytes]) -> tuple[list[bytes], list[bytes]] | None:
    """Those of the keys that are there, and their values, of equal ones the first; None where the bytes of the body do
    not say it plainly.
    """
    there, values = list[bytes](), list[bytes]()
    for key in keys:
        sought = full_key(key)
        at = body.find(sought)
        if at < 0 and body.find(key) < 0:
            continue
        if at < _LENGTHS.size:
            return None
        key_bytes, value_bytes = _LENGTHS.unpack_from(body, at - _LENGTHS.size)
        start = at + len(sought)
        if key_bytes != len(sought) or not 0 <= value_bytes <= len(body) - start - _END_BYTES:
            return None
        if _may_end_another(body, at, start):
            return None
        there.append(key)
        values.append(body[start : start + value_bytes])
    return there, values


def _may_end_another(body: bytes, at: int, end: int) -> bool:
    """May what was found at `at`, with its key up to `end`, be the end of a longer key, whose lengths are before it?"""
    last = body.rfind(KEY_END, 0, at)
    behind_last = last + len(KEY_END) if last >= 0 else 0
    for like in _LENGTHS_LIKE.finditer(body, behind_last, at):
        key_bytes = _LENGTHS.unpack_from(body, like.start())[0]
        if like.start() < at - _LENGTHS.size and key_bytes == end - like.start() - _LENGTHS.size:
            return True
    return False


def entries_of_pairs(keys: Sequence[bytes], values: Sequence[bytes]) -> Entries:
    """Keys that ascend, and their values, as entries with nothing else in their content."""
    lengths = np.fromiter(map(len, chain.from_iterable(zip(keys, values, strict=True))), np.int64, 2 * len(keys))
    ends = np.cumsum(lengths)
    starts = ends - lengths
    content = b"".join(chain.from_iterable(zip(keys, values, strict=True)))
    return Entries(content, starts[::2], ends[::2], starts[1::2], ends[1::2])
