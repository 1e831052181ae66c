"""Compactions by real Hudi, and what they may not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi import HudiTable, write_hudi
from tests.support.judge.real_hudi import Judge
from tests.support.judge.stories import Story, rows

NOT_KEPT = ("_hoodie_file_name",)


def upsert(table: Path, story: Story, numbers: range, ts: int) -> None:
    step = story.steps[1]
    write_hudi(str(table), story.data(type(step)("upsert", rows(numbers, ts))), options=story.write_options())


def call(judge: Judge, table: Path, hudi: str, operation: str) -> None:
    options = "hoodie.compact.inline.max.delta.commits=1"
    sql = f"call run_compaction(op => '{operation}', table => '{{table}}', options => '{options}')"
    answer = judge.ask(command="sql", sql=sql, table=str(table), hudi=hudi)
    assert answer["ok"], answer


def kept(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what a compaction may change, in one order."""
    plain = [{name: value for name, value in row.items() if name not in NOT_KEPT} for row in found]
    return sorted(plain, key=lambda row: (row["_hoodie_partition_path"], row["_hoodie_record_key"]))


def pending(table: Path) -> list[str]:
    return [instant.requested_time for instant in HudiTable.open(str(table)).state().timeline.pending()]
