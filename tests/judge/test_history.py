"""The archived timeline, savepoints and restores are shared with real Hudi: either writes them, both read and go on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from pyhudi.timeline.archived_timeline import ArchiveLogInstant, load_archived_timeline
from pyhudi.timeline.lsm_history import LsmInstant
from tests.support.judge.comparing import assert_pyhudi_reads
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, DDL, KEYS, MERGE_ON_READ, SCHEMA, Story, row, rows

KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.commits.archival.batch": "3",
}
HUDIS_KEEP = {**KEEP, "hoodie.cleaner.commits.retained": "1"}
QUIET = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
KINDS = {"copy on write": {}, "merge on read": {**MERGE_ON_READ, **COMPACTING}}
SLOW = pytest.mark.slow
CASES = [
    (9, "copy on write"),
    (8, "copy on write"),
    (6, "copy on write"),
    pytest.param(9, "merge on read", marks=SLOW),
    pytest.param(8, "merge on read", marks=SLOW),
    pytest.param(6, "merge on read", marks=SLOW),
]
RESTORES = [
    (9, "merge on read"),
    pytest.param(8, "merge on read", marks=SLOW),
    pytest.param(6, "merge on read", marks=SLOW),
    pytest.param(9, "copy on write", marks=SLOW),
    pytest.param(8, "copy on write", marks=SLOW),
    pytest.param(6, "copy on write", marks=SLOW),
]


def story_of(version: int, kind: str) -> Story:
    options = {**KEYS, **KINDS[kind], **(BY_VALUE if version < 8 else {})}
    return Story(f"history_v{version}", version, options, ())


def upsert(table: Path, story: Story, numbers: range, ts: int, **options: str) -> None:
    import pyarrow as pa

    data = pa.Table.from_pylist(rows(numbers, ts), schema=SCHEMA)
    write_hudi(str(table), data, operation="upsert", options={**story.write_options(), **QUIET, **options})


def hudi_upserts(judge: Judge, table: Path, story: Story, numbers: range, ts: int, **options: str) -> None:
    plain = [
        {name: str(cell) if name in ("amount", "at", "day") else cell for name, cell in row(n, ts).items()}
        for n in numbers
    ]
    judge.write(
        table,
        HUDI_OF_TABLE_VERSION[story.table_version],
        options={**story.write_options(), **QUIET, "hoodie.datasource.write.precombine.field": "ts", **options},
        schema=DDL,
        steps=[{"operation": "upsert", "rows": plain}],
    )


def sql(judge: Judge, table: Path, version: int, text: str) -> list[dict[str, Any]]:
    answer = judge.ask(command="sql", sql=text, table=str(table), hudi=HUDI_OF_TABLE_VERSION[version], limit=0)
    assert answer["ok"], answer
    found: list[dict[str, Any]] = answer["rows"]
    return found


@pytest.fixture
def no_metadata_table(judge: Judge) -> Iterator[Callable[[Path, int], None]]:
    """Procedures of real Hudi keep no metadata table: 0.15 builds one to restore, and can't restore with a new one."""
    used: list[tuple[Path, int]] = []

    def switch_off(table: Path, version: int) -> None:
        used.append((table, version))
        sql(judge, table, version, "set hoodie.metadata.enable=false")

    yield switch_off
    for table, version in used:
        sql(judge, table, version, "reset hoodie.metadata.enable")


def history(table: Path) -> dict[str, tuple[int, int, int]]:
    """Archived write → bytes, rows, updates."""
    storage = open_storage(table)
    found = {}
    for archived in load_archived_timeline(storage, MetaClient.load(storage).config).instants():
        commit = archived.commit()
        if commit is not None:
            stats = commit.stats()
            found[archived.instant.requested_time] = (
                sum(stat.total_write_bytes for stat in stats),
                sum(stat.num_writes for stat in stats),
                sum(stat.num_update_writes for stat in stats),
            )
    return found


def hudis_history(judge: Judge, table: Path, version: int) -> dict[str, tuple[int, int, int]]:
    call = (
        "call show_archived_commits(table => '{table}', limit => 1000, start_ts => '20000101000000000', "
        "end_ts => '29990101000000000')"
    )
    return {
        row["commit_time"]: (
            row["total_bytes_written"],
            row["total_records_written"],
            row["total_update_records_written"],
        )
        for row in sql(judge, table, version, call)
    }


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_each_lists_and_continues_the_history_of_the_other(
    version: int, kind: str, judge: Judge, tmp_path: Path
) -> None:
    story, table = story_of(version, kind), tmp_path / "t"
    for ts in range(10, 18):
        upsert(table, story, range(ts, ts + 6), ts, **({**KEEP, "hoodie.archive.automatic": "true"} if ts > 14 else {}))
    ours = HudiTable.open(str(table))
    ours.maintenance.archive(options=KEEP)
    ours_archived = history(table)
    assert len(ours_archived) >= 4
    assert hudis_history(judge, table, version) == ours_archived
    before = judge.rows(table, HUDI_OF_TABLE_VERSION[version])
    assert_pyhudi_reads(table, before, "after PyHudi archived")

    for ts in range(20, 24):
        hudi_upserts(judge, table, story, range(ts, ts + 4), ts, **HUDIS_KEEP, **{"hoodie.archive.automatic": "true"})
    both = history(table)
    assert len(both) > len(ours_archived)
    assert ours_archived.items() <= both.items()
    assert both == hudis_history(judge, table, version)

    for ts in range(30, 35):
        upsert(table, story, range(ts, ts + 4), ts, **{**KEEP, "hoodie.archive.automatic": "true"})
    again = history(table)
    assert len(again) > len(both)
    assert again == hudis_history(judge, table, version)
    after = judge.rows(table, HUDI_OF_TABLE_VERSION[version])
    assert_pyhudi_reads(table, after, "after both archived")
    if version >= 9:
        shown = sql(
            judge, table, version, "call show_timeline(table => '{table}', showArchived => true, limit => 1000)"
        )
        times = {row["instant_time"] for row in shown}
        active = {i.requested_time for i in ours.state().timeline}
        assert times == active | {i.requested_time for i in all_archived(table)}


def all_archived(table: Path) -> tuple[Any, ...]:
    storage = open_storage(table)
    return load_archived_timeline(storage, MetaClient.load(storage).config).times()


@pytest.mark.parametrize(("version", "kind"), RESTORES)
def test_each_restores_what_the_other_saved(
    version: int, kind: str, judge: Judge, tmp_path: Path, no_metadata_table: Callable[[Path, int], None]
) -> None:
    story, table, hudi = story_of(version, kind), tmp_path / "t", HUDI_OF_TABLE_VERSION[version]
    upsert(table, story, range(12), 10)
    upsert(table, story, range(4, 8), 11)
    ours = HudiTable.open(str(table))
    saved = judge.rows(table, hudi)
    no_metadata_table(table, version)
    point = ours.savepoints.create(user="ann", comment="before")
    assert [
        row["savepoint_time"] for row in sql(judge, table, version, "call show_savepoints(table => '{table}')")
    ] == [point.instant_time]
    for ts in (12, 13, 14):
        upsert(table, story, range(ts - 10, ts), ts)
    sql(
        judge,
        table,
        version,
        f"call rollback_to_savepoint(table => '{{table}}', instant_time => '{point.instant_time}')",
    )
    assert same(judge.rows(table, hudi), saved), f"Hudi {hudi} restored a savepoint of PyHudi"
    assert_pyhudi_reads(table, saved, f"Hudi {hudi} restored a savepoint of PyHudi")

    ours.savepoints.delete(point.instant_time)
    upsert(table, story, range(3, 9), 15)
    newest = ours.state().timeline.last_commit()
    assert newest is not None
    saved = judge.rows(table, hudi)
    call = f"call create_savepoint(table => '{{table}}', commit_time => '{newest.requested_time}')"
    sql(judge, table, version, call)
    assert [s.instant_time for s in ours.savepoints.list()] == [newest.requested_time]
    hudi_upserts(judge, table, story, range(5), 16)
    for ts in (17, 18):
        upsert(table, story, range(ts - 10, ts), ts)
    hudi_upserts(judge, table, story, range(5, 15), 19)
    result = ours.restore(newest.requested_time)

    assert len(result.rolled_back) >= 4
    assert_pyhudi_reads(table, saved, f"PyHudi restored a savepoint of Hudi {hudi}")
    assert same(judge.rows(table, hudi), saved), f"PyHudi restored a savepoint of Hudi {hudi}"
    assert len(ours.state().timeline.of([ActionKind.RESTORE])) == 2
    options = {**QUIET, **(BY_VALUE if version < 8 else {})}
    judge.check(table, hudi, steps=["open", "read", "upsert", "delete", "rollback"], options=options)
    upsert(table, story, range(10, 20), 30)
    assert_pyhudi_reads(table, judge.rows(table, hudi), "PyHudi writes on")


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    def in_order(rows_: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows_)

    return in_order(found) == in_order(expected)


@pytest.mark.parametrize(
    "version", [pytest.param(9, marks=SLOW), pytest.param(8, marks=SLOW), pytest.param(6, marks=SLOW)]
)
def test_both_archive_the_same_instants_with_the_same_contents(version: int, judge: Judge, tmp_path: Path) -> None:
    story, table, theirs = story_of(version, "merge on read"), tmp_path / "t", tmp_path / "theirs"
    cleaned = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    for ts in range(10, 20):
        upsert(table, story, range(ts, ts + 6), ts, **cleaned)
        if ts == 13:
            HudiTable.open(str(table)).rollback()
    shutil.copytree(table, theirs)

    HudiTable.open(str(table)).maintenance.archive(options={**KEEP, **COMPACTING})
    options = "retain_commits => 1, min_commits => 2, max_commits => 3, enable_metadata => false"
    sql(judge, theirs, version, f"call archive_commits(table => '{{table}}', {options})")

    ours, hudis = contents(table), contents(theirs)
    assert {key for key in ours if key[1] != "clean"} == {key for key in hudis if key[1] != "clean"}
    assert len([key for key in ours if key[1] != "clean"]) >= 6
    for key in ours.keys() & hudis.keys():
        assert ours[key] == hudis[key], key


def contents(table: Path) -> dict[tuple[str, str], Any]:
    """(time, action) → all that the history holds of an instant."""
    storage = open_storage(table)
    found: dict[tuple[str, str], Any] = {}
    for archived in load_archived_timeline(storage, MetaClient.load(storage).config).instants():
        instant = archived.instant
        if isinstance(archived, LsmInstant):
            kept: Any = (instant.completion_time, archived.metadata, archived.plan)
        else:
            assert isinstance(archived, ArchiveLogInstant)
            kept = archived.entries
        found[instant.requested_time, instant.action.value] = kept
    return found
