"""Rows of a frame counted where they are: by partition path, by file group.

Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Engine, Frame, TaskContext
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY

__all__ = ["CountRows", "count_groups"]


@dataclass(frozen=True, slots=True)
class CountRows:
    """Stream work: rows (and bytes of keys) for each combination of the columns in a task's stream."""

    columns: tuple[str, ...]
    key_bytes: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [*(pa.field(c, pa.string()) for c in self.columns), ("rows", pa.int64()), ("bytes", pa.int64())]
        )

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: Counter[tuple[str | None, ...]] = Counter()
        sizes: Counter[tuple[str | None, ...]] = Counter()
        for batch in batches:
            sized = pc.binary_length(batch.column(RECORD_KEY)) if self.key_bytes else pa.repeat(0, batch.num_rows)
            table = pa.Table.from_arrays([*(batch.column(c) for c in self.columns), sized], [*self.columns, "bytes"])
            # Batches are too small for threads to pay.
            groups = table.group_by(list(self.columns), use_threads=False).aggregate(
                [("bytes", "count"), ("bytes", "sum")]
            )
            columns = [groups.column(c).to_pylist() for c in self.columns]
            counted = cast("list[int]", groups.column("bytes_count").to_pylist())
            summed = cast("list[int]", groups.column("bytes_sum").to_pylist())
            # A row of this loop is a file group or a partition, not a record.
            for group, count, size in zip(zip(*columns, strict=True), counted, summed, strict=True):
                rows[group] += count
                sizes[group] += size
        arrays = [pa.array([group[i] for group in rows], pa.string()) for i in range(len(self.columns))]
        arrays += [pa.array(rows.values(), pa.int64()), pa.array([sizes[group] for group in rows], pa.int64())]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def count_groups(engine: Engine, tagged: Frame) -> dict[tuple[str, str | None], int]:
    """Rows by (partition path, file id or None)."""
    work = CountRows((PARTITION_PATH, LOCATION))
    counted = engine.collect(engine.map(engine.select(tagged, [PARTITION_PATH, LOCATION]), work, work.schema))
    rows: Counter[tuple[str, str | None]] = Counter()
    for row in counted.to_pylist():
        rows[(row[PARTITION_PATH], row[LOCATION])] += row["rows"]
    return dict(rows)
