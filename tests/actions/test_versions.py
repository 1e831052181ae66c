"""Upgrade and downgrade: rows, time travel, archives and real Hudi's own properties survive every step."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, UnsupportedTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.file_system_view import FileSystemView
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.timeline.history import load_history
from pyhudi.timeline.table_properties import load_table_config, update_table_config
from pyhudi.timeline.write import TimelineWriter
from tests.actions.merge_on_read import MergeOnRead
from tests.actions.tables import TestTable
from tests.actions.versioned import all_reads, take_to
from tests.conftest import GoldenTable
from tests.golden.rows import differences

Golden = Callable[[str, str], GoldenTable]

BY_VALUE = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
# Keys that say which metadata table there is; PyHudi has taken it out.
METADATA_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def copy_on_write(version: str) -> TestTable:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": version})
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))
    table.delete(("b", "x"))
    return table


def merge_on_read(version: str) -> TestTable:
    """With a compaction in the middle, and log files before and after it."""
    table = MergeOnRead(version, datasource_write_payload_class=BY_VALUE)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.upsert(("a", "x", 2, 11), ("c", "y", 4, 99))
    table.delete(("b", "x"))
    table.compact_now()
    table.upsert(("a", "x", 3, 12), ("d", "z", 1, 40))
    table.upsert(("a", "x", 2, 99), ("c", "y", 6, 31))
    return table


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


@pytest.mark.parametrize(("source", "target"), [(6, 8), (8, 9), (9, 8), (8, 6)])
def test_log_files_are_folded_before_the_version_changes(source: int, target: int) -> None:
    table = merge_on_read(str(source))

    result = take_to(table.storage, target)

    assert len(result.compacted) == 1
    assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


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
        table.downgrade(8)
    with pytest.raises(ConfigError, match="can't be upgraded to version 6"):
        HudiTable(copy_on_write("8").meta).upgrade(6)


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


def test_a_strategy_of_ones_own_is_not_taken_to_version_6() -> None:
    table = merge_on_read("8")
    own = "0f3a3a2e-3b1c-4f0e-9c63-0d1f6b1f3a11"
    changed = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": own}
    update_table_config(table.storage, changed, ("hoodie.compaction.payload.class",))
    with pytest.raises(UnsupportedTable, match=own):
        take_to(table.storage, 6)


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


# ---- against real Hudi's own upgrades and downgrades


def golden_stage(golden: Golden, name: str) -> tuple[Storage, dict[str, Any]]:
    folder, description = golden("1.2.0", name)
    return open_storage(str(folder)), description


def copied(storage: Storage, tmp_path: Path, name: str) -> Storage:
    shutil.copytree(storage.root, tmp_path / name, copy_function=shutil.copy2)
    return open_storage(str(tmp_path / name))


def taken_to(storage: Storage, version: int) -> Storage:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableRemoved)
        take_to(storage, version)
    return storage


STEPS = [("1_v6", "2_v8"), ("2_v8", "3_v9"), ("4_v9", "5_v8"), ("5_v8", "6_v6")]


@pytest.mark.parametrize(("before", "after"), STEPS)
def test_properties_and_rows_are_those_of_real_hudis_own_step(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    taken_to(ours, description["table_version"])

    expected = dict(load_table_config(theirs).properties)
    found = dict(load_table_config(ours).properties)
    for key in METADATA_KEYS:
        expected.pop(key, None)
        found.pop(key, None)
    assert found == expected
    rows = HudiTable.open(ours.root).scan().to_arrow()
    wanted = [{k: v for k, v in row.items() if k != "_hoodie_file_name"} for row in description["expected"]["snapshot"]]
    assert differences(wanted, rows.select([name for name in rows.column_names if name in wanted[0]])) == []


@pytest.mark.parametrize(("before", "after"), [("1_v6", "2_v8"), ("5_v8", "6_v6")])
def test_instant_files_are_those_of_real_hudis_own_step(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    taken_to(ours, description["table_version"])

    expected, found = decoded(theirs), decoded(ours)
    assert found.keys() >= expected.keys()
    assert {key: found[key] for key in expected} == expected


# Real Hudi reads delta commits as commits on the way, which takes the fields of log files off them, and into version 6
# it writes fields that no release for version 6 knows.
LOST = ("baseFile", "logFiles", "logOffset", "logVersion", "recordsStats")
UNKNOWN_IN_6 = ("numUpdates", "prevBaseFile", "totalLogBlocksScanTimeMs", "totalLogBlocksSize", "totalLogReadTimeMs")


def decoded(storage: Storage) -> dict[str, Any]:
    """Instant files by name without completion time (those of an unzipped table are coarse), bodies decoded."""
    config = load_table_config(storage)
    bodies: dict[str, Any] = {}
    for entry in storage.list(config.timeline_path):
        if entry.is_dir or not entry.name[:1].isdigit():
            continue
        data = storage.read(entry.path)
        name = entry.name.partition(".")[0].partition("_")[0] + "." + entry.name.partition(".")[2]
        if name.endswith(("commit.requested", "savepoint.requested")):
            continue  # real Hudi makes an empty body of no body
        body = next(fastavro.reader(io.BytesIO(data))) if data.startswith(b"Obj") else json.loads(data or b"null")
        if isinstance(body, dict):
            for stat in itertools.chain(*(body.get("partitionToWriteStats") or {}).values()):
                for field in (*LOST, *UNKNOWN_IN_6, "totalValidLogBlocks"):
                    stat.pop(field, None)
        bodies[name] = body
    return bodies


@pytest.mark.parametrize(("before", "after"), [("1_v6", "2_v8"), ("5_v8", "6_v6")])
def test_the_archive_holds_at_least_what_real_hudi_takes_along(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    archived_before = archive_of(ours)
    taken_to(ours, description["table_version"])

    found, expected = archive_of(ours), archive_of(theirs)
    assert found == archived_before
    missed = set(found) - set(expected)
    # Real Hudi's downgrade drops one instant whenever it writes out a full batch of ten.
    assert len(missed) == (1 if after == "6_v6" else 0)
    assert {key: found[key] for key in expected} == expected


def archive_of(storage: Storage) -> dict[tuple[str, str], Any]:
    meta = MetaClient.load(storage)
    found = {}
    for archived in load_history(storage, meta.config).instants():
        commit = archived.commit()
        stats = None if commit is None else sorted((s.path, s.num_writes, s.prev_commit) for s in commit.stats())
        instant = archived.instant
        found[instant.requested_time, instant.action.value] = (instant.completion_time, stats)
    return found


def test_going_up_and_down_again_adds_nothing_to_the_archive(golden: Golden) -> None:
    storage, _ = golden_stage(golden, "upgrade_a_mor_1_v6")
    before = archive_of(storage)
    names = {entry.name for entry in storage.list(".hoodie/archived")}
    taken_to(storage, 9)
    assert archive_of(storage) == before
    taken_to(storage, 6)
    assert archive_of(storage) == before
    assert {entry.name for entry in storage.list(".hoodie/archived")} == names
