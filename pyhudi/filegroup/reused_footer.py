"""The bloom filter and key range of a rewritten base file, starting from those of the old version's footer.

Hashing every stored key again would cost as much as a third of the rewrite. The old filter holds all stored keys, so
new keys are added to it; keys that were deleted stay in it as false positives, until they are too many and it is
rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.spec import WriteSpec
from pyhudi.formats.base import Footer
from pyhudi.formats.base.ranges import KeyRange
from pyhudi.formats.bloom import BloomFilter

__all__ = ["ReusedFooter"]

_STALE_KEYS_SHARE = 0.1  # deleted keys that a filter may still hold, of the keys in the file


@dataclass(frozen=True, slots=True)
class ReusedFooter:
    """What a rewrite starts from. `rebuild_*`: stored keys must be added, as nothing usable was stored."""

    bloom: BloomFilter | None
    key_range: KeyRange
    rebuild_bloom: bool
    rebuild_range: bool

    @classmethod
    def of(cls, spec: WriteSpec, footer: Footer, stored_rows: int, deleted_keys: pa.Array) -> ReusedFooter:
        """From the footer of the old version; `deleted_keys` are keys that this rewrite may delete."""
        if not (spec.populate_meta_fields and spec.file.bloom_enabled):
            return cls(None, KeyRange(), rebuild_bloom=False, rebuild_range=False)
        bloom = _usable(spec, footer, stored_rows, has_deletes=len(deleted_keys) > 0)
        key_range = KeyRange()
        ends = (footer.min_key, footer.max_key)
        rebuild_range = None in ends or pc.any(pc.is_in(deleted_keys, pa.array(ends, pa.string()))).as_py() is True
        if footer.min_key is not None and footer.max_key is not None and not rebuild_range:
            key_range.include(footer.min_key, footer.max_key)
        options = spec.file
        fresh = BloomFilter(options.bloom_num_entries, options.bloom_fpp, options.bloom_kind, options.bloom_max_entries)
        return cls(bloom or fresh, key_range, rebuild_bloom=bloom is None, rebuild_range=rebuild_range)


def _usable(spec: WriteSpec, footer: Footer, stored_rows: int, *, has_deletes: bool) -> BloomFilter | None:
    """The footer's filter when new keys may be added to it as this write would make it, else None."""
    if footer.bloom_base64 is None or stored_rows == 0:
        return None
    options = spec.file
    try:
        bloom = BloomFilter.from_base64(footer.bloom_base64, footer.bloom_type, options.bloom_max_entries)
    except CorruptFile:
        return None  # a damaged filter must not keep the rows from being rewritten; a new one heals it
    wanted = BloomFilter(options.bloom_num_entries, options.bloom_fpp, options.bloom_kind, options.bloom_max_entries)
    if not bloom.same_shape(wanted):
        return None
    if bloom.keys_added is None:
        return None if has_deletes else bloom
    if bloom.keys_added > stored_rows * (1 + _STALE_KEYS_SHARE) + 1000:
        return None
    return bloom
