"""RowsByKey: a few records of the metadata table, looked up by their keys. Source: docs/formats/metadata-table.md,
"Reading a file group".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["RowsByKey"]

_KEY_BYTES = 200  # about what a key takes in memory


@dataclass(frozen=True, slots=True)
class RowsByKey:
    """`rows`: with the column `key`; `places`: the first row of each key."""

    rows: pa.Table
    places: Mapping[str, int]

    @classmethod
    def of(cls, rows: pa.Table) -> RowsByKey:
        """Args: rows: with the column `key`, without nulls."""
        places: dict[str, int] = {}
        for row, key in enumerate(rows.column("key").to_pylist()):
            places.setdefault(str(key), row)
        return cls(rows.combine_chunks(), places)

    def size_bytes(self) -> int:
        """About what they take in memory."""
        return self.rows.nbytes + _KEY_BYTES * self.rows.num_rows

    def with_keys(self, keys: Iterable[str]) -> pa.Table:
        """The rows with these keys."""
        found = [self.places[key] for key in keys if key in self.places]
        return self.rows.take(pa.array(sorted(found), pa.int64())) if found else self.rows.slice(0, 0)
