"""RowFilter: the rows of batches that a plan's filter keeps, made once for all batches of a file.

A list of values of one column is one look into a hash table; all else is an Arrow expression, whose evaluation takes
longer to begin than such a look takes for thousands of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.model.predicate import Column, Compare, Constant, In, Predicate
from pyhudi.queries.filters import resolve_operand, to_arrow
from pyhudi.queries.value_lists import list_values

__all__ = ["RowFilter"]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filters batches of one schema: rows with one of the `values` in `column`, where there are such, else those for
    which `expression` is true; all rows without either.
    """

    expression: pc.Expression | None = None
    column: str = ""
    values: pa.Array | None = None

    @classmethod
    def of(cls, predicate: Predicate, schema: pa.Schema) -> RowFilter:
        """Args: predicate: bound to the schema."""
        if predicate == Constant(True):
            return cls()
        match predicate:
            case In(Column((name,)), values):
                kind = resolve_operand(Column((name,)), schema)[1]
                if not pa.types.is_floating(kind):  # of those not-a-number is looked for, too
                    return cls(column=name, values=list_values(values, kind))
            case Compare(Column((name,)), "=", value):
                kind = resolve_operand(Column((name,)), schema)[1]
                if pa.types.is_string(kind) or pa.types.is_integer(kind):
                    return cls(column=name, values=list_values((value,), kind))
        return cls(to_arrow(predicate, schema))

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that pass. Raises ConfigError."""
        if self.values is not None:
            return rows.filter(pc.is_in(rows.column(self.column), value_set=self.values))
        if self.expression is None:
            return rows
        try:
            kept = pa.Table.from_batches([rows]).filter(self.expression).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ConfigError(f"where can't be evaluated on the table's columns: {error}.") from error
        batches = kept.to_batches()
        return batches[0] if batches else rows.slice(0, 0)
