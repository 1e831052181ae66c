"""Which cases run when: the part of long tests that a run takes, and the seed that chooses it.

Of the cases of a test one in `SHARE` is run, and at least one; the others have the marker `sweep`. Tests marked `whole`
are run with all their cases. A case's hash and
the seed of the run decide, so a case is in a run or not whatever other cases there are, and nobody keeps lists. The
seed is the commit's hash: other commits play other cases. `PYHUDI_SEED` chooses another one.

`make test` and `make test-all` play such a part. `make sweeps` runs all cases, and with Spark `make sparks`;
`make floors`, which is in `make test-all`, those of the rooms that write no tables.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

import pytest

__all__ = ["SAMPLED", "SEED", "SHARE", "WHOLE_ROOMS", "examples", "is_in_part", "mark_sweeps", "seed_of", "stride"]

# `make test` sets it: of random examples, rounds and places to die it takes a part. `make sweeps` takes all.
SAMPLED = os.environ.get("PYHUDI_SAMPLE") == "1"

SHARE = 24
WHOLE_ROOMS = frozenset({"house", "judge"})  # `make check` and `make judge` run these


def seed_of(text: str) -> int:
    """The seed that a text stands for: hexadecimal digits, as many of a commit's hash as one likes to give."""
    return int(text[:8] or "0", 16)


def _commit() -> str:
    """The first eight digits of the commit's hash; none where the sources are no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# Processes of one run get it from the first of them.
SEED = seed_of(os.environ.setdefault("PYHUDI_SEED", _commit()))


def examples(count: int) -> int:
    """How many random examples a long test takes: a tenth of them in `make test`."""
    return max(2, count // 10) if SAMPLED else count


def stride(step: int = 1) -> int:
    """The step between places that are damaged one after the other: three times as long in `make test`."""
    return 3 * step if SAMPLED else step


def is_in_part(item: pytest.Item, seed: int = SEED) -> bool:
    """Does the seed choose this case?"""
    return _rank(item, seed) == 0


def mark_sweeps(
    items: Iterable[pytest.Item], stays: Callable[[pytest.Item], bool] = lambda _: False, seed: int = SEED
) -> None:
    """Mark the cases as `sweep` that the seed does not choose. `stays`: is a case needed, whatever its hash is?"""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test.split("/")[1] not in WHOLE_ROOMS and item.get_closest_marker("whole") is None:
            tests.setdefault(test, []).append(item)
    for cases in tests.values():
        fast = [item for item in cases if item.get_closest_marker("slow") is None]
        first = min(fast or cases, key=lambda item: (_rank(item, seed), item.nodeid))
        for item in cases:
            if item is not first and not is_in_part(item, seed) and not stays(item):
                item.add_marker(pytest.mark.sweep)


def _rank(item: pytest.Item, seed: int) -> int:
    """The case's place among `SHARE` parts, of which each seed plays the first."""
    return (crc32(item.nodeid.encode()) + seed) % SHARE
