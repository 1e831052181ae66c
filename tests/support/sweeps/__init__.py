"""Long tests of many cases: which cases `make test` runs; the others have the marker `sweep`.

`make sweeps` runs all of them, and with Spark `make sparks`. Cases are left out where they share nearly all of the
code. What is kept is in the tables of this package, and executes the same lines of PyHudi as all cases do; the
contributing page about tests says how that is seen. Long cases that execute no line of their own have the marker
`long`: `make long` runs them, on every change after `make test`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

import pytest

from tests.support.sweeps.by_file import BY_FILE, LONG
from tests.support.sweeps.each_value import EACH_VALUE
from tests.support.sweeps.named import NAMED

__all__ = ["SAMPLED", "examples", "mark_sweeps"]

# `make test` sets it: of random examples, rounds and places to die it takes a part. `make sweeps` takes all.
SAMPLED = os.environ.get("PYHUDI_SAMPLE") == "1"


def examples(count: int) -> int:
    """How many random examples a long test takes: a sixth of them in `make test`."""
    return max(2, count // 6) if SAMPLED else count


def mark_sweeps(items: Iterable[pytest.Item]) -> None:
    """Mark the cases as `sweep` or `long` that `make test` leaves out. A test none of whose named cases is there keeps
    all.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        _mark_others(cases, _kept(name, cases), pytest.mark.sweep)
        others = [item for item in cases if item.get_closest_marker("sweep") is None]
        _mark_others(others, _named(LONG.get(name, ()), others), pytest.mark.long)


def _mark_others(cases: Iterable[pytest.Item], kept: Collection[pytest.Item], mark: pytest.MarkDecorator) -> None:
    for item in [item for item in cases if item not in kept] if kept else ():
        item.add_marker(mark)


def _kept(name: str, cases: list[pytest.Item]) -> set[pytest.Item]:
    """The cases of a test that stay, where the tables have it."""
    if name in EACH_VALUE:
        fast = [item for item in cases if item.get_closest_marker("slow") is None]
        return {*_with_each_value(fast), *_named(EACH_VALUE[name], cases)}
    return _named(NAMED.get(name) or BY_FILE.get(name, ()), cases)


def _named(ids: Collection[str], cases: Iterable[pytest.Item]) -> set[pytest.Item]:
    return {item for item in cases if item.nodeid.partition("[")[2].removesuffix("]") in ids}


def _with_each_value(cases: list[pytest.Item]) -> Iterable[pytest.Item]:
    """Cases until each value of each parameter was in one; of those that add as many values the last, for newer
    versions come later.
    """
    values = {item: set(_values(item)) for item in cases}
    missing = set().union(*values.values())
    while missing:
        best = max(reversed(cases), key=lambda item: len(values[item] & missing))
        missing -= values[best]
        yield best


def _values(item: pytest.Item) -> Iterable[tuple[str, object]]:
    """(parameter, value), of a short tuple each of its parts. What is no text or small number is known by its identity:
    what pytest has as its index is that of the case.
    """
    params: Mapping[str, object] = item.callspec.params  # type: ignore[attr-defined]
    for name, value in params.items():
        if isinstance(value, tuple) and len(value) <= 4 and all(map(_is_plain, value)):
            yield from ((f"{name} {number}", part) for number, part in enumerate(value))
        else:
            yield name, value if _is_plain(value) else f"object {id(value)}"


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int))
