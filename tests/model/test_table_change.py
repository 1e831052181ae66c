"""What the body of each kind of action says of the table's files; whole lives are in
tests/actions/test_table_change.py.
"""

from __future__ import annotations

from pyhudi.model.commit import CommitMetadata, PartitionChange, TableChange, WriteStat, change_of
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.plans import (
    CleanedPartition,
    CleanMetadata,
    InstantInfo,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPartition,
    SavepointMetadata,
)


def rolled_back(time: str, *partitions: RollbackPartition) -> RollbackMetadata:
    return RollbackMetadata(time, 1, 0, ("1",), {found.partition_path: found for found in partitions})


def test_a_write_brings_files_with_their_sizes_and_replaces_file_groups() -> None:
    base = WriteStat("f-0", "x/f-0_0-1-1_2.parquet", "x", file_size_in_bytes=100)
    log = WriteStat("g-0", ".g-0_2.log.1_0-1-1", "", file_size_in_bytes=7, cdc_stats={".g-0_2.log.1_0-1-1.cdc": 3})
    change = change_of(CommitMetadata({"x": (base,), "": (log,)}, partition_to_replace_file_ids={"y": ("h-0",)}))
    assert change.partitions == {
        "x": PartitionChange({"f-0_0-1-1_2.parquet": 100}),
        "": PartitionChange({".g-0_2.log.1_0-1-1": 7, ".g-0_2.log.1_0-1-1.cdc": 3}),
        "y": PartitionChange(replaced_file_ids=("h-0",)),
    }
    assert change.stats == (base, log)
    assert change.groups_replaced == {FileGroupId("y", "h-0")}


def test_a_file_that_several_stats_name_is_as_long_as_the_longest_says() -> None:
    stats = tuple(WriteStat("f-0", "x/a", "x", file_size_in_bytes=size_bytes) for size_bytes in (5, 9, 7))
    assert change_of(CommitMetadata({"x": stats})).partitions["x"].written == {"a": 9}


def test_a_group_that_is_written_and_one_that_is_replaced_meet_in_their_partition() -> None:
    stat = WriteStat("f-0", "x/a", "x", file_size_in_bytes=5)
    change = change_of(CommitMetadata({"x": (stat,)}, partition_to_replace_file_ids={"x": ("g-0", "h-0")}))
    assert change.partitions == {"x": PartitionChange({"a": 5}, replaced_file_ids=("g-0", "h-0"))}


def test_a_write_without_files_changes_nothing() -> None:
    assert change_of(CommitMetadata({})) == TableChange()


def test_a_clean_deletes_files_and_partitions() -> None:
    partitions = {"x": CleanedPartition("P", ("a", "b")), "y": CleanedPartition("P", ("c",), (), True)}
    assert change_of(CleanMetadata("2", 1, "", "", partitions)).partitions == {
        "x": PartitionChange(deleted=frozenset({"a", "b"})),
        "y": PartitionChange(deleted=frozenset({"c"}), is_partition_deleted=True),
    }


def test_a_rollback_deletes_files_and_writes_command_blocks() -> None:
    undone = RollbackPartition(
        "x", ("/tables/t/x/a",), (), {"file:///tables/t/x/.f_1.log.3": 40}, {"file:///tables/t/x/.f_1.log.2": 90}
    )
    assert change_of(rolled_back("3", undone)).partitions == {
        "x": PartitionChange({".f_1.log.2": 90, ".f_1.log.3": 40}, frozenset({"a"}))
    }


def test_a_restore_is_its_rollbacks_one_after_the_other() -> None:
    first = rolled_back("5", RollbackPartition("x", ("/t/x/a",), (), {"/t/x/log": 40}))
    second = rolled_back("6", RollbackPartition("x", ("/t/x/log", "/t/x/b")), RollbackPartition("y", ("/t/y/c",)))
    body = RestoreMetadata("4", 1, (InstantInfo("3", "commit"),), {"3": (first,), "2": (second,)})
    assert change_of(body).partitions == {
        "x": PartitionChange({}, frozenset({"a", "b", "log"})),
        "y": PartitionChange({}, frozenset({"c"})),
    }


def test_a_savepoint_changes_nothing() -> None:
    assert change_of(SavepointMetadata("me", 1, "", {"x": ("a",)})) == TableChange()
