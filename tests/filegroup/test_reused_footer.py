"""What a rewrite takes over from the footer of the file that it replaces."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.filegroup.write.key_filter import ReusedFooter
from pyhudi.formats.base import Footer
from pyhudi.formats.bloom import BloomFilter
from tests.support.tables.file_groups import Table

ENTRIES, FPP, MAX_ENTRIES = 20_000, 0.01, 100_000
TABLE = Table(file={"bloom_num_entries": ENTRIES, "bloom_fpp": FPP, "bloom_max_entries": MAX_ENTRIES})


def reused(keys_added: int, stored_rows: int) -> ReusedFooter:
    keys = pa.array([f"k{n:06d}" for n in range(keys_added)])
    options = TABLE.spec.file
    bloom = BloomFilter.build(keys, ENTRIES, FPP, options.bloom_kind, MAX_ENTRIES)
    footer = Footer("k000000", f"k{keys_added - 1:06d}", bloom.to_base64(), options.bloom_kind)
    return ReusedFooter.of(TABLE.spec, footer, stored_rows, pa.array([], pa.string()), 0)


@pytest.mark.parametrize(
    ("stored_rows", "rebuilt"), [(10_000, False), (9_999, False), (9_000, False), (8_990, True), (5_000, True)]
)
def test_a_filter_is_recreated_when_a_tenth_of_the_rows_and_a_thousand_keys_in_it_were_deleted(
    stored_rows: int, rebuilt: bool
) -> None:
    found = reused(10_895, stored_rows)

    assert found.rebuild_bloom is rebuilt
    assert not found.rebuild_range
    assert found.bloom is not None
    assert found.bloom.finished().might_contain(pa.array(["k000007"])).tolist() == [not rebuilt]
