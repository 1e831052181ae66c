"""The archived timeline: real Hudi's archives are read in full, and the merge tree keeps all of its instants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.timeline.archive_entries import encode_entries, entries_of
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA, read_history_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.archived_timeline import ArchiveLog, archive_log, load_archived_timeline, lsm_history
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.timeline.lsm_manifest import load_manifest
from tests.support.golden.folder import Golden
from tests.support.sweeps import examples

LSM_TABLES = [("1.0.2", "history_a_mor"), ("1.2.0", "history_a_mor"), ("1.2.0", "history_a_cow")]
WRITES = {ActionKind.COMMIT, ActionKind.DELTACOMMIT, ActionKind.REPLACECOMMIT}


def opened(golden: Golden, version: str, name: str) -> tuple[Storage, MetaClient, dict[str, Any]]:
    path, description = golden(version, name)
    storage = open_storage(path)
    return storage, MetaClient.load(storage), description["expected"]


def digest(data: bytes | None) -> str | None:
    return None if data is None else f"{len(data)} bytes sha256 {hashlib.sha256(data).hexdigest()[:16]}"


@pytest.mark.parametrize(("version", "name"), LSM_TABLES)
def test_every_row_of_a_history_by_real_hudi_is_read_with_its_bytes(golden: Golden, version: str, name: str) -> None:
    storage, meta, expected = opened(golden, version, name)
    history = lsm_history(storage, meta.config)
    current = {file.name for file in load_manifest(storage, history.folder).files}
    rows = [row for file in current for row in expected["history_rows"][file]]

    found = [
        {
            "instantTime": i.instant.requested_time,
            "completionTime": i.instant.completion_time,
            "action": i.instant.action.value,
            "metadata": digest(i.metadata),
            "plan": digest(i.plan),
            "version": 1,
        }
        for i in history.instants()
    ]

    assert found == sorted(rows, key=lambda row: row["instantTime"], reverse=True)
    assert [(i.requested_time, i.completion_time) for i in history.times()] == [
        (row["instantTime"], row["completionTime"]) for row in reversed(found)
    ]


@pytest.mark.parametrize(("version", "name"), [("0.15.0", "history_a_mor"), *LSM_TABLES])
def test_archived_commits_add_up_to_what_real_hudi_shows(golden: Golden, version: str, name: str) -> None:
    storage, meta, expected = opened(golden, version, name)

    shown = {}
    for archived in load_archived_timeline(storage, meta.config).instants():
        commit = archived.commit()
        if commit is not None:
            stats = commit.stats()
            shown[archived.instant.requested_time] = (
                archived.instant.completion_time,
                sum(stat.total_write_bytes for stat in stats),
                sum(stat.num_writes for stat in stats),
                sum(stat.num_update_writes for stat in stats),
                len(commit.partition_to_write_stats),
            )

    hudis = {
        row["commit_time"]: (
            row.get("state_transition_time", row.get("completion_time")),
            row["total_bytes_written"],
            row["total_records_written"],
            row["total_update_records_written"],
            row["total_partitions_written"],
        )
        for row in expected["show_archived_commits"]
    }
    assert hudis
    assert {time: shown[time][1:] for time in hudis} == {time: row[1:] for time, row in hudis.items()}
    if version == "0.15.0":
        assert {time: shown[time][0] for time in hudis} == {time: row[0] for time, row in hudis.items()}


@pytest.mark.parametrize("stage", ["upgrade_a_mor_2_v8", "upgrade_a_mor_3_v9", "upgrade_a_mor_6_v6"])
def test_upgrades_and_downgrades_by_real_hudi_lose_and_double_no_archived_instant(golden: Golden, stage: str) -> None:
    storage, meta, _ = opened(golden, "1.2.0", "upgrade_a_mor_1_v6")
    before = {i.requested_time for i in load_archived_timeline(storage, meta.config).times()}
    storage, meta, _ = opened(golden, "1.2.0", stage)
    history = load_archived_timeline(storage, meta.config)

    times = [i.requested_time for i in history.times()]

    assert before <= set(times)
    assert len(times) == len(set(times))
    assert [i.instant for i in history.instants()] == list(reversed(history.times()))
    # Rows of converted files are not sorted, so their names must not be taken for time ranges.
    some = times[len(times) // 3]
    assert [i.requested_time for i in history.times(some, some)] == [some]


def test_entries_of_version_6_are_written_as_real_hudi_writes_them(golden: Golden) -> None:
    path, _ = golden("0.15.0", "history_a_mor")
    storage = open_storage(path)
    for info in storage.list(".hoodie/archived"):
        for block in scan_log(storage, info.path):
            assert isinstance(block, LogBlock)
            entries = list(entries_of(block))
            memory = MemoryStorage()
            memory.write("a", encode_entries(entries))
            (again,) = scan_log(memory, "a")
            assert isinstance(again, LogBlock)
            assert list(entries_of(again)) == entries
            assert again.frame.header.keys() == block.frame.header.keys()
            assert fields_of(again.schema_json) == fields_of(block.schema_json)


def fields_of(schema: str) -> dict[str, list[str]]:
    """Record → its fields with their types, in order; where a record is spelled out does not matter."""
    records: dict[str, list[str]] = {}

    def kind(node: Any) -> str:
        if isinstance(node, list):
            return "|".join(map(kind, node))
        if not isinstance(node, dict):
            return str(node)
        if node["type"] == "record":
            records.setdefault(node["name"], [f"{f['name']} {kind(f['type'])}" for f in node["fields"]])
            return str(node["name"])
        return {"array": "[{}]", "map": "{{{}}}"}.get(node["type"], node["type"]).format(
            kind(node.get("items", node.get("values", "")))
        )

    kind(json.loads(schema))
    # 0.15 knows no extra metadata of an index partition; nothing of that kind is archived.
    records.pop("HoodieIndexPartitionInfo", None)
    return records


# ---- the merge tree --------------------------------------------------------------------------------------------------


def rows(*times: str) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"instantTime": t, "completionTime": t + "9", "action": "clean", "metadata": t.encode(), "version": 1}
            for t in times
        ],
        HISTORY_SCHEMA,
    )


def made() -> LsmHistory:
    return LsmHistory(MemoryStorage(), ".hoodie/timeline/history", names_are_ranges=True)


@settings(max_examples=examples(25), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=14),
    batch_size=st.integers(2, 4),
    kept=st.integers(1, 3),
    bounds=st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_whatever_is_merged_and_cleaned_every_range_of_time_is_read_whole(
    sizes: list[int], batch_size: int, kept: int, bounds: tuple[int, int]
) -> None:
    history, model = made(), list[str]()
    for size in sizes:
        batch = [f"{100 + len(model) + n}" for n in range(size)]
        history.append(rows(*batch))
        model += batch
        merged = history.compact(batch_size, 1 << 30)
        history.clean(kept + len(merged))

    since, until = (f"{100 + bound}" for bound in bounds)
    assert [i.requested_time for i in history.times()] == model
    assert [i.metadata for i in history.instants()] == [t.encode() for t in reversed(model)]
    assert [i.requested_time for i in history.times(since, until)] == [t for t in model if since <= t <= until]
    assert [i.instant for i in history.instants(since, until)] == list(reversed(history.times(since, until)))
    levels = [file.level for file in history.files()]
    assert all(levels.count(level) < batch_size for level in set(levels))


def test_a_level_of_ten_files_becomes_one_file_of_the_next() -> None:
    history = made()
    for n in range(10, 20):
        history.append(rows(f"{n}1", f"{n}2"))

    assert history.compact(10, 1 << 30) == ("101_192_1.parquet",)
    assert [file.name for file in history.files()] == ["101_192_1.parquet"]
    assert load_manifest(history.storage, history.folder).version == 11


def test_files_stay_as_long_as_a_kept_manifest_names_them() -> None:
    history = made()
    for n in range(1, 4):
        history.append(rows(f"{n}"))
    history.compact(3, 1 << 30)

    assert history.clean(2) == ("manifest_1", "manifest_2")
    assert {entry.name for entry in history.storage.list(history.folder)} == {
        "1_1_0.parquet", "2_2_0.parquet", "3_3_0.parquet", "1_3_1.parquet", "manifest_3", "manifest_4", "_version_",
    }  # fmt: skip
    assert set(history.clean(1)) == {"manifest_3", "1_1_0.parquet", "2_2_0.parquet", "3_3_0.parquet"}


def test_a_reader_goes_on_when_the_files_that_it_knew_are_cleaned_away() -> None:
    history = made()
    for n in range(1, 5):
        history.append(rows(f"{n}"))
    reading = history.instants()
    first = next(reading)
    history.compact(4, 1 << 30)
    history.clean(1)

    assert [i.instant.requested_time for i in (first, *reading)] == ["4", "3", "2", "1"]


def test_the_greatest_manifest_counts_when_the_version_file_is_gone() -> None:
    history = made()
    history.append(rows("1"))
    history.append(rows("2"))
    history.storage.delete(f"{history.folder}/_version_")
    assert [i.requested_time for i in history.times()] == ["1", "2"]

    history.storage.write(f"{history.folder}/manifest_3", b'{"files": [ {"fil')
    assert [i.requested_time for i in history.times()] == ["1", "2"]


def test_a_range_of_time_opens_only_the_files_that_it_meets() -> None:
    storage = MemoryStorage()
    history = LsmHistory(storage, "h", names_are_ranges=True)
    for n in range(10, 40):
        history.append(rows(f"{n}"))
    storage.reset_faults()
    before = len(storage.log)

    assert [i.requested_time for i in history.times("20", "21")] == ["20", "21"]
    opened_files = [path for verb, path in storage.log[before:] if verb == "open_input"]
    assert opened_files == ["h/20_20_0.parquet", "h/21_21_0.parquet"]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no parquet at all, but a few bytes PAR1"])
def test_a_damaged_file_is_reported_by_name(data: bytes) -> None:
    history = made()
    history.append(rows("1"))
    history.storage.write(f"{history.folder}/1_1_0.parquet", data)
    with pytest.raises(CorruptFile, match=r"1_1_0\.parquet.*history"):
        history.times()


@pytest.mark.parametrize(
    "text", ["{}", '{"files": 1}', '{"files": [{"fileName": "../../x.parquet", "fileLen": 1}]}', "[]"]
)
def test_a_manifest_that_names_anything_else_is_refused(text: str) -> None:
    history = made()
    history.append(rows("1"))
    history.storage.write(f"{history.folder}/manifest_1", text.encode())
    with pytest.raises(CorruptFile, match="manifest_1"):
        history.times()


def test_files_have_hudis_columns_codec_and_footer(golden: Golden) -> None:
    import pyarrow.parquet as pq

    path, _ = golden("1.2.0", "history_a_mor")
    hudis = pq.ParquetFile(next((path / ".hoodie/timeline/history").glob("*_0.parquet")))
    history = made()
    history.append(rows("1"))
    ours = pq.ParquetFile(pa.BufferReader(history.storage.read(f"{history.folder}/1_1_0.parquet")))

    assert ours.metadata.metadata == hudis.metadata.metadata
    assert shape(ours) == shape(hudis)
    assert ours.metadata.row_group(0).column(0).compression == "GZIP"
    assert read_history_file(history.storage, f"{history.folder}/1_1_0.parquet").schema == HISTORY_SCHEMA


def shape(file: Any) -> list[tuple[Any, ...]]:
    columns = (file.schema.column(n) for n in range(len(file.schema)))
    return [(c.path, c.physical_type, str(c.logical_type), c.max_definition_level) for c in columns]


# ---- the log of version 6 --------------------------------------------------------------------------------------------


def entry(time: str, state: str) -> Mapping[str, Any]:
    return {"commitTime": time, "actionType": "clean", "actionState": state, "stateTransitionTime": time + "5"}


def test_a_block_holds_whole_instants_and_at_least_the_batch() -> None:
    log = ArchiveLog(MemoryStorage(), ".hoodie/archived")
    states = ("REQUESTED", "INFLIGHT", "COMPLETED")
    path = log.append([[entry(f"{n}", s) for s in states] for n in range(1, 6)], batch_size=4)

    assert path == ".hoodie/archived/.commits_.archive.1_1-0-1"
    blocks = [block for block in scan_log(log.storage, path) if isinstance(block, LogBlock)]
    assert [len(list(entries_of(block))) for block in blocks] == [6, 6, 3]
    assert [i.requested_time for i in log.times("2", "4")] == ["2", "3", "4"]
    assert log.append([], 10) is None


def test_what_was_archived_twice_counts_once_and_damage_is_passed_over() -> None:
    log = ArchiveLog(MemoryStorage(), "a")
    log.append([[entry("1", "COMPLETED")], [entry("2", "COMPLETED")]], 1)
    log.append([[entry("2", "COMPLETED")], [entry("3", "COMPLETED")]], 1)
    path = "a/.commits_.archive.2_1-0-1"
    log.storage.write(path, log.storage.read(path)[:-5])

    log.storage.write("a/.commits_.archive.3_1-0-1", b"#HU")
    assert [i.requested_time for i in log.times()] == ["1", "2"]
    assert [i.instant.requested_time for i in log.instants()] == ["2", "1"]
    assert log.newest_keys() == frozenset()


def test_the_archive_of_real_hudi_has_all_states(golden: Golden) -> None:
    storage, meta, _ = opened(golden, "0.15.0", "history_a_mor")
    for archived in archive_log(storage, meta.config).instants():
        assert set(archived.entries) == {"REQUESTED", "INFLIGHT", "COMPLETED"}
        assert (archived.commit() is not None) == (archived.instant.action in WRITES)


def test_a_file_of_several_row_groups_is_merged_row_by_row_once() -> None:
    history = made()
    for n in range(10, 14):
        history.append(rows(f"{n}1", f"{n}2"))
        history.compact(2, 1 << 30)

    (file,) = history.files()
    assert file.level == 2
    read = read_history_file(history.storage, f"{history.folder}/{file.name}")
    assert read.column("instantTime").to_pylist() == ["101", "102", "111", "112", "121", "122", "131", "132"]


def test_instants_of_files_that_overlap_come_newest_first() -> None:
    history = made()
    for times in (("1", "9"), ("4", "6"), ("2", "3"), ("0",)):
        history.append(rows(*times))

    assert [i.instant.requested_time for i in history.instants()] == list("9643210")


def test_of_an_instant_that_was_archived_twice_the_newest_entry_counts() -> None:
    log = ArchiveLog(MemoryStorage(), "a")
    for number in range(1, 12):
        log.append([[{**entry("1", "COMPLETED"), "stateTransitionTime": str(number)}]], 1)

    assert [i.instant.completion_time for i in log.instants()] == ["11"]


def test_other_files_in_the_folder_of_an_archive_and_empty_ones_are_passed_over() -> None:
    log = ArchiveLog(MemoryStorage(), "a")
    log.storage.write("a/.commits_.archive.9_1-0-1", b"")
    log.storage.write("a/notes.txt", b"foreign")
    log.append([[entry("1", "COMPLETED")]], 1)
    log.storage.write("a/.commits_.archive.99_1-0-1", b"")

    assert [i.requested_time for i in log.times()] == ["1"]
    assert log.newest_keys() == frozenset({("1", "clean", "COMPLETED")})
