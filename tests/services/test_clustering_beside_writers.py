"""Two writers and a clustering at work at the same time: what was committed is there, once, whoever gave way."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyhudi.errors import WriteConflict
from pyhudi.storage.local import LocalStorage
from tests.support.tables.clustered import OPTIMISTIC, Clustered
from tests.support.tables.small import Row

WRITES = 8


def opened(version: str, table_type: str, folder: Path, strategy: str) -> Clustered:
    options = {**OPTIMISTIC, "clustering_updates_strategy": strategy}
    table = Clustered(version, table_type, LocalStorage(str(folder)), **options)
    table.failed_writes_policy = "LAZY"
    return table


def writer(table: Clustered, number: int) -> dict[str, Row]:
    """Rows of its own keys that a writer has committed."""
    numbers, committed = random.Random(number), dict[str, Row]()
    for ts in range(1, WRITES + 1):
        keys = sorted({numbers.randrange(12) for _ in range(4)})
        rows: list[Row] = [(f"w{number}-{key:02d}", "xy"[key % 2], ts, numbers.randrange(100)) for key in keys]
        try:
            if ts % 4:
                table.upsert(*rows)
                committed |= {row[0]: row for row in rows}
            else:
                table.delete(*((key, path) for key, path, _, _ in rows))
                committed = {key: row for key, row in committed.items() if key not in {row[0] for row in rows}}
        except WriteConflict:
            continue
    return committed


def clusterer(table: Clustered) -> int:
    done = 0
    for _ in range(WRITES):
        try:
            done += len(table.cluster(**OPTIMISTIC, clustering_plan_strategy_sort_columns="v").runs)
        except WriteConflict:
            continue
    return done


@pytest.mark.parametrize(
    ("version", "table_type", "strategy"),
    [("9", "COPY_ON_WRITE", "REJECT"), ("9", "MERGE_ON_READ", "ALLOW"), ("6", "MERGE_ON_READ", "ALLOW")],
)
def test_every_committed_row_is_there_once(version: str, table_type: str, strategy: str, tmp_path: Path) -> None:
    def table() -> Clustered:
        return opened(version, table_type, tmp_path / "t", strategy)

    table().insert(("start", "x", 0, 0))
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(writer, table(), number) for number in range(2)]
        clustering = pool.submit(clusterer, table())
        committed = [done.result() for done in writers]
        clustering.result()
    rows = [("start", "x", 0, 0), *(row for own in committed for row in own.values())]
    assert table().rows() == sorted(rows)
    table().cluster(**OPTIMISTIC)
    assert table().rows() == sorted(rows)
