"""Many writers in deterministic schedules: a part of the matrix of actions. `make simulate` plays for hours."""

from __future__ import annotations

import random
from unittest import mock

import pytest

from tests.support.simulation.actions import ACTIONS
from tests.support.simulation.play import Fault, Play, by_seed, chosen, plays, run, shrunk

SEEDS = 600  # of which a run plays one in 24
FOUND = (
    189, 510,  # a dead restore, finished by another process: log files that stay were not in the metadata table
    500_244,  # a savepoint that is deleted while a clean reads it
    500_650,  # a write that is undone while an update looks at the table for the first time
)  # fmt: skip


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_snapshot_of_a_schedule_is_a_serial_history(seed: int) -> None:
    run(by_seed(seed))


@pytest.mark.whole
@pytest.mark.parametrize("seed", FOUND)
def test_schedules_that_were_wrong_once_are_right(seed: int) -> None:
    run(by_seed(seed))


@pytest.mark.parametrize("name", ACTIONS)
def test_each_action_ends_alone_on_every_table_that_it_is_for(name: str) -> None:
    action = ACTIONS[name]
    tables = [(version, merge_on_read) for version in sorted(action.versions) for merge_on_read in (False, True)]
    fitting = [table for table in tables if action.merge_on_read in (None, table[1])]

    version, merge_on_read = random.Random(name).choice(fitting)

    run(Play((name,), version, merge_on_read))


def test_the_matrix_has_every_action_beside_every_other() -> None:
    pairs = {frozenset(play.actions) for play in plays(2)}

    assert {frozenset((one, other)) for one in ACTIONS for other in ACTIONS} == pairs
    assert {len(play.actions) for play in plays(3)} == {3}
    assert {(play.version, play.dies) for play in plays(2)} == {(v, dies) for v in (6, 8, 9) for dies in (False, True)}


def test_a_schedule_is_the_same_each_time() -> None:
    play = chosen(Play(("upsert", "cleaning"), dies=True), seed=3)

    first, second = run(play), run(play)

    assert first.trace == second.trace
    assert first.story == second.story


def test_a_lost_check_is_found_and_the_schedule_shrinks_to_the_switch_that_it_needs() -> None:
    with mock.patch("pyhudi.actions.concurrency.check_conflicts"):
        failing = next(play for play in map(_two_updates, range(40)) if _fails(play))
        play, said = shrunk(failing)

    assert "no serial history" in said
    assert f"seed {failing.seed}: update | update" in said
    assert len(play.events) <= min(2, len(failing.events))


def _two_updates(seed: int) -> Play:
    return chosen(Play(("update", "update")), seed)


def _fails(play: Play) -> bool:
    try:
        run(play)
    except Fault:
        return True
    return False
