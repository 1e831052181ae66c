"""Random lives of small tables, by seed: rows, history and increments are those of a dict that lived the same life.

Each life has an emphasis: writes, or one of the services. The seed of the run is the one of its first life.
`PYHUDI_LIVES=500 PYHUDI_LIFE_SEED=1000 pytest tests/table/test_random_lives.py` plays 500 lives from the seed 1000 on
(`make stress`). A failure tells its seed, its emphasis and what happened.
"""

from __future__ import annotations

import os
import warnings

import pytest

from tests.support.sweeps import SEED
from tests.support.tables.random_life import EMPHASES, RandomLife

FIRST = int(os.environ.get("PYHUDI_LIFE_SEED", SEED))
LIVES = int(os.environ.get("PYHUDI_LIVES", len(EMPHASES)))
STEPS = 18


@pytest.mark.whole
@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, LIVES))])
def test_a_table_is_at_every_moment_what_a_dict_is(number: int) -> None:
    life = RandomLife(FIRST + number, EMPHASES[(FIRST + number) % len(EMPHASES)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of options that leave little to read
        try:
            for _ in range(STEPS):
                life.step()
            life.look_around()
        except Exception:
            print(*life.story, sep="\n")  # pytest shows it
            raise
