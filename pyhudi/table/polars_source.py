"""A scan as a source of polars: its columns, filters and `head` reach the files.

polars passes a source the columns that a query needs, its filter, and the number of rows that suffice. The filter is
parsed from its JSON form. Unknown parts are not pushed down, so that the scan returns more rows; polars applies its own
filter to all of them.

The number of rows applies before the filter: `frame.head(10).filter(...)`. If both are set, only the number is
pushed down.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from polars import DataFrame, Expr, from_arrow
from polars.io.plugins import register_io_source

from pyhudi.errors import ConfigError
from pyhudi.expressions.foreign import polars_predicate

if TYPE_CHECKING:
    from polars import LazyFrame

    from pyhudi.expressions.binding import Where
    from pyhudi.expressions.predicates import Predicate

__all__ = ["LazyRows", "polars_source"]


class LazyRows(Protocol):
    """A query that can be narrowed: a `Scan`."""

    @property
    def schema(self) -> pa.Schema: ...

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> LazyRows: ...

    def first_rows(self, n: int | None) -> LazyRows: ...

    def to_batches(self) -> pa.RecordBatchReader: ...


def polars_source(scan: LazyRows) -> LazyFrame:
    """`Scan.to_polars(lazy=True)`."""
    return register_io_source(_Source(scan), schema=_frame(scan.schema.empty_table()).schema)


@dataclass(frozen=True)
class _Source:
    """The function that polars calls for the rows of a query."""

    scan: LazyRows

    def __call__(
        self, with_columns: list[str] | None, predicate: Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[DataFrame]:
        condition = None if predicate is None or n_rows is not None else _condition(predicate, self.scan.schema)
        scan = self.scan
        if with_columns is not None or condition is not None:
            try:
                scan = self.scan.narrowed(with_columns, condition)
            except ConfigError:  # polars compares types that PyHudi's filters do not
                scan = self.scan.narrowed(with_columns)
        for batch in scan.first_rows(n_rows).to_batches():
            frame = _frame(pa.Table.from_batches([batch]))
            yield frame if predicate is None else frame.filter(predicate)


def _frame(rows: pa.Table) -> DataFrame:
    frame = from_arrow(rows)
    assert isinstance(frame, DataFrame)
    return frame


def _condition(predicate: Expr, schema: pa.Schema) -> Predicate | None:
    """A condition that every row fulfils which passes the filter. None: no part of the filter is known."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # filters that polars can't write as JSON, such as Python functions
        return None
    kinds = {field.name: field.type for field in schema}
    return polars_predicate(tree, lambda column: kinds.get(column.path[0]))
