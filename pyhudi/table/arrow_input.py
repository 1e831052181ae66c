"""What callers hand in as data, as Arrow: tables and batches, pandas, whatever speaks Arrow's C stream, lists of dicts.

Nothing is read here that need not be: a stream stays a stream, and is read once, by the write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, cast

import pyarrow as pa

from pyhudi.arrow.kinds import plain_type
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local import ArrowStream, in_this_process
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.schema.projection import project
from pyhudi.shown_text import is_text, quoted
from pyhudi.storage.base import Storage
from pyhudi.table.column_values import NO_FIT, check_frame, column_of, column_refused

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

    from pyhudi.spark.names import SparkDataFrame

__all__ = ["ArrowInput", "TableInput", "WriteInput", "is_spark_frame", "to_arrow_rows"]


class ArrowArray(Protocol):
    """A batch of rows by Arrow's C interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


# Rows as callers have them; what they become here is said at `to_arrow_rows`.
TableInput: TypeAlias = (
    "pa.Table | pa.RecordBatch | pa.RecordBatchReader | ds.Dataset | ds.Scanner | pd.DataFrame | SparkDataFrame | "
    "ArrowStream | ArrowArray | Sequence[Mapping[str, object]]"
)


class WriteInput(Protocol):
    """The rows of a write, wherever they are."""

    @property
    def session_options(self) -> Mapping[str, str]:
        """Hudi's options of the session, which come after those of the call."""
        ...

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        """The columns, which are checked. `table`: None for a new one. Raises errors of the family."""
        ...

    def rows(self, options: WriteOptions, given: Iterable[str]) -> tuple[Frame, Engine]:
        """The rows as a frame, and the engine that it is for. `given`: keys of the options that the caller gave."""
        ...

    def check_outlives(self, storage: Storage, rows: Frame) -> None:
        """Raises ConfigError when deleting the table would take rows away that have not been read yet."""
        ...


@dataclass
class ArrowInput:
    """Rows that are Arrow, or become it here. `data`: what `to_arrow_rows` takes."""

    data: TableInput
    session_options: Mapping[str, str]
    _rows: pa.Table | pa.RecordBatchReader | None = field(default=None, init=False)

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        self._rows = to_arrow_rows(self.data, None if table is None else table.table_schema())
        return tuple(self._rows.schema.names)

    def rows(self, options: WriteOptions, given: Iterable[str]) -> tuple[Frame, Engine]:
        rows = to_arrow_rows(self.data) if self._rows is None else self._rows
        return in_this_process(rows)

    def check_outlives(self, storage: Storage, rows: Frame) -> None:
        """A stream that reads from the table's files can't be told from another."""


def is_spark_frame(data: object) -> TypeGuard[SparkDataFrame]:
    """True for a Spark DataFrame, classic or Connect, told by its type's name: pyspark need not be there."""
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def to_arrow_rows(data: TableInput, schema: pa.Schema | None = None) -> pa.Table | pa.RecordBatchReader:
    """Rows as a table (in memory already) or a reader (a stream, to be read once).

    Args:
        data: pyarrow Table, RecordBatch, RecordBatchReader or Dataset; pandas DataFrame (its index is left out); an
            object with `__arrow_c_stream__` (polars, DuckDB) or `__arrow_c_array__`; a list of dicts.
        schema: the table's columns: they type a list of dicts, and columns that hold nothing but nulls.
    Raises: ConfigError for anything else; SchemaMismatch for a column that has no one type, or not the table's.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return _with_typed_nulls(_plain(data), schema)
    if isinstance(data, pa.RecordBatch):
        return _with_typed_nulls(_plain(pa.Table.from_batches([data])), schema)
    try:
        return _with_typed_nulls(_plain(_converted(data, schema)), schema)
    except NO_FIT as error:
        raise column_refused(data, error, schema) from error
    except (UnicodeError, RecursionError) as error:
        raise ConfigError(
            f"The data ({_name(data)}) has a name or a value that no file can hold: {quoted(str(error))}. Nothing was "
            "written."
        ) from error


def _converted(data: object, schema: pa.Schema | None) -> pa.Table | pa.RecordBatchReader:
    module = type(data).__module__.partition(".")[0]
    check_frame(data)
    if module == "pandas" and type(data).__name__ == "DataFrame":
        return pa.Table.from_pandas(cast("pd.DataFrame", data), preserve_index=False).replace_schema_metadata(None)
    if type(data).__module__.startswith("pyarrow._dataset"):
        scanner = data if hasattr(data, "to_reader") else cast("ds.Dataset", data).scanner()
        return cast("ds.Scanner", scanner).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(cast("ArrowStream", data))
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(cast("ArrowArray", data))])
    if isinstance(data, Sequence) and not isinstance(data, str | bytes) and all(isinstance(r, Mapping) for r in data):
        return _from_dicts(data, schema)
    raise ConfigError(
        f"Data of type {_name(data)} can't be read. Give a Spark DataFrame, a pyarrow Table or RecordBatchReader, a "
        "pandas DataFrame, an object with __arrow_c_stream__ (polars, DuckDB), or a list of dicts."
    )


def _plain(data: pa.Table | pa.RecordBatchReader) -> pa.Table | pa.RecordBatchReader:
    """The same rows in forms that kernels take: views, runs and dictionaries of views (polars) become their values."""
    plain = pa.schema([field.with_type(plain_type(field.type)) for field in data.schema])
    if plain.equals(data.schema):
        return data
    if isinstance(data, pa.Table):
        return project(data, plain)
    return pa.RecordBatchReader.from_batches(plain, (project(batch, plain) for batch in data))


def _with_typed_nulls(
    data: pa.Table | pa.RecordBatchReader, schema: pa.Schema | None
) -> pa.Table | pa.RecordBatchReader:
    """A column without a value has no type of its own in pandas and Arrow; it gets the table's."""
    known = set() if schema is None else set(schema.names)
    untyped = [field.name for field in data.schema if pa.types.is_null(field.type) and field.name in known]
    if schema is None or not untyped:
        return data
    typed = pa.schema([schema.field(field.name) if field.name in untyped else field for field in data.schema])

    def filled(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            pa.nulls(len(batch), field.type) if field.name in untyped else column
            for field, column in zip(typed, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=typed)

    if isinstance(data, pa.Table):
        return pa.Table.from_batches(map(filled, data.to_batches()), typed)
    return pa.RecordBatchReader.from_batches(typed, map(filled, data))


def _from_dicts(rows: Sequence[Mapping[str, object]], schema: pa.Schema | None) -> pa.Table:
    """Columns in the order of their first appearance, with the table's types where it has them."""
    if not rows and schema is not None:
        return schema.empty_table()
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        known = schema is not None and is_text(name) and schema.get_field_index(name) >= 0
        data_type = schema.field(name).type if schema is not None and known else None
        columns.append(column_of(name, [row.get(name) for row in rows], data_type))
    return pa.Table.from_arrays(columns, names=names)


def _name(data: object) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"
