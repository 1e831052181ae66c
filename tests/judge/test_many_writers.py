"""Real Hudi and PyHudi write to one table at the same time, under one lock: nothing of either is lost.

Both change the same rows. So that they really meet, however fast each is, they take turns at being overtaken: in one
turn PyHudi commits while Hudi is at work, in the next one Hudi commits while PyHudi is. Who was overtaken has to give
way and run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.judge.comparing import assert_pyhudi_reads, assert_same
from tests.support.judge.real_hudi import Judge
from tests.support.judge.stories import KEYS, MERGE_ON_READ, SCHEMA, Step, Story, rows
from tests.support.judge.two_writers import MANY, Play, overtake_each_other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind"),
    [pytest.param(9, {}, id="v9"), pytest.param(8, {}, id="v8"), pytest.param(9, MERGE_ON_READ, id="v9_logs")],
)
def test_two_writers_under_the_lock_file_lose_nothing(
    version: int, kind: Mapping[str, str], judge: Judge, tmp_path: Path
) -> None:
    play = Play(tmp_path / "t", Story(f"shared_v{version}", version, {**KEYS, **MANY, **kind}, ()), judge)
    play.write_ours(Step("upsert", rows(range(3), 1)))
    overtake_each_other(play)

    found = judge.rows(play.table, play.hudi)
    assert_same(found, play.story.expected(play.steps), SCHEMA, f"Hudi {play.hudi} reads what both wrote")
    assert_pyhudi_reads(play.table, found, "both read the same")
