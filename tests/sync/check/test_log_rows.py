"""Rows that only log files have are counted as readers see them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.queries.query import Query
from pyhudi.storage import open_storage
from pyhudi.sync.check.log_rows import RowsInLogs, rows_in_logs
from pyhudi.sync.files import newest_files

OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.compact.inline.max.delta.commits": "100"}
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}


def counted(table: HudiTable, **limits: int) -> RowsInLogs:
    meta = MetaClient.load(open_storage(table.path))
    return rows_in_logs(meta, Query(), newest_files(meta), **limits)


def versions(table: HudiTable, options: dict[str, str] | None = None) -> dict[str, str]:
    rows = table.scan(columns=["_hoodie_record_key", "_hoodie_commit_time"], options=options).to_arrow()
    return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def as_readers_see(table: HudiTable) -> tuple[int, int, int]:
    snapshot, base = versions(table), versions(table, READ_OPTIMIZED)
    stale = sum(base[key] != time for key, time in snapshot.items() if key in base)
    return len(snapshot.keys() - base.keys()), stale, len(base.keys() - snapshot.keys())


def row(key: int, ts: int) -> dict[str, Any]:
    return {"id": key, "city": "ab"[key % 2], "ts": ts}


def written(path: str, version: int, **options: str) -> HudiTable:
    given = {"record_key": "id", "partition_by": "city", "ordering": "ts", "table_type": "MERGE_ON_READ"}
    rows = [row(key, 5) for key in range(20)]
    write_hudi(path, rows, table_version=version, options={**OPTIONS, **options}, **given)  # type: ignore[arg-type]
    return HudiTable.open(path)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_counts_are_what_snapshots_and_base_files_differ_in(version: int, index: str) -> None:
    table = written(f"memory://check-{index}-{version}", version, **{"hoodie.index.type": index})
    rng = random.Random(version)
    for number in range(6):
        keys = rng.sample(range(30), 6)
        table.upsert([row(key, rng.choice([1, 5, 9])) for key in keys], options=OPTIONS)
        table.delete([row(key, 9) for key in rng.sample(range(30), 2)], options=OPTIONS)
        if number == 3:
            table.compact(schedule_only=True, options=OPTIONS)
        logs = counted(table)
        assert (logs.missing, logs.stale, logs.deleted) == as_readers_see(table)
        assert logs.total == logs.missing + logs.stale + logs.deleted
        assert not logs.is_bound


@pytest.mark.parametrize("version", [6, 9])
def test_large_slices_are_not_read_and_commits_give_a_bound(version: int) -> None:
    table = written(f"memory://check-bound-{version}", version)
    first = table.upsert([row(key, 6) for key in range(8)], options=OPTIONS)
    table.upsert([row(key, 7) for key in range(4)], options=OPTIONS)

    logs = counted(table, counted_bytes=10)

    assert (logs.total, logs.is_bound, logs.since) == (12, True, first.instant_time)
    assert sum(as_readers_see(table)) == 8 == counted(table).total


def test_after_a_compaction_there_is_none_and_since_is_the_first_commit_after_it() -> None:
    table = written("memory://check-since", 9)
    table.upsert([row(1, 6)], options=OPTIONS)
    table.compact(options={"hoodie.metadata.enable": "false", "hoodie.compact.inline.max.delta.commits": "1"})
    assert counted(table) == RowsInLogs(0)

    later = table.upsert([row(3, 6)], options=OPTIONS)
    assert counted(table).since == later.instant_time
