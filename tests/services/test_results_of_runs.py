"""What a call of a service prints when it ran several plans."""

from __future__ import annotations

import re

import pytest

from tests.support.tables.compacted import Compacted


@pytest.mark.parametrize("waiting", [0, 1])
def test_each_run_has_a_line_that_begins_with_the_service_and_its_instant(waiting: int) -> None:
    table = Compacted("9").start()
    for _ in range(waiting):
        table.compact(schedule_only=True)
        table.upsert(("a", "x", 9, 90))

    result = table.compact()

    assert len(result.instant_times) == waiting + 1
    lines = str(result).split("\n")
    assert [line.partition(" (")[0] for line in lines] == [f"compact {time}" for time in result.instant_times]
    assert all(re.fullmatch(r".* rows \(.*\); \d+\.\d\d s", line) for line in lines)
