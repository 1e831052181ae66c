"""CustomMerge: the user's merger merges pairs of versions, and its answers are checked.

Source: docs/formats/merging.md, "Modes and ids".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.merge.base import Mask, Place
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.merge.commit_time import CommitTimeOrdering
from pyhudi.merge.custom import MergeContext, Merged, RowMerger, merger_class
from pyhudi.merge.event_time import EventTimeOrdering
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import Positions, Versions, columns_from
from pyhudi.model.keys import CONTROL_COLUMNS, META_COLUMNS

__all__ = ["CustomMerge"]

_PAIRS_AT_ONCE = 64 * 1024
_NOT_DATA = frozenset({*META_COLUMNS, *CONTROL_COLUMNS})


@dataclass(frozen=True, slots=True)
class CustomMerge:
    """A `PairMerger` that calls the user's merger and checks its answers."""

    rules: MergeRules

    def merge(self, older: Versions, newer: Versions, place: Place) -> Versions:
        if older.absent or newer.absent:
            raise UnsupportedTable(
                f"The log files hold partial updates, which the merger {self.rules.merger} can't merge: it is given "
                f"whole rows. Compact the table with the engine that wrote them."
            )
        contested = np.flatnonzero(self._contested(older, newer))
        from_newer = self._newer_wins(older, newer)
        is_delete = np.where(from_newer, newer.is_delete, older.is_delete)
        if len(contested) == 0:
            return replace(_choose(older, newer, from_newer, is_delete), is_older=~from_newer)
        answers = [self._answer(older.take(part), newer.take(part)) for part in _parts(contested)]
        rows = pa.concat_tables([answer.rows for answer in answers])
        from_older = np.concatenate(
            [_same_rows(a.rows, older.rows.take(pa.array(p))) for a, p in _zip(answers, contested)]
        )
        from_newer[contested] = ~from_older
        is_delete[contested] = np.concatenate([answer.is_delete for answer in answers])
        chosen = _choose(older, newer, from_newer, is_delete)
        ordering = self._ordering(older, newer, contested, rows, is_delete)
        return replace(_with_answers(chosen, contested, rows, is_delete, ordering), is_older=~from_newer & ~is_delete)

    def _contested(self, older: Versions, newer: Versions) -> Mask:
        """Return which pairs the merger decides."""
        deletes = older.is_delete | newer.is_delete
        if not getattr(merger_class(str(self.rules.merger)), "sees_deletes", False):
            return ~deletes
        return ~(older.is_delete & _bare(older)) & ~(newer.is_delete & _bare(newer))

    def _newer_wins(self, older: Versions, newer: Versions) -> Mask:
        mode = EventTimeOrdering() if self.rules.by_ordering else CommitTimeOrdering()
        return mode.replaces(older.ordering, newer.ordering, newer.is_delete)

    def _answer(self, older: Versions, newer: Versions) -> Versions:
        """Return the merger's rows (data columns) and deletes for pairs of both."""
        names = [name for name in older.rows.column_names if name not in _NOT_DATA]
        merger = merger_class(str(self.rules.merger))()
        context = MergeContext(
            self.rules.ordering_fields,
            self.rules.record_key_fields,
            dict(self.rules.properties),
            pa.array(older.is_delete),
            pa.array(newer.is_delete),
        )
        pair = _batch(older.rows.select(names)), _batch(newer.rows.select(names))
        merged = _row_by_row(merger, *pair, context) if isinstance(merger, RowMerger) else merger.merge(*pair, context)
        rows, is_delete = (merged.rows, merged.is_delete) if isinstance(merged, Merged) else (merged, None)
        table = self._checked_rows(rows, pair[0].schema, len(older))
        deletes = np.zeros(len(older), np.bool_)
        if is_delete is not None:
            if len(is_delete) != len(older):
                raise self._wrong(f"is_delete has {len(is_delete)} values for {len(older)} pairs")
            deletes = pc.fill_null(is_delete, False).to_numpy(zero_copy_only=False)
        self._check_keys(table, pair[0], pair[1], ~deletes)
        return Versions(table, deletes)

    def _checked_rows(self, rows: object, schema: pa.Schema, count: int) -> pa.Table:
        if not isinstance(rows, (pa.RecordBatch, pa.Table)):
            raise self._wrong(f"it returned {type(rows).__name__}, expected a RecordBatch, a Table or Merged")
        if rows.num_rows != count:
            raise self._wrong(f"it returned {rows.num_rows} rows for {count} pairs")
        if sorted(rows.schema.names) != sorted(schema.names):
            raise self._wrong(f"it returned the columns {rows.schema.names}, expected {schema.names}")
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        try:
            return table.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise self._wrong(f"its rows don't have the table's types: {error}") from error

    def _check_keys(self, rows: pa.Table, older: pa.RecordBatch, newer: pa.RecordBatch, live: Mask) -> None:
        """Check that key columns are those of the pair, and that an ordering value of either version is present."""
        for name in self.rules.record_key_fields:
            if name not in rows.column_names:
                continue  # nested key fields are not checked
            either = pc.coalesce(newer.column(name), older.column(name))
            same = pc.fill_null(pc.equal(single_array(rows.column(name)), either), False).to_numpy(zero_copy_only=False)
            if not same[live].all():
                raise self._wrong(f"it changed the key column {name!r}")
        for field in self.rules.ordering_fields:
            before = [ordering_columns(pa.Table.from_batches([side]), [field])[0] for side in (older, newer)]
            lost = pc.and_(ordering_columns(rows, [field])[0].is_null(), pc.coalesce(*before).is_valid())
            if lost.to_numpy(zero_copy_only=False)[live].any():
                raise self._wrong(f"it returned rows without a value of the ordering field {field!r}")

    def _ordering(
        self, older: Versions, newer: Versions, contested: Positions, rows: pa.Table, is_delete: Mask
    ) -> tuple[pa.Array, ...]:
        """Return ordering values of the answers: those of their rows; for a delete the greater one of the pair."""
        if not self.rules.by_ordering:
            return ()
        wins, taken = pa.array(self._newer_wins(older, newer)[contested]), pa.array(contested)
        deleted = pa.array(is_delete[contested])
        ordering = ordering_columns(rows, self.rules.ordering_fields)
        return tuple(
            pc.if_else(deleted, pc.if_else(wins, b.take(taken), a.take(taken)), value)
            for a, b, value in zip(older.ordering, newer.ordering, ordering, strict=True)
        )

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(f"The merger {self.rules.merger} can't be used: {what}. See docs/merging.md.")


def _row_by_row(merger: RowMerger, older: pa.RecordBatch, newer: pa.RecordBatch, context: MergeContext) -> Merged:
    sides = zip(
        older.to_pylist(), context.older_is_delete.to_pylist(), newer.to_pylist(), context.newer_is_delete.to_pylist(),
        strict=True,
    )  # fmt: skip
    answers = [
        merger.merge(None if before_is_delete else before, None if after_is_delete else after, context)
        for before, before_is_delete, after, after_is_delete in sides
    ]
    is_delete = pa.array([answer is None for answer in answers], pa.bool_())
    return Merged(pa.RecordBatch.from_pylist([answer or {} for answer in answers], schema=older.schema), is_delete)


def _parts(positions: Positions) -> Iterator[Positions]:
    for first in range(0, len(positions), _PAIRS_AT_ONCE):
        yield positions[first : first + _PAIRS_AT_ONCE]


def _zip(answers: list[Versions], contested: Positions) -> Iterator[tuple[Versions, Positions]]:
    return zip(answers, _parts(contested), strict=True)


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _bare(versions: Versions) -> Mask:
    """Return which versions have no ordering value at all."""
    bare = np.ones(len(versions), np.bool_)
    for values in versions.ordering:
        bare &= values.is_null().to_numpy(zero_copy_only=False)
    return bare


def _choose(older: Versions, newer: Versions, from_newer: Mask, is_delete: Mask) -> Versions:
    """Return whole versions, each from one side or the other."""
    names = older.rows.column_names
    rows = columns_from(names, older.rows, newer.rows, dict.fromkeys(names, from_newer))
    sides = zip(older.ordering, newer.ordering, strict=True)
    return Versions(rows, is_delete, tuple(pc.if_else(pa.array(from_newer), b, a) for a, b in sides))


def _with_answers(
    chosen: Versions, contested: Positions, rows: pa.Table, is_delete: Mask, ordering: tuple[pa.Array, ...]
) -> Versions:
    """Return `chosen` with the data columns and ordering values of the answers; meta columns stay."""
    at = np.arange(len(chosen))
    at[contested] = len(chosen) + np.arange(len(contested))
    indices = pa.array(at)
    columns, given_names = [], set(rows.column_names)
    for name in chosen.rows.column_names:
        column = chosen.rows.column(name)
        if name in given_names:
            column = pa.chunked_array([*column.chunks, *rows.column(name).chunks], column.type).take(indices)
        columns.append(column)
    values = tuple(
        pa.concat_arrays([before, after]).take(indices) for before, after in zip(chosen.ordering, ordering, strict=True)
    )
    return Versions(pa.Table.from_arrays(columns, schema=chosen.rows.schema), is_delete, values)


def _same_rows(rows: pa.Table, others: pa.Table) -> Mask:
    """Return where two rows have the same values in all columns of `rows`."""
    same = np.ones(len(rows), np.bool_)
    for name in rows.column_names:
        left, right = single_array(rows.column(name)), single_array(others.column(name))
        if pa.types.is_nested(left.type):
            same &= np.fromiter((a == b for a, b in zip(left, right, strict=True)), np.bool_, len(same))
            continue
        nulls = pc.and_(left.is_null(), right.is_null())
        equal = pc.or_(nulls, pc.fill_null(pc.equal(left, right), False))
        same &= equal.to_numpy(zero_copy_only=False)
    return same
