"""How a process dies in these tests: at a storage call of its own copy of the table."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pytest

from pyhudi.errors import HudiError
from pyhudi.model.filenames import HEARTBEAT_FOLDER
from pyhudi.storage.memory import FaultKind
from tests.support.sweeps import SAMPLED, SEED
from tests.support.tables.small import TestTable

READING = frozenset({"read", "open_input", "list", "walk", "stat"})
TEARABLE = frozenset({"write", "close_output", "delete_tree"})  # what a death can leave half done

_NAMES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")  # file ids, times, and other numbers

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


def places_to_die(calls: Sequence[tuple[str, str]]) -> list[tuple[FaultKind, int]]:
    """Before every call, for a failed read may be taken for an answer; in the middle of each change that can be half
    done; and after the last one. After an earlier change is as before the next. In `make test` not at every one of the
    calls that are alike, but at the first or the last change, of many kinds at one in two, and of the first reads at
    one in six.
    """
    changes = changing_calls(calls)
    # Half a heartbeat does not say whose it is, so that its age decides: nobody waits for that here.
    torn = [n for n in changes if calls[n - 1][0] in TEARABLE and not calls[n - 1][1].startswith(HEARTBEAT_FOLDER)]
    every = list(range(1, len(calls) + 1))
    if SAMPLED:
        # Actions differ in their number of calls, so also in which of the calls they die at; so do commits.
        turn = len(calls) + SEED
        kinds = _alike(calls, changes)
        if len(kinds) > 8:
            kinds = kinds[turn % 2 :: 2]
        ends = [same[-1 if number % 2 else 0] for number, same in enumerate(kinds, turn)]
        first_reads = [same[0] for same in _alike(calls, set(every) - set(changes))]
        every = sorted({*first_reads[turn % 6 :: 6], *ends})
        torn = [same[0] for same in _alike(calls, torn)][turn % 2 :: 2]
    return [*(("before", n) for n in every), ("after", changes[-1]), *(("torn", n) for n in torn)]


def _alike(calls: Sequence[tuple[str, str]], numbers: Iterable[int]) -> list[list[int]]:
    """The numbers of calls of one verb on one kind of file together, in their order."""
    alike: dict[tuple[str, str], list[int]] = {}
    for n in sorted(numbers):
        verb, path = calls[n - 1]
        # A data file, and a marker of one, is of its kind in whichever partition and file group it is.
        kind = path if "_" not in path or "/timeline/" in path else path.rpartition("/")[2].partition("_")[2]
        alike.setdefault((verb, _NAMES.sub("#", kind)), []).append(n)
    return list(alike.values())


def dies(table: TestTable, act: Callable[[], object], kind: FaultKind, n: int) -> bool:
    """Let an action on the table die at its n-th storage call. False when it did not notice."""
    table.memory.fail_at(n, kind)
    try:
        act()
    except HudiError:
        return True
    finally:
        table.memory.reset_faults()
    return False


def deaths(table: Table, act: Callable[[Table], object]) -> Iterator[tuple[Table, str]]:
    """What an action leaves behind that dies at a storage call, and which call it was: for each of `places_to_die`.

    A death at a call that reads leaves what the one before the next change leaves, and that one comes by itself: here
    is the read only when the action went on after it, taking the failure for an answer.
    """
    counted = on_clone(table)
    with suppress(HudiError):  # an action may be there to be refused
        act(counted)
    calls = counted.memory.log
    for kind, n in places_to_die(calls):
        attempt = on_clone(table)
        died = dies(attempt, partial(act, attempt), kind, n)
        if not (died and calls[n - 1][0] in READING):
            yield attempt, f"{kind} call {n}: {' '.join(calls[n - 1])}"


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


def die_before_completing(table: TestTable, *rows: Any) -> str:
    """An upsert whose process dies when all files are written; the instant that it leaves behind."""
    rehearsal = TestTable(table.memory.clone(), table.options, engine=table.engine)
    rehearsal.upsert(*rows)
    log = rehearsal.memory.log
    last = max(n for n, (verb, path) in enumerate(log, 1) if verb == "create_new" and path.endswith(".commit"))
    table.memory.fail_at(last)
    with pytest.raises(HudiError):
        table.upsert(*rows)
    table.memory.reset_faults()
    (pending,) = table.meta.timeline.pending().instants
    return pending.requested_time
