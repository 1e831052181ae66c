"""Rollback and restore of instants that the metadata table has compacted, or archived."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.index.record_index import RecordIndexIgnored
from pyhudi.metadata.build import MetadataTableRebuilt
from pyhudi.metadata.compaction import compact_if_due
from pyhudi.metadata.initialization import build_partition
from pyhudi.metadata.schema import file_group_id
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from pyhudi.transaction.instants import drop
from tests.support.tables.small import TestTable
from tests.support.tables.undone import clustering, restored, rolled_back, saved
from tests.support.tables.with_metadata import (
    KINDS,
    NAMES,
    check,
    keep_names,
    metadata_of,
    table_of,
    with_names,
)
from tests.support.writers.dying import deaths


@pytest.fixture(autouse=True)
def names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_names(monkeypatch)  # of tables that ask for them


def compacted(version: str, kind: str, every: str = "1") -> TestTable:
    """With a metadata table of two partitions, compacted with each write, and four writes, of which one has a
    savepoint.
    """
    table = table_of(version, kind, metadata_compact_max_delta_commits=every, compact_inline="false")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    with_names(table)
    table.upsert(("c", "y", 1, 30))
    saved(table)
    table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))
    table.upsert(("a", "x", 3, 12), ("c", "y", 3, 32))
    check(table, "before")
    return table


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_compacted_write_that_is_rolled_back_is_gone_from_all_partitions(version: str, kind: str) -> None:
    table = compacted(version, kind)
    last = table.meta.timeline.commits().instants[-1].requested_time
    table.write("upsert", table.read().select(["id", "p", "ts", "v"])[:1])  # compacts the one before
    rolled_back(table)
    check(table, "what was not compacted")
    assert metadata_of(table).meta.timeline.of([ActionKind.COMMIT]).instants
    before = table.meta.timeline.commits().instants[-1].requested_time
    assert before == last
    rolled_back(table)
    check(table, "what was compacted")
    table.upsert(("e", "x", 1, 50))
    check(table, "afterwards")


@pytest.mark.thorough
@pytest.mark.parametrize("every", ["1", "100"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_restore_over_a_compaction_rebuilds_the_same_partitions(version: str, kind: str, every: str) -> None:
    table = compacted(version, kind, every)
    (save,) = table.meta.timeline.of([ActionKind.SAVEPOINT]).instants
    restored(table, save.requested_time)
    check(table, "restored")
    assert table.meta.config.metadata_partitions == (NAMES, "files")
    table.upsert(("e", "x", 1, 50))
    check(table, "afterwards")
    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30), ("e", "x", 1, 50)]


def restore_to_savepoint(table: TestTable) -> None:
    (save,) = table.meta.timeline.of([ActionKind.SAVEPOINT]).instants
    restored(table, save.requested_time)


DEATHS = [("9", "COPY_ON_WRITE"), ("6", "MERGE_ON_READ")]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind", "act"),
    [(v, k, act) for v, k in DEATHS for act in (restore_to_savepoint, rolled_back)],
)
def test_a_death_anywhere_leaves_a_metadata_table_that_the_next_write_puts_right(
    version: str, kind: str, act: Callable[[TestTable], object]
) -> None:
    table = compacted(version, kind)
    if act is rolled_back:
        table.upsert(("a", "x", 4, 13))
        rolled_back(table)  # the one before was compacted with it
    for attempt, where in deaths(table, act):
        rows = attempt.rows()
        attempt.upsert(("e", "x", 1, 50))
        assert [row for row in attempt.rows() if row[0] == "b"] == [row for row in rows if row[0] == "b"], where
        check(attempt, where)
        assert attempt.meta.config.metadata_partitions == (NAMES, "files"), where


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_that_a_rollback_listed_go_with_the_slice_that_is_rolled_back_next(version: str) -> None:
    table = table_of(version, "MERGE_ON_READ", compact_inline="false")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    clustering(table)
    table.upsert(("a", "x", 2, 11))
    rolled_back(table)
    check(table, "the write to the clustered slice is undone")
    rolled_back(table)
    check(table, "the clustering is undone")
    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20)]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), [("9", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")])
def test_a_restore_goes_on_from_a_dead_one_of_whose_rollbacks_nothing_is_left(version: str, kind: str) -> None:
    """Whoever finishes it learns only from the metadata table which instants the dead restore has undone."""
    table = compacted(version, kind, "100")
    places = []
    for attempt, where in deaths(table, restore_to_savepoint):
        pending = attempt.meta.timeline.pending()
        is_begun = len(attempt.meta.timeline.commits().instants) < len(table.meta.timeline.commits().instants)
        if not (is_begun and pending.of([ActionKind.RESTORE]).instants):
            continue
        places.append(where)
        for rollback in pending.of([ActionKind.ROLLBACK]):
            drop(rollback, attempt.meta)
        attempt.upsert(("e", "x", 1, 50))
        check(attempt, where)
        assert attempt.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30), ("e", "x", 1, 50)], where
    assert places


@pytest.mark.thorough
def test_a_partition_that_is_built_when_the_first_instants_were_archived_hides_no_records() -> None:
    table = table_of(
        "9",
        metadata_compact_max_delta_commits="3",
        keep_min_commits="2",
        keep_max_commits="3",
        clean_commits_retained="1",
    )
    for n in range(14):
        table.upsert((f"k{n % 5}", "x", n, n))
    found = metadata_of(table)
    assert found.meta.timeline.find("0" * 17) is None
    files = found.records("files")

    built = build_partition(found, NAMES, {file_group_id(NAMES, 0): []})
    assert built.meta.timeline.find("0" * 17) is not None
    assert built.records("files").to_pylist() == files.to_pylist()
    assert metadata_of(table).records("files").to_pylist() == files.to_pylist()


@pytest.mark.thorough
@pytest.mark.parametrize("merged_by", ["build", "compaction"])
@pytest.mark.parametrize(("version", "kind"), KINDS[2:])
def test_while_a_merged_delete_is_taken_back_its_rows_are_found_by_key_and_by_the_next_upsert(
    version: str, kind: str, merged_by: str
) -> None:
    few = {"metadata_global_record_level_index_min_filegroup_count": "1", "index_type": "GLOBAL_RECORD_LEVEL_INDEX"}
    table = table_of(version, kind, compact_inline="false", metadata_global_record_level_index_enable="true", **few)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20), ("c", "z", 1, 30))
    table.delete(("b", "y"))
    if merged_by == "build":
        HudiTable(table.meta).metadata.rebuild()
    else:
        compact_if_due(metadata_of(table), 1)
    undone = 0
    for attempt, where in deaths(table, rolled_back):
        is_back = len(attempt.meta.timeline.commits().instants) == 1
        scan = HudiTable(attempt.meta).scan(where="id = 'b'", options={"hoodie.pyhudi.read.unique.keys": "true"})
        assert scan.to_arrow().num_rows == is_back, where
        undone += is_back
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordIndexIgnored)
            attempt.upsert(("b", "y", 3, 22))
        assert attempt.rows() == [("a", "x", 1, 10), ("b", "y", 3, 22), ("c", "z", 1, 30)], where
    assert undone


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS[2:])
def test_statistics_and_keys_are_rebuilt_without_the_files_that_a_rollback_deleted(version: str, kind: str) -> None:
    few = {"metadata_global_record_level_index_min_filegroup_count": "1"}
    index = {"metadata_global_record_level_index_enable": "true", **few}
    table = table_of(version, kind, compact_inline="false", **index)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("b", "y", 2, 21), ("e", "z", 1, 50))
    compact_if_due(metadata_of(table), 1)
    rolled_back(table)
    assert validate(table.meta) == ()
    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20)]
    table.upsert(("b", "y", 3, 22))
    assert validate(table.meta) == ()


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_write_is_gone_that_a_build_took_in_before_a_compaction(version: str, kind: str) -> None:
    few = {"metadata_global_record_level_index_min_filegroup_count": "1"}
    index = {"metadata_global_record_level_index_enable": "true", **few}
    table = table_of(version, kind, compact_inline="false", **index)
    table.upsert(("a", "x", 1, 10))
    HudiTable(table.meta).metadata.rebuild()
    table.upsert(("b", "y", 1, 20))
    compact_if_due(metadata_of(table), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableRebuilt)
        rolled_back(table)
        rolled_back(table)
        assert table.rows() == []
        assert validate(table.meta) == ()
        table.upsert(("c", "x", 1, 30))
