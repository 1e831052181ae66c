"""Change events of a source become rows of a table: the newest state of each key, or all states with their times.

An event is a row with a sequence value; it inserts or updates its key (upsert), or deletes it. For each key the events
are sorted by sequence, so the rows don't depend on the order in which events arrive, nor on the batches they come in:

    newest_rows    SCD type 1: the newest event counts. The table holds the row of an upsert, and nothing of a delete.
    histories      SCD type 2: the table holds a row for each state, from __START_AT up to __END_AT (null: current).

Of two events of a key with one sequence value a delete counts before an upsert, else the later arrival.

Some events are not seen in the rows, and late ones need them: deletes (type 1), deletes of what is not there and all
upserts of a run (type 2). They are returned as `hidden`, and come back with the next batch. A run is a chain of upserts
that differ in no tracked column: one row, from the first one on, with the values of the last one.
Source: the programming guide of Spark's declarative pipelines, "Auto CDC"; docs/apply-changes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.merge.base import Mask
from pyhudi.merge.combine import key_numbers, single_array
from pyhudi.model.keys import IS_DELETE

__all__ = [
    "CLOSE",
    "DELETE",
    "END_AT",
    "INSERT",
    "SEQUENCE",
    "START_AT",
    "UPDATE",
    "RowChanges",
    "histories",
    "newest_events",
    "newest_rows",
]

START_AT, END_AT = "__START_AT", "__END_AT"
SEQUENCE = "_pyhudi_sequence"  # of an event; IS_DELETE tells a delete from an upsert

DELETE, UPDATE, INSERT, CLOSE = 0, 1, 2, 3  # CLOSE: an update of __END_AT alone
NEW = -1

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What events change in a table.

    `rows`: data columns. `kinds`: DELETE, UPDATE, INSERT or CLOSE for each. `places`: its position among the stored
    rows; NEW for inserts. `hidden`: events that are to be remembered, without those that are already.
    """

    rows: pa.Table
    kinds: npt.NDArray[np.int32]
    places: Positions
    hidden: pa.Table


def newest_events(events: pa.Table, keys: Sequence[str]) -> Positions:
    """The position of each key's newest event. `events`: in order of arrival, with SEQUENCE and IS_DELETE."""
    numbers = key_numbers(events, keys)
    at = _in_order(events, numbers, _ranks(events))
    newest: Positions = at[np.append(numbers[at[1:]] != numbers[at[:-1]], True)[: len(at)]]
    return newest


def newest_rows(stored: pa.Table, hidden: pa.Table, events: pa.Table, keys: Sequence[str]) -> RowChanges:
    """SCD type 1.

    Args:
        stored: keys and SEQUENCE of the table's rows, those of all keys of the events among them; a key once.
        hidden: the remembered events of these keys.
        events: of a batch, with the data columns.
    """
    compared = [*keys, SEQUENCE, IS_DELETE]
    rows_as_events = stored.append_column(IS_DELETE, pa.repeat(False, len(stored)))
    everything = pa.concat_tables([one.select(compared) for one in (rows_as_events, hidden, events)])
    numbers = key_numbers(everything, keys)
    before = len(stored) + len(hidden)
    newest = newest_events(everything, keys)
    newest = newest[newest >= before]
    place_of = np.full(len(everything), NEW, np.int64)
    place_of[numbers[: len(stored)]] = np.arange(len(stored))
    places = place_of[numbers[newest]]
    changed = events.take(pa.array(newest - before))
    deletes = _deletes(changed)
    kinds = np.where(deletes, DELETE, np.where(places == NEW, INSERT, UPDATE)).astype(np.int32)
    remembered = changed.filter(pa.array(deletes)).select(compared)
    is_seen = ~(deletes & (places == NEW))
    rows = changed.drop_columns([SEQUENCE, IS_DELETE]).filter(pa.array(is_seen))
    return RowChanges(rows, kinds[is_seen], places[is_seen], remembered)


def histories(
    stored: pa.Table, hidden: pa.Table, events: pa.Table, keys: Sequence[str], tracked: Sequence[str]
) -> RowChanges:
    """SCD type 2.

    Args:
        stored: the table's rows, all those of the keys of the events among them.
        hidden: the remembered events of these keys, with the data columns.
        events: of a batch, with the data columns.
        tracked: the columns whose changes open a new row.
    """
    starts = _as_events(stored, START_AT, is_delete=False)
    is_closed = pc.is_valid(stored.column(END_AT))
    ends = _as_events(stored.filter(is_closed), END_AT, is_delete=True)
    everything = pa.concat_tables([part.select(events.schema.names) for part in (starts, ends, hidden, events)])
    numbers, ranks = key_numbers(everything, keys), _ranks(everything)
    moments = numbers * (ranks.max(initial=0) + 1) + ranks
    counts = np.cumsum([0, len(starts), len(ends), len(hidden), len(events)])
    closing = np.arange(counts[1], counts[2])
    # A row ends by a delete unless the next one begins there.
    closed_by_next = closing[np.isin(moments[closing], moments[: counts[1]])]

    at = _in_order(everything, numbers, ranks)
    at = at[~np.isin(at, closed_by_next)]
    at = at[np.append(moments[at[1:]] != moments[at[:-1]], True)[: len(at)]]
    line = _Line(everything, numbers[at], at, tracked)

    was_end = np.full(len(stored), -1, np.int64)
    was_end[np.flatnonzero(np.asarray(is_closed))] = ranks[closing]
    now_end = np.where(line.is_followed[line.tails], ranks[at[np.minimum(line.tails + 1, len(at) - 1)]], -1)
    _, was_at, now_at = np.intersect1d(moments[: counts[1]], moments[at[line.heads]], return_indices=True)
    has_event = line.any_in_run(at >= counts[3])
    is_single = (line.sizes == 1) & (at[line.heads] < counts[1])
    other_end = was_end[was_at] != now_end[now_at]
    closes = other_end & is_single[now_at] & ~has_event[now_at]
    updates = (other_end | has_event[now_at]) & ~closes

    rows = line.rows()
    gone = np.setdiff1d(np.arange(len(stored)), was_at)
    new = np.setdiff1d(np.arange(len(rows)), now_at)
    changed = np.concatenate([now_at[updates], new, now_at[closes]])
    places = np.concatenate([gone, was_at[updates], np.full(len(new), NEW), was_at[closes]])
    kinds = np.repeat([DELETE, UPDATE, INSERT, CLOSE], [len(gone), updates.sum(), len(new), closes.sum()])
    remembered = line.is_hidden & ~((at >= counts[2]) & (at < counts[3]))
    return RowChanges(
        pa.concat_tables([stored.take(pa.array(gone)).select(rows.schema.names), rows.take(pa.array(changed))]),
        kinds.astype(np.int32),
        places.astype(np.int64),
        everything.take(pa.array(at[remembered])),
    )


class _Line:
    """Events in the order of keys and sequence values, one for each moment, and the runs of upserts among them.

    `at`: their positions in `everything`; all else counts along them. `heads`, `tails`, `sizes`: of runs.
    """

    def __init__(self, everything: pa.Table, numbers: npt.NDArray[np.int64], at: Positions, tracked: Sequence[str]):
        self.everything, self.at = everything, at
        deletes = _deletes(everything)[at]
        same_key = numbers[1:] == numbers[:-1]
        is_later = np.append(False, same_key)[: len(at)]  # there is an event of the key before it
        after_upsert = is_later & np.append(False, ~deletes[:-1])[: len(at)]
        same_values = np.append(False, _same_values(everything, at, tracked))[: len(at)]
        is_head = ~deletes & ~(after_upsert & same_values)
        goes_on = np.append(after_upsert[1:] & ~is_head[1:] & ~deletes[1:], False)[: len(at)]
        self.is_followed = np.append(same_key, False)[: len(at)]
        self.heads, self.tails = np.flatnonzero(is_head), np.flatnonzero(~deletes & ~goes_on)
        self.sizes = self.tails - self.heads + 1
        in_long_run = np.zeros(len(at), np.int64)
        long = self.sizes > 1
        in_long_run[self.heads[long]] += 1
        in_long_run[self.tails[long]] -= 1  # the last one of a run is hidden, too
        self.is_hidden = np.where(deletes, ~after_upsert, (np.cumsum(in_long_run) > 0) | _at(self.tails[long], len(at)))

    def any_in_run(self, which: Mask) -> Mask:
        """For each run: is there one of these events in it?"""
        sums = np.append(0, np.cumsum(which))
        counted: Mask = sums[self.tails + 1] > sums[self.heads]
        return counted

    def rows(self) -> pa.Table:
        """A row for each run: the values of its last event, with START_AT and END_AT."""
        sequence = self.everything.column(SEQUENCE)
        follows = self.is_followed[self.tails]
        next_at = self.at[np.minimum(self.tails + 1, max(len(self.at) - 1, 0))]
        rows = self.everything.drop_columns([SEQUENCE, IS_DELETE]).take(pa.array(self.at[self.tails]))
        rows = rows.append_column(START_AT, sequence.take(pa.array(self.at[self.heads])))
        return rows.append_column(END_AT, sequence.take(pa.array(next_at, pa.int64(), mask=~follows)))


def _at(positions: Positions, count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[positions] = True
    return mask


def _as_events(rows: pa.Table, moment: str, *, is_delete: bool) -> pa.Table:
    """Rows of the table as the events that their times show."""
    events = rows.append_column(SEQUENCE, rows.column(moment)).drop_columns([START_AT, END_AT])
    return events.append_column(IS_DELETE, pa.repeat(is_delete, len(rows)))


def _deletes(events: pa.Table) -> Mask:
    flags: Mask = single_array(events.column(IS_DELETE)).to_numpy(zero_copy_only=False)
    return flags.astype(np.bool_)


def _ranks(events: pa.Table) -> npt.NDArray[np.int64]:
    """The rank of each event's sequence value among all of them; equal values have one rank."""
    coded = single_array(events.column(SEQUENCE)).dictionary_encode()
    ranks = np.empty(len(coded.dictionary), np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    found: npt.NDArray[np.int64] = ranks[coded.indices.to_numpy(zero_copy_only=False)]
    return found


def _in_order(events: pa.Table, numbers: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64]) -> Positions:
    """Positions by key and sequence value; of equal ones the one that counts comes last."""
    return np.lexsort((np.arange(len(events)), _deletes(events), ranks, numbers)).astype(np.int64)


def _same_values(rows: pa.Table, at: Positions, names: Sequence[str]) -> Mask:
    """Has the row at each of these positions the values of the one before it? One less than positions."""
    same = np.ones(max(len(at) - 1, 0), np.bool_)
    for name in names:
        column = single_array(rows.column(name).take(pa.array(at)))
        same &= _equal(column[1:], column[:-1])
    return same


def _equal(left: Any, right: Any) -> Mask:
    """Which values of two arrays are the same, null and null among them, and not-a-number."""
    neither: Mask = np.asarray(pc.and_(pc.is_null(left), pc.is_null(right)))
    both = np.asarray(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    kind = left.type
    if pt.is_struct(kind):
        fields_same = both.copy()
        for ours, theirs in zip(left.flatten(), right.flatten(), strict=True):
            fields_same &= _equal(ours, theirs)
        neither |= fields_same
        return neither
    if is_list(kind) or pt.is_map(kind):
        return neither | _equal_lists(left, right, both)
    same: Mask = np.asarray(pc.fill_null(pc.equal(left, right), False)).astype(np.bool_)
    if pt.is_floating(kind):
        same |= np.asarray(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return neither | same


def _equal_lists(left: Any, right: Any, both: Mask) -> Mask:
    if pt.is_map(left.type):
        entries = pa.list_(pa.struct([left.type.key_field, left.type.item_field]))
        left, right = left.cast(entries), right.cast(entries)
    lengths, others = (np.asarray(pc.fill_null(pc.list_value_length(side), -1)) for side in (left, right))
    same: Mask = both & (lengths == others)
    at = np.flatnonzero(same & (lengths > 0))
    if len(at):
        items = _equal(left.take(pa.array(at)).flatten(), right.take(pa.array(at)).flatten())
        begins = np.append(0, np.cumsum(lengths[at])[:-1])
        same[at] = np.logical_and.reduceat(items, begins)
    return same
