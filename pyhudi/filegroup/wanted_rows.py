"""WantedValues: a reader that wants rows of a few keys only, and what a base file need not be read for then.

The column of keys first, in the parts of the file whose statistics may have them; then the other columns, in the parts
that do. Source: docs/architecture.md, "How a slice is read".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.base import BATCH_ROWS, BaseFileReader
from pyhudi.formats.base.statistics import Ranges
from pyhudi.model.predicate import Column, In, Predicate, may_match
from pyhudi.model.predicate.tree import Value

__all__ = ["WantedValues"]


@dataclass(frozen=True, slots=True)
class WantedValues:
    """Only rows with these values of the table's key field. All versions of a record have the same, so that a base row
    with another need not meet the log records. `kind`: the column's type in the table.
    """

    column: str
    values: tuple[Value, ...]
    kind: pa.DataType

    def is_told_by(self, base: BaseFileReader) -> bool:
        """Does the file have the column as the table has it? Otherwise all of its rows have to be read."""
        at = base.schema.get_field_index(self.column)
        return at >= 0 and bool(base.schema.field(at).type == self.kind)

    def batches(
        self, base: BaseFileReader, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the file with these values, in its order; only where `is_told_by` says so."""
        wanted = In(Column((self.column,)), self.values)
        numbers = [np.zeros(0, np.int64)]
        values = pa.array(self.values, self.kind)
        for first, batch in base.numbered_batches([self.column], batch_rows, partial(_may_match, wanted)):
            hits = pc.is_in(batch.column(0), value_set=values)
            numbers.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + first)
        found = np.concatenate(numbers)
        return base.rows_at(columns, found) if len(found) else iter(())


def _may_match(wanted: Predicate, ranges: Ranges) -> bool:
    """Row groups have ranges of columns, and none of functions of them."""
    return may_match(wanted, lambda operand: ranges(operand) if isinstance(operand, Column) else None)
