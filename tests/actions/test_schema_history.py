"""Merge-on-read tables with a schema history: columns of base files and of log blocks are matched by id."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.errors import UnsupportedTable
from pyhudi.model.commit import CommitMetadata
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.altered import DROPPED, LAST, NAMES, RENAMED, ROWS, Altered, altered, first_rows
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.versioned import take_to


def rows(table: Altered, names: tuple[str, ...] = NAMES, **query: Any) -> list[tuple[Any, ...]]:
    found = HudiTable(table.meta).scan(list(names), **query).to_arrow()
    return sorted(zip(*(found.column(name).to_pylist() for name in names), strict=True))


def last_body(table: Altered) -> CommitMetadata:
    last = table.meta.timeline.last_commit()
    assert last is not None
    return table.meta.commits.metadata(last)


@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_of_older_schemas_are_read_by_column_id(version: str) -> None:
    table = altered(version)
    assert rows(table) == ROWS
    assert rows(table, ("id", "extra"), where="extra = 'e2'") == [("c", "e2")]
    first, renamed = (table.meta.timeline.commits().instants[at].requested_time for at in (1, 3))
    assert rows(table, ("id", "name", "extra"), as_of=first)[:2] == [("a", "n0b", 1), ("b", "n1", 10)]
    assert rows(table, ("id", "title", "extra"), as_of=renamed)[:3] == [
        ("a", "n0b", 1),
        ("b", "t1", 2),
        ("c", "n2", 20),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_writes_the_newest_schema_and_says_so(version: str) -> None:
    table = altered(version)
    times = [instant.requested_time for instant in table.meta.timeline.commits()]
    before = {time: rows(table, ("id", "v"), as_of=time) for time in times}

    HudiTable(table.meta).compact()

    assert rows(table) == rows(table, query_type="read_optimized") == ROWS
    body = last_body(table)
    assert json.loads(body.extra_metadata["latest_schema"]) == table.schemas[0]
    assert json.loads(body.extra_metadata["schema"])["fields"][-1]["name"] == "extra"
    for file_slice in FileSystemView.load(table.meta).all_slices():
        assert file_slice.base_file is not None
        with table.storage.open_input(file_slice.base_file.path) as file:
            assert pq.read_schema(file).names[5:] == [name for name, _ in LAST.values()]
    assert {time: rows(table, ("id", "v"), as_of=time) for time in times} == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_of_before_a_change_is_run_under_the_schema_of_its_time(version: str) -> None:
    """Readers take the columns of a file for those of its instant."""
    table = Altered(version)
    table.put(*first_rows(), operation="insert")
    table.alter(RENAMED)
    table.put({"id": "b", "p": "y", "ts": 2, "v": 101, "title": "t1", "extra": 2})
    table.compact_now(schedule_only=True)
    table.alter(DROPPED)
    table.alter(LAST)
    table.publish()

    run = HudiTable(table.meta).compact().runs[0]

    assert rows(table) == rows(table, query_type="read_optimized")
    assert rows(table)[1] == ("b", "t1", 101, None)
    found = table.meta.timeline.find(run.instant_time)
    assert found is not None
    body = table.meta.commits.metadata(found)
    assert json.loads(body.extra_metadata["latest_schema"]) == table.schemas[2]
    (path,) = [stat.path for stat in body.stats()]
    assert path is not None
    with table.storage.open_input(path) as file:
        assert pq.read_schema(file).names[5:] == [name for name, _ in RENAMED.values()]
    assert table.meta.table_schema().names == [name for name, _ in LAST.values()]


@pytest.mark.parametrize(("source", "target"), [(6, 8), (6, 9), (8, 9), (9, 8), (8, 6), (9, 6)])
def test_log_files_are_compacted_when_the_version_changes(source: int, target: int) -> None:
    table = altered(str(source))
    schemas = list(table.schemas)

    assert len(take_to(table.storage, target).compacted) == 1

    assert rows(table) == rows(table, query_type="read_optimized") == ROWS
    assert json.loads(last_body(table).extra_metadata["latest_schema"]) == schemas[0]
    (history,) = [info for info in table.storage.list(".hoodie/.schema") if info.name.endswith(".schemacommit")]
    assert json.loads(table.storage.read(history.path)) == {"schemas": schemas}
    assert ("_" in history.name) == (target >= 8)


def test_other_writes_and_services_are_refused_still() -> None:
    table = HudiTable(altered("9").meta)
    for service in (table.log_compact, table.cluster, table.truncate):
        with pytest.raises(UnsupportedTable, match="schema history"):
            service()
