"""Upgrade and downgrade: rows and time travel survive every step; what can't be done is refused beforehand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, UnsupportedTable, WriteConflict
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.versions.steps.base import is_ready_for_step
from pyhudi.services.versions.upgrade import StepResult, VersionChange
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write, rows_of
from tests.support.tables.undone import restored, saved
from tests.support.tables.versioned import all_reads, copy_on_write, merge_on_read, take_to


@pytest.mark.thorough
@pytest.mark.parametrize("make", [copy_on_write, merge_on_read])
@pytest.mark.parametrize("path", [(6, 8, 9, 8, 6), (9, 6, 9), (8, 9), (8, 6, 8)])
def test_snapshot_and_time_travel_are_the_same_in_every_version(
    make: Callable[[str], TestTable], path: tuple[int, ...]
) -> None:
    table = make(str(path[0]))
    before = all_reads(table)
    for version in path[1:]:
        result = take_to(table.storage, version)

        assert table.meta.config.table_version == result.target == version
        assert table.meta.config.layout_version == (2 if version >= 8 else 1)
        after = all_reads(table)
        assert {time: after[time] for time in before} == before
    table.options = {**table.options, "hoodie.write.table.version": str(path[-1])}
    table.upsert(("a", "x", 7, 77), ("e", "y", 1, 50))
    expected = [row for row in before[None] if row[0] != "a"] + [("a", "x", 7, 77), ("e", "y", 1, 50)]
    assert table.rows() == sorted(expected, key=repr)


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "target"), [(6, 8), (8, 9), (9, 8), (8, 6)])
def test_log_files_are_compacted_before_the_version_changes(source: int, target: int) -> None:
    table = merge_on_read(str(source))

    result = take_to(table.storage, target)

    assert len(result.compacted) == 1
    assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


@pytest.mark.thorough
def test_a_copied_table_has_wrong_modification_times_and_is_upgraded_right() -> None:
    table = merge_on_read("6")
    before = all_reads(table)
    for entry in table.storage.list(".hoodie"):
        if entry.is_dir:
            continue
        table.storage.set_modified(entry.path, table.clock.now_ms() + 3_600_000)

    take_to(table.storage, 8)

    after = all_reads(table)
    assert {time: after[time] for time in before} == before
    assert all(i.completion_time > i.requested_time for i in table.meta.timeline.completed() if i.completion_time)


def test_completion_times_of_a_downgraded_table_are_modification_times() -> None:
    table = copy_on_write("9")
    before = {i.requested_time: i.completion_time for i in table.meta.timeline.commits()}
    take_to(table.storage, 6)
    assert {i.requested_time: i.completion_time for i in table.meta.timeline.commits()} == before


def test_a_table_that_has_the_version_is_left_alone() -> None:
    table = copy_on_write("9")
    files = {info.path: table.storage.read(info.path) for info in table.storage.walk("")}
    assert not take_to(table.storage, 9).steps
    assert {info.path: table.storage.read(info.path) for info in table.storage.walk("")} == files


@pytest.mark.thorough
@pytest.mark.parametrize("start", [4, 5])
def test_versions_4_and_5_are_taken_up(start: int) -> None:
    table = merge_on_read("6")
    before = all_reads(table)
    update_table_config(table.storage, {"hoodie.table.version": str(start)})
    table.storage.write(".hoodie/.aux/20240101000000000.compaction.requested", b"")

    result = take_to(table.storage, 9)

    assert [step.target for step in result.steps] == [v for v in (5, 6, 8, 9) if v > start]
    assert {time: rows for time, rows in all_reads(table).items() if time in before} == before
    assert not [e for e in table.storage.list(".hoodie/.aux") if e.name.endswith(".requested")]


def test_a_partition_named_default_is_not_taken_past_version_4() -> None:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": "6"})
    table.bulk_insert(("a", "default", 1, 10))
    update_table_config(table.storage, {"hoodie.table.version": "4"})
    with pytest.raises(UnsupportedTable, match="__HIVE_DEFAULT_PARTITION__"):
        take_to(table.storage, 6)
    take_to(table.storage, 6, options={"hoodie.skip.default.partition.validation": "true"})
    assert table.rows() == [("a", "default", 1, 10)]


@pytest.mark.parametrize(("source", "target", "upwards"), [(6, 7, True), (6, 10, True), (8, 5, False), (9, 7, False)])
def test_a_way_that_is_none_is_refused(source: int, target: int, upwards: bool) -> None:
    table = copy_on_write(str(source))
    with pytest.raises(ConfigError, match=f"version {source} can't be"):
        take_to(table.storage, target)


def test_up_is_not_down() -> None:
    table = HudiTable(copy_on_write("6").meta)
    with pytest.raises(ConfigError, match="can't be downgraded to version 8"):
        table.maintenance.downgrade(8)
    with pytest.raises(ConfigError, match="can't be upgraded to version 6"):
        HudiTable(copy_on_write("8").meta).maintenance.upgrade(6)


def test_what_version_8_can_not_say_is_refused_before_anything_moves() -> None:
    table = TestTable(MemoryStorage(), {"hoodie.table.ordering.fields": "ts,v"})
    table.options = {**table.options, "hoodie.datasource.write.precombine.field": "ts,v"}
    table.bulk_insert(("a", "x", 1, 10))
    files = {info.path for info in table.storage.walk("")}
    with pytest.raises(UnsupportedTable, match="one ordering field"):
        take_to(table.storage, 6)
    assert {info.path for info in table.storage.walk("")} == files


def test_complex_keys_of_one_field_are_taken_when_asked_to() -> None:
    options = {"hoodie.datasource.write.keygenerator.type": "COMPLEX", "hoodie.write.table.version": "8"}
    table = TestTable(MemoryStorage(), options)
    table.bulk_insert(("a", "x", 1, 10))
    with pytest.raises(UnsupportedTable, match=r"hoodie\.write\.complex\.keygen\.validation\.enable=false"):
        take_to(table.storage, 9)
    take_to(table.storage, 9, options={"hoodie.write.complex.keygen.validation.enable": "false"})
    assert table.rows() == [("a", "x", 1, 10)]


def test_the_types_of_a_custom_key_generators_fields_are_stored_from_version_8_on() -> None:
    types = {"hoodie.datasource.write.partitionpath.field": "p:SIMPLE"}
    options = {"hoodie.datasource.write.keygenerator.type": "CUSTOM", "hoodie.write.table.version": "6", **types}
    table = TestTable(MemoryStorage(), options)
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 20))

    take_to(table.storage, 8, options=types)

    assert table.meta.config.properties["hoodie.table.partition.fields"] == "p:SIMPLE"
    table.write_as_is("upsert", rows_of(("b", "y", 1, 30)))
    take_to(table.storage, 6)
    assert table.meta.config.properties["hoodie.table.partition.fields"] == "p"
    take_to(table.storage, 9)  # as real Hudi, without the types when nobody says them: writes do then
    table.options = {**options, "hoodie.write.table.version": "9"}
    table.upsert(("c", "y", 1, 40))
    assert table.rows() == [("a", "x", 2, 20), ("b", "y", 1, 30), ("c", "y", 1, 40)]


def test_a_strategy_of_ones_own_is_not_taken_to_version_6() -> None:
    table = merge_on_read("8")
    own = "0f3a3a2e-3b1c-4f0e-9c63-0d1f6b1f3a11"
    changed = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": own}
    update_table_config(table.storage, changed, ("hoodie.compaction.payload.class",))
    with pytest.raises(UnsupportedTable, match=own):
        take_to(table.storage, 6)


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "target"), [(6, 8), (8, 6)])
def test_a_failed_write_is_undone_first_and_a_living_one_is_waited_for(source: int, target: int) -> None:
    table = merge_on_read(str(source))
    writer = TimelineWriter(table.storage, table.meta.config)
    time = f"{int(table.meta.timeline.latest_time or 0) + 1}"
    writer.start(writer.request(time, ActionKind.DELTACOMMIT))
    heartbeat = Heartbeat(table.storage, time, table.clock, 60_000)
    heartbeat.start()
    try:
        with pytest.raises(WriteConflict, match=time):
            take_to(table.storage, target, policy="LAZY")
    finally:
        heartbeat.stop()

    result = take_to(table.storage, target)

    assert result.rolled_back == (time,)
    assert not table.meta.timeline.pending().instants


@pytest.mark.parametrize(("source", "target"), [(6, 8), (8, 6)])
def test_a_change_of_real_hudi_that_died_half_way_is_left_to_real_hudi(source: int, target: int) -> None:
    """It moves instant files before it changes the properties: what it has moved is nowhere else."""
    table = copy_on_write(str(source))
    moved = TestTable(table.memory.clone(), table.options)
    take_to(moved.storage, target)
    ours, theirs = table.meta.config.timeline_path, moved.meta.config.timeline_path
    entry = next(e for e in moved.storage.list(theirs) if e.name.endswith(".commit"))
    time = entry.name.partition(".")[0].partition("_")[0]
    table.storage.write(entry.path, moved.storage.read(entry.path))
    (gone,) = [e for e in table.storage.list(ours) if e.name.startswith(time) and e.name.endswith(".commit")]
    table.storage.delete(gone.path)

    for _ in range(2):
        with pytest.raises(UnsupportedTable, match=f"{time}.*died half-way"):
            take_to(table.storage, target)
        assert table.storage.stat(entry.path) is not None


@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_leftovers_of_a_call_that_died_do_not_stand_in_the_way_of_the_next_one(undo: str) -> None:
    """Even when what they are of was rolled back since."""
    table = copy_on_write("6")
    times = [instant.requested_time for instant in table.meta.timeline.commits()]
    saved(table, times[-2])
    before = {entry.path: table.storage.read(entry.path) for entry in table.storage.list(".hoodie") if not entry.is_dir}
    take_to(table.storage, 8)
    for path, data in before.items():
        if path.rpartition("/")[2][0].isdigit():
            table.storage.write(path, data)
    if undo == "rollback":
        rollback_write(table.storage, times[-1], WriteOptions.parse(DEFAULTS), table.engine)
    else:
        restored(table, times[-2])
    rows = table.rows()

    take_to(table.storage, 8)

    assert not [e for e in table.storage.list(".hoodie") if e.name[0].isdigit()]
    assert table.rows() == rows


def test_a_change_of_version_tells_what_was_done_line_by_line() -> None:
    step = StepResult(8, 9, instants=1200, properties_set={"a": "1"}, properties_removed=("b", "c"))
    change = VersionChange("s3://t", 8, 9, (step,), rolled_back=("001", "002"), compacted=("003",))

    assert str(change).split("\n") == [
        "s3://t: version 8 → 9",
        "  version 8 → 9: 1 properties set, 2 removed, 1,200 instants and 0 archived ones rewritten",
        "  rolled back: 001, 002",
        "  compacted: 003",
    ]
    assert str(VersionChange("s3://t", 9, 9)) == "s3://t has version 9 already"


@pytest.mark.parametrize(("make", "ready"), [(copy_on_write, True), (merge_on_read, False)])
def test_a_table_with_log_files_is_not_ready_for_a_step(make: Callable[[str], TestTable], ready: bool) -> None:
    """They may have come between compaction and taking the lock."""
    table = make("8")
    options = WriteOptions.parse({}, table=table.meta.config)

    assert serve(table.storage, is_ready_for_step, options, table.engine, dry_run=True) is ready
    take_to(table.storage, 9)
    assert serve(table.storage, is_ready_for_step, options, table.engine, dry_run=True)
