"""TimelineWriter: names, order of states, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import PathNotFound, WriteConflict
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.table_config import NewTable, TableConfig, new_table_properties
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage
from pyhudi.timeline.listing import load_timeline
from pyhudi.timeline.read import TimelineReader
from pyhudi.timeline.table_properties import create_table
from pyhudi.transaction.instants import TimelineWriter
from tests.support.storages.power import PowerStorage

T, C = "20250713010535797", "20250713010536405"
VERSIONS = (6, 8, 9)
FOLDERS = {6: ".hoodie/", 8: ".hoodie/timeline/", 9: ".hoodie/timeline/"}
SCHEMA = '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"id","type":"string"}]}'


def writer(version: int) -> TimelineWriter:
    properties = new_table_properties(NewTable("t", table_version=version, timezone="UTC"))
    return TimelineWriter(MemoryStorage(), TableConfig(properties))


def reader(writer: TimelineWriter) -> TimelineReader:
    return TimelineReader(writer.storage, writer.config)


def names(writer: TimelineWriter) -> list[str]:
    return [info.name for info in writer.storage.list(writer.config.timeline_path)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_goes_through_three_files_that_all_stay(version: int) -> None:
    target = writer(version)

    requested = target.request(T, ActionKind.COMMIT)
    inflight = target.start(requested, b"profile")
    completed = target.complete(inflight, C, b"body")

    last = f"{T}.commit" if version == 6 else f"{T}_{C}.commit"
    assert names(target) == sorted([f"{T}.commit.requested", f"{T}.inflight", last])
    assert completed == Instant(T, ActionKind.COMMIT, State.COMPLETED, C)
    assert load_timeline(target.storage, target.config).instants == (completed,)
    bodies = [reader(target).read_body(completed, state) for state in State]
    assert bodies == [b"", b"profile", b"body"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("action", "becomes"),
    [
        (ActionKind.COMPACTION, ActionKind.COMMIT),
        (ActionKind.LOGCOMPACTION, ActionKind.DELTACOMMIT),
        (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT),
        (ActionKind.ROLLBACK, ActionKind.ROLLBACK),
    ],
)
def test_services_complete_under_the_name_of_what_they_become(
    version: int, action: ActionKind, becomes: ActionKind
) -> None:
    target = writer(version)

    completed = target.complete(target.start(target.request(T, action, b"plan")), C, b"body")

    assert completed.action is becomes
    assert load_timeline(target.storage, target.config).instants == (completed,)
    assert reader(target).read_body(completed, State.REQUESTED) == b"plan"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_savepoint_has_no_requested_file(version: int) -> None:
    target = writer(version)

    target.complete(target.start(Instant(T, ActionKind.SAVEPOINT, State.REQUESTED)), C, b"body")

    assert f"{T}.savepoint.requested" not in names(target)
    assert len(names(target)) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_savepoint_is_deleted_completed_file_first_and_a_pending_one_too(version: int) -> None:
    target = writer(version)
    inflight = target.start(Instant(T, ActionKind.SAVEPOINT, State.REQUESTED))
    completed = target.complete(inflight, C, b"body")
    (file,) = [name for name in names(target) if not name.endswith(".inflight")]
    storage = target.storage
    assert isinstance(storage, MemoryStorage)
    storage.reset_faults()

    target.delete_savepoint(completed)

    folder = FOLDERS[version]
    assert storage.log == (("delete", f"{folder}{file}"), ("delete", f"{folder}{T}.savepoint.inflight"))
    target.delete_savepoint(target.start(Instant(T, ActionKind.SAVEPOINT, State.REQUESTED)))
    assert names(target) == []


def test_a_time_that_another_writer_took_is_a_conflict() -> None:
    target = writer(9)
    target.request(T, ActionKind.COMMIT)

    with pytest.raises(WriteConflict, match=T):
        target.request(T, ActionKind.COMMIT)


def test_states_cannot_be_skipped() -> None:
    target = writer(9)

    with pytest.raises(WriteConflict, match="is missing"):
        target.start(Instant(T, ActionKind.COMMIT, State.REQUESTED))
    with pytest.raises(WriteConflict, match="is missing"):
        target.complete(target.request(T, ActionKind.COMMIT), C, b"")
    assert names(target) == [f"{T}.commit.requested"]


def test_a_writer_that_was_rolled_back_cannot_complete() -> None:
    target = writer(9)
    inflight = target.start(target.request(T, ActionKind.COMMIT))
    target.delete_files(inflight)

    with pytest.raises(WriteConflict, match="rolled it back"):
        target.complete(inflight, C, b"")
    assert names(target) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_pending_files_are_deleted_inflight_first(version: int) -> None:
    target = writer(version)
    inflight = target.start(target.request(T, ActionKind.COMMIT))
    storage = target.storage
    assert isinstance(storage, MemoryStorage)
    storage.reset_faults()

    target.delete_files(inflight)

    folder = FOLDERS[version]
    assert storage.log == (("delete", f"{folder}{T}.inflight"), ("delete", f"{folder}{T}.commit.requested"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_write_is_reverted_to_inflight_and_can_then_be_deleted(version: int) -> None:
    target = writer(version)
    completed = target.complete(target.start(target.request(T, ActionKind.DELTACOMMIT)), C, b"body")
    target.storage.delete(f"{FOLDERS[version]}{T}.deltacommit.requested")

    inflight = target.revert_to_inflight(completed)

    assert inflight == Instant(T, ActionKind.DELTACOMMIT, State.INFLIGHT)
    assert names(target) == [f"{T}.deltacommit.inflight", f"{T}.deltacommit.requested"]
    target.delete_files(inflight)
    assert names(target) == []


def test_a_reverted_compaction_is_a_compaction_again() -> None:
    target = writer(9)
    completed = target.complete(target.start(target.request(T, ActionKind.COMPACTION, b"plan")), C, b"body")

    inflight = target.revert_to_inflight(completed)

    assert inflight.action is ActionKind.COMPACTION
    assert target.revert_to_requested(inflight).state is State.REQUESTED
    assert names(target) == [f"{T}.compaction.requested"]


def test_a_body_of_a_state_that_was_not_reached_is_path_not_found() -> None:
    target = writer(9)
    requested = target.request(T, ActionKind.COMMIT)

    for state in (State.INFLIGHT, State.COMPLETED):
        with pytest.raises(PathNotFound, match=T):
            reader(target).read_body(requested.at(state, C if state is State.COMPLETED else None), state)


def test_a_completed_file_that_0x_wrote_into_layout_2_is_read() -> None:
    target = writer(9)
    target.storage.write(f".hoodie/timeline/{T}.commit", b"{}")
    (instant,) = load_timeline(target.storage, target.config)

    assert reader(target).read_body(instant, State.COMPLETED) == b"{}"


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_rs_sees_the_table_and_its_commit(version: int, tmp_path: Path) -> None:
    hudi = pytest.importorskip("hudi", reason="hudi-rs has no wheel for this platform")
    storage = LocalStorage(str(tmp_path / "t"))
    properties = new_table_properties(
        NewTable("t", table_version=version, timezone="UTC", record_key_fields=("id",), partition_fields=("p",))
    )
    config = create_table(storage, properties, FixedClock(1_752_368_735_000))
    target = TimelineWriter(storage, config)
    body = CommitMetadata({}, {"schema": SCHEMA}, OperationType.INSERT)
    profile = CommitMetadata({}, {}, OperationType.INSERT)
    inflight = target.start(target.request(T, ActionKind.COMMIT), encode_commit(profile, ActionKind.COMMIT, version))
    target.complete(inflight, C, encode_commit(body, ActionKind.COMMIT, version))
    target.start(target.request("20250713010535799", ActionKind.COMMIT))  # pending: not to be seen

    table = hudi.HudiTableBuilder.from_base_uri(storage.root).build()

    timeline = table.get_timeline()
    (commit,) = timeline.get_completed_commits()
    assert (commit.timestamp, commit.action) == (T, "commit")
    assert "INSERT" in timeline.get_instant_metadata_in_json(commit)
    assert (table.table_name, table.table_type, table.timezone.lower()) == ("t", "COPY_ON_WRITE", "utc")
    for key, value in properties.items():
        assert table.hudi_options()[key] == value


def test_the_inflight_file_is_gone_from_the_disk_before_its_plan_is_deleted() -> None:
    properties = new_table_properties(NewTable("t", table_version=9, timezone="UTC"))
    target = TimelineWriter(PowerStorage(), TableConfig(properties))
    inflight = target.start(target.request(T, ActionKind.COMMIT), b"")

    target.delete_files(inflight)

    events = target.storage.events[-3:]  # type: ignore[attr-defined]
    names = [(event.verb, event.path.rpartition("/")[2]) for event in events]
    assert names == [("delete", f"{T}.inflight"), ("sync", f"{T}.inflight"), ("delete", f"{T}.commit.requested")]
