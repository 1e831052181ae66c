"""Tables with a schema history: columns of base files and of log blocks are matched by id, in reads and writes."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import UnsupportedTable, WriteConflict
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_every_service_leaves_the_rows_as_they_are(version: str) -> None:
    table = altered(version)
    hudi = HudiTable(table.meta)
    services = (
        partial(hudi.maintenance.log_compact, options={"hoodie.log.compaction.blocks.threshold": "1"}),
        partial(hudi.cluster, sort_columns="title"),
        hudi.clean,
        hudi.maintenance.archive,
        hudi.savepoints.create,
    )
    for service in services:
        service()
        assert rows(table) == ROWS, service
    assert rows(table, query_type="read_optimized") == ROWS, "clustering has made base files of all"
    assert json.loads(last_body(table).extra_metadata["latest_schema"]) == table.schemas[0]


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("clustered", [False, True], ids=["log files", "base files"])
def test_changes_by_filters_and_merges_find_columns_by_id(version: str, clustered: bool) -> None:
    table = altered(version)
    hudi = HudiTable(table.meta)
    if clustered:
        hudi.cluster()
    hudi.update("title = 'n3' OR extra = 'e2'", values={"title": "new"})
    hudi.delete(where="title = 't1'")
    source = [last_row("a", "x", 3, "merged", 8, "em"), last_row("m", "y", 3, "tm", 9, None)]
    hudi.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    expected = [("a", "merged", 8, "em"), ("c", "new", 5_000_000_000, "e2"), ("d", "new", 3, None), ROWS[4]]
    assert rows(table) == [*expected, ("m", "tm", 9, None)]
    hudi.delete_partitions(matching="*")
    assert rows(table) == []


def last_row(key: str, partition: str, ts: int, title: str, v: int, extra: str | None) -> dict[str, Any]:
    return {"id": key, "p": partition, "ts": ts, "title": title, "v": v, "extra": extra}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_written_to_log_files_under_the_newest_schema(version: str) -> None:
    table = altered(version)
    times = [instant.requested_time for instant in table.meta.timeline.commits()]
    before = {time: rows(table, ("id", "v"), as_of=time) for time in times}
    table.put(last_row("a", "x", 3, "t0", 6_000_000_000, "e0"), last_row("n", "y", 3, "tn", 7, None))
    table.put(last_row("m", "z", 1, "tm", 8, "em"), operation="insert")
    table.delete(("b", "y"))

    expected = [
        ("a", "t0", 6_000_000_000, "e0"),
        *ROWS[2:],
        ("m", "tm", 8, "em"),
        ("n", "tn", 7, None),
    ]
    assert rows(table) == expected
    assert json.loads(last_body(table).extra_metadata["latest_schema"]) == table.schemas[0]
    HudiTable(table.meta).compact()
    assert rows(table) == rows(table, query_type="read_optimized") == expected
    assert {time: rows(table, ("id", "v"), as_of=time) for time in times} == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rewritten_file_has_the_columns_of_the_newest_schema(version: str) -> None:
    table = Altered(version, None, "COPY_ON_WRITE")
    table.put(*first_rows(), operation="insert")
    table.alter(RENAMED)
    table.alter(DROPPED)
    table.alter(LAST)
    table.publish()

    table.put(last_row("a", "x", 3, "t0", 6_000_000_000, "e0"))
    table.delete(("b", "y"))

    kept = [("c", "n2", 2, None), ("d", "n3", 3, None), ("e", "n4", 4, None), ("f", "n5", 5, None)]
    assert rows(table) == [("a", "t0", 6_000_000_000, "e0"), *kept]
    for file_slice in FileSystemView.load(table.meta).all_slices():
        assert file_slice.base_file is not None
        with table.storage.open_input(file_slice.base_file.path) as file:
            assert pq.read_schema(file).names[5:] == [name for name, _ in LAST.values()]


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_files_of_older_schemas_are_rewritten_by_column_id(golden: Any, version: str) -> None:
    """Real Hudi's: b was written with `name` and a number `extra`; one was renamed, one dropped and added as text."""
    path, description = golden(version, "evolution_schema_on_read")
    table = HudiTable.open(path)
    names = table.schema().names
    before = {row["id"]: {name: row[name] for name in names} for row in description["expected"]["snapshot"]}
    last = table.state().timeline.last_commit()
    assert last is not None
    real = table.state().commits.metadata(last).extra_metadata

    result = table.upsert(
        [{"id": "n", "title": "tn", "v": 6_000_000_000, "extra": "en", "ts": 9, "p": "y"}],
        options={"hoodie.parquet.small.file.limit": "104857600"},
    )
    table.delete([{"id": "c", "p": "x"}])

    found = {row["id"]: row for row in table.scan(names).to_arrow().to_pylist()}
    new = {"id": "n", "title": "tn", "v": 6_000_000_000, "extra": "en", "ts": 9, "p": "y"}
    assert found == {key: row for key, row in {**before, "n": new}.items() if key != "c"}
    written = table.state().timeline.find(result.instant_time)
    assert written is not None
    body = table.state().commits.metadata(written)
    assert any(stat.prev_commit != "null" for stat in body.stats()), "an older file was rewritten"
    for entry in ("schema", "latest_schema"):
        assert body.extra_metadata[entry] == real[entry], "word for word as real Hudi's writes"


def test_a_key_that_had_another_name_once_is_refused_by_name() -> None:
    table = Altered("9")
    table.put(*first_rows(), operation="insert")
    table.alter({**RENAMED, 5: ("key", "string"), 12: ("id", "string")})
    table.publish()
    with pytest.raises(UnsupportedTable, match="'id', a column of keys"):
        table.put({"id": "a", "p": "x", "ts": 2})


def test_a_schema_that_changes_while_rows_are_written_is_a_conflict() -> None:
    """Readers would take the columns of the write's files for those of the new schema."""
    table = altered("9")

    class Engine(LocalEngine):
        """Runs the tasks when the schema has been changed."""

        def map_groups(self, *arguments: Any) -> Any:
            table.alter({**LAST, 9: ("heading", "string")})
            table.publish()
            return super().map_groups(*arguments)

    table.engine = Engine(1)
    with pytest.raises(WriteConflict, match="schema was changed"):
        table.write("upsert", pa.Table.from_pylist([last_row("a", "x", 3, "t0", 1, "e0")]))
    assert rows(table, ("id", "heading", "v", "extra")) == ROWS
