"""Random lives of tables that are exported now and then: Iceberg has the rows that our own reader has."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path

import pytest

from tests.support.exports.iceberg import ICEBERG, Lake, by_pyhudi, rows
from tests.support.sweeps import SEED
from tests.support.tables.random_life import EMPHASES, RandomLife

FIRST = int(os.environ.get("PYHUDI_LIFE_SEED", SEED))
LIVES = int(os.environ.get("PYHUDI_LIVES", len(EMPHASES)))
STEPS = int(os.environ.get("PYHUDI_STEPS", 30))


def export(life: RandomLife, lake: Lake) -> None:
    before = lake.instants() if lake.exists() else []
    result = lake.export(life.table)
    assert lake.read() == by_pyhudi(life.table)
    assert len(set(lake.files())) == len(lake.files())
    named = lake.instants()
    assert named[-1] == result.instant_time in newest(life)
    if life.in_logs or result.replaced:
        return
    # The snapshots in between have the rows of their commits, as far as their files are there.
    for snapshot in lake.table().snapshots()[len(before) :]:
        instant = snapshot.summary["hudi.instant"] if snapshot.summary else None
        files = [task.file.file_path for task in lake.table().scan(snapshot_id=snapshot.snapshot_id).plan_files()]
        if instant and instant not in life.late and all(Path(one.removeprefix("file://")).exists() for one in files):
            read = lake.table().scan(snapshot_id=snapshot.snapshot_id).to_arrow().select(life.schema.names)
            assert rows(read) == sorted(repr(sorted(row.items())) for row in life.rows_at[instant].values()), instant


def newest(life: RandomLife) -> set[str]:
    """The commit that completed last; before completion times also the one that was requested last."""
    meta = life.table.state()
    commits = meta.timeline.commits()
    last = max(commits, key=lambda one: (one.completion_time or one.requested_time, one.requested_time)).requested_time
    return {last} if meta.config.format.orders_by_completion else {last, max(one.requested_time for one in commits)}


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, LIVES))])
def test_an_export_has_the_rows_of_the_table_whatever_happened(number: int, tmp_path: Path) -> None:
    emphasis = EMPHASES[(FIRST + number) % len(EMPHASES)]
    life, choice = RandomLife(FIRST + number, emphasis, str(tmp_path / "t")), random.Random(FIRST + number)
    lake = Lake(tmp_path, more={f"{ICEBERG}snapshots.retained": "1000"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            for _ in range(STEPS):
                life.step()
                if life.rows_at and choice.random() < 0.5:
                    export(life, lake)
        except Exception:
            print(*life.story, sep="\n")
            raise
