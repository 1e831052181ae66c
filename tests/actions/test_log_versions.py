"""Versions of log files below table version 8: each slice counts its own, whatever else is in the partition."""

from __future__ import annotations

import pytest

from pyhudi.model.filenames import LogFileName
from tests.support.tables.merge_on_read import COMMIT_TIME, MergeOnRead


def versions(table: MergeOnRead) -> dict[tuple[str, str], list[int]]:
    """File id and base instant → versions of the log files."""
    found: dict[tuple[str, str], list[int]] = {}
    for path in table.logs():
        name = LogFileName.parse(path.rpartition("/")[2])
        assert name is not None
        found.setdefault((name.file_id, name.instant_time), []).append(name.version)
    return found


@pytest.mark.parametrize("writes", ["aab", "abb", "abab"])
def test_file_groups_of_one_partition_count_their_log_files_apart(writes: str) -> None:
    table = MergeOnRead(
        "6", write_record_merge_mode=COMMIT_TIME, parquet_max_file_size="1", parquet_small_file_limit="0"
    )
    table.bulk_insert(("a", "x", 1, 10))
    table.bulk_insert(("b", "x", 1, 20))
    for n, key in enumerate(writes):
        table.upsert((key, "x", 1, 30 + n))

    counts = sorted(len(found) for found in versions(table).values())

    assert counts == sorted(writes.count(key) for key in set(writes))
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in versions(table).values())


def test_a_slice_that_a_compaction_began_counts_from_one_again() -> None:
    table = MergeOnRead("6", write_record_merge_mode=COMMIT_TIME)
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 1, 11))
    table.upsert(("a", "x", 1, 12))
    table.compact_now()
    before = versions(table)
    table.upsert(("a", "x", 1, 13))

    (added,) = (found for slice_, found in versions(table).items() if slice_ not in before)
    assert added == [1]
    assert table.rows() == [("a", "x", 1, 13)]
