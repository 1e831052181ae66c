"""Rows collected in memory and, beyond a limit, in temporary Arrow files.

`WaitingRows` collects them, `keep_to` writes them to their file once they exceed a limit, and `StoredRows` returns them
by number, from memory or from a memory map. A file is deleted with the rows mapped from it.
Source: docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.storage.base import as_temporary_error

__all__ = ["Positions", "StoredRows", "WaitingRows", "keep_to"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows in memory or mapped from a file, accessed by number."""

    schema: pa.Schema
    batches: Sequence[pa.RecordBatch]
    in_file: bool

    @property
    def count(self) -> int:
        return sum(len(batch) for batch in self.batches)

    @property
    def size_bytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)

    def joined(self) -> StoredRows:
        """The same rows as one batch, if they are in memory."""
        return self if self.in_file else replace(self, batches=self.whole().combine_chunks().to_batches())

    def only(self, at: Positions) -> StoredRows:
        """Some of the rows, in memory."""
        return StoredRows(self.schema, self.take(at).combine_chunks().to_batches(), in_file=False)

    def whole(self, columns: Sequence[str] | None = None) -> pa.Table:
        table = pa.Table.from_batches(list(self.batches), self.schema)
        return table if columns is None else table.select(list(columns))

    def take(self, at: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these numbers."""
        if not self.in_file:
            return self.whole(columns).take(pa.array(at))
        # Batch by batch: Arrow would join the mapped batches in memory to take rows.
        ends = np.cumsum([len(batch) for batch in self.batches])
        batch_of = np.searchsorted(ends, at, side="right")
        order = np.argsort(batch_of, kind="stable")
        bounds = np.searchsorted(batch_of[order], np.arange(len(ends) + 1))
        parts = []
        for number in np.unique(batch_of):
            batch = self.batches[number] if columns is None else self.batches[number].select(list(columns))
            rows = at[order[bounds[number] : bounds[number + 1]]] - (ends[number] - len(batch))
            parts.append(batch.take(pa.array(rows)))
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        rows = pa.Table.from_batches(parts, schema)
        if (order[1:] > order[:-1]).all():
            return rows
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return rows.take(pa.array(place))


class WaitingRows:
    """Collects tables in memory and, once `spill` was called, in a temporary Arrow file."""

    def __init__(self, schema: pa.Schema, folder: str | None) -> None:
        self.schema, self._folder = schema, folder
        self.count = self.waiting_bytes = 0
        self._tables: list[pa.Table] = []
        self._file: _Spill | None = None

    def add(self, rows: pa.Table) -> None:
        self._tables.append(rows)
        self.count += len(rows)
        self.waiting_bytes += rows.nbytes

    def spill(self) -> None:
        """Write the rows in memory to the file."""
        if self._tables:
            self._file = self._file or _Spill(self.schema, self._folder)
            self._file.write(self._tables)
            self._tables, self.waiting_bytes = [], 0

    def to_stored(self) -> StoredRows:
        """All rows; no more may be added afterwards."""
        spilled = [self._file.read()] if self._file is not None else []
        table = pa.concat_tables([self.schema.empty_table(), *spilled, *self._tables])
        self._tables = []
        return StoredRows(self.schema, table.to_batches(), bool(spilled))


_SPILL_FOLDER = "hoodie.memory.spillable.map.path"


class _Spill:
    """Rows in a temporary Arrow file, in the order in which they were added."""

    def __init__(self, schema: pa.Schema, folder: str | None) -> None:
        # The file is deleted with this object and the tables mapped from it.
        try:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115
                prefix="pyhudi-log-records-", suffix=".arrow", dir=folder
            )
        except OSError as error:
            raise ConfigError(
                f"Log rows that don't fit into memory can't be written to {folder or tempfile.gettempdir()} ({error}); "
                f"name a folder in {_SPILL_FOLDER} that every machine can write to."
            ) from error
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            self._sink = pa.OSFile(self._file.name, "wb")
            self._writer = pa.ipc.new_file(self._sink, schema)

    def write(self, tables: Sequence[pa.Table]) -> None:
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            for table in tables:
                self._writer.write_table(table)

    def read(self) -> pa.Table:
        """All rows, mapped into memory; no more may be written afterwards."""
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            self._writer.close()
            self._sink.close()
            return pa.ipc.open_file(pa.memory_map(self._file.name)).read_all()


def keep_to(limit_bytes: int, entries: WaitingRows, rows: WaitingRows) -> None:
    """Keep memory below a limit: rows spill first; entries spill once they alone take half of the limit."""
    if entries.waiting_bytes + rows.waiting_bytes > limit_bytes:
        rows.spill()
    if entries.waiting_bytes > limit_bytes // 2:
        entries.spill()
