"""PyHudi writes; real Hudi reads the same rows, checks the table and writes on; PyHudi reads that and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.judge.comparing import (
    assert_pyhudi_reads,
    assert_same,
    without_meta,
    write,
)
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import EVERY_CHANGE, EVERY_KIND, MERGE_ON_READ, Step, Story

# What Hudi does to the copy of a table on every change; the sweeping steps are left to `make judge-all`.
QUICK_STEPS = (
    "open", "read", "meta_columns", "footers", "as_of", "incremental", "hudi_rs", "upsert", "upsert_bloom", "delete",
    "rollback", "clean", "metadata_files", "upsert_last", "metadata_after",
)  # fmt: skip
QUICK_STEPS_OF_LOGS = ("open", "read", "as_of", "hudi_rs", "upsert", "rollback", "compaction", "hudi_rs_after")


def play(story: Story, judge: Judge, folder: Path, steps: tuple[str, ...] | None) -> None:
    hudi = HUDI_OF_TABLE_VERSION[story.table_version]
    table = folder / story.name
    for step in story.steps:
        write(table, story, step)

    for sql in story.session:
        judge.ask(command="sql", sql=sql, table=str(table), hudi=hudi)
    returned = judge.rows(table, hudi)
    how = (story.as_text, story.as_hudi_returns)
    assert_same(returned, story.expected(), story.schema, f"Hudi {hudi} reads what PyHudi wrote", *how)
    assert_pyhudi_reads(table, returned, "PyHudi reads what PyHudi wrote", *how)
    if not story.reads_only:
        table = continued_by_hudi(story, judge, table, folder / "kept", steps)

    before = keys_of(story, without_meta(judge.rows(table, hudi)))
    more = Step("upsert", [{**row, "note": "written on"} for row in story.expected()[:5]])
    write(table, story, more)
    after = judge.rows(table, hudi)
    assert len(after) == len(before | keys_of(story, more.rows)), f"Hudi {hudi} reads what PyHudi wrote on"
    assert_pyhudi_reads(table, after, "PyHudi reads what it wrote on", *how)


def continued_by_hudi(story: Story, judge: Judge, table: Path, kept: Path, steps: tuple[str, ...] | None) -> Path:
    """Real Hudi judges the table and writes on a copy of it; PyHudi reads the copy, whose folder is returned."""
    hudi = HUDI_OF_TABLE_VERSION[story.table_version]
    check: dict[str, Any] = {"keep": str(kept), "options": dict(story.check_options)}
    if steps:
        check["steps"] = [step for step in steps if step not in story.skip]
    else:
        check["skip"] = list(story.skip)
    judge.check(table, hudi, **check)
    where = f"PyHudi reads what Hudi {hudi} made of the table"
    assert_pyhudi_reads(kept, judge.rows(kept, hudi), where, story.as_text, story.as_hudi_returns)
    return kept


def keys_of(story: Story, found: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(str(row[name]) for name in (*story.key, *story.partition)) for row in found}


@pytest.mark.parametrize("story", EVERY_CHANGE, ids=lambda story: story.name)
def test_real_hudi_and_pyhudi_write_on_each_others_table(story: Story, judge: Judge, tmp_path: Path):
    play(story, judge, tmp_path, QUICK_STEPS_OF_LOGS if MERGE_ON_READ.items() <= story.options.items() else QUICK_STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("story", EVERY_KIND, ids=lambda story: story.name)
def test_every_kind_of_table_is_shared_with_real_hudi(story: Story, judge: Judge, tmp_path: Path):
    play(story, judge, tmp_path, None)
