"""The rows of a slice twice: as they are stored, to be written again, and as a query shows them, to be judged.

The two differ in partition columns: a query takes their values from the partition's path where the path tells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.changes.values import computed, mask_of
from pyhudi.filegroup.read import SliceSpec, read_file_slice
from pyhudi.formats.base import BATCH_ROWS, open_base_file
from pyhudi.queries.filters import to_arrow
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.snapshot import row_group_test, with_path_values
from pyhudi.schema.projection import project

__all__ = ["StoredRows"]


@dataclass(frozen=True, slots=True)
class StoredRows:
    """How slices are read. Picklable.

    `spec`: all columns that the table stores, meta columns first; `plan`: what a query of the whole table returns, and
    the filter for the rows that are meant.
    """

    spec: SliceSpec
    plan: ReadPlan

    def batches(self, read: ReadSlice) -> Iterator[tuple[pa.Table, pa.Table]]:
        """(stored, shown): rows that pass the filter. Raises CorruptFile, ConfigError, SchemaMismatch."""
        plan = self.plan
        condition = None if plan.keeps_all_rows else to_arrow(plan.predicate, plan.read_schema)
        for batch in self._stored(read):
            stored = pa.Table.from_batches([batch])
            shown = pa.Table.from_batches([with_path_values(batch, read.from_path, plan.read_schema)])
            if condition is not None:
                kept = mask_of(computed(condition, shown, "where"))
                if not kept.all():
                    stored, shown = stored.filter(pa.array(kept)), shown.filter(pa.array(kept))
            if len(stored):
                yield stored, shown

    def _stored(self, read: ReadSlice) -> Iterator[pa.RecordBatch]:
        spec = self.spec
        if read.merges or spec.key_generator is not None:
            yield from read_file_slice(spec, read.file_slice, spec.schema.names)
            return
        with open_base_file(spec.storage, read.base_file.path) as reader:
            names = [name for name in spec.schema.names if name in reader.schema.names]
            for batch in reader.batches(names, BATCH_ROWS, may_match=row_group_test(self.plan, read, reader)):
                yield project(batch, spec.schema)
