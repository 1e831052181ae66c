"""Merging column by column: the value that wins where the winner, the loser or both lack one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.merge.base import Place
from pyhudi.merge.field_merge import FieldMerge
from pyhudi.merge.rules import FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules
from pyhudi.merge.versions import Versions

UNREAD = "not read"
ABSENT = object()
EVENT, TIME = "EVENT_TIME_ORDERING", "_hoodie_commit_time"


def version(ts: int, value: object) -> Versions:
    """One version of a row with a column `v`; ABSENT: a partial update that does not have the column."""
    rows = pa.table({"v": pa.array([None if value is ABSENT else value], pa.string())})
    absent = {"v": np.array([value is ABSENT])}
    return Versions(rows, np.array([False]), (pa.array([ts], pa.int64()),), absent)


@pytest.mark.parametrize("mode", ["", IGNORE_DEFAULTS, FILL_UNAVAILABLE])
@pytest.mark.parametrize("winner_is_older", [True, False])
@pytest.mark.parametrize(
    ("winner", "loser"),
    [(a, b) for a in ("w", None, UNREAD, ABSENT) for b in ("l", None, UNREAD, ABSENT)],
    ids=lambda value: "absent" if value is ABSENT else str(value),
)
def test_the_winner_s_nothing_stays_where_the_loser_has_nothing_either(
    mode: str, winner_is_older: bool, winner: object, loser: object
) -> None:
    nothing = {ABSENT, {IGNORE_DEFAULTS: None, FILL_UNAVAILABLE: UNREAD}.get(mode, ABSENT)}
    taken = loser if winner in nothing and loser not in nothing else winner
    pair = version(2, winner), version(1, loser)
    older, newer = pair if winner_is_older else (version(1, loser), version(2, winner))

    merged = FieldMerge(MergeRules(EVENT, ("ts",), mode, UNREAD)).merge(older, newer, Place.LOGS)

    assert merged.rows.column("v").to_pylist() == [None if taken is ABSENT else taken]
    assert merged.ordering[0].to_pylist() == [2]
    assert merged.is_older is not None
    assert merged.is_older.tolist() == [winner_is_older and taken is winner]
    assert merged.is_absent("v").tolist() == [winner is ABSENT and loser is ABSENT]


@pytest.mark.parametrize(
    ("deletes", "stamped"), [((False, False), "newer"), ((False, True), "older"), ((True, False), "older")]
)
def test_a_row_that_won_over_another_row_has_the_meta_columns_of_the_later_one(
    deletes: tuple[bool, bool], stamped: str
) -> None:
    def one(time: str, ts: int, is_delete: bool) -> Versions:
        return Versions(pa.table({TIME: [time], "v": [time]}), np.array([is_delete]), (pa.array([ts]),), {})

    rules = MergeRules(EVENT, ("ts",), stamped_by_newer=True)
    merged = FieldMerge(rules).merge(one("older", 2, deletes[0]), one("newer", 1, deletes[1]), Place.LOGS)

    assert merged.rows.to_pylist() == [{TIME: stamped, "v": "older"}]


@pytest.mark.parametrize("place", Place)
def test_a_later_delete_wins_by_place_whatever_its_ordering_value(place: Place) -> None:
    older = version(2, "w")
    newer = Versions(older.rows, np.array([True]), (pa.array([1], pa.int64()),), {})
    rules = MergeRules(EVENT, ("ts",), IGNORE_DEFAULTS, later_deletes=frozenset({Place.SLICE}))

    merged = FieldMerge(rules).merge(older, newer, place)

    assert merged.is_delete.tolist() == [place is Place.SLICE]
