"""Merging column by column: the winner's values, the loser's where the winner has none.

    partial update block   a column that the winner's block did not have
    IGNORE_DEFAULTS        a null of the winner (null is the default of every nullable column)
    FILL_UNAVAILABLE       a text that equals the marker, which a source sends for values it did not read

A delete replaces the whole row. `MergeRules` holds the exceptions of payload classes.
Source: docs/formats/merging.md, "Two versions of a key", "Partial updates", "Payload classes".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge import merge_mode
from pyhudi.merge.base import Mask, Place, commit_time_deletes
from pyhudi.merge.ordering import stored_is_greater
from pyhudi.merge.rules import FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules
from pyhudi.merge.versions import Versions, columns_from
from pyhudi.model.keys import META_COLUMNS

__all__ = ["FieldMerge"]


@dataclass(frozen=True, slots=True)
class FieldMerge:
    """A `PairMerger` for the modes with their partial update modes."""

    rules: MergeRules

    def merge(self, older: Versions, newer: Versions, place: Place) -> Versions:
        newer_wins = self._newer_wins(older, newer, place)
        filled = ~older.is_delete & ~newer.is_delete
        names = older.rows.column_names
        from_newer, absent = {}, {}
        for name in names:
            if self.rules.stamped_by_newer and name in META_COLUMNS:
                from_newer[name] = newer_wins | filled
                continue
            lacks_newer = self._lacks(newer, name, place) & filled
            lacks_older = self._lacks(older, name, place) & filled
            # Where both lack it, the winner's null stays.
            from_newer[name] = np.where(newer_wins, ~lacks_newer | lacks_older, lacks_older & ~lacks_newer)
            if name in older.absent or name in newer.absent:
                absent[name] = older.is_absent(name) & newer.is_absent(name) & filled
        rows = columns_from(names, older.rows, newer.rows, from_newer)
        ordering = tuple(
            pc.if_else(pa.array(newer_wins), b, a) for a, b in zip(older.ordering, newer.ordering, strict=True)
        )
        is_delete = np.where(newer_wins, newer.is_delete, older.is_delete)
        is_older = ~newer_wins & ~np.any([from_newer[name] for name in names], axis=0)
        return Versions(rows, is_delete, ordering, absent, is_older)

    def _newer_wins(self, older: Versions, newer: Versions, place: Place) -> Mask:
        if not self.rules.by_ordering:
            return np.ones(len(older), np.bool_)
        wins = self._wins_by_ordering(older, newer)
        if place in self.rules.later_deletes:
            wins = wins | newer.is_delete
        if self.rules.rows_outlive_deletes and place is Place.LOGS:
            wins = wins | older.is_delete
        return wins

    def _wins_by_ordering(self, older: Versions, newer: Versions) -> Mask:
        if self.rules.first_wins:
            bare = commit_time_deletes(newer.ordering, newer.is_delete)
            return stored_is_greater(newer.ordering, older.ordering) | bare
        mode = merge_mode(self.rules.mode, self.rules.ordering_fields)
        return mode.replaces(older.ordering, newer.ordering, newer.is_delete)

    def _lacks(self, versions: Versions, name: str, place: Place) -> Mask:
        """Return where a version has no value for a column."""
        lacks = versions.is_absent(name)
        if place not in self.rules.fills_in:
            return lacks
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
