"""Plans and results of compactions are shared with real Hudi: either schedules, the other runs, both read the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from tests.support.golden.rows import differences
from tests.support.judge.compactions import call, kept, pending, upsert
from tests.support.judge.comparing import assert_pyhudi_reads, assert_same, write
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, KEYS, MERGE_ON_READ, NO_COMPACTION, Story, log_steps

VERSIONS = [9, pytest.param(8, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]


def story_of(version: int) -> Story:
    options = {**KEYS, **MERGE_ON_READ, **(BY_VALUE if version < 8 else {})}
    check = {**NO_COMPACTION, **(BY_VALUE if version < 8 else {})}
    return Story(f"compacted_v{version}", version, options, log_steps(revives=version != 8), check_options=check)


@pytest.mark.parametrize("version", VERSIONS)
def test_pyhudi_and_real_hudi_run_each_others_compactions(version: int, judge: Judge, tmp_path: Path) -> None:
    story, hudi, table = story_of(version), HUDI_OF_TABLE_VERSION[version], tmp_path / "t"
    for step in story.steps:
        write(table, story, step)
    ours = HudiTable.open(str(table))

    assert ours.compact().runs
    returned = judge.rows(table, hudi)
    assert_same(returned, story.expected(), story.schema, f"Hudi {hudi} reads what PyHudi compacted")
    assert kept(judge.rows(table, hudi, query="read_optimized")) == kept(returned)

    upsert(table, story, range(20, 30), 70)
    assert ours.compact(schedule_only=True).scheduled
    upsert(table, story, range(25, 35), 75)
    before = judge.rows(table, hudi)
    assert_pyhudi_reads(table, before, "a plan of PyHudi waits")
    call(judge, table, hudi, "run")
    assert not pending(table)
    after = judge.rows(table, hudi)
    assert kept(after) == kept(before), f"Hudi {hudi} ran a plan of PyHudi"
    assert_pyhudi_reads(table, after, f"Hudi {hudi} ran a plan of PyHudi")

    call(judge, table, hudi, "schedule")
    (theirs,) = pending(table)
    upsert(table, story, range(40, 45), 80)
    before = judge.rows(table, hudi)
    assert_pyhudi_reads(table, before, f"a plan of Hudi {hudi} waits")
    assert ours.compact(instant_time=theirs).instant_times == (theirs,)
    after = judge.rows(table, hudi)
    assert kept(after) == kept(before), f"PyHudi ran a plan of Hudi {hudi}"
    assert not differences(after, ours.scan().to_arrow())

    for ts in (90, 91):
        upsert(table, story, range(40, 50), ts)
    assert ours.maintenance.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2}).runs
    upsert(table, story, range(45, 55), 92)
    returned = judge.rows(table, hudi)
    assert_pyhudi_reads(table, returned, "PyHudi merged log blocks")
    judge.check(table, hudi, steps=["as_of", "hudi_rs", "upsert", "compaction"], options=dict(story.check_options))
