"""A process dies at any storage call of an archiving run: no row and no instant is lost, the next run ends it."""

from __future__ import annotations

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.services.archive.archiving import archive
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.timeline.archived_timeline import archive_log, load_archived_timeline
from pyhudi.timeline.table_properties import load_table_config
from tests.support.tables.small import TestTable
from tests.support.writers.dying import deaths, on_clone

KEEP = {
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.timeline.manifest.retained.versions": "1",
    "hoodie.commits.archival.batch": "3",
}


def made(version: str) -> TestTable:
    """Two runs have archived before, so that the third one merges files too."""
    options = {
        "hoodie.write.table.version": version,
        "hoodie.archive.automatic": "false",
        "hoodie.clean.automatic": "false",
    }
    table = TestTable(MemoryStorage(), options, engine=LocalEngine(1))
    for n in range(3):
        for m in range(3):
            table.upsert(("a", "x", n, m), (f"k{n}", "x", n, n))
        if n < 2:
            run(table)
    return table


def run(table: TestTable) -> None:
    parsed = WriteOptions.parse(
        {**KEEP, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}, table=load_table_config(table.storage)
    )
    serve(table.storage, archive, parsed, table.engine)


def instants(table: TestTable) -> tuple[list[str], list[str]]:
    """Requested times of completed instants: archived, active."""
    history = [i.requested_time for i in load_archived_timeline(table.storage, table.meta.config).times()]
    return history, [i.requested_time for i in table.meta.timeline.completed()]


def everything(table: TestTable) -> list[str]:
    archived, active = instants(table)
    return sorted({*archived, *active})


def entries_of_version_6(table: TestTable) -> list[tuple[str, str, str]]:
    """Each entry of the archive, also those that count once though they are there twice."""
    config = table.meta.config
    names = ("commitTime", "actionType", "actionState")
    found = archive_log(table.storage, config).entries(names) if config.table_version == 6 else ()
    return [(entry[names[0]], entry[names[1]], entry[names[2]]) for entry in found]


@pytest.mark.parametrize("version", ["6", "9"])
def test_no_row_and_no_instant_is_lost_and_the_next_run_ends_it(version: str) -> None:
    table = made(version)
    rows = table.rows()
    all_instants = everything(table)
    counted = on_clone(table)
    run(counted)
    after = instants(counted)
    assert len(after[1]) == 1

    for attempt, where in deaths(table, run):
        assert attempt.rows() == rows, where
        assert everything(attempt) == all_instants, where

        attempt.upsert(("a", "x", 9, 99))
        attempt.upsert(("a", "x", 9, 100))
        run(attempt)
        history, active = instants(attempt)
        assert len(active) == 1, where
        assert len(history) == len(set(history)), where
        entries = entries_of_version_6(attempt)
        assert len(entries) == len(set(entries)), where
        assert sorted({*history, *active} & set(all_instants)) == all_instants, where
        assert len(attempt.rows()) == len(rows), where
        listed = {entry.name for entry in attempt.storage.list(attempt.meta.config.history_path)}
        assert not [name for name in listed if name.endswith(".tmp")], where
