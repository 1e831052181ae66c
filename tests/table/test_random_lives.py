"""Random lives of small tables, by seed: rows, history and increments are those of a dict that lived the same life.

`PYHUDI_LIVES=500 PYHUDI_LIFE_SEED=1000 pytest tests/table/test_random_lives.py` plays 500 lives from the seed 1000 on
(`make stress`). A failure tells its seed and what happened.
"""

from __future__ import annotations

import os
import warnings

import pytest

from tests.support.tables.random_life import RandomLife

FIRST = int(os.environ.get("PYHUDI_LIFE_SEED", "0"))
LIVES = int(os.environ.get("PYHUDI_LIVES", "8"))
STEPS = 18


@pytest.mark.parametrize("seed", range(FIRST, FIRST + LIVES))
def test_a_table_is_at_every_moment_what_a_dict_is(seed: int) -> None:
    life = RandomLife(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of options that leave little to read
        try:
            for _ in range(STEPS):
                life.step()
            life.look_around()
        except Exception:
            print(*life.story, sep="\n")  # pytest shows it
            raise
