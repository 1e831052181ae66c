"""The order of rows in new files, and the sorting of a group's rows in bounded memory.

`RowOrder` orders rows by columns in turn, or along a space-filling curve through them. `SortedRows` returns all rows of
a group in that order:

    fits in memory    rows → one table → positions → pieces in order
    does not fit      rows → a file in a temporary folder, sort columns remain in memory → positions → each row's rank
                      → the file is read again, rows go to one file per run of ranks → run by run in order
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.filegroup.rewrite.curves import bits_of, coordinates, hilbert_index, ordered_values, z_index
from pyhudi.storage.base import as_temporary_error

__all__ = ["SORT_MEMORY_BYTES", "RowOrder", "SortedRows", "joined"]


Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A layout: LINEAR, ZORDER or HILBERT by `columns` (nested ones with dots). No columns: rows keep their order.

    `sample_size`: curves use ranks in a sample of this many rows; None: the values themselves.
    """

    columns: tuple[str, ...] = ()
    layout: str = "LINEAR"
    sample_size: int | None = None

    def check(self, schema: pa.Schema) -> None:
        """Raise ConfigError when rows of this schema can't be ordered this way."""
        if self.columns:
            keys = self.keys(schema.empty_table())
            for column in keys.columns:
                ordered_values(column)
            self.positions(keys)

    def keys(self, rows: pa.Table) -> pa.Table:
        """The sort columns, under plain names. Raises ConfigError when one is missing."""
        return pa.table(
            [_column(rows, name) for name in self.columns], names=[str(n) for n in range(len(self.columns))]
        )

    def positions(self, keys: pa.Table) -> Positions:
        """The row numbers in sorted order; equal rows keep their order."""
        names = keys.column_names
        if self.layout == "LINEAR" or len(names) == 1:
            try:
                order = pc.sort_indices(keys, [(name, "ascending") for name in names])
            except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise ConfigError(f"Rows can't be sorted by {', '.join(self.columns)}: {error}.") from error
            return np.asarray(order.to_numpy(), np.int64)
        bits = bits_of(len(names))
        axes = []
        for name in names:
            values = ordered_values(keys.column(name))
            axes.append(coordinates(values, bits, self._sample(values)))
        curve = hilbert_index if self.layout == "HILBERT" else z_index
        return np.argsort(curve(axes, bits), kind="stable")

    def _sample(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64] | None:
        """The values of evenly spread rows, which are the same in every run."""
        if self.sample_size is None:
            return None
        step = max(1, len(values) // self.sample_size)
        return values[::step]


def _column(rows: pa.Table, path: str) -> pa.ChunkedArray:
    top, *inner_names = [path] if path in rows.column_names else path.split(".")
    if top not in rows.column_names:
        raise ConfigError(
            f"hoodie.clustering.plan.strategy.sort.columns names {path!r}, which the table doesn't have; its columns: "
            f"{', '.join(name for name in rows.column_names if not name.startswith('_hoodie_'))}."
        )
    column = rows.column(top)
    for name in inner_names:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise ConfigError(f"hoodie.clustering.plan.strategy.sort.columns names {path!r}: no field {name!r} there.")
        column = pc.struct_field(column, name)
    # Sorting needs values, so dictionaries are decoded.
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


SORT_MEMORY_BYTES = 512 << 20  # rows of one group that are sorted in memory, which takes twice as much
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

Ranks = npt.NDArray[np.int64]


class SortedRows:
    """Sorts the rows passed to `add`; `pieces` returns them, once. Use it as a context manager: it may hold files."""

    def __init__(self, order: RowOrder, memory_bytes: int = SORT_MEMORY_BYTES) -> None:
        self.rows = 0
        self.bytes = 0
        self._order, self._memory_bytes = order, memory_bytes
        self._waiting_tables: list[pa.Table] = []
        self._waiting_bytes = 0
        self._keys: list[pa.Table] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spill: _Spill | None = None

    def __enter__(self) -> SortedRows:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._spill is not None:
                self._spill.close()
        finally:
            if self._folder is not None:
                self._folder.cleanup()

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        if not len(rows):
            return
        self.rows += len(rows)
        self.bytes += rows.nbytes
        self._waiting_tables.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes > self._memory_bytes:
            self._spill_waiting()

    def pieces(self, piece_rows: int) -> Iterator[pa.Table]:
        """The rows in order, at most `piece_rows` at a time."""
        if self._spill is None:
            yield from _in_order(self._waiting_tables, self._order, piece_rows)
            return
        self._spill_waiting()
        self._spill.close()
        if not self._order.columns:
            for rows in self._spill.tables():
                yield from (rows.slice(first, piece_rows) for first in range(0, len(rows), piece_rows))
            return
        keys = pa.concat_tables(self._keys)
        self._keys = []
        order = self._order.positions(keys)
        ranks = np.empty(self.rows, np.int64)
        ranks[order] = np.arange(self.rows)
        runs = -(-self.bytes // self._memory_bytes)
        run_rows = -(-self.rows // runs)
        for first, run in self._scattered(ranks, run_rows):
            rows, run_ranks = run.read()
            within = np.argsort(run_ranks)
            assert int(run_ranks[within[0]]) == first
            yield from _take_pieces(rows, within, piece_rows)

    def _spill_waiting(self) -> None:
        """Write the rows in memory to the file; keep only the sort columns in memory."""
        if self._folder is None:
            with as_temporary_error("the temporary folder"):
                self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-sort-")
        if self._spill is None:
            self._spill = _Spill(Path(self._folder.name) / "rows")
        for rows in self._waiting_tables:
            if self._order.columns:
                self._keys.append(self._order.keys(rows))
            self._spill.write(rows)
        self._waiting_tables, self._waiting_bytes = [], 0

    def _scattered(self, ranks: Ranks, run_rows: int) -> Iterator[tuple[int, _Spill]]:
        """The rows of each run of ranks, each in a file that is deleted when the next one is read."""
        assert self._folder is not None
        assert self._spill is not None
        firsts = range(0, len(ranks), run_rows)
        runs = [_Spill(Path(self._folder.name) / f"run{number}") for number in range(len(firsts))]
        at = 0
        for rows in self._spill.tables():
            batch_ranks = ranks[at : at + len(rows)]
            at += len(rows)
            numbers = batch_ranks // run_rows
            for number in np.unique(numbers):
                places = np.flatnonzero(numbers == number)
                runs[number].write(rows.take(pa.array(places)), batch_ranks[places])
        self._spill.delete()
        for first, run in zip(firsts, runs, strict=True):
            run.close()
            yield first, run
            run.delete()


_RANK = "_pyhudi_rank"


class _Spill:
    """Rows in a file that can be read as a stream, with the ranks that they were written with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sink: pa.NativeFile | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, rows: pa.Table, ranks: Ranks | None = None) -> None:
        rows = _plain(rows)
        if ranks is not None:
            rows = rows.append_column(_RANK, pa.array(ranks))
        with as_temporary_error(str(self._path)):
            if self._writer is None:
                self._sink = pa.OSFile(str(self._path), "wb")
                self._writer = pa.ipc.new_stream(self._sink, rows.schema, options=_OPTIONS)
            self._writer.write_table(rows.combine_chunks())

    def tables(self) -> Iterator[pa.Table]:
        with (
            as_temporary_error(str(self._path)),
            pa.OSFile(str(self._path)) as source,
            pa.ipc.open_stream(source) as reader,
        ):
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def read(self) -> tuple[pa.Table, Ranks]:
        rows = pa.concat_tables(self.tables())
        return rows.drop_columns([_RANK]), np.asarray(rows.column(_RANK).to_numpy(), np.int64)

    def close(self) -> None:
        if self._writer is not None and self._sink is not None:
            with as_temporary_error(str(self._path)):  # this writes the last rows
                self._writer.close()
                self._sink.close()
            self._writer = self._sink = None

    def delete(self) -> None:
        self._path.unlink(missing_ok=True)


def _plain(rows: pa.Table) -> pa.Table:
    """Decode the rows' dictionaries, which differ from batch to batch."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            value_type = field.type.value_type
            rows = rows.set_column(at, field.with_type(value_type), rows.column(at).cast(value_type))
    return rows


def _in_order(tables: list[pa.Table], order: RowOrder, piece_rows: int) -> Iterator[pa.Table]:
    if not tables:
        return
    rows = joined(tables)
    if not order.columns:
        yield from (rows.slice(first, piece_rows) for first in range(0, len(rows), piece_rows))
        return
    yield from _take_pieces(rows, order.positions(order.keys(rows)), piece_rows)


def joined(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables. A column that is a dictionary only in some of them is decoded in all of them."""
    if len({table.schema for table in tables}) > 1:
        tables = [_plain(table) for table in tables]
    return pa.concat_tables(tables).unify_dictionaries()


def _take_pieces(rows: pa.Table, positions: Ranks, piece_rows: int) -> Iterator[pa.Table]:
    rows = rows.combine_chunks()
    for first in range(0, len(positions), piece_rows):
        yield rows.take(pa.array(positions[first : first + piece_rows]))
