"""Which rows of a base file match log records of its slice: by the row numbers that their blocks name, or by key.

Source: docs/formats/log.md, "Record positions".
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.model.keys import RECORD_KEY

__all__ = ["KeyMatching", "Matching", "PositionMatching", "positions_fit"]

Positions = npt.NDArray[np.int64]


class Matching(Protocol):
    """Is shown the base rows table by table, in the order of their file."""

    def find(self, stored: pa.Table) -> tuple[Positions, Positions]:
        """Rows of this table that a log record meets, ascending, and the number of the record that each meets."""
        ...


class KeyMatching:
    """By the record keys of the base rows."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys

    def find(self, stored: pa.Table) -> tuple[Positions, Positions]:
        """Raises ConfigError for base rows without a key."""
        keys = stored.column(RECORD_KEY)
        if keys.null_count:
            raise ConfigError(
                "Base rows without a record key can't be merged with log files; a table without meta columns needs its "
                "key generator."
            )
        matches = pc.fill_null(pc.index_in(keys, value_set=self._keys), -1).to_numpy()
        hits = np.flatnonzero(matches >= 0)
        return hits, matches[hits].astype(np.int64)


class PositionMatching:
    """By row numbers: the base file's keys need not be read."""

    def __init__(self, positions: Positions) -> None:
        self._order = np.argsort(positions)
        self._rows = positions[self._order]
        self._first = 0

    @property
    def rows(self) -> Positions:
        """The numbers of all base rows that are met, ascending."""
        return self._rows

    def find(self, stored: pa.Table) -> tuple[Positions, Positions]:
        first, self._first = self._first, self._first + len(stored)
        low, high = np.searchsorted(self._rows, (first, self._first))
        return self._rows[low:high] - first, self._order[low:high]


def positions_fit(positions: Positions | None, rows: int) -> bool:
    """Are these row numbers of a file with so many rows, no row twice? What does not fit is matched by key."""
    if positions is None or (len(positions) and not 0 <= positions.min() <= positions.max() < rows):
        return False
    return len(np.unique(positions)) == len(positions)
