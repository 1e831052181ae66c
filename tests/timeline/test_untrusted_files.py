"""The files of a timeline are untrusted: reading any of them returns a value or raises a HudiError."""

from __future__ import annotations

import json
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.filegroup.write.markers import list_markers
from pyhudi.filegroup.write.partition_metadata import partition_creation_time
from pyhudi.formats.timeline.archive_entries import archive_entry
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.filenames import BaseFileName, InstantFileName, LogFileName, MarkerName, instant_of
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.archived_timeline import ArchiveLog
from pyhudi.timeline.listing import load_timeline
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.timeline.lsm_manifest import HistoryFile, Manifest, load_manifest, write_manifest
from pyhudi.timeline.table_properties import load_table_config
from tests.support.sweeps import examples
from tests.support.values.damaged import damaged_bytes, with_other_values

TIME = "20240101000000000"
BODY = encode_commit(CommitMetadata({"x": (WriteStat("f", "x/f", "x"),)}, {"schema": "{}"}), ActionKind.COMMIT, 8)
MANIFEST = {"files": [{"fileName": f"{TIME}_{TIME}_0.parquet", "fileLen": 1}]}
WORDS = ("f-0", "0-1-0", "log", "parquet", "commit", "clean", "inflight", "a" * 300)
PARTS = (TIME, "1", "\u00b2", "\u0663", "_", ".", "/", *WORDS)
NAMES = st.lists(st.sampled_from(PARTS), max_size=9).map("".join)


@given(NAMES)
def test_any_name_is_parsed_to_digits_or_passed_over(name: str) -> None:
    for layout in (1, 2):
        parsed = InstantFileName.parse(name, layout)
        assert parsed is None or int(parsed.requested_time) == int(parsed.requested_time.encode("ascii"))
    for data in (BaseFileName.parse(name), LogFileName.parse(name)):
        assert data is None or int(data.instant_time.encode("ascii")) >= 0
    assert instant_of(name) is None or instant_of(name) in name
    MarkerName.parse(name)


def test_numbers_of_thousands_of_digits_are_in_no_name() -> None:
    assert LogFileName.parse(f".f_1.log.{'9' * 5000}_1-0-1") is None


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(NAMES.filter(lambda name: "/" not in name and name not in ("", ".", "..")), max_size=4), st.integers())
def test_a_timeline_of_any_names_and_times_is_loaded(names: list[str], modified_ms: int) -> None:
    for version in ("6", "9"):
        config = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": version})
        storage = MemoryStorage()
        for name in names:
            with suppress(HudiError):  # what a storage does not take
                storage.write(f"{config.timeline_path}/{name}", b"")
                storage.set_modified(f"{config.timeline_path}/{name}", modified_ms)
        assert len(load_timeline(storage, config)) <= len(names)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_manifest_gives_files_or_an_error_of_the_family(data: st.DataObject) -> None:
    storage = MemoryStorage()
    storage.write("h/_version_", data.draw(st.sampled_from([b"1", b"\xb2", "\u00b2".encode(), b"9" * 5000, b"-1"])))
    forged = json.dumps(data.draw(with_other_values(MANIFEST, in_json=True))).encode()
    storage.write("h/manifest_1", data.draw(st.one_of(st.just(forged), damaged_bytes(forged))))
    with suppress(HudiError):
        assert all(file.level >= 0 and file.first <= file.last for file in load_manifest(storage, "h").files)


@pytest.mark.parametrize("length", ["1e999", "-1", '"1"', "9" * 5000, "true", "null.5"])
def test_a_manifest_with_a_length_that_is_none_is_refused(length: str) -> None:
    storage = MemoryStorage()
    storage.write("h/_version_", b"1")
    storage.write("h/manifest_1", f'{{"files": [{{"fileName": "1_2_0.parquet", "fileLen": {length}}}]}}'.encode())
    with pytest.raises(CorruptFile, match="a manifest of archived instants"):
        load_manifest(storage, "h")


def history_of(data: bytes) -> LsmHistory:
    storage = MemoryStorage()
    name = HistoryFile.name_of(TIME, TIME, 0)
    storage.write(f"h/{name}", data)
    write_manifest(storage, "h", Manifest(1, (HistoryFile(name, len(data)),)))
    return LsmHistory(storage, "h")


def parquet_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


ROW = {"instantTime": TIME, "completionTime": TIME, "action": "commit", "metadata": BODY, "plan": None, "version": 1}
HISTORY = parquet_of(pa.Table.from_pylist([ROW], HISTORY_SCHEMA))
OTHER_COLUMNS = (
    pa.array([1]),
    pa.array([None], pa.string()),
    pa.array([b"\xff"]),
    pa.array([[TIME]]),
    pa.array([{"a": 1}]),
    pa.array([2**62], pa.timestamp("us")),
    pa.array([2.5]),
    pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]),
)


def read_all(history: LsmHistory | ArchiveLog) -> None:
    with suppress(HudiError):
        assert all(isinstance(i, Instant) for i in history.times())
        for found in history.instants(TIME, TIME):
            found.commit()


@settings(max_examples=examples(40), deadline=None)
@given(damaged_bytes(HISTORY))
def test_any_damaged_history_file_gives_instants_or_an_error_of_the_family(data: bytes) -> None:
    read_all(history_of(data))


@pytest.mark.parametrize("column", HISTORY_SCHEMA.names)
def test_history_columns_of_other_types_give_instants_or_an_error_of_the_family(column: str) -> None:
    for values in OTHER_COLUMNS:
        table = pa.Table.from_pylist([ROW], HISTORY_SCHEMA)
        read_all(history_of(parquet_of(table.set_column(table.column_names.index(column), column, values))))


def test_an_archived_instant_whose_double_says_nothing_of_its_completion_is_read() -> None:
    rows = [ROW, {**ROW, "action": "compaction", "completionTime": None}]
    history = history_of(parquet_of(pa.Table.from_pylist(rows, HISTORY_SCHEMA)))
    assert {instant.requested_time for instant in history.times()} == {TIME}


def archive_file(**changed: object) -> bytes:
    storage = MemoryStorage()
    entry = {**archive_entry(TIME, ActionKind.COMMIT, State.COMPLETED, BODY, TIME), **changed}
    path = ArchiveLog(storage, "a").append([[entry]], 1)
    assert path is not None
    return storage.read(path)


ARCHIVE = archive_file()


@settings(max_examples=examples(40), deadline=None)
@given(damaged_bytes(ARCHIVE))
def test_any_damaged_archive_gives_instants_or_an_error_of_the_family(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write("a/.commits_.archive.1_1-0-1", data)
    read_all(ArchiveLog(storage, "a"))


def test_an_entry_that_does_not_fit_its_schema_is_not_archived() -> None:
    with pytest.raises(CorruptFile, match="can't be archived"):
        archive_file(hoodieCleanMetadata={"startCleanTime": 1})


@settings(max_examples=examples(60), deadline=None)
@given(damaged_bytes(b"x/f_0-1-0_1.parquet.marker.CREATE\nx/f_0-1-0_2.parquet.marker.MERGE\n"))
def test_any_file_of_markers_gives_markers_or_an_error_of_the_family(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/.temp/1/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(".hoodie/.temp/1/MARKERS0", data)
    with suppress(HudiError):
        assert all(".." not in marker.data_path.split("/") for marker in list_markers(storage, "1"))


@settings(max_examples=examples(60), deadline=None)
@given(damaged_bytes(b"hoodie.table.name=t\\u00e9\nhoodie.table.version=9\nhoodie.table.checksum=1\n"))
def test_any_properties_give_a_table_or_an_error_of_the_family(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/hoodie.properties", data)
    storage.write("x/.hoodie_partition_metadata", data)
    with suppress(HudiError):
        config = load_table_config(storage, FixedClock(0))
        assert config.table_version >= 0
    with suppress(HudiError):
        partition_creation_time(storage, "x")


@pytest.mark.parametrize("version", ["\\u00b2", "9" * 5000, "", "-1", "3\\ud800"])
def test_properties_with_a_version_that_is_none_are_refused(version: str) -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/hoodie.properties", f"hoodie.table.name=t\nhoodie.table.version={version}\n".encode())
    with pytest.raises(CorruptFile, match="expected properties with a right"):
        load_table_config(storage, FixedClock(0))


@pytest.mark.parametrize("completed", [["20240101000000009", None], ["20240101000000009", "20240101000000005"]])
def test_instants_that_are_archived_twice_stand_in_the_order_of_their_completion(completed: list[str | None]) -> None:
    storage = MemoryStorage()
    log = ArchiveLog(storage, "a")
    entry = archive_entry(TIME, ActionKind.COMMIT, State.COMPLETED, BODY, TIME)
    for time in completed:
        log.append([[{**entry, "stateTransitionTime": time}]], 1)

    times = [instant.completion_time for instant in log.times()]

    assert times == sorted(completed, key=lambda time: time or "")
