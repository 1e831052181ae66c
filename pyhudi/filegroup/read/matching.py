"""The matching of base rows with the log records of their slice, and a filter that reads the base rows of a few keys.

Rows match by the row numbers that log blocks name (`PositionMatching`), or by key (`KeyMatching`).

`KeyFilter` reads the rows of a few keys from the parts of a base file that have them. It opens the key column first, in
the parts whose statistics allow the keys. Then it opens the other columns, in the parts that have one of the keys.

Source: docs/formats/log.md, "Record positions"; docs/architecture.md, "How a table is read".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.predicates import Column, In, Predicate, Value
from pyhudi.expressions.statistics.ranges import may_match
from pyhudi.formats.base import BaseFileReader
from pyhudi.formats.base.ranges import Ranges
from pyhudi.merge.combine import single_array
from pyhudi.model.keys import RECORD_KEY

__all__ = ["KeyFilter", "KeyMatching", "Matching", "PositionMatching", "positions_fit"]


Positions = npt.NDArray[np.int64]

_NONE = -1


class Matching(Protocol):
    """Matches base rows, passed table by table in the order of their file, with log records."""

    def find(self, stored_rows: pa.Table) -> tuple[Positions, Positions]:
        """The rows of this table that match a log record, ascending, and the number of each row's record."""
        ...


class KeyMatching:
    """Matches by the record keys of the base rows.

    Args: count: of the log records; key_parts: their keys, in order, with the number of the first of each part.
    """

    def __init__(self, count: int, key_parts: Callable[[], Iterable[tuple[int, pa.Array]]]) -> None:
        self._count, self._key_parts = count, key_parts
        self._keys: pa.Array | None = None

    def find(self, stored_rows: pa.Table) -> tuple[Positions, Positions]:
        """Find matches as `Matching.find` does. Raises ConfigError for base rows without a key."""
        keys = stored_rows.column(RECORD_KEY)
        if keys.null_count:
            raise ConfigError(
                "Base rows without a record key can't be merged with log files; a table without meta columns needs its "
                "key generator."
            )
        matches = self._among_records(keys) if self._count <= len(keys) else self._among_rows(single_array(keys))
        hits = np.flatnonzero(matches != _NONE)
        return hits, matches[hits]

    # The hash table in memory holds the records or the base rows, whichever are fewer.

    def _among_records(self, keys: pa.ChunkedArray) -> Positions:
        if self._keys is None:
            self._keys = pa.chunked_array([part for _, part in self._key_parts()], pa.string()).combine_chunks()
        numbers = pc.fill_null(pc.index_in(keys, value_set=self._keys), _NONE).to_numpy()
        return numbers.astype(np.int64)

    def _among_rows(self, keys: pa.Array) -> Positions:
        encoded = keys.dictionary_encode()
        partners = np.full(len(encoded.dictionary), _NONE, np.int64)
        for first, part in self._key_parts():
            places = pc.fill_null(pc.index_in(part, value_set=encoded.dictionary), _NONE).to_numpy()
            hits = np.flatnonzero(places != _NONE)
            partners[places[hits]] = hits + first
        matches: Positions = partners[encoded.indices.to_numpy()]
        return matches


class PositionMatching:
    """Matches by row numbers: the base file's keys need not be read."""

    def __init__(self, positions: Positions) -> None:
        self._order = np.argsort(positions)
        self._rows = positions[self._order]
        self._first = 0

    @property
    def rows(self) -> Positions:
        """The numbers of all matched base rows, ascending."""
        return self._rows

    def find(self, stored_rows: pa.Table) -> tuple[Positions, Positions]:
        first, self._first = self._first, self._first + len(stored_rows)
        low, high = np.searchsorted(self._rows, (first, self._first))
        return self._rows[low:high] - first, self._order[low:high]


def positions_fit(positions: Positions | None, rows: int) -> bool:
    """True if these are distinct row numbers of a file with `rows` rows. Otherwise rows are matched by key."""
    if positions is None or (len(positions) and not 0 <= positions.min() <= positions.max() < rows):
        return False
    return len(np.unique(positions)) == len(positions)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """The values of the table's key field that a reader requests. All versions of a record have the same value, so base
    rows with other values need no matching. `kind`: the column's type in the table.
    """

    column: str
    values: tuple[Value, ...]
    kind: pa.DataType

    def applies_to(self, base: BaseFileReader) -> bool:
        """True if the file has the column with the table's type. Otherwise all of its rows have to be read."""
        at = base.schema.get_field_index(self.column)
        return at >= 0 and bool(base.schema.field(at).type == self.kind)

    def filter(self, rows: pa.Table) -> pa.Table:
        """The rows that may have one of the values."""
        at = rows.schema.get_field_index(self.column)
        if at < 0 or rows.schema.field(at).type != self.kind:
            return rows
        return rows.filter(pc.is_in(rows.column(at), value_set=_values((*self.values, None), self.kind)))

    def read(self, base: BaseFileReader, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The file's rows with these values, and perhaps a few others, in file order. Needs `applies_to`."""
        predicate = In(Column((self.column,)), self.values)
        rows = base.rows_having(self.column, _values(self.values, self.kind), partial(_may_match, predicate))
        return base.rows_at(columns, rows) if len(rows) else iter(())


@lru_cache(maxsize=4)
def _values(values: tuple[Value | None, ...], kind: pa.DataType) -> pa.Array:
    """The values as an array, cached for all files of a query."""
    return pa.array(values, kind)


def _may_match(predicate: Predicate, ranges: Ranges) -> bool:
    """True if rows in these ranges may match. Row groups have ranges of columns, but not of functions of columns."""
    return may_match(predicate, lambda operand: ranges(operand) if isinstance(operand, Column) else None)
