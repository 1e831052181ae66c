"""What every action leaves: all that counts is synced when it returns, and nothing that was for its duration only."""

from __future__ import annotations

import pytest

from pyhudi.model.filenames import SCHEMA_FOLDER, InstantFileName
from tests.support.writers.dying import deaths
from tests.support.writers.every_fault import loaded
from tests.support.writers.power_plays import ACTIONS, MORE, recorded

FOR_THE_DURATION = (".hoodie/.temp/", ".hoodie/.heartbeat/", ".hoodie/.locks/", ".hoodie/.metadata_lock")
MADE_ANEW = ".hoodie_partition_metadata"  # by the next write of the partition, where it is missing


@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize("name", ACTIONS)
def test_a_disk_that_wrote_only_what_was_synced_has_all_files_of_an_action_that_returned(name: str) -> None:
    storage = recorded(name).storage
    on_disk = storage.after_the_worst_cut()

    lost = [path for path, data in storage.contents().items() if on_disk.get(path) != data]

    assert [path for path in lost if not path.endswith(MADE_ANEW)] == []


@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_that_returned_leaves_no_markers_heartbeats_or_locks(name: str) -> None:
    left = recorded(name).storage.contents()

    assert [path for path in left if path.startswith(FOR_THE_DURATION)] == []


@pytest.mark.thorough
def test_what_a_writer_that_died_left_for_its_duration_goes_with_the_next_write() -> None:
    for left, where in deaths(loaded("9"), lambda table: table.upsert(*MORE)):
        left.upsert(("late", "y", 9, 9))

        assert [path for path in left.memory.paths() if path.startswith(FOR_THE_DURATION)] == [], where


@pytest.mark.parametrize(("name", "layout"), [("alter", 2), ("alter, version 6", 1)])
def test_of_a_change_of_columns_the_history_has_three_files_and_the_last_holds_it(name: str, layout: int) -> None:
    files = recorded(name).storage.contents()
    made = {path: data for path, data in files.items() if path.startswith(SCHEMA_FOLDER)}

    (alter,) = {InstantFileName.parse(path.rpartition("/")[2], layout).requested_time for path in made}  # type: ignore[union-attr]
    names = {path.rpartition("/")[2].replace(alter, "T"): data for path, data in made.items()}
    completed = next(name for name in names if name.endswith(".schemacommit"))
    assert sorted(names) == sorted(["T.schemacommit.requested", "T.schemacommit.inflight", completed])
    assert (completed == "T.schemacommit") is (layout == 1)
    assert [name for name, data in names.items() if data] == [completed]
