"""The power fails at any moment of any action: what has completed is whole, and the next writer goes on.

`make power` plays 1,000 rounds; `make test` plays one or two of each action.
"""

from __future__ import annotations

import os
import random
from functools import partial

import pytest

from tests.support.writers.every_fault import START
from tests.support.writers.power_cuts import cut, record, survive_a_cut
from tests.support.writers.power_plays import ACTIONS, LIVES, SERVED, recorded

SEED = int(os.environ.get("PYHUDI_POWER_SEED", "1"))
ROUNDS = int(os.environ.get("PYHUDI_POWER_ROUNDS", "60"))


@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize("name", ACTIONS)
def test_what_has_completed_is_whole_and_the_next_writer_goes_on(name: str) -> None:
    for n in range(-(-ROUNDS // len(ACTIONS))):
        survive_a_cut(recorded(name), random.Random(f"{SEED} {name} {n}"), f"{name}, round {n}")


@pytest.mark.thorough
@pytest.mark.filterwarnings("error:.*after it failed.*")
@pytest.mark.parametrize("name", LIVES)
def test_a_table_lives_on_through_many_power_cuts(name: str) -> None:
    """What comes back from a cut is what the next action starts from: what one deletes may hurt the next but two."""
    make, version, steps = LIVES[name]
    chance = random.Random(f"{SEED} {name}")
    table = make(version)
    table.options = {**table.options, **SERVED}
    table.metadata_by_default = True
    table.bulk_insert(*START)
    for n in range(2, 2 + max(8, ROUNDS // 8)):
        step = record(table, partial(chance.choice(steps), n=n))
        table, _ = cut(step, chance, f"{name}, step {n}")
