"""Incoming rows in the form of a file, and the columns that they lack.

If an incoming row lacks a column, it keeps the value of the stored row that it replaces (`UnchangedColumns`).

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

from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.filegroup.write.base_file import checked_rows, stored_columns
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.merge.combine import deletes_of, ordering_columns, single_array
from pyhudi.merge.versions import row_names
from pyhudi.model.keys import CHANGE, RECORD_KEY, STORED_ROW
from pyhudi.schema.projection import project

__all__ = ["NOTHING_UNCHANGED", "IncomingRows", "UnchangedColumns"]


NOTHING_UNCHANGED: Mapping[int, frozenset[str]] = MappingProxyType({})
_Flags = npt.NDArray[np.bool_]
_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """The incoming rows, ready to match: keys, rows in the file's types, and delete flags.

    `names`: the values by which stored rows match: their keys, or names of single rows (`by_row`).
    """

    keys: pa.Array
    names: pa.Array
    by_row: bool
    rows: pa.Table  # record key and stored columns; only nulls where all rows are deletes
    ordering: list[pa.Array]  # empty: no ordering value
    is_delete: _Flags

    @classmethod
    def of(cls, spec: WriteSpec, incoming: pa.Table, match_keys: bool) -> IncomingRows:
        """Check the rows and convert them to the file's columns."""
        deletes = deletes_of(incoming)
        columns = stored_columns(spec)
        if deletes.all():
            if incoming.column(RECORD_KEY).null_count:
                raise KeyGenError(f"{incoming.column(RECORD_KEY).null_count} deletes have no record key.")
            rows = project(incoming.select([RECORD_KEY]), pa.schema([pa.field(RECORD_KEY, pa.string()), *columns]))
        else:
            rows = checked_rows(incoming, columns)
        rows = rows.combine_chunks()
        keys = single_array(rows.column(RECORD_KEY))
        by_row = STORED_ROW in incoming.column_names
        names = single_array(row_names(incoming.column(STORED_ROW), incoming.column(RECORD_KEY))) if by_row else keys
        if match_keys and pc.count_distinct(names).as_py() != len(names):
            raise ConfigError(f"Rows for one file repeat keys: {len(keys)} rows; combine them first, one row per key.")
        rules = spec.merging
        ordering = ordering_columns(incoming, rules.ordering_fields) if rules.by_ordering else []
        return cls(keys, names, by_row, rows, ordering, deletes)


@dataclass(frozen=True, slots=True)
class UnchangedColumns:
    """The columns that incoming rows keep from stored rows. `rows`: by column, flags of the rows that keep it."""

    rows: Mapping[str, _Flags] = field(default_factory=dict)

    @classmethod
    def of(cls, incoming: pa.Table, columns: Mapping[int, frozenset[str]]) -> UnchangedColumns:
        """Make it from the numbers of the rows (CHANGE). `columns`: the unchanged columns by number; rows with other
        numbers have all columns.
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
        """True if one of these incoming rows lacks a column."""
        return any(bool(rows[positions].any()) for rows in self.rows.values())

    def of_all(self, positions: _Positions) -> frozenset[str]:
        """The columns that each of these incoming rows lacks."""
        return frozenset(name for name, rows in self.rows.items() if rows[positions].all())

    def completed(self, incoming: pa.Table, partners: _Positions, stored_rows: pa.Table, hits: _Positions) -> pa.Table:
        """Fill in the columns that incoming rows lack.

        Args:
            incoming, partners: the rows, and their positions among the incoming rows.
            stored_rows, hits: stored rows, and the position of the one that each incoming row replaces. A column that
                `stored_rows` lacks is not filled in.
        """
        indices, stored_names = pa.array(hits), set(stored_rows.column_names)
        for name, rows in self.rows.items():
            is_missing = rows[partners]
            at = incoming.schema.get_field_index(name)
            if at < 0 or name not in stored_names or not is_missing.any():
                continue
            values = stored_rows.column(name).take(indices)
            if not is_missing.all():
                cast_values = single_array(values.cast(incoming.schema.field(at).type))
                values = pa.chunked_array(
                    [pc.if_else(pa.array(is_missing), cast_values, single_array(incoming.column(at)))]
                )
            incoming = incoming.set_column(at, name, values)
        return incoming
