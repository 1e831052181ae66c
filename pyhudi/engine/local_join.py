"""Joins of the LocalEngine: row numbers are matched, since Arrow's join can't handle nested columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["matching", "row_pairs"]


def matching(batches: Iterable[pa.RecordBatch], key_values: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Return rows whose key columns each hold a value of the other side: a superset of the matches, in less memory.

    `key_values`: by key column the values of the other side.
    """
    for group in _chunks_of(batches, 1 << 20):
        keep = None
        for name, values in key_values.items():
            is_listed = pc.is_in(group.column(name), value_set=values)
            keep = is_listed if keep is None else pc.and_(keep, is_listed)
        yield from group.filter(keep).to_batches()


def _chunks_of(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield batches combined into tables of at least `rows` rows: `is_in` builds its hash set once per call."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(pending)
            pending, count = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def row_pairs(left: pa.Table, right: pa.Table, keys: list[str], how: Literal["inner", "left"]) -> pa.Table:
    """Return matching row numbers, in the order of the left rows; `right` is null without a match.

    Only keys and row numbers go through Arrow's join, which can't handle nested columns.
    """
    first = right.column(keys[0])
    if pc.count_distinct(first).as_py() == len(first):
        return _single_partners(left, right, keys, how)
    numbered_left = left.append_column("left", pa.array(np.arange(left.num_rows)))
    numbered_right = right.append_column("right", pa.array(np.arange(right.num_rows)))
    joined = numbered_left.join(numbered_right, keys, join_type="inner" if how == "inner" else "left outer")
    return joined.select(["left", "right"]).sort_by([("left", "ascending"), ("right", "ascending")])


def _single_partners(left: pa.Table, right: pa.Table, keys: list[str], how: Literal["inner", "left"]) -> pa.Table:
    """`row_pairs` when no two right rows have the same first key: a look-up is much faster than a join."""
    partner = pc.index_in(left.column(keys[0]), value_set=right.column(keys[0]), skip_nulls=True).combine_chunks()
    for name in keys[1:]:
        same = pc.equal(left.column(name), right.column(name).take(partner))
        partner = pc.if_else(pc.fill_null(same, False), partner, None).combine_chunks()
    pairs = pa.table({"left": pa.array(np.arange(left.num_rows)), "right": partner.cast(pa.int64())})
    return pairs if how == "left" else pairs.filter(partner.is_valid())
