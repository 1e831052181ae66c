"""Log files that lack what completed writes put into them: nothing writes their rows back, unless it is told to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from pyhudi import DamagedLog, HudiTable
from tests.support.tables.damaged import NEW, OLD, OPTIONS, damaged, values
from tests.support.values.damaged_logs import DAMAGES, log_files

GIVE_UP = {"hoodie.pyhudi.rewrite.damaged.logs": "true"}
ALL_BLOCKS = {"hoodie.log.compaction.blocks.threshold": "1"}
REWRITES: dict[str, Callable[[HudiTable, dict[str, str]], object]] = {
    "compact": lambda table, more: table.compact(options=more),
    "log compact": lambda table, more: table.maintenance.log_compact(options={**ALL_BLOCKS, **more}),
    "cluster": lambda table, more: table.cluster(options=more),
    "update": lambda table, more: table.update("id = 'b'", set={"v": 1}, options={**OPTIONS, **more}),
    "merge": lambda table, more: (
        table.merge([{"id": "b", "p": "x", "ts": 9, "v": 1}], options={**OPTIONS, **more})
        .when_matched_update({"v": "source.v"})
        .execute()
    ),
}


def state(path: Path) -> dict[str, bytes]:
    """What lies in the table's folder."""
    return {str(found.relative_to(path)): found.read_bytes() for found in path.rglob("*") if found.is_file()}


@pytest.mark.parametrize("rewrite", ["compact", "log compact", "cluster"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_service_refuses_to_compact_a_damaged_log_file_before_it_plans_anything(
    tmp_path: Path, kind: str, rewrite: str
) -> None:
    log = damaged(tmp_path, kind, updates=3)
    before = state(tmp_path)
    with pytest.raises(DamagedLog, match=log.name.replace(".", r"\.")):
        REWRITES[rewrite](HudiTable.open(tmp_path), {})
    assert state(tmp_path) == before


@pytest.mark.parametrize("rewrite", ["compact", "cluster"])
def test_a_damaged_log_file_of_a_table_of_version_6_is_not_compacted(tmp_path: Path, rewrite: str) -> None:
    damaged(tmp_path, "cut in half", "6")
    with pytest.raises(DamagedLog):
        REWRITES[rewrite](HudiTable.open(tmp_path), {})


@pytest.mark.thorough
@pytest.mark.parametrize("rewrite", ["update", "merge"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_change_refuses_to_write_rows_of_a_damaged_slice_back(tmp_path: Path, kind: str, rewrite: str) -> None:
    damaged(tmp_path, kind)
    commits = HudiTable.open(tmp_path).state().timeline.commits()
    with pytest.raises(DamagedLog, match=r"hoodie\.pyhudi\.rewrite\.damaged\.logs"):
        REWRITES[rewrite](HudiTable.open(tmp_path), {})
    assert HudiTable.open(tmp_path).state().timeline.commits() == commits


@pytest.mark.parametrize("rewrite", REWRITES)
def test_whoever_gives_the_lost_rows_up_may_write_the_others_back(tmp_path: Path, rewrite: str) -> None:
    damaged(tmp_path, "cut in half", updates=3)
    table = HudiTable.open(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = values(tmp_path)
        REWRITES[rewrite](table, GIVE_UP)
        assert values(tmp_path) == left


def test_a_service_that_may_compact_damaged_log_files_says_which(tmp_path: Path) -> None:
    log = damaged(tmp_path, "emptied")
    with pytest.warns(UserWarning, match="is damaged") as caught:
        HudiTable.open(tmp_path).compact(options=GIVE_UP)
    assert log.name in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(tmp_path) == OLD


@pytest.mark.parametrize("rewrite", ["compact", "log compact", "cluster"])
def test_a_plan_that_waited_while_a_log_file_was_damaged_is_not_run(tmp_path: Path, rewrite: str) -> None:
    whole = damaged(tmp_path, None, updates=3).read_bytes()
    table = HudiTable.open(tmp_path)
    plan = {"compact": table.compact, "cluster": table.cluster}.get(rewrite)
    if plan is None:
        table.maintenance.log_compact(schedule_only=True, options=ALL_BLOCKS)
    else:
        plan(schedule_only=True)
    log = log_files(tmp_path)[-1]
    log.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedLog):
        REWRITES[rewrite](table, {})
    log.write_bytes(whole)
    REWRITES[rewrite](table, {})
    assert values(tmp_path) == NEW


@pytest.mark.parametrize("kind", ["cut in half", "deleted"])
def test_a_table_with_a_damaged_log_file_keeps_its_version(tmp_path: Path, kind: str) -> None:
    damaged(tmp_path, kind, "6", updates=2)
    with pytest.raises(DamagedLog):
        HudiTable.open(tmp_path).maintenance.upgrade()
    assert HudiTable.open(tmp_path).state().config.table_version == 6


def test_a_write_over_a_damaged_log_file_is_complete_and_its_compaction_is_not(tmp_path: Path) -> None:
    log = damaged(tmp_path, "cut in half")
    more = {**OPTIONS, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    with pytest.warns(UserWarning, match="the compaction after it failed.*is damaged") as caught:
        HudiTable.open(tmp_path).upsert([{"id": "b", "p": "x", "ts": 9, "v": 5}], options=more)
    assert any(log.name in str(one.message) for one in caught)
    with pytest.warns(UserWarning, match="is damaged"):
        assert values(tmp_path) == {"a": 1, "b": 5}
