"""Merging column by column: the winner's values, the loser's where the winner has none.

    partial update block   a column that the winner's block did not have
    IGNORE_DEFAULTS        a null of the winner (null is the default of every nullable column)
    FILL_UNAVAILABLE       a text that equals the marker, which a source sends for values it did not read

Deletes are taken whole. Source: spec, files and records 5.6 and 5.7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge import merge_mode
from pyhudi.merge.base import Mask, commit_time_deletes
from pyhudi.merge.ordering import stored_is_greater
from pyhudi.merge.rules import FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules
from pyhudi.merge.versions import Versions, columns_from

__all__ = ["FieldMerge"]


@dataclass(frozen=True, slots=True)
class FieldMerge:
    """A `PairMerger` for the modes with their partial update modes."""

    rules: MergeRules

    def merge(self, older: Versions, newer: Versions) -> Versions:
        newer_wins = self._newer_wins(older, newer)
        filled = ~older.is_delete & ~newer.is_delete
        names = older.rows.column_names
        from_newer, absent = {}, {}
        for name in names:
            lacks_newer = self._lacks(newer, name) & filled
            lacks_older = self._lacks(older, name) & filled
            from_newer[name] = np.where(newer_wins, ~lacks_newer, lacks_older)
            if name in older.absent or name in newer.absent:
                absent[name] = older.is_absent(name) & newer.is_absent(name) & filled
        rows = columns_from(names, older.rows, newer.rows, from_newer)
        ordering = tuple(
            pc.if_else(pa.array(newer_wins), b, a) for a, b in zip(older.ordering, newer.ordering, strict=True)
        )
        return Versions(rows, np.where(newer_wins, newer.is_delete, older.is_delete), ordering, absent)

    def _newer_wins(self, older: Versions, newer: Versions) -> Mask:
        rows = len(older)
        if not self.rules.by_ordering:
            return np.ones(rows, np.bool_)
        if self.rules.first_wins:
            bare = commit_time_deletes(newer.ordering, newer.is_delete)
            return stored_is_greater(newer.ordering, older.ordering) | bare
        mode = merge_mode(self.rules.mode, self.rules.ordering_fields)
        return mode.replaces(older.ordering, newer.ordering, newer.is_delete)

    def _lacks(self, versions: Versions, name: str) -> Mask:
        """Where a version has nothing to say about a column."""
        lacks = versions.is_absent(name)
        column = versions.rows.column(name)
        if self.rules.partial_update_mode == IGNORE_DEFAULTS:
            nulls: Mask = column.is_null().to_numpy()
            return lacks | nulls
        if self.rules.partial_update_mode == FILL_UNAVAILABLE and _is_text(column.type):
            marker = pa.scalar(self.rules.unavailable_marker).cast(column.type)
            unavailable: Mask = pc.fill_null(pc.equal(column, marker), False).to_numpy()
            return lacks | unavailable
        return lacks


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
