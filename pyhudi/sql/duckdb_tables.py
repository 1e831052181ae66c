"""A query of ours as a table that DuckDB reads: it asks for columns and says its filter, the scan reads no more.

DuckDB knows Arrow's data sets, and calls `scanner` of one for each time that a query names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from pyhudi.table.scan import Scan

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["ScanDataset", "whole_batches"]


class ScanDataset(ds.Dataset):
    """The rows of a scan, as of its moment, for as many readers as a query has."""

    def __init__(self, scan: Scan) -> None:
        """`scan`: the query; nothing is read yet."""
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of the scan."""
        return self._scan.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """The rows that pass a filter, these columns of them, as a stream."""
        rows = self._scan.narrowed(columns, filter).to_batches()
        whole = pa.RecordBatchReader.from_batches(rows.schema, whole_batches(rows))
        return ds.Scanner.from_batches(whole)


def whole_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches that begin where their memory begins: DuckDB refuses structs in cut ones."""
    for batch in batches:
        is_nested = any(pa.types.is_nested(field.type) for field in batch.schema)
        yield pa.ipc.read_record_batch(batch.serialize(), batch.schema) if is_nested else batch
