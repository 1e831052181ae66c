"""Table functions: the timeline, the metadata table and the slices of a table as rows."""

from __future__ import annotations

import pytest

from pyhudi import ConfigError, HudiTable
from pyhudi.sql.table_functions import file_system_view, metadata_records, query_timeline, rows_of_function
from tests.support.golden.folder import Golden

VERSIONS = ("0.15.0", "1.0.2", "1.2.0")


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_the_timeline_has_a_row_for_each_instant_with_what_commits_wrote(golden: Golden, version: str):
    path, _ = golden(version, "history_a_mor")
    table = HudiTable.open(path)
    found = query_timeline(table)
    assert found.num_rows == len(table.state().timeline)
    names = {file.name for file in path.rglob("*") if ".hoodie" in file.parts}
    assert set(found.column("File_Name").to_pylist()) <= names
    everything = query_timeline(table, archived=True)
    assert everything.num_rows == len(table.history())
    entries = {entry.instant_time: entry for entry in table.history() if entry.operation is not None}
    for row in everything.to_pylist():
        if row["Action"] in ("commit", "deltacommit", "replacecommit") and row["State"] == "COMPLETED":
            assert row["Total_Records_Written"] == entries[row["Timestamp"]].rows_written
            assert row["Total_Bytes_Written"] == entries[row["Timestamp"]].bytes_written
        else:
            assert row["Total_Records_Written"] in (-1, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_the_metadata_table_is_one_table_of_all_its_records(golden: Golden, version: str):
    path, _ = golden(version, "mdt_all_cow")
    table = HudiTable.open(path)
    found = metadata_records(table)
    assert found.schema.names[:3] == ["key", "type", "filesystemMetadata"]
    counts = [table.metadata.partition(name).to_arrow().num_rows for name in table.metadata.partitions]
    assert found.num_rows == sum(counts)
    path, _ = golden(version, "types_insert")
    without = HudiTable.open(path)
    if not without.metadata.partitions:
        with pytest.raises(ConfigError, match="create_metadata_table"):
            metadata_records(without)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_file_system_view_has_the_slices_of_the_partitions_that_fit(golden: Golden, version: str):
    path, _ = golden(version, "g2_savepoint_only")
    table = HudiTable.open(path)
    found = file_system_view(table)
    logs = [file for file in path.glob("*/.*.log.*") if not file.name.endswith(".crc")]
    assert sum(found.column("Log_File_Count").to_pylist()) == len(logs)
    assert sum(found.column("Log_File_Size").to_pylist()) == sum(file.stat().st_size for file in logs)
    pending = "Log_File_Scheduled" if version == "0.15.0" else "Log_File_Unscheduled"
    assert found.column(pending).to_pylist() == found.column("Log_File_Size").to_pylist()
    assert set(file_system_view(table, "a").column("Partition_Path").to_pylist()) == {"a"}
    assert file_system_view(table, "z*").num_rows == 0


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("hudi_query_timeline", (), "first argument"),
        ("hudi_query_timeline", (1,), "first argument"),
        ("hudi_query_timeline", ("t", "perhaps"), "'true'"),
        ("hudi_metadata", ("t", "files"), "takes 0 arguments"),
        ("hudi_table_changes", ("t", "cdc"), "takes 2 to 3 arguments"),
        ("hudi_query", ("t",), "takes 1 arguments"),
        ("hudi_nothing", ("t",), "there are hudi_query"),
    ],
)
def test_wrong_arguments_are_refused_before_the_table_is_looked_for(function: str, arguments: tuple, message: str):
    with pytest.raises(ConfigError, match=message):
        rows_of_function(function, arguments, lambda name: pytest.fail(name))
