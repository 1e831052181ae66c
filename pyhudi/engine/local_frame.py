"""Frames of the LocalEngine: a schema and a tuple of *parts*.

Each part is a callable that opens a stream of batches, and one part is one task. Rows come from tables in memory, from
streams, which can be read once, and from sources that can reopen them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError

__all__ = ["BATCH_ROWS", "ArrowStream", "LocalFrame", "LocalRows", "Part", "ReopenedRows"]

Part = Callable[[], Iterator[pa.RecordBatch]]

BATCH_ROWS = 65_536
PART_BYTES = 256 << 20  # a table in memory is cut into parts of about this size, one task each


class ArrowStream(Protocol):
    """Any source of rows with Arrow's C stream: polars, DuckDB, pandas."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@dataclass(frozen=True, slots=True)
class ReopenedRows:
    """Rows of a source that can be read repeatedly: a query, a dataset, a function.

    `open`: returns a new stream of the rows.
    """

    schema: pa.Schema
    open: Callable[[], pa.RecordBatchReader]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.open().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]


def _no() -> bool:
    return False


@dataclass(frozen=True)
class LocalFrame:
    """A schema, and one stream of batches per task. `is_quick`: returns True if the parts are too small for threads;
    called before they run.
    """

    schema: pa.Schema
    parts: tuple[Part, ...]
    is_quick: Callable[[], bool] = _no

    @property
    def can_be_read(self) -> bool:
        """False when the rows came from a stream that was consumed."""
        return all(part.can_be_read for part in self.parts if isinstance(part, _ReaderPart))

    @classmethod
    def of_table(cls, table: pa.Table, tasks_max: int = 1) -> LocalFrame:
        """Return a table in memory, cut into at most `tasks_max` parts when it is large."""
        parts = max(1, min(tasks_max, table.nbytes // PART_BYTES))
        rows = -(-table.num_rows // parts)
        slices = [table.slice(index * rows, rows) for index in range(parts)]
        return cls(table.schema, tuple(_TablePart(piece) for piece in slices))

    @classmethod
    def of(cls, data: LocalRows, tasks_max: int = 1, *, kept_bytes: int = 0) -> LocalFrame:
        """Return a frame from a frame, a table, a batch, a reader, or anything with `__arrow_c_stream__`.

        Args:    kept_bytes: a reader's rows up to this size can be read a second time.
        """
        if isinstance(data, LocalFrame):
            return data
        if isinstance(data, pa.Table):
            return cls.of_table(data, tasks_max)
        if isinstance(data, pa.RecordBatch):
            return cls.of_table(pa.Table.from_batches([data]))
        if isinstance(data, pa.RecordBatchReader):
            return cls(data.schema, (_ReaderPart(data, kept_bytes),))
        if isinstance(data, ReopenedRows):
            return cls(data.schema, (lambda: iter(data.open()),))
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return cls(reader.schema, (_ReaderPart(reader),))
        raise ConfigError(
            f"LocalEngine can't read rows from {type(data).__module__}.{type(data).__qualname__}; give it a "
            f"pyarrow.Table, RecordBatch or RecordBatchReader, or anything with __arrow_c_stream__ (pandas, polars)."
        )


LocalRows: TypeAlias = LocalFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream


@dataclass(frozen=True, slots=True)
class _TablePart:
    table: pa.Table

    def __call__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.table.to_batches(max_chunksize=BATCH_ROWS))


class _ReaderPart:
    """A stream. A second read uses memory if the stream was small; otherwise it is an error, not an empty table."""

    def __init__(self, reader: pa.RecordBatchReader, kept_bytes: int = 0) -> None:
        self._reader: pa.RecordBatchReader | None = reader
        self._kept_bytes = kept_bytes
        self._batches: list[pa.RecordBatch] = []
        self._is_whole = False

    @property
    def can_be_read(self) -> bool:
        return self._reader is not None or self._is_whole

    def __call__(self) -> Iterator[pa.RecordBatch]:
        if self._is_whole:
            return iter(self._batches)
        reader, self._reader = self._reader, None
        if reader is None:
            raise ConfigError("A stream of batches can be read once only, and it was read already; pass a Table.")
        return self._read(reader) if self._kept_bytes else iter(reader)

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        size_bytes = 0
        for batch in reader:
            size_bytes += batch.nbytes
            if size_bytes <= self._kept_bytes:
                self._batches.append(batch)
            else:
                self._batches.clear()
            yield batch
        self._is_whole = size_bytes <= self._kept_bytes
