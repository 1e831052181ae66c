"""The merge rules row by row, in plain Python: what the column-wise code must agree with.

A row is (ordering values, is a delete, payload). Written from the table of docs/formats/merging.md,
"Two versions of a key", not from the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One version of a row. `ordering`: None for a missing value; () for no ordering fields."""

    ordering: tuple[Any, ...]
    is_delete: bool
    payload: Any = None

    @property
    def is_bare_delete(self) -> bool:
        """A delete that carries no ordering value."""
        return self.is_delete and all(value is None for value in self.ordering)


def order_of(row: Row) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value if value is not None else 0) for value in row.ordering)


def later_wins(existing: Row, new: Row, mode: str) -> bool:
    """Does `new`, which came later, replace `existing`?"""
    if mode == "COMMIT_TIME_ORDERING" or new.is_bare_delete:
        return True
    if existing.is_bare_delete:
        return not new.is_delete  # the delete without value stays; any row after it lives
    return order_of(new) >= order_of(existing)


def reduce_rows(rows: list[Row], mode: str) -> Row:
    """The winner of versions in order of arrival."""
    winner = rows[0]
    for row in rows[1:]:
        if later_wins(winner, row, mode):
            winner = row
    return winner
