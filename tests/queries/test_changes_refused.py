"""Queries of changes that are refused: what is not there any more, not logged, damaged, or can't be meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, RangeNotReadable
from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.model.change_logs import LOGGING_MODES
from pyhudi.model.commit import CommitMetadata
from pyhudi.queries.changes import changes_of_commits
from pyhudi.timeline.table_properties import update_table_config
from tests.support.tables.change_logs import (
    A1,
    A2,
    changes,
    logged,
    plan,
    times,
)
from tests.support.tables.clustered import Clustered


@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_files_that_were_cleaned_are_an_error_that_names_the_oldest_begin(mode: str) -> None:
    table = logged("9", mode=mode)
    table.insert(A1)
    table.upsert(A2)
    table.upsert(("a", "x", 3, 3))
    first, second, _ = times(table)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[1])
    (path,) = body.stats()[0].cdc_stats or {}
    table.storage.delete(path)

    with pytest.raises(RangeNotReadable, match=rf"deleted by cleaning.*oldest begin that can be read is {second}"):
        changes(table, first)
    assert changes(table, second) == [("u", A2, ("a", "x", 3, 3))]


def test_a_base_file_that_a_change_needs_is_missed_by_name() -> None:
    table = logged("6", mode="OP_KEY_ONLY")
    table.insert(A1)
    table.upsert(A2)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[0])
    table.storage.delete(body.stats()[0].path or "")
    with pytest.raises(RangeNotReadable, match="deleted by cleaning"):
        changes(table, times(table)[0])


def test_commits_of_before_the_table_logged_changes_are_an_error_that_says_where_to_begin() -> None:
    table = Clustered("9")
    table.insert(A1)
    table.upsert(A2)
    second = times(table)[-1]
    with pytest.raises(ConfigError, match=r"does not log changes \(hoodie.table.cdc.enabled=false\)"):
        plan(table)
    update_table_config(table.storage, {"hoodie.table.cdc.enabled": "true"})
    table.options = {**table.options, "hoodie.table.cdc.enabled": "true"}
    table.upsert(("a", "x", 3, 3))

    with pytest.raises(RangeNotReadable, match=rf"without a change log.*Begin at {second}"):
        changes(table)
    assert changes(table, second) == [("u", A2, ("a", "x", 3, 3))]


def test_a_damaged_change_log_is_an_error() -> None:
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    (path,) = (info.path for info in table.storage.walk("") if info.path.endswith(".cdc"))
    whole = table.storage.read(path)
    table.storage.write(path, whole[:-9])
    with pytest.raises(CorruptFile, match="expected a change log"):
        changes(table)


@pytest.mark.parametrize(
    "path",
    ["../x", "y/.f-0_1.log.1_0-1-0.cdc", "x/.f-0_20240101000000000.log.1_0-1-0.cdc", ".hoodie/hoodie.properties"],
)
def test_a_commit_that_names_a_file_of_somebody_else_is_not_believed(path: str) -> None:
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    (stat,) = table.meta.commits.metadata(newest).stats()
    forged = CommitMetadata({"x": (replace(stat, cdc_stats={path: 1}),)}, operation_type="UPSERT")
    with pytest.raises(CorruptFile, match="which it is not"):
        changes_of_commits(table.meta, [(newest, forged)])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"format": "avro"}, "expected 'latest_state'"),
        (
            {"format": "cdc", "options": {"hoodie.datasource.query.incremental.format": "latest_state"}},
            "is given twice",
        ),
    ],
)
def test_what_can_not_be_meant_is_refused(tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id", cdc=True)
    with pytest.raises(ConfigError, match=says):
        table.changes(**arguments)
    with pytest.raises(ConfigError, match=r"HudiTable\.changes\(since, format='cdc'\)"):
        table.scan(query_type="cdc")
