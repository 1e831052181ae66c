"""A query of ours as a table that DuckDB reads: it asks for columns and says its filter, the scan reads no more.

DuckDB knows Arrow's data sets, and calls `scanner` of one for each time that a query names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from pyhudi.errors import HudiError
from pyhudi.table.scan import Scan

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["ScanDataset", "whole_batches"]


class ScanDataset(ds.Dataset):
    """The rows of a scan, as of its moment, for as many readers as a query has."""

    def __init__(self, scan: Scan, failures: list[HudiError]) -> None:
        """`scan`: the query; nothing is read yet. `failures`: gets what reading raises; DuckDB makes a text of it."""
        self._scan, self._failures = scan, failures

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of the scan."""
        return self._scan.schema

    def scanner(  # type: ignore[override]  # what DuckDB gives, and no more
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """The rows that pass a filter, these columns of them, as a stream."""
        with self._noted():
            rows = self._scan.narrowed(columns, filter).to_batches()
        return ds.Scanner.from_batches(pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows)))

    def _batches(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._noted():
            yield from whole_batches(rows)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except HudiError as error:
            self._failures.append(error)
            raise


def whole_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches that begin where their memory begins: DuckDB refuses structs in cut ones."""
    for batch in batches:
        is_nested = any(pa.types.is_nested(field.type) for field in batch.schema)
        yield pa.ipc.read_record_batch(batch.serialize(), batch.schema) if is_nested else batch
