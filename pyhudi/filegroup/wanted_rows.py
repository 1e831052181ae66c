"""WantedValues: a reader that wants rows of a few keys only, and what a base file need not be read for then.

The column of keys first, in the parts of the file whose statistics may have them; then the other columns, in the parts
that do. Source: docs/architecture.md, "How a slice is read".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.base import BaseFileReader
from pyhudi.formats.base.ranges import Ranges
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

    def among(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that may be wanted."""
        at = rows.schema.get_field_index(self.column)
        if at < 0 or rows.schema.field(at).type != self.kind:
            return rows
        return rows.filter(pc.is_in(rows.column(at), value_set=_sought((*self.values, None), self.kind)))

    def batches(self, base: BaseFileReader, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the file with these values, and perhaps a few others, in its order; only where `is_told_by` says
        so.
        """
        wanted = In(Column((self.column,)), self.values)
        found = base.rows_having(self.column, _sought(self.values, self.kind), partial(_may_match, wanted))
        return base.rows_at(columns, found) if len(found) else iter(())


@lru_cache(maxsize=4)
def _sought(values: tuple[Value | None, ...], kind: pa.DataType) -> pa.Array:
    """The same array for all files of a query."""
    return pa.array(values, kind)


def _may_match(wanted: Predicate, ranges: Ranges) -> bool:
    """Row groups have ranges of columns, and none of functions of them."""
    return may_match(wanted, lambda operand: ranges(operand) if isinstance(operand, Column) else None)
