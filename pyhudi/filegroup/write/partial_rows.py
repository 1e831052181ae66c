"""Incoming rows that lack columns, and rows of two origins in one table.

Where an incoming row lacks a column, it keeps the value of the stored row that it replaces (`UnchangedColumns`).
`concat_rows` joins rows of two origins and keeps the dictionaries of the first table, the larger one.

Source: docs/sql-dml.md, "How a statement becomes a commit".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.combine import single_array
from pyhudi.model.keys import CHANGE

__all__ = ["NOTHING_UNCHANGED", "UnchangedColumns", "concat_rows"]


NOTHING_UNCHANGED: Mapping[int, frozenset[str]] = MappingProxyType({})
_Flags = npt.NDArray[np.bool_]
_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnchangedColumns:
    """Columns that incoming rows keep from stored rows. `rows`: by column, which incoming rows keep it."""

    rows: Mapping[str, _Flags] = field(default_factory=dict)

    @classmethod
    def of(cls, incoming: pa.Table, columns: Mapping[int, frozenset[str]]) -> UnchangedColumns:
        """From the numbers of the rows (CHANGE). `columns`: by number the unchanged columns; rows without a number have
        all columns.
        """
        if not columns or CHANGE not in incoming.column_names:
            return cls()
        numbers = incoming.column(CHANGE).to_numpy()
        flags: dict[str, _Flags] = {}
        for number, names in columns.items():
            rows = numbers == number
            for name in names.intersection(incoming.column_names) if rows.any() else ():
                flags[name] = flags[name] | rows if name in flags else rows
        return cls(flags)

    def any_of(self, positions: _Positions) -> bool:
        """Does one of these incoming rows lack a column?"""
        return any(bool(rows[positions].any()) for rows in self.rows.values())

    def completed(self, fresh: pa.Table, partners: _Positions, stored: pa.Table, hits: _Positions) -> pa.Table:
        """Incoming rows, completed by the columns that they lack.

        Args:
            fresh, partners: the rows, and which of the incoming rows they are.
            stored, hits: stored rows, and which of them each incoming row replaces.
        """
        taken = pa.array(hits)
        for name, rows in self.rows.items():
            lacking = rows[partners]
            at = fresh.schema.get_field_index(name)
            if at < 0 or not lacking.any():
                continue
            there = stored.column(name).take(taken)
            if not lacking.all():
                plain = single_array(there.cast(fresh.schema.field(at).type))
                there = pa.chunked_array([pc.if_else(pa.array(lacking), plain, single_array(fresh.column(at)))])
            fresh = fresh.set_column(at, name, there)
        return fresh


def concat_rows(first: pa.Table, second: pa.Table) -> pa.Table:
    """Both tables, one after the other; columns have the encoding of `first`."""
    columns = []
    for ours, theirs in zip(first.columns, second.columns, strict=True):
        if pa.types.is_dictionary(ours.type) and not pa.types.is_dictionary(theirs.type):
            theirs = theirs.dictionary_encode()
        elif theirs.type != ours.type:
            theirs = theirs.cast(ours.type)
        columns.append(pa.chunked_array([*ours.chunks, *theirs.chunks], ours.type))
    return pa.Table.from_arrays(columns, names=first.column_names)
