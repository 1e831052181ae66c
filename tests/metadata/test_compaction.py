"""Compaction of the metadata table: the same records, in base files."""

from __future__ import annotations

import pytest

from pyhudi.errors import HudiError
from pyhudi.metadata.compaction import compact_if_due, run_pending_compactions
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from pyhudi.timeline.heartbeat import Heartbeat
from tests.support.golden.folder import Golden
from tests.support.golden.metadata_tables import at, plain
from tests.support.tables.small import Row, TestTable
from tests.support.tables.with_metadata import metadata_of, table_of
from tests.support.writers.dying import on_clone

GOLDEN = [
    (version, name)
    for version in ("0.15.0", "1.0.2", "1.2.0")
    for name in ("mdt_all_cow", "history_a_mor", "skipping_a_cow")
] + [("1.2.0", "mdt_all_mor"), ("1.2.0", "mdt_all_mor_prli"), ("0.15.0", "mdt_all_mor"), ("0.15.0", "mdt_compacted_a")]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), GOLDEN)
def test_a_compacted_metadata_table_of_hudi_has_the_records_that_it_had(
    golden: Golden, version: str, name: str
) -> None:
    path, _ = golden(version, name)
    before = at(path)
    expected = {partition: plain(before.records(partition)) for partition in before.partitions}

    after = compact_if_due(run_pending_compactions(before), 1)

    assert not after.meta.timeline.pending().of([ActionKind.COMPACTION]).instants
    found = at(path)
    for partition in found.partitions:
        assert plain(found.records(partition)) == expected[partition], partition
        assert not any(s.log_files for s in found.slices(partition)), partition
        assert all(s.base_file is not None for s in found.slices(partition)), partition


def die_before_completing(table: TestTable, *rows: Row) -> str:
    """An upsert whose process dies when its update of the metadata table is complete; its instant."""
    rehearsal = on_clone(table)
    rehearsal.upsert(*rows)
    log = rehearsal.memory.log
    kinds = (".commit", ".deltacommit")
    done = [n for n, (verb, path) in enumerate(log, 1) if verb == "create_new" and path.endswith(kinds)]
    table.memory.reset_faults()
    table.memory.fail_at(done[-1])
    with pytest.raises(HudiError):
        table.upsert(*rows)
    table.memory.reset_faults()
    (pending,) = table.meta.timeline.pending().instants
    return pending.requested_time


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_instant_that_is_pending_is_never_in_a_base_file(version: str) -> None:
    table = table_of(version, metadata_compact_max_delta_commits="3")
    table.failed_writes_policy = "LAZY"
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11))
    dead = die_before_completing(table, ("c", "z", 1, 30))
    update = metadata_of(table).meta.timeline.find(dead)
    assert update is not None
    known_since = dead if version == "6" else update.completion_time or ""
    Heartbeat(table.storage, dead, table.clock).beat()  # as if it were at work: nobody takes it back yet
    for number in range(7):
        table.upsert(("b", "y", 2 + number, 21))
        assert validate(table.meta) == ()
        (found,) = metadata_of(table).slices("files")
        assert found.base_instant < known_since
    table.failed_writes_policy = "EAGER"
    for number in range(4):
        table.upsert(("b", "y", 20 + number, 22))
        assert validate(table.meta) == ()
    assert metadata_of(table).meta.timeline.find(dead) is None
    (found,) = metadata_of(table).slices("files")
    assert found.base_instant > known_since
    assert table.rows() == [("a", "x", 2, 11), ("b", "y", 23, 22)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_plan_that_waits_is_executed_before_anything_is_written(version: str) -> None:
    only_files = {"metadata_index_column_stats_enable": "false"}
    table = table_of(version, metadata_compact_max_delta_commits="2", **only_files)
    table.bulk_insert(("a", "x", 1, 10))
    table.memory.reset_faults()
    rehearsal = on_clone(table)
    rehearsal.upsert(("a", "x", 2, 11))
    log = rehearsal.memory.log
    base = next(n for n, (verb, path) in enumerate(log, 1) if verb == "close_output" and path.endswith(".hfile"))
    table.memory.fail_at(base)
    with pytest.raises(HudiError):
        table.upsert(("a", "x", 2, 11))
    table.memory.reset_faults()
    (pending,) = metadata_of(table).meta.timeline.pending().of([ActionKind.COMPACTION]).instants
    assert validate(table.meta) == ()

    table.upsert(("a", "x", 3, 12), metadata_compact_max_delta_commits="100")
    assert validate(table.meta) == ()
    if version == "6":
        done = metadata_of(table).meta.timeline.find(pending.requested_time)
        assert done is not None
        assert done.is_completed
    assert not metadata_of(table).meta.timeline.pending().instants
