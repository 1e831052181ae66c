"""Prefixes as ranges of keys: from the prefix on, up to the first text that no longer begins with it.

Source: docs/formats/hfile.md, "Lookups".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pyhudi.formats.hfile.key_column import KeyColumn, Places

__all__ = ["PrefixRange", "ranges_of", "rows_in"]

_FEW = 16  # so many ranges are sought one by one; for more it pays to lay a block's keys side by side


@dataclass(frozen=True, slots=True)
class PrefixRange:
    """Keys from `first` on that are smaller than `behind`; None: all that follow."""

    first: bytes
    behind: bytes | None


def ranges_of(prefixes: Iterable[bytes]) -> list[PrefixRange]:
    """The keys that begin with one of the prefixes: ascending ranges without common keys."""
    ranges: list[PrefixRange] = []
    last: bytes | None = None
    for prefix in sorted(set(prefixes)):
        if last is not None and prefix.startswith(last):
            continue  # its keys belong to the shorter prefix
        last = prefix
        ranges.append(PrefixRange(prefix, _behind(prefix)))
    return ranges


def rows_in(keys: KeyColumn, ranges: Sequence[PrefixRange]) -> Places:
    """The rows, ascending, of the keys that lie in one of the ranges, which ascend."""
    if len(ranges) > _FEW:
        places = keys.places_of([wanted.first for wanted in ranges] + [wanted.behind or b"" for wanted in ranges])
        if places is not None:
            return _between(places, len(keys), [wanted.behind is None for wanted in ranges])
    rows, end = [np.zeros(0, np.int64)], 0
    for wanted in ranges:
        start = bisect_left(keys, wanted.first, end)
        end = len(keys) if wanted.behind is None else bisect_left(keys, wanted.behind, start)
        rows.append(np.arange(start, end))
    return np.concatenate(rows)


def _between(places: Places, count: int, is_open: Sequence[bool]) -> Places:
    """The rows from each of the first half of the places up to that of the other half; to the end for open ranges."""
    starts, ends = places[: len(is_open)], np.where(is_open, count, places[len(is_open) :])
    lengths = ends - starts
    return np.repeat(starts + lengths - np.cumsum(lengths), lengths) + np.arange(lengths.sum())


def _behind(prefix: bytes) -> bytes | None:
    """The least text that is greater than all that begin with a prefix."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None
