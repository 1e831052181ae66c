"""Merge mode EVENT_TIME_ORDERING: the greater ordering value wins; on a tie, the later version.

A delete takes part with its own ordering value. A delete without one (see `base.commit_time_deletes`) removes all
earlier versions, and any later row is alive again. Source: docs/formats/merging.md, "Ordering values", "Deletes", "Two
versions of a key".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.merge.base import Mask, commit_time_deletes
from pyhudi.merge.ordering import ordering_keys, stored_is_greater

__all__ = ["EventTimeOrdering"]


@dataclass(frozen=True, slots=True)
class EventTimeOrdering:
    """The greater ordering value wins; a tie goes to the later version."""

    def replaces(
        self, existing: Sequence[pa.Array], incoming: Sequence[pa.Array], incoming_is_delete: Mask | None
    ) -> Mask:
        rows = len(existing[0])
        is_delete = np.zeros(rows, np.bool_) if incoming_is_delete is None else incoming_is_delete
        if not incoming:
            return np.ones(rows, np.bool_)  # rows without ordering value are deletes by key
        return ~stored_is_greater(existing, incoming) | commit_time_deletes(incoming, is_delete)

    def last_of_each(
        self, groups: npt.NDArray[np.int64], ordering: Sequence[pa.Array], is_delete: Mask
    ) -> npt.NDArray[np.int64]:
        rows = len(groups)
        if rows == 0:
            return np.zeros(0, np.int64)
        eligible = _after_bare_deletes(groups, commit_time_deletes(ordering, is_delete), is_delete)
        arrival = np.arange(rows)
        # The last key of lexsort is the first to sort by.
        order = np.lexsort([arrival, *reversed(ordering_keys(ordering)), eligible, groups])
        last = np.append(np.flatnonzero(np.diff(groups[order])), rows - 1)
        positions: npt.NDArray[np.int64] = order[last].astype(np.int64)
        return positions


def _after_bare_deletes(groups: npt.NDArray[np.int64], bare: Mask, is_delete: Mask) -> Mask:
    """Return the rows that compete by ordering value: those that no delete without ordering value has removed.

    After such a delete, further deletes change nothing until a row follows; from that row on all compete again. When no
    row follows, only the delete itself remains.
    """
    rows = len(groups)
    if not bare.any():
        return np.ones(rows, np.bool_)
    slots = int(groups.max()) + 1
    at = np.arange(rows)
    last_bare = np.full(slots, -1)
    np.maximum.at(last_bare, groups[bare], at[bare])
    after = at > last_bare[groups]
    first_row = np.full(slots, rows)
    live = after & ~is_delete
    np.minimum.at(first_row, groups[live], at[live])
    reborn = np.where(last_bare >= 0, first_row, -1)  # groups without such a delete compete from their first row
    is_superseded = (last_bare >= 0) & (first_row == rows)
    competes: Mask = (at >= reborn[groups]) & ~is_superseded[groups] | (
        is_superseded[groups] & (at == last_bare[groups])
    )
    return competes
