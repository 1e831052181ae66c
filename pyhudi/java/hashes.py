"""Hashes as Hudi computes them, for whole columns: Java's `String.hashCode`, buckets of a SIMPLE bucket index, xxHash.

`hashCode` is `31 * h + unit` over UTF-16 code units, in 32 bits. The bucket of a key is `(h & 0x7fffffff) mod
buckets`, where h is Java's list hash of the values of the hash fields. xxHash gives ids of texts (names of locks) and
the places of keys in consistent hashing. Hudi's HashID is XXH64 with the seed 0xdabadaba as a signed int, sixteen
hexadecimal digits. Source: docs/formats/file-names.md, "Data files"; docs/formats/indexes.md, "Buckets",
"Consistent hashing".

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh32_intdigest, xxh64_intdigest

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import ConfigError

__all__ = ["bucket_hashes", "bucket_ids", "bucket_text", "hash_id_64", "java_string_hash", "xx_hash32"]


_BLOCK = 8192
_31 = np.uint32(31)
_NULL_VALUE = "__null__"
_EMPTY_VALUE = "__empty__"


def java_string_hash(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """`hashCode` of each string (a null counts 0, as in a Java list)."""
    if isinstance(strings, pa.ChunkedArray):
        parts = [java_string_hash(chunk) for chunk in strings.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)
    if len(strings) == 0:
        return np.zeros(0, np.int32)
    if not pa.types.is_string(strings.type):
        strings = pc.cast(strings, pa.string())
    _, offsets_buffer, data_buffer = strings.buffers()
    offsets = buffer_numbers(offsets_buffer, np.int32, len(strings) + 1, strings.offset * 4).astype(np.int64)
    data = buffer_numbers(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] = data
    if len(data) and data.max() >= 0x80:
        units, offsets = _utf16(data, offsets)
    hashes = np.empty(len(strings), np.uint32)
    for first in range(0, len(strings), _BLOCK):
        block = offsets[first : first + _BLOCK + 1]
        hashes[first : first + _BLOCK] = _hash_block(units, block[:-1], np.diff(block))
    if strings.null_count:
        hashes[strings.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes.view(np.int32)


def _utf16(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """Return UTF-16 units of UTF-8 bytes, with the offsets counted in units."""
    # A continuation byte adds no unit, the first byte of four adds a surrogate pair, every other byte one unit.
    steps = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
    units = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-16-le"), np.uint16)
    return units, at[offsets]


def _hash_block(
    units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint32]:
    """Hash codes of one block, whose strings lie one behind the other: a pass per character position, longest strings
    first, so that it takes a prefix.
    """
    longest = int(lengths.max())
    hashes = np.zeros(len(starts), np.uint32)
    if longest == int(lengths.min()):
        for unit in units[starts[0] : starts[0] + longest * len(starts)].reshape(len(starts), longest).T:
            hashes *= _31
            hashes += unit
        return hashes
    order = np.argsort(-lengths, kind="stable")
    starts = starts[order]
    # How many strings have a character at each position.
    counts = len(lengths) - np.cumsum(np.bincount(lengths, minlength=longest + 1))
    for position in range(longest):
        count = int(counts[position])
        hashes[:count] *= _31
        hashes[:count] += units[starts[:count] + position]
    unsorted = np.empty_like(hashes)
    unsorted[order] = hashes
    return unsorted


def bucket_ids(record_keys: pa.Array, hash_fields: Sequence[str], num_buckets: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each record key (strings, no nulls) among `num_buckets`.

    A key that holds both "," and ":" is taken as `field:value,...`: the values of the fields in `hash_fields` count,
    in the order of the key. Any other key counts as a whole. This is what Hudi 1.2 does; 0.15 differs on keys with one
    of the two.
    """
    if num_buckets < 1:
        raise ConfigError(f"A bucket index needs at least 1 bucket, found {num_buckets}.")
    return (bucket_hashes(record_keys, hash_fields) % np.uint32(num_buckets)).astype(np.int32)


def bucket_hashes(record_keys: pa.Array, hash_fields: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Return the hash of each record key, which `bucket_ids` divides by the number of buckets."""
    if isinstance(record_keys, pa.ChunkedArray):
        record_keys = record_keys.combine_chunks()
    hashes = _list_hash(java_string_hash(record_keys)[None, :])
    at = _composite(record_keys)
    if len(at):
        hashes[at] = _composite_hashes(record_keys.take(pa.array(at)), frozenset(hash_fields))
    return hashes & np.uint32(0x7FFFFFFF)


def bucket_text(record_keys: pa.Array | pa.ChunkedArray, hash_fields: Sequence[str]) -> pa.Array:
    """Return the text of each record key that consistent hashing hashes: the values that `bucket_ids` counts, joined.

    A null value is the word "null", as Java joins it.
    """
    if isinstance(record_keys, pa.ChunkedArray):
        record_keys = record_keys.combine_chunks()
    at = _composite(record_keys)
    if not len(at):
        return record_keys
    counts, names, values = _fields(record_keys.take(pa.array(at)))
    is_hash_field = pc.is_in(names, pa.array(sorted(hash_fields), pa.string()))
    values = pc.if_else(pc.equal(values, _NULL_VALUE), "null", values)
    values = pc.if_else(pc.equal(values, _EMPTY_VALUE), "", values)
    ends = np.cumsum(is_hash_field.to_numpy(zero_copy_only=False))[np.cumsum(counts) - 1]
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), values.filter(is_hash_field)), "")
    is_composite = np.zeros(len(record_keys), np.bool_)
    is_composite[at] = True
    return pc.replace_with_mask(record_keys, pa.array(is_composite), joined)


def _composite(record_keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return which keys are lists of fields."""
    has_both = pc.and_(pc.match_substring(record_keys, ","), pc.match_substring(record_keys, ":"))
    return np.flatnonzero(has_both.to_numpy(zero_copy_only=False))


def _list_hash(value_hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    """Return Java's list hash over rows of value hashes (values × keys)."""
    hashes = np.ones(value_hashes.shape[1], np.uint32)
    for values in value_hashes:
        hashes *= _31
        hashes += values.view(np.uint32)
    return hashes


# Before the name of a field of a composite key: a comma, then a name without "," and ":".
_FIELD = ",([^,:]*):"


def _composite_hashes(keys: pa.Array, hash_fields: frozenset[str]) -> npt.NDArray[np.uint32]:
    """List hashes of `field:value,field:value` keys."""
    counts, names, values = _fields(keys)
    hashes_of = java_string_hash(values)
    blank = pc.is_in(values, pa.array([_NULL_VALUE, _EMPTY_VALUE]))  # null and "" both count 0
    hashes_of = np.where(blank.to_numpy(zero_copy_only=False), np.int32(0), hashes_of)
    is_hash_field = pc.is_in(names, pa.array(sorted(hash_fields), pa.string())).to_numpy(zero_copy_only=False)
    first = np.cumsum(counts) - counts
    hashes = np.ones(len(keys), np.uint32)
    for turn in range(int(counts.max())):
        at = np.flatnonzero(counts > turn)
        field = first[at] + turn
        at, field = at[is_hash_field[field]], field[is_hash_field[field]]
        hashes[at] = hashes[at] * _31 + hashes_of[field].view(np.uint32)
    return hashes


def _fields(keys: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array, pa.Array]:
    """Return the number of fields of each key, and the names and values of all fields, key by key.

    A value may hold ":" and ",", a name neither. A value ends at the last "," before the next ":" that has a "," behind
    the value's own ":".
    """
    before, between = _marks(keys)
    marked = pc.replace_substring_regex(pc.binary_join_element_wise("", keys, ","), _FIELD, f"{before}\\1{between}")
    fields = pc.split_pattern(pc.utf8_slice_codeunits(marked, 1), before)
    counts = pc.list_value_length(fields).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = pc.extract_regex(fields.flatten(), f"(?s)^(?P<name>[^{between}]*){between}(?P<value>.*)$")
    return counts, pc.struct_field(flat, "name"), pc.struct_field(flat, "value")


def _marks(keys: pa.Array) -> tuple[str, str]:
    """Return two characters that no key holds, to split keys at: before a field's name, and after it."""
    # Control characters first; private ones follow in case a key holds those.
    candidates = [chr(code) for code in (*range(1, 9), *range(0xE000, 0xE100))]
    free = (mark for mark in candidates if not pc.any(pc.match_substring(keys, mark)).as_py())
    return next(free), next(free)


_HUDI_SEED = (0xDABADABA - (1 << 32)) % (1 << 64)
_STRINGS_AT_ONCE = 1 << 16  # strings that are Python objects together


def hash_id_64(text: str) -> str:
    """Return the 64-bit id that Hudi gives a text."""
    return f"{xxh64_intdigest(text.encode('utf-8'), _HUDI_SEED):016X}"


def xx_hash32(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint32]:
    """Return the hash of the UTF-8 bytes of each string; a null counts as an empty one."""
    column = pc.fill_null(strings, "").cast(pa.large_binary())
    hashes = np.empty(len(column), np.uint32)
    for first in range(0, len(column), _STRINGS_AT_ONCE):
        # A call for each value: measured against numpy over columns, see docs/dependencies.md.
        texts = cast("list[bytes]", column.slice(first, _STRINGS_AT_ONCE).to_pylist())
        hashes[first : first + _STRINGS_AT_ONCE] = np.fromiter(map(xxh32_intdigest, texts), np.uint32, len(texts))
    return hashes
