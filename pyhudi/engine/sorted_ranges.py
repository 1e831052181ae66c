"""Sort the rows of a stream in bounded memory, by ranges of their keys.

fits in memory    rows → one table, which the caller sorts
does not          rows → a file in a temporary folder, with a sample of their keys → split points
                  → a file per range → each range sorted by itself

Rows of equal keys are in one range, in their original order. Several ranges can be read at the same time.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage.base import as_temporary_error

__all__ = ["SortedRanges"]

_SAMPLE_STEP = 256  # one of this many rows is sampled; the step doubles as the stream grows
_SAMPLED_ROWS = 1 << 16
_RANGES_MAX = 256  # each is an open file while rows are distributed
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class SortedRanges:
    """`load` reads the rows, once. `keys`: columns to sort by; none: rows keep their order.

    Args:    together: rows with equal values in this number of first keys are in one share. memory_bytes: rows beyond
                 it are written to files. range_bytes: approximate size of a range.
    """

    def __init__(
        self, schema: pa.Schema, keys: Sequence[str], together: int, memory_bytes: int, range_bytes: int
    ) -> None:
        self.ranges: tuple[_Range, ...] = ()
        self._schema, self._keys, self._together = schema, list(keys), together
        self._cuts: Numbers = np.array([0, 1])  # where shares may begin and end
        self._memory_bytes, self._range_bytes = memory_bytes, range_bytes

    def load(self, batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
        """Load all rows, unsorted, as one table if they fit in memory; else None, and `ranges` has them."""
        pending: list[pa.RecordBatch] = []
        pending_bytes, stream = 0, iter(batches)
        for batch in stream:
            pending.append(batch)
            pending_bytes += batch.nbytes
            if pending_bytes > self._memory_bytes:
                break
        else:
            return pa.Table.from_batches(pending, self._schema)
        with as_temporary_error("the temporary folder"):
            folder = Path(tempfile.mkdtemp(prefix="pyhudi-sort-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        everything = _Range(folder / "rows", self._schema)
        sample = _sample(everything, self._keys, chain(_drain(pending), stream))
        everything.close()
        self.ranges = (everything,)
        if self._keys:
            self._spread(everything, sample, folder)
        return None

    def share(self, number: int, shares: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read one of `shares` runs of the ordered rows, of about equal size. It can be read repeatedly."""
        positions = [len(self.ranges) * at // shares for at in (number, number + 1)]
        first, end = self._cuts[np.searchsorted(self._cuts, positions)]
        for sorted_range in self.ranges[first:end]:
            yield from sorted_range.in_order(batch_rows)

    def _spread(self, everything: _Range, sample: pa.Table, folder: Path) -> None:
        """Write the rows to files by range."""
        splits = _splits(sample, min(_RANGES_MAX, -(-everything.bytes // self._range_bytes)))
        self.ranges = tuple(
            _Range(folder / f"range{number}", self._schema, tuple(self._keys)) for number in range(len(splits) + 1)
        )
        parted = np.zeros(len(splits), np.bool_)
        for batch in everything.batches():
            numbers = _range_numbers(splits, batch.select(self._keys), self._together, parted)
            for number in np.unique(numbers):
                self.ranges[number].write(batch.take(pa.array(np.flatnonzero(numbers == number))))
        for sorted_range in self.ranges:
            sorted_range.close()
        everything.path.unlink()
        self._cuts = np.array([0, *(np.flatnonzero(~parted) + 1), len(self.ranges)])


@dataclass(slots=True)
class _Range:
    """Rows in a file. `keys`: the sort columns for reading; a range with a single key needs no sorting."""

    path: Path
    schema: pa.Schema
    keys: tuple[str, ...] = ()
    bytes: int = 0
    only: list[dict[str, object]] | None = None
    has_several: bool = False
    _writer: pa.RecordBatchStreamWriter | None = field(default=None, repr=False)

    def write(self, batch: pa.RecordBatch) -> None:
        with as_temporary_error(str(self.path)):
            if self._writer is None:
                self._writer = pa.ipc.new_stream(str(self.path), self.schema, options=_OPTIONS)
            self._writer.write_batch(batch)
        self.bytes += batch.nbytes
        if self.keys and not self.has_several:
            groups = (
                pa.Table.from_batches([batch.select(self.keys)]).group_by(list(self.keys)).aggregate([]).to_pylist()
            )
            self.only = self.only or groups
            self.has_several = len(groups) > 1 or groups != self.only

    def close(self) -> None:
        if self._writer is not None:
            with as_temporary_error(str(self.path)):  # this writes the last rows
                self._writer.close()
            self._writer = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their original order."""
        if self.path.exists():  # a range without rows has no file
            with (
                as_temporary_error(str(self.path)),
                pa.OSFile(str(self.path)) as source,
                pa.ipc.open_stream(source) as reader,
            ):
                yield from reader

    def in_order(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of the keys."""
        if not self.has_several:
            yield from self.batches()
            return
        rows = pa.Table.from_batches(list(self.batches()), self.schema).combine_chunks()
        order = _order(rows.select(list(self.keys)))
        for first in range(0, len(order), batch_rows):
            yield from rows.take(order.slice(first, batch_rows)).combine_chunks().to_batches()


def _sample(into: _Range, keys: list[str], batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Write all rows; the keys of some of them, evenly spread, with a fixed maximum."""
    sample, rows, step = [into.schema.empty_table().select(keys)], 0, _SAMPLE_STEP
    for batch in batches:
        into.write(batch)
        if keys and len(batch):
            sample.append(pa.Table.from_batches([batch.select(keys)]).take(_each(step, batch)))
            rows += len(sample[-1])
        if rows > _SAMPLED_ROWS:
            together = pa.concat_tables(sample)
            sample, step = [together.take(_each(2, together)).combine_chunks()], 2 * step
            rows = len(sample[0])
    return pa.concat_tables(sample)


def _each(step: int, rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return positions of every `step`-th row."""
    return pa.array(np.arange(0, len(rows), step))


def _drain(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a list, removing each from it."""
    while batches:
        yield batches.pop(0)


def _order(keys: pa.Table) -> pa.Array:
    """Return row numbers in sorted order; equal rows keep their order."""
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])


def _splits(sample: pa.Table, ranges: int) -> pa.Table:
    """Return the keys at which ranges begin, in order, without duplicates.

    A key that fills whole ranges is followed by a split at the next key, so that it has a separate range.
    """
    ordered = sample.take(_order(sample))
    firsts = _first_of_each(ordered)
    positions = [len(ordered) * number // ranges for number in range(1, ranges)]
    buckets = np.searchsorted(firsts, positions, side="right") - 1
    heavy = buckets[1:][buckets[1:] == buckets[:-1]]
    chosen = np.unique(np.concatenate([buckets, heavy + 1])).astype(np.int64)
    return ordered.take(pa.array(firsts[chosen[chosen < len(firsts)]]))


def _first_of_each(ordered: pa.Table) -> Numbers:
    """Return the first row of each key in ordered rows."""
    changes = np.zeros(len(ordered), np.bool_)
    changes[:1] = True
    for column in ordered.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        changes[1:] |= numbers[1:] != numbers[:-1]
    return np.flatnonzero(changes).astype(np.int64)


def _range_numbers(splits: pa.Table, keys: pa.RecordBatch, together: int, parted: Flags) -> Numbers:
    """Return the range of each row: the number of splits before it when both are sorted together.

    `parted` is set for splits that follow a row with the same first `together` keys.
    """
    both = pa.concat_tables([splits, pa.Table.from_batches([keys])]).combine_chunks()
    order = np.asarray(_order(both).to_numpy(), np.int64)
    is_split = order < len(splits)
    before = np.cumsum(is_split)
    numbers = np.empty(len(keys), np.int64)
    numbers[order[~is_split] - len(splits)] = before[~is_split]
    if together:
        firsts = _first_of_each(both.select(both.column_names[:together]).take(pa.array(order)))
        places = np.flatnonzero(is_split)
        rows_before = np.concatenate([[0], np.cumsum(~is_split)])
        begins = firsts[np.searchsorted(firsts, places, side="right") - 1]
        parted |= rows_before[places] > rows_before[begins]
    return numbers
