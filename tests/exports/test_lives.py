"""Random lives of tables that are exported now and then: Delta has the rows that our own reader has."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.exports.delta import assert_equal, rows
from tests.support.sweeps import SEED
from tests.support.tables.random_life import EMPHASES, RandomLife

FIRST = int(os.environ.get("PYHUDI_LIFE_SEED", SEED))
LIVES = int(os.environ.get("PYHUDI_LIVES", len(EMPHASES)))
STEPS = int(os.environ.get("PYHUDI_STEPS", 30))


def export(life: RandomLife) -> None:
    path, before = Path(life.table.path), -1
    if DeltaTable.is_deltatable(str(path)):
        before = DeltaTable(path).version()
    result = life.table.export_metadata("delta")
    assert_equal(life.table)
    table = DeltaTable(path)
    named = table.history(1)[0]["hudi.instant"]
    commits = life.table.state().timeline.commits().instants
    assert named in (commits[-1].requested_time, max(commits, key=lambda one: one.completion_time or "").requested_time)
    assert result.instant_time == named
    assert table.get_add_actions().num_rows == len(table.file_uris())
    if life.in_logs or result.replaced:
        return
    # The versions in between have the rows of their commits, as far as their files are there.
    for version in reversed(table.history(table.version() - before)):
        files = DeltaTable(path, version["version"]).file_uris()
        if all(Path(file).exists() for file in files) and version["hudi.instant"] not in life.late:
            had = life.rows_at[version["hudi.instant"]]
            columns = life.schema.names
            read = DeltaTable(path, version["version"]).to_pyarrow_table().select(columns)
            assert rows(read) == sorted(repr(sorted(row.items())) for row in had.values()), version["hudi.instant"]


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, LIVES))])
def test_an_export_has_the_rows_of_the_table_whatever_happened(number: int, tmp_path: Path) -> None:
    emphasis = EMPHASES[(FIRST + number) % len(EMPHASES)]
    life, choice = RandomLife(FIRST + number, emphasis, str(tmp_path / "t")), random.Random(FIRST + number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            for _ in range(STEPS):
                life.step()
                if life.rows_at and choice.random() < 0.5:
                    export(life)
        except Exception:
            print(*life.story, sep="\n")
            raise
