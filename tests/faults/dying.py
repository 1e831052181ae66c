"""How a process dies in these tests: at a storage call of its own copy of the table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from pyhudi.errors import HudiError
from pyhudi.storage.memory import FaultKind
from tests.actions.tables import TestTable

READING = frozenset({"read", "open_input", "list", "walk", "stat"})
KINDS: tuple[FaultKind, ...] = ("before", "after", "torn")

Table = TypeVar("Table", bound=TestTable)


def on_clone(table: Table) -> Table:
    """The same table on a copy of its storage, without faults and with an empty log of calls."""
    clone = copy.copy(table)
    clone.storage = table.memory.clone()
    return clone


def changing_calls(calls: Sequence[tuple[str, str]]) -> list[int]:
    """Numbers, from 1 on, of the calls (verb, path) that change something.

    A death at a call that reads, or after one that changes something, leaves the same behind as one before the next
    call that changes something.
    """
    return [number for number, (verb, _) in enumerate(calls, start=1) if verb not in READING]


def died_before_completing(table: Table, act: Callable[[Table], object]) -> Table:
    """What is left of a run that had written its files, and not yet its completed file."""
    attempt = on_clone(table)
    act(attempt)
    log = attempt.memory.log
    completed = next(n for n, (verb, path) in enumerate(log, 1) if verb == "create_new" and path.endswith("commit"))
    dying = on_clone(table)
    dying.memory.fail_at(completed, "before")
    with pytest.raises(HudiError):
        act(dying)
    left = on_clone(dying)
    assert left.meta.timeline.pending().instants
    return left
