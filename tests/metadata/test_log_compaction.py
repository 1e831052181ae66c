"""Log compaction of the metadata table: the same records, in fewer blocks."""

from __future__ import annotations

import copy

import pytest

from pyhudi.metadata.compaction import compact_if_due
from pyhudi.metadata.services import log_compact_if_due
from pyhudi.metadata.undo import is_log_compaction
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.queries.validation import validate
from tests.support.golden.folder import Golden
from tests.support.golden.metadata_tables import at, plain
from tests.support.storages.film import InterruptedStorage
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write
from tests.support.tables.with_metadata import KINDS, metadata_of, table_of
from tests.support.writers.dying import deaths, on_clone

GOLDEN = [
    *((version, name) for version in ("0.15.0", "1.0.2", "1.2.0") for name in ("mdt_all_cow", "history_a_mor")),
    ("1.2.0", "mdt_all_mor"),
    ("1.2.0", "mdt_all_mor_prli"),
    ("0.15.0", "mdt_all_mor"),
]
ALWAYS = MetadataOptions(log_compaction=True, log_blocks_min=1)
OFTEN = {
    "metadata_log_compaction_enable": "true",
    "metadata_log_compaction_blocks_threshold": "3",
    "metadata_compact_max_delta_commits": "100",
    "metadata_index_bloom_filter_enable": "true",
    "metadata_global_record_level_index_enable": "true",
    "metadata_global_record_level_index_min_filegroup_count": "1",
}

OPTIMISTIC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "IN_PROCESS",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


def log_compactions(table: TestTable) -> list[Instant]:
    found = metadata_of(table)
    return [instant for instant in found.meta.timeline if is_log_compaction(found, instant)]


@pytest.mark.parametrize(("version", "name"), GOLDEN)
def test_a_log_compacted_metadata_table_of_hudi_has_the_records_that_it_had(
    golden: Golden, version: str, name: str
) -> None:
    path, _ = golden(version, name)
    before = at(path)
    expected = {partition: plain(before.records(partition)) for partition in before.partitions}

    log_compact_if_due(before, ALWAYS)

    found = at(path)
    assert [i for i in found.meta.timeline if is_log_compaction(found, i)]
    assert {partition: plain(found.records(partition)) for partition in found.partitions} == expected
    compact_if_due(found, 1)
    found = at(path)
    assert {partition: plain(found.records(partition)) for partition in found.partitions} == expected


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_metadata_table_that_is_log_compacted_stays_right(version: str, kind: str) -> None:
    table = table_of(version, kind, **OFTEN)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    for number in range(6):
        table.upsert(("a", "x", 2 + number, 11), (f"d{number}", "z", 1, 40))
        assert validate(table.meta) == ()
        table.delete((f"d{number}", "z"))
        assert validate(table.meta) == ()
    assert len(log_compactions(table)) > 1
    assert table.rows() == [("a", "x", 7, 11), ("b", "x", 1, 20), ("c", "y", 1, 30)]


@pytest.mark.thorough
def test_without_the_option_there_is_none() -> None:
    table = table_of("9", **{**OFTEN, "metadata_log_compaction_enable": "false"})
    for number in range(6):
        table.upsert(("a", "x", number, 11))
    assert not log_compactions(table)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_what_a_log_compaction_has_taken_in_can_be_rolled_back(version: str, kind: str) -> None:
    never = {"metadata_log_compaction_enable": "false", "compact_inline": "false"}
    table = table_of(version, kind, **{**OFTEN, **never})
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    for number in range(3):
        table.upsert(("a", "x", 2 + number, 11))
    last = table.upsert(("b", "y", 2, 21), ("e", "z", 1, 50))
    log_compact_if_due(metadata_of(table), ALWAYS)
    assert log_compactions(table)
    assert validate(table.meta) == ()

    rollback_write(table.storage, last.instant_time, WriteOptions.parse(DEFAULTS), table.engine)

    assert validate(table.meta) == ()
    assert table.rows() == [("a", "x", 4, 11), ("b", "y", 1, 20)]
    table.upsert(("b", "y", 3, 22))
    assert validate(table.meta) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("version", [pytest.param("6", marks=pytest.mark.slow), "9"])
def test_a_death_anywhere_leaves_a_metadata_table_that_is_right(version: str) -> None:
    few = {**OFTEN, "metadata_index_bloom_filter_enable": "false", "metadata_log_compaction_enable": "false"}
    table = table_of(version, **few)
    for number in range(3):
        table.upsert(("a", "x", number, 11))
    for left, where in deaths(table, lambda one: log_compact_if_due(metadata_of(one), ALWAYS)):
        assert validate(left.meta) == (), where
        left.upsert(("b", "y", 1, 20))
        assert validate(left.meta) == (), where
        pending = metadata_of(left).meta.timeline.pending().of([ActionKind.LOGCOMPACTION])
        assert not pending.instants, where
        assert left.rows() == [("a", "x", 2, 11), ("b", "y", 1, 20)], where


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_there_is_none_while_an_earlier_write_is_pending(version: str) -> None:
    table = table_of(version, "MERGE_ON_READ", **OFTEN, compact_inline="false", parquet_small_file_limit="0")
    table.options = {**table.options, **OPTIMISTIC}
    table.failed_writes_policy = "LAZY"
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    counted = on_clone(table)
    counted.storage = InterruptedStorage(counted.memory)
    counted.upsert(("a", "x", 2, 11))
    first_file = counted.storage.verbs.index("open_output") + 1

    def others() -> None:
        for number in range(4):
            table.upsert(("b", "y", 2 + number, 21))
        assert not log_compactions(table)

    writer = copy.copy(table)
    writer.storage = InterruptedStorage(table.memory, first_file, others)
    writer.upsert(("a", "x", 2, 11))
    assert validate(table.meta) == ()
    table.upsert(("b", "y", 9, 22))
    assert log_compactions(table)
    assert validate(table.meta) == ()
