"""Long tests of many cases: which cases `make test` runs; the others have the marker `sweep`.

One rule, by the hash of a test's id: of the cases of a test one in `SHARE` is run, and at least one. So every test
function is in `make test`, a case is in it or not whatever other cases there are (but for a test's only one), and
nobody keeps lists. `make sweeps` runs all of them, and with Spark `make sparks`; `make floors`, which CI runs too,
those of the rooms that write no tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from zlib import crc32

import pytest

__all__ = ["SAMPLED", "SHARE", "WHOLE_ROOMS", "examples", "mark_sweeps", "stride"]

# `make test` sets it: of random examples, rounds and places to die it takes a part. `make sweeps` takes all.
SAMPLED = os.environ.get("PYHUDI_SAMPLE") == "1"

SHARE = 24
WHOLE_ROOMS = frozenset({"house", "judge"})  # `make check` and `make judge` run these


def examples(count: int) -> int:
    """How many random examples a long test takes: a tenth of them in `make test`."""
    return max(2, count // 10) if SAMPLED else count


def stride(step: int = 1) -> int:
    """The step between places that are damaged one after the other: three times as long in `make test`."""
    return 3 * step if SAMPLED else step


def mark_sweeps(items: Iterable[pytest.Item], stays: Callable[[pytest.Item], bool] = lambda _: False) -> None:
    """Mark the cases as `sweep` that `make test` leaves out. `stays`: is a case needed there, whatever its hash is?"""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test.split("/")[1] not in WHOLE_ROOMS:
            tests.setdefault(test, []).append(item)
    for cases in tests.values():
        fast = [item for item in cases if item.get_closest_marker("slow") is None]
        first = min(fast or cases, key=_hash)
        for item in cases:
            if item is not first and _hash(item) % SHARE and not stays(item):
                item.add_marker(pytest.mark.sweep)


def _hash(item: pytest.Item) -> int:
    return crc32(item.nodeid.encode())
