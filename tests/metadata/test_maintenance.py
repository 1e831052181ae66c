"""Whatever happens to a table, its metadata table says what is true."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pyhudi import HudiTable
from pyhudi.actions.open_table import MetadataTableRebuilt
from pyhudi.metadata import apply_commit
from pyhudi.metadata.removal import METADATA_TABLE_FOLDER, MetadataTableRemoved
from pyhudi.metadata.table import MetadataTable, has_metadata_table
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from pyhudi.services.clean.cleaning import clean
from pyhudi.storage.local import LocalStorage
from tests.support.tables.archived import BY_HAND, archived
from tests.support.tables.small import TestTable
from tests.support.tables.undone import saved, served

ON = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


def table_of(version: str, kind: str) -> TestTable:
    names = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    return TestTable(options={**ON, **names})


def check(table: TestTable, what: str) -> None:
    assert table.meta.config.metadata_partitions, what
    assert validate(table.meta) == (), what


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_action_keeps_all_partitions_up(version: str, kind: str) -> None:
    table = table_of(version, kind)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    check(table, "bulk insert")
    for what, act in (
        ("upsert", lambda: table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))),
        ("delete", lambda: table.delete(("b", "x"))),
        ("insert overwrite", lambda: table.write("insert_overwrite", table.read().select(["id", "p", "ts", "v"])[:1])),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("upsert again", lambda: table.upsert(("a", "x", 3, 12))),
    ):
        act()
        check(table, what)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_an_update_completes_before_the_instant_that_it_is_of(version: str, kind: str) -> None:
    table = table_of(version, kind)
    table.upsert(("a", "x", 1, 10))
    result = table.upsert(("a", "x", 2, 11))
    found = MetadataTable.open(table.meta)
    assert found is not None
    own = found.meta.timeline.find(result.instant_time, ActionKind.DELTACOMMIT)
    assert own is not None
    assert own.completion_time is not None
    assert own.completion_time < result.completion_time


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("what", ["a savepoint", "a clean"])
def test_a_metadata_table_that_is_rebuilt_has_the_files_of_archived_writes_behind_what_stays(
    what: str, version: str
) -> None:
    table = TestTable(options={"hoodie.write.table.version": version, **BY_HAND})
    for number in range(3):
        table.upsert(("a", "x", number, 1))
    if what == "a savepoint":
        saved(table)
    else:
        served(table, clean, clean_commits_retained="1")
    alone = table.upsert(("b", "y", 1, 2)).instant_time
    for number in range(3, 9):
        table.upsert(("a", "x", number, 1))
    assert alone in archived(table, archive_beyond_savepoint="true").instant_times
    assert (table.meta.timeline.first_time or "") < alone

    HudiTable(table.meta).metadata.rebuild(options={"hoodie.metadata.enable": "true"})

    assert table.rows() == [("a", "x", 8, 1), ("b", "y", 1, 2)]
    assert validate(table.meta) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_the_metadata_table_of_hudi_is_kept_up(
    golden: Callable[[str, str], tuple[Path, dict[str, Any]]], release: str
) -> None:
    folder, _ = golden(release, "mdt_all_cow")
    table = TestTable(LocalStorage(str(folder)))
    before = MetadataTable.open(table.meta)
    assert before is not None
    rows = table.read()
    data = rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie_")]).slice(0, 1)
    table.write_as_is("upsert", data)

    check(table, "upsert")
    after = MetadataTable.open(table.meta)
    assert after is not None
    kept = {i.requested_time for i in before.meta.timeline if i.is_completed}
    assert kept < {i.requested_time for i in after.meta.timeline if i.is_completed}
    assert table.read().num_rows == rows.num_rows


@pytest.mark.thorough
def test_a_stale_metadata_table_is_rebuilt_with_a_warning() -> None:
    table = table_of("9", "COPY_ON_WRITE")
    first = table.upsert(("a", "x", 1, 10))
    folder = f"{METADATA_TABLE_FOLDER}/.hoodie/timeline"
    for entry in table.storage.list(folder):
        if entry.name.startswith(first.instant_time):
            table.storage.delete(entry.path)
    with pytest.warns(MetadataTableRebuilt, match=f"lacks the instant {first.instant_time}"):
        table.upsert(("b", "x", 1, 20))
    check(table, "upsert")


def test_a_write_begins_by_removing_what_no_property_lists() -> None:
    table = TestTable()
    table.bulk_insert(("a", "x", 1, 10))
    table.storage.write(f"{METADATA_TABLE_FOLDER}/files/x", b"#")
    table.upsert(("a", "x", 2, 11))
    assert not has_metadata_table(table.meta)


@pytest.mark.thorough
def test_a_metadata_table_comes_and_goes_by_option(recwarn: pytest.WarningsRecorder) -> None:
    table = TestTable()
    table.bulk_insert(("a", "x", 1, 10))
    assert not has_metadata_table(table.meta)
    table.upsert(("a", "x", 2, 11), metadata_enable="true")
    check(table, "on")
    table.upsert(("a", "x", 3, 12))
    check(table, "not said")
    assert not [warning for warning in recwarn if warning.category is MetadataTableRemoved]
    with pytest.warns(MetadataTableRemoved, match="hoodie.metadata.enable=false"):
        table.upsert(("a", "x", 4, 13), metadata_enable="false")
    assert not has_metadata_table(table.meta)


@pytest.mark.thorough
def test_a_write_that_names_other_columns_loses_no_rows_of_queries() -> None:
    table = table_of("9", "COPY_ON_WRITE")
    table.upsert(("a", "x", 1, 10))
    table.upsert(("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 999), metadata_index_column_stats_column_list="id")
    check(table, "fewer columns")
    assert HudiTable(table.meta).scan(where="v = 999").to_arrow().num_rows == 1
    table.upsert(("b", "x", 2, 888))
    assert HudiTable(table.meta).scan(where="v = 888").to_arrow().num_rows == 1


def test_the_first_write_of_a_table_has_statistics_of_all_its_columns() -> None:
    table = table_of("9", "COPY_ON_WRITE")
    table.upsert(("a", "x", 1, 10))
    found = MetadataTable.open(table.meta)
    assert found is not None
    for partition in ("column_stats", "partition_stats"):
        stats = found.records(partition).column("ColumnStatsMetadata").to_pylist()
        assert {one["columnName"] for one in stats if not one["columnName"].startswith("_")} == {"id", "p", "ts", "v"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_validation_passes_while_another_writer_appends(version: str) -> None:
    table = table_of(version, "MERGE_ON_READ")
    table.upsert(("a", "x", 1, 1))
    steps = (*apply_commit.STEPS[:-1], partial(_validates, table))
    with mock.patch.object(apply_commit, "STEPS", steps), pytest.raises(_SeenError):
        table.upsert(("a", "x", 2, 2))


class _SeenError(Exception):
    pass


def _validates(table: TestTable, at: apply_commit.Progress) -> apply_commit.Progress:
    """In place of the last step: the log file of the upsert exists, and its commit is pending."""
    assert len(table.meta.timeline.pending().instants) == 1
    check(table, "beside a pending write")
    raise _SeenError
