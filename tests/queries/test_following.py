"""Where the batches of a stream end."""

from __future__ import annotations

import pytest

from pyhudi import ConfigError
from pyhudi.model.instant import ActionKind
from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.model.options.streaming import SourceOptions
from pyhudi.queries.follow import end_of_batch, first_begin
from pyhudi.transaction.instants import TimelineWriter
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import TestTable

BLOCK = IncrementalOptions(holes="BLOCK")


def times(table: TestTable) -> list[str]:
    meta = table.meta
    by_completion = meta.config.table_version >= 8
    return sorted((i.completion_time or "") if by_completion else i.requested_time for i in meta.timeline.commits())


def ends(table: TestTable, limits: SourceOptions, begin: str = "") -> list[str]:
    """The ends of the batches from `begin` on."""
    found = []
    while (end := end_of_batch(table.meta, begin, BLOCK, limits)) != begin:
        found.append(end)
        begin = end
    return found


@pytest.mark.parametrize("version", ["6", "9"])
def test_limits_end_a_batch_at_a_commit(version: str) -> None:
    table = Clustered(version)
    for number in range(5):
        table.upsert(("a", "x", number, number))
    first, second, third, fourth, fifth = times(table)

    assert ends(table, SourceOptions()) == [fifth]
    assert ends(table, SourceOptions(max_commits=2)) == [second, fourth, fifth]
    assert ends(table, SourceOptions(max_commits=2), first) == [third, fifth]
    assert ends(table, SourceOptions(max_bytes=1)) == [first, second, third, fourth, fifth]
    assert ends(table, SourceOptions(max_bytes=10**9)) == [fifth]
    assert end_of_batch(table.meta, first, BLOCK, None, fourth) == fourth
    assert end_of_batch(table.meta, fifth, BLOCK) == fifth, "nothing is new"


def test_table_services_count_for_no_limit() -> None:
    table = Clustered("9", "MERGE_ON_READ")
    table.upsert(("a", "x", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.compact_now()
    table.upsert(("a", "x", 3, 3))
    first, _, compaction, last = times(table)

    assert ends(table, SourceOptions(max_commits=1), first) == [compaction, last]


def test_a_stream_begins_where_its_option_says() -> None:
    table = Clustered("9")
    table.upsert(("a", "x", 1, 1))
    (only,) = times(table)
    assert first_begin(table.meta, "earliest", BLOCK) == first_begin(table.meta, "000", BLOCK) == ""
    assert first_begin(table.meta, "Latest", BLOCK) == first_begin(table.meta, only, BLOCK) == only
    with pytest.raises(ConfigError, match=r"startOffset='soon' is no moment"):
        first_begin(table.meta, "soon", BLOCK)


def test_below_version_8_a_batch_ends_before_a_write_that_is_not_complete() -> None:
    table = Clustered("6")
    table.upsert(("a", "x", 1, 1))
    (first,) = times(table)
    meta = table.meta
    TimelineWriter(meta.storage, meta.config).request(str(int(first) + 1), ActionKind.COMMIT, b"")
    table.upsert(("b", "x", 1, 1), clean_failed_writes_policy="NEVER")

    assert end_of_batch(table.meta, "", BLOCK) == first
    assert end_of_batch(table.meta, first, BLOCK) == first


@pytest.mark.thorough
def test_the_first_batch_of_a_table_that_was_archived_has_all_that_is_there() -> None:
    table = Clustered("9")
    keep = {"keep_min_commits": "4", "keep_max_commits": "5", "clean_commits_retained": "3"}
    for number in range(9):
        table.upsert(("a", "x", number, number), **keep)
    newest = times(table)[-1]

    assert ends(table, SourceOptions(max_commits=1)) == [newest]
