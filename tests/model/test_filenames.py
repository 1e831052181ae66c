"""Names on disk: forms from the format description, names from golden tables, and what is none of them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.model.filenames import (
    BASE_FILE_EXTENSIONS,
    BaseFileName,
    InstantFileName,
    LogFileName,
    MarkerName,
    partition_depth,
    pending_actions,
)
from pyhudi.model.instant import ActionKind, State

T, C = "20250713010535797", "20250713010536405"
FILE_IDS = st.from_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9]{1,3}", fullmatch=True)
TOKENS = st.from_regex(r"[0-9]{1,4}-[0-9]{1,4}-[0-9]{1,6}", fullmatch=True)
TIMES = st.from_regex(r"20[0-9]{15}", fullmatch=True)


@given(st.builds(BaseFileName, FILE_IDS, TOKENS, TIMES, st.sampled_from(BASE_FILE_EXTENSIONS)))
def test_base_file_name_survives_print_and_parse(name: BaseFileName) -> None:
    assert BaseFileName.parse(str(name)) == name


@given(st.builds(LogFileName, FILE_IDS, TIMES, st.integers(1, 999), TOKENS, st.sampled_from(["", ".cdc"])))
def test_log_file_name_survives_print_and_parse(name: LogFileName) -> None:
    assert LogFileName.parse(str(name)) == name


@given(
    st.builds(InstantFileName, TIMES, st.sampled_from(ActionKind), st.sampled_from([State.REQUESTED, State.INFLIGHT]))
)
def test_pending_instant_file_name_survives_print_and_parse(name: InstantFileName) -> None:
    assert InstantFileName.parse(name.text(2), 2) == name


@pytest.mark.parametrize(
    ("action", "state", "layout_1", "layout_2"),
    [
        (ActionKind.COMMIT, State.REQUESTED, f"{T}.commit.requested", f"{T}.commit.requested"),
        (ActionKind.COMMIT, State.INFLIGHT, f"{T}.inflight", f"{T}.inflight"),
        (ActionKind.COMMIT, State.COMPLETED, f"{T}.commit", f"{T}_{C}.commit"),
        (ActionKind.DELTACOMMIT, State.INFLIGHT, f"{T}.deltacommit.inflight", f"{T}.deltacommit.inflight"),
        (ActionKind.REPLACECOMMIT, State.COMPLETED, f"{T}.replacecommit", f"{T}_{C}.replacecommit"),
        (ActionKind.CLUSTERING, State.REQUESTED, f"{T}.replacecommit.requested", f"{T}.clustering.requested"),
        (ActionKind.CLUSTERING, State.COMPLETED, f"{T}.replacecommit", f"{T}_{C}.replacecommit"),
        (ActionKind.COMPACTION, State.INFLIGHT, f"{T}.compaction.inflight", f"{T}.compaction.inflight"),
        (ActionKind.COMPACTION, State.COMPLETED, f"{T}.commit", f"{T}_{C}.commit"),
        (ActionKind.LOGCOMPACTION, State.COMPLETED, f"{T}.deltacommit", f"{T}_{C}.deltacommit"),
        (ActionKind.ROLLBACK, State.COMPLETED, f"{T}.rollback", f"{T}_{C}.rollback"),
        (ActionKind.SAVEPOINT, State.INFLIGHT, f"{T}.savepoint.inflight", f"{T}.savepoint.inflight"),
    ],
)
def test_instant_files_are_named_by_layout(action: ActionKind, state: State, layout_1: str, layout_2: str) -> None:
    name = InstantFileName(T, action, state, C if state is State.COMPLETED else None)

    assert (name.text(1), name.text(2)) == (layout_1, layout_2)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "history",
        ".20250713010535797.commit.crc",
        f".pyhudi-1-{T}.tmp",
        f"{T}.unknown",
        f"{T}.commit.tmp",
        f"{T}_{C}.compaction",  # completes as a commit
        f"{T}_{C}.inflight",
        f"{T}_{C}.commit.requested",
        f"{T}.commit.requested.1",
        f"x{T}.commit",
        "",
    ],
)
def test_other_entries_of_the_timeline_folder_are_no_instants(name: str) -> None:
    assert InstantFileName.parse(name, 2) is None


def test_a_completed_file_without_completion_time_is_read_in_layout_2() -> None:
    assert InstantFileName.parse(f"{T}.commit", 2) == InstantFileName(T, ActionKind.COMMIT, State.COMPLETED)


def test_a_completion_time_in_layout_1_is_no_instant() -> None:
    assert InstantFileName.parse(f"{T}_{C}.commit", 1) is None


def test_pending_files_of_a_commit_may_be_those_of_a_compaction() -> None:
    assert pending_actions(ActionKind.COMMIT) == (ActionKind.COMMIT, ActionKind.COMPACTION)
    assert pending_actions(ActionKind.CLEAN) == (ActionKind.CLEAN,)


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        ".hoodie_partition_metadata.parquet",
        "part-0.snappy.parquet",
        "a_b_c.txt",
        "_SUCCESS",
        ".a-0_1-0-1_2025.parquet.crc",
        "a-0_1-0-1_x.parquet",
        f".a-0_{T}.log.1_1-0-1",
    ],
)
def test_other_files_of_a_partition_are_no_base_files(name: str) -> None:
    assert BaseFileName.parse(name) is None


def test_log_names_of_old_tables_have_no_write_token() -> None:
    assert LogFileName.parse(f".a-0_{T}.log.3") == LogFileName("a-0", T, 3)


def test_a_marker_names_the_data_file_it_announces() -> None:
    name = MarkerName("2024/01/a-0_1-0-1_2.parquet", "MERGE")

    assert str(name) == "2024/01/a-0_1-0-1_2.parquet.marker.MERGE"
    assert MarkerName.parse(str(name)) == name
    assert MarkerName.parse("MARKERS.type") is None


def test_partition_depth_counts_folders() -> None:
    assert [partition_depth(path) for path in ("", "a", "2023/04/03/12")] == [0, 1, 4]


def test_every_file_of_the_golden_tables_is_known_and_printed_back(shared: Path) -> None:
    """Data files and instant files of all tables of one release, and nothing else in their folders is taken for one."""
    checked = 0
    for archive in sorted((shared / "golden" / "1.2.0").glob("*.zip")):
        with zipfile.ZipFile(archive) as table:
            for path in table.namelist():
                name = path.rpartition("/")[2]
                if "/.hoodie/metadata/" in path:
                    continue
                if name.endswith((".parquet", ".orc")) and "/.hoodie/" not in path and not name.startswith("."):
                    assert str(BaseFileName.parse(name)) == name
                    checked += 1
                elif ".log." in name and "/.hoodie/" not in path and not name.endswith(".crc"):
                    assert str(LogFileName.parse(name)) == name
                    checked += 1
                elif "/.hoodie/timeline/2" in path:
                    instant = InstantFileName.parse(name, 2)
                    assert instant is not None, path
                    assert instant.text(2) == name
                    checked += 1
    assert checked > 1000


@pytest.mark.parametrize(
    "name",
    [f".a-0_{T}.log.٣_0-1-2", f".a-0_{T}.log.{'9' * 5000}_0-1-2", f".a-0_{T}.log.99999999999", f".a-0_{T}.log.1_0-1-٢"],
    ids=["digit", "five thousand digits", "eleven digits", "token"],
)
def test_a_log_files_version_is_a_number_that_hudi_reads_too(name: str) -> None:
    assert LogFileName.parse(name) is None


def test_instants_have_digits_of_ascii() -> None:
    other = T.replace("0", "٠")

    assert BaseFileName.parse(f"a-0_0-1-2_{other}.parquet") is None
    assert BaseFileName.parse("a-0_0-1-2_²²².parquet") is None
    assert [InstantFileName.parse(f"{other}.commit", layout) for layout in (1, 2)] == [None, None]
