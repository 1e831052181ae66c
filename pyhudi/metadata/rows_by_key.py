"""RowsByKey: a few records of the metadata table, looked up by their keys. Source: docs/formats/metadata-table.md,
"Reading a file group".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["RowsByKey"]

_KEY_BYTES = 200  # about what a key takes in memory


@dataclass(frozen=True, slots=True)
class RowsByKey:
    """`rows`: with the column `key`, ascending by the keys' bytes; `keys`: those; `places`: the first row of each."""

    rows: pa.Table
    keys: Sequence[str]
    places: Mapping[str, int]

    @classmethod
    def of(cls, rows: pa.Table) -> RowsByKey:
        """Args: rows: with the column `key`, without nulls, ascending by it."""
        keys = [str(key) for key in rows.column("key").to_pylist()]
        places: dict[str, int] = {}
        for row, key in enumerate(keys):
            places.setdefault(key, row)
        return cls(rows.combine_chunks(), keys, places)

    def size_bytes(self) -> int:
        """About what they take in memory."""
        return self.rows.nbytes + _KEY_BYTES * self.rows.num_rows

    def with_keys(self, keys: Iterable[str]) -> pa.Table:
        """The rows with these keys."""
        found = [self.places[key] for key in keys if key in self.places]
        return self.rows.take(pa.array(sorted(found), pa.int64())) if found else self.rows.slice(0, 0)

    def with_prefixes(self, prefixes: Sequence[str]) -> pa.Table:
        """The rows whose keys begin with one of the prefixes, which ascend, none beginning with another one."""
        length = len(prefixes[0]) if prefixes else 0
        if all(len(prefix) == length for prefix in prefixes):  # as hashes have it
            wanted = frozenset(prefixes)
            rows = [row for row, key in enumerate(self.keys) if key[:length] in wanted]
        else:
            rows = self._rows_between(prefixes)
        if len(rows) == len(self.keys):  # a small write touches the same partitions as the last one: nothing to copy
            return self.rows
        return self.rows.take(pa.array(rows, pa.int64())) if rows else self.rows.slice(0, 0)

    def _rows_between(self, prefixes: Sequence[str]) -> list[int]:
        keys, rows, row = self.keys, list[int](), 0
        for prefix in prefixes:
            row = bisect_left(keys, prefix, row)
            while row < len(keys) and keys[row].startswith(prefix):
                rows.append(row)
                row += 1
        return rows
