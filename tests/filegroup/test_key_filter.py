"""The size of the bloom filter in a base file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError
from pyhudi.filegroup.write.key_filter import ReusedFooter, SizedFilter
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.formats.base import BaseFileOptions, Footer, open_base_file
from pyhudi.formats.bloom import BloomFilter
from pyhudi.model.commit import WriteStatus
from pyhudi.model.keys import RECORD_KEY
from tests.support.tables.file_groups import FIRST, TASK, Table, base_of

KINDS = ["SIMPLE", "DYNAMIC_V0"]


def keys(count: int, prefix: str = "k") -> pa.Array:
    return pa.array([f"{prefix}{number:06d}" for number in range(count)], pa.string())


def rows(key_column: pa.Array) -> pa.Table:
    count = len(key_column)
    columns = [
        key_column,
        key_column,
        pa.array(range(count)),
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.string()),
    ]
    return pa.Table.from_arrays(columns, names=[RECORD_KEY, "id", "ts", "tie", "city"])


def bloom_of(table: Table, status: WriteStatus) -> BloomFilter:
    with open_base_file(table.storage, str(status.stat.path)) as reader:
        return BloomFilter.from_base64(reader.footer.bloom_base64 or "", reader.footer.bloom_type)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "size"), [(0, 64), (10, 64), (65, 128), (40_000, 60_000), (60_001, 60_000)])
def test_a_filter_is_sized_by_its_keys_and_has_them_all(kind: str, count: int, size: int) -> None:
    table = SizedFilter(BaseFileOptions(bloom_kind=kind))
    for first in range(0, count, 7_000):
        table.add(keys(count).slice(first, 7_000))

    bloom = table.finished()

    assert bloom.same_shape(BloomFilter(size, 1e-9, kind))
    assert bloom.might_contain(keys(count)).all()
    assert bloom.to_base64() == BloomFilter.build(keys(count), size, 1e-9, kind, 100_000).to_base64()


def test_a_size_that_is_set_stays() -> None:
    table = SizedFilter(BaseFileOptions(bloom_num_entries=5_000))
    table.add(keys(10))

    assert table.finished().keys_per_row == 5_000


def test_a_probability_that_is_none_is_refused_before_the_file_is_made() -> None:
    with pytest.raises(ConfigError, match="probability"):
        SizedFilter(BaseFileOptions(bloom_fpp=2.0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_grows_by_small_appends_has_a_filter_that_grows_with_it(kind: str) -> None:
    table = Table(file={"bloom_kind": kind})
    (status,) = create_files(table.spec, TASK, "", rows(keys(3)).to_batches(), clock=table.clock)
    last, everything = FIRST, [keys(3)]
    for turn in range(6):
        more = keys(100, f"turn{turn}-")
        instant = f"2024020{turn + 1}000000000"
        base = base_of(status, last)
        status = merge_file(table.at(instant), TASK, base, rows(more), table.clock, match_keys=turn % 2 == 0)
        last = instant
        everything.append(more)

    bloom = bloom_of(table, status)

    assert bloom.same_shape(BloomFilter(1024, 1e-9, kind))
    assert bloom.num_rows == 1
    assert bloom.might_contain(pa.chunked_array(everything)).all()
    assert not bloom.might_contain(keys(2_000, "other")).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "stored", "new", "rebuilt"),
    [
        (128, 100, 28, False),
        (128, 100, 29, True),  # would overflow
        (60_000, 100, 0, True),  # as Hudi makes it: far too large for a hundred keys
        (60_000, 20_000, 0, False),
        (60_000, 59_000, 30_000, False),  # beyond the largest size: as Hudi's default filter grows
        (5_000, 4_900, 0, True),  # a size that somebody set once
    ],
)
def test_the_filter_of_the_old_file_is_kept_while_its_size_fits(
    kind: str, size: int, stored: int, new: int, rebuilt: bool
) -> None:
    table = Table(file={"bloom_kind": kind})
    bloom = BloomFilter.build(keys(stored), size, 1e-9, kind, 100_000)
    footer = Footer("k000000", f"k{stored - 1:06d}", bloom.to_base64(), kind)

    reused = ReusedFooter.of(table.spec, footer, stored, pa.array([], pa.string()), new)

    assert reused.rebuild_bloom is rebuilt


def test_updates_alone_do_not_recreate_a_filter() -> None:
    table = Table(file={})
    (status,) = create_files(table.spec, TASK, "", rows(keys(60)).to_batches(), clock=table.clock)
    before = bloom_of(table, status)

    status = merge_file(table.at("20240201000000000"), TASK, base_of(status, FIRST), rows(keys(60)), table.clock)

    assert bloom_of(table, status).to_base64() == before.to_base64()
    assert before.keys_added == 60
