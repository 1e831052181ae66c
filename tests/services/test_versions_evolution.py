"""Tables with a schema history, and tables that record changes, in other versions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import rows_of
from tests.support.tables.versioned import take_to

HISTORY = ".hoodie/.schema"


def opened(golden: Any, version: str, name: str) -> Storage:
    folder, _ = golden(version, name)
    return open_storage(str(folder))


def taken_to(storage: Storage, version: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableRemoved)
        take_to(storage, version)


def history(storage: Storage) -> dict[str, bytes]:
    return {info.name: storage.read(info.path) for info in storage.list(HISTORY) if info.name[-6:] == "commit"}


def completions(storage: Storage) -> dict[str, str | None]:
    return {i.requested_time: i.completion_time for i in MetaClient.load(storage).timeline.commits()}


def test_the_schema_history_has_completion_times_from_version_8_on_and_none_below(golden: Any) -> None:
    storage = opened(golden, "0.15.0", "evolution_schema_on_read")
    before = history(storage)
    assert len(before) == 8

    taken_to(storage, 8)
    times = completions(storage)
    named = {f"{time}_{times[time]}.schemacommit": data for time, data in _by_time(before).items()}
    assert history(storage) == named

    taken_to(storage, 9)
    assert history(storage) == named
    taken_to(storage, 6)
    assert history(storage) == before


def _by_time(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.partition(".")[0].partition("_")[0]: data for name, data in files.items()}


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_a_downgraded_history_has_the_names_of_version_6(golden: Any, version: str) -> None:
    storage = opened(golden, version, "evolution_schema_on_read")
    before = history(storage)
    taken_to(storage, 6)
    assert history(storage) == {f"{time}.schemacommit": data for time, data in _by_time(before).items()}


@pytest.mark.parametrize(("version", "target"), [("0.15.0", 9), ("1.2.0", 6)])
def test_what_a_commit_says_of_its_change_logs_is_taken_along(golden: Any, version: str, target: int) -> None:
    storage = opened(golden, version, "g2_cdc_cow_data_before_after")
    before, logs = change_logs(storage), {info.path for info in storage.walk("") if info.path.endswith(".cdc")}
    taken_to(storage, target)
    assert change_logs(storage) == before
    assert {path for paths in before.values() for path in paths} == logs
    assert len(logs) == 5


def change_logs(storage: Storage) -> dict[str, dict[str, int]]:
    meta = MetaClient.load(storage)
    found: dict[str, dict[str, int]] = {}
    for instant in meta.timeline.commits():
        for stat in meta.commits.metadata(instant).stats():
            found.setdefault(instant.requested_time, {}).update(stat.cdc_stats or {})
    return found


@pytest.mark.parametrize(("source", "target"), [(6, 9), (9, 6)])
def test_log_files_of_a_table_that_records_changes_are_compacted(source: int, target: int) -> None:
    """Queries of changes pass over compactions, so none of them needs a change log."""
    table = MergeOnRead(str(source))
    table.insert(("a", "x", 1, 1), ("b", "x", 1, 2))
    table.upsert(("a", "x", 2, 3))
    table.delete(("b", "x"))
    update_table_config(table.storage, {"hoodie.table.cdc.enabled": "true"}, (), table.clock)

    assert len(take_to(table.storage, target).compacted) == 1

    assert table.rows() == [("a", "x", 2, 3)]
    assert not any(file_slice.log_files for file_slice in FileSystemView.load(table.meta).all_slices())
    table.write_as_is("upsert", rows_of(("a", "x", 3, 4)))
    assert table.rows() == [("a", "x", 3, 4)]


def test_compacting_a_table_that_records_changes_keeps_its_change_logs(tmp_path: Path) -> None:
    table = MergeOnRead("9", open_storage(tmp_path))
    table.insert(("a", "x", 1, 1))
    table.upsert(("a", "x", 2, 3))
    update_table_config(table.storage, {"hoodie.table.cdc.enabled": "true"}, (), table.clock)
    (log,) = [info for info in table.storage.walk("x") if ".log." in info.name]
    table.storage.write(f"{log.path}.cdc", b"what no compaction reads")

    HudiTable.open(tmp_path).compact()

    assert table.rows() == [("a", "x", 2, 3)]
    assert table.storage.read(f"{log.path}.cdc") == b"what no compaction reads"
