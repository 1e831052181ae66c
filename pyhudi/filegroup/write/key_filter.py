"""The bloom filter and the key range of a base file that is being written.

A filter is sized by the keys of its file. The keys are held in memory until the file is closed, or until they exceed
one row of Hudi's filter: from then on the filter has Hudi's default size, and keys are added at once. Sizes double, so
that a file that grows by small appends has its keys rehashed only now and then. With
`hoodie.index.bloom.num_entries` each filter has that size.

The filter and range of a rewritten file start from those in the footer of the old version (`ReusedFooter`). Hashing
every stored key again would cost as much as a third of the rewrite. The old filter holds all stored keys, and new keys
are added to it. Deleted keys remain in it as false positives. If there are too many of them, or if the old filter is
too small or far too large, the filter is rebuilt.

Source: docs/formats/base-files.md, "Bloom filter".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.base import BaseFileOptions, Footer
from pyhudi.formats.base.ranges import KeyRange
from pyhudi.formats.bloom import BloomFilter

__all__ = ["ReusedFooter", "SizedFilter", "new_key_filter"]

_MOST_KEYS = 60_000  # in a row of bits: Hudi's default; a file with more keys gets a filter of this size
_SIZES = (*(64 << doubling for doubling in range(10)), _MOST_KEYS)
_TOO_LARGE = 4  # a filter of more than this many times the size that its keys need is rebuilt
_STALE_KEYS_SHARE = 0.1  # deleted keys that a filter may still hold, of the keys in the file


class SizedFilter:
    """A filter to which keys are added, and which gets its size when it is `finished`."""

    def __init__(self, options: BaseFileOptions, bloom: BloomFilter | None = None) -> None:
        """`bloom`: the filter to start from; None: an empty one. Raises ConfigError for options that give no filter."""
        self._options = options
        self._waiting_chunks: list[pa.Array] = []
        self._waiting_keys = 0
        empty = _empty(options, options.bloom_num_entries or _MOST_KEYS)  # raises for an invalid probability
        self._bloom = empty if bloom is None and options.bloom_num_entries is not None else bloom

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add `keys`: strings without nulls."""
        if self._bloom is not None:
            self._bloom.add(keys)
            return
        chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        # Copied: a slice would keep all rows of its batch in memory.
        self._waiting_chunks.append(pa.concat_arrays([pa.array([], keys.type), *chunks]))
        self._waiting_keys += len(keys)
        if self._waiting_keys > _MOST_KEYS:
            self._bloom = self._of_waiting_keys()

    def finished(self) -> BloomFilter:
        """The filter of all keys."""
        if self._bloom is None:
            self._bloom = self._of_waiting_keys()
        return self._bloom

    def _of_waiting_keys(self) -> BloomFilter:
        bloom = _empty(self._options, _size(self._waiting_keys))
        if self._waiting_chunks:
            bloom.add(pa.concat_arrays(self._waiting_chunks))
        self._waiting_chunks = []
        return bloom


def new_key_filter(spec: WriteSpec) -> SizedFilter | None:
    """An empty filter for a file of the write; None if its files have no filters."""
    return SizedFilter(spec.file) if _has_filters(spec) else None


@dataclass(frozen=True, slots=True)
class ReusedFooter:
    """The key range and the filter that a rewrite starts with. `rebuild_*`: the old file has no usable one, so the
    stored keys must be added.
    """

    bloom: SizedFilter | None
    key_range: KeyRange
    rebuild_bloom: bool
    rebuild_range: bool

    @classmethod
    def of(
        cls, spec: WriteSpec, footer: Footer, stored_rows: int, deleted_keys: pa.Array, new_keys: int
    ) -> ReusedFooter:
        """Take them from the footer of the old version.

        Args:
            deleted_keys: keys that this rewrite may delete.
            new_keys: the number of keys that it may add.
        """
        if not _has_filters(spec):
            return cls(None, KeyRange(), rebuild_bloom=False, rebuild_range=False)
        bloom = _usable(spec.file, footer, stored_rows, new_keys, has_deletes=len(deleted_keys) > 0)
        key_range = KeyRange()
        ends = (footer.min_key, footer.max_key)
        rebuild_range = None in ends or pc.any(pc.is_in(deleted_keys, pa.array(ends, pa.string()))).as_py() is True
        if footer.min_key is not None and footer.max_key is not None and not rebuild_range:
            key_range.include(footer.min_key, footer.max_key)
        return cls(SizedFilter(spec.file, bloom), key_range, rebuild_bloom=bloom is None, rebuild_range=rebuild_range)


def _has_filters(spec: WriteSpec) -> bool:
    return spec.populate_meta_fields and spec.file.bloom_enabled


def _empty(options: BaseFileOptions, size: int) -> BloomFilter:
    return BloomFilter(size, options.bloom_fpp, options.bloom_kind, options.bloom_max_entries)


def _size(keys: int) -> int:
    """The size of a filter row, in keys, for a file of `keys` keys."""
    return next((size for size in _SIZES if size >= keys), _MOST_KEYS)


def _usable(
    options: BaseFileOptions, footer: Footer, stored_rows: int, new_keys: int, *, has_deletes: bool
) -> BloomFilter | None:
    """The footer's filter if it has a shape that this write would choose and new keys may be added to it, else None."""
    if footer.bloom_base64 is None or stored_rows == 0:
        return None
    try:
        bloom = BloomFilter.from_base64(footer.bloom_base64, footer.bloom_type, options.bloom_max_entries)
    except CorruptFile:
        return None  # a damaged filter must not prevent the rewrite, which replaces it
    keys = stored_rows if bloom.keys_added is None else bloom.keys_added
    if not any(bloom.same_shape(_empty(options, size)) for size in _sizes_that_fit(options, keys + new_keys)):
        return None
    if bloom.keys_added is None:
        return None if has_deletes else bloom
    if bloom.keys_added > stored_rows * (1 + _STALE_KEYS_SHARE) + 1000:
        return None
    return bloom


def _sizes_that_fit(options: BaseFileOptions, keys: int) -> list[int]:
    if options.bloom_num_entries is not None:
        return [options.bloom_num_entries]
    least = _size(keys)
    return [size for size in _SIZES if least <= size <= _TOO_LARGE * least]
