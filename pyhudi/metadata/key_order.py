"""Rows with keys of the metadata table in the order of their keys, in bounded memory, and by file group.

Source: docs/formats/metadata-table.md, "Building", "File groups of a key".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.sorted_ranges import SortedRanges

__all__ = ["BUILDING_BYTES", "GroupStream", "in_order"]

BUILDING_BYTES = 64 << 20  # keys held in memory; they are there some times over while they are sorted
_RANGE_BYTES = 16 << 20  # about what is sorted at a time beyond that
_RECORDS = 1 << 17  # of a batch that is handed out

Group = TypeVar("Group", bound=Hashable)


def in_order(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], memory_bytes: int = BUILDING_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows, ascending by all columns of the schema; beyond `memory_bytes` they wait in temporary files."""
    ranges = SortedRanges(schema, schema.names, 0, memory_bytes, min(_RANGE_BYTES, memory_bytes))
    table = ranges.take_in(batches)
    if table is None:
        yield from ranges.share(0, 1, _RECORDS)
        return
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in schema.names])
    rows = table.combine_chunks()
    for first in range(0, len(order), _RECORDS):
        yield from rows.take(order.slice(first, _RECORDS)).combine_chunks().to_batches()


class GroupStream(Generic[Group]):
    """Tables of file groups that come one after the other, given out file group by file group."""

    def __init__(self, tables: Iterator[tuple[Group, pa.Table]]) -> None:
        self._tables = tables
        self._next: tuple[Group, pa.Table] | None = None

    def of(self, group: Group) -> Iterator[pa.Table]:
        """The tables of one file group. To be read in the order in which they come, each once."""
        while True:
            self._next = self._next or next(self._tables, None)
            if self._next is None or self._next[0] != group:
                return
            _, table = self._next
            self._next = None
            yield table
