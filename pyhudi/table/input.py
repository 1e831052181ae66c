"""The data of callers as Arrow: tables and batches, pandas, polars, Arrow's C stream, dicts, functions, files.

`ArrowInput` reads only what it needs: a stream remains a stream, and the write reads it once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import plain_type
from pyhudi.engine.base import Engine, Frame, frame_and_engine
from pyhudi.engine.local import in_this_process
from pyhudi.engine.local_frame import ArrowStream, ReopenedRows
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.redaction import quoted
from pyhudi.schema.projection import project
from pyhudi.table.calls import session_options
from pyhudi.table.column_values import NO_FIT, from_columns, from_dicts, type_in
from pyhudi.table.row_files import RowFiles

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

    from pyhudi.spark.names import SparkDataFrame, SparkSession, StructType

__all__ = [
    "ArrowInput",
    "TableInput",
    "WriteInput",
    "arrow_schema",
    "check_frame",
    "choose_writer",
    "column_refused",
    "input_of",
    "is_spark_frame",
    "rows_to_write",
    "to_arrow_rows",
]


class NamedColumns(Protocol):
    """A DataFrame of pandas or polars, for checks of its single columns."""

    @property
    def columns(self) -> Iterable[object]: ...

    def __getitem__(self, name: object) -> object: ...


def check_frame(data: object) -> None:
    """Raise SchemaMismatch for DataFrames with a name twice, and for polars columns of Python objects, of which Arrow
    would get the addresses.
    """
    module = type(data).__module__.partition(".")[0]
    if type(data).__name__ != "DataFrame" or module not in ("pandas", "polars"):
        return
    names = [str(name) for name in cast("NamedColumns", data).columns]
    duplicates = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ()
    if duplicates:
        raise SchemaMismatch(
            f"The DataFrame has several columns called {', '.join(duplicates)}. Rename or drop the others."
        )
    if module == "polars":
        kinds = cast("Mapping[str, object]", getattr(data, "schema", {}))
        objects = [name for name, kind in kinds.items() if str(kind).startswith("Object")]
        if objects:
            raise SchemaMismatch(
                f"Column {objects[0]!r} is of polars' type Object: Python objects, which no table can hold. Make "
                "texts, numbers or structs of them, or drop the column. Nothing was written."
            )
        wide = [name for name, kind in kinds.items() if str(kind) in ("Int128", "UInt128")]
        if wide:
            raise SchemaMismatch(
                f"Column {wide[0]!r} is of polars' type {kinds[wide[0]]}, which no table can hold: cast it to pl.Int64 "
                "or pl.Decimal(38, 0). Nothing was written."
            )


def column_refused(data: object, error: BaseException, schema: pa.Schema | None) -> SchemaMismatch:
    """The error for data that Arrow refuses, with the column at fault if it can be determined."""
    for name, convert in _columns(data):
        try:
            convert()
        except (*NO_FIT, TypeError, ValueError) as own:
            at = -1 if schema is None else schema.get_field_index(name)
            holds = "" if schema is None or at < 0 else f", and the table's is of type {schema.field(at).type}"
            return SchemaMismatch(
                f"Column {name!r} of the data ({type(data).__module__}.{type(data).__qualname__}) can't be a column "
                f"of one type{holds}: {own.args[0] if own.args else own}. Cast it. Nothing was written."
            )
    return SchemaMismatch(f"The data has a column without one Arrow type: {error}. Give each column one type.")


def _columns(data: object) -> Iterable[tuple[str, Callable[[], object]]]:
    """Each column's name, and a function that converts it to Arrow."""
    if type(data).__name__ != "DataFrame":
        return
    frame, is_pandas = cast("NamedColumns", data), type(data).__module__.startswith("pandas")
    for name in frame.columns:
        column = frame[name]
        if is_pandas:
            yield str(name), lambda column=column: pa.Array.from_pandas(column)  # type: ignore[misc]
        elif hasattr(column, "to_frame"):
            yield str(name), lambda column=column: pa.RecordBatchReader.from_stream(column.to_frame())  # type: ignore[misc]


class ArrowArray(Protocol):
    """A batch of rows by Arrow's C interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


# Rows in the caller's form; `to_arrow_rows` describes their conversion. A dict of lists whose types differ is a dict of
# `object` to mypy.
TableInput: TypeAlias = (
    "pa.Table | pa.RecordBatch | pa.RecordBatchReader | ds.Dataset | ds.Scanner | pd.DataFrame | SparkDataFrame | "
    "pl.LazyFrame | ArrowStream | ArrowArray | Sequence[Mapping[str, object]] | Mapping[str, object] | "
    "Sequence[ArrowStream | ArrowArray] | Iterator[ArrowStream | ArrowArray] | Callable[[], object] | RowFiles"
)
ArrowRows: TypeAlias = "pa.Table | pa.RecordBatchReader | ReopenedRows"
_REREADABLE = frozenset({"polars", "duckdb", "ibis", "pyhudi"})  # of types with __arrow_c_stream__


class WriteInput(Protocol):
    """The rows of a write, wherever they are."""

    @property
    def session_options(self) -> Mapping[str, str]:
        """Hudi's options of the session; options of the call override them."""
        ...

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        """The columns, which are checked. `table`: None for a new one. Raises HudiError."""
        ...

    def fetched(self, options: WriteOptions, keys: Iterable[str]) -> ArrowRows | SparkDataFrame:
        """The rows in this process; a DataFrame with too many of them is returned unchanged. `keys`: of the caller's
        options.
        """
        ...


@dataclass
class ArrowInput:
    """Rows that are Arrow, or become it here.

    `data`: as for `to_arrow_rows`. `key_columns`: the key columns in the options of the write.
    """

    data: TableInput
    session_options: Mapping[str, str]
    key_columns: frozenset[str] = frozenset()
    _rows: ArrowRows | None = field(default=None, init=False)

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        self._rows = rows_to_write(self.data, None if table is None else self._schema(table), self.key_columns)
        return tuple(self._rows.schema.names)

    def fetched(self, options: WriteOptions, keys: Iterable[str]) -> ArrowRows:
        return rows_to_write(self.data) if self._rows is None else self._rows

    def _schema(self, table: MetaClient) -> pa.Schema:
        """The table's columns. For files, including the partition columns that the table's own files leave out: text
        there would get another type.
        """
        if not isinstance(self.data, RowFiles):
            return table.table_schema()
        from pyhudi.table.reports import data_schema

        return data_schema(table)


def is_spark_frame(data: object) -> TypeGuard[SparkDataFrame]:
    """True for a Spark DataFrame, classic or Connect, by its type's name, without importing pyspark."""
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def rows_to_write(data: TableInput, schema: pa.Schema | None = None, key_columns: Collection[str] = ()) -> ArrowRows:
    """Rows as from `to_arrow_rows`. A source that can be read repeatedly is read again for every attempt.

    Such sources are datasets, polars, DuckDB, Ibis, tables and scans of PyHudi, and functions.
    """
    rows = to_arrow_rows(data, schema, key_columns)
    if isinstance(rows, pa.Table) or not _can_be_asked_again(data):
        return rows
    first_rows = [rows]

    def stream() -> pa.RecordBatchReader:
        again = first_rows.pop() if first_rows else to_arrow_rows(data, schema, key_columns)
        return again.to_reader() if isinstance(again, pa.Table) else again

    return ReopenedRows(rows.schema, stream)


def _can_be_asked_again(data: object) -> bool:
    return (
        callable(data)
        or _library(data) in _REREADABLE
        or (type(data).__module__.startswith("pyarrow._dataset") and not hasattr(data, "to_reader"))
    )


def _library(data: object) -> str:
    return type(data).__module__.partition(".")[0].lstrip("_")


def to_arrow_rows(
    data: TableInput, schema: pa.Schema | None = None, key_columns: Collection[str] = ()
) -> pa.Table | pa.RecordBatchReader:
    """Rows as a table (in memory already) or a reader (a stream, to be read once).

    Args:
        data: pyarrow Table, RecordBatch, RecordBatchReader or Dataset; pandas DataFrame; polars DataFrame or LazyFrame;
            an object with `__arrow_c_stream__` (DuckDB, Ibis) or `__arrow_c_array__`; a list of dicts, a dict of lists;
            a list or an iterator of batches; a function without arguments that returns one of these.
        schema: the table's columns: they type a list of dicts, and columns that hold only nulls.
        key_columns: additional columns of the table. A pandas index with the name of a column becomes one; others are
            left out.
    Raises: ConfigError for other data; SchemaMismatch for a column without a single type, or not of the table's type.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return _with_typed_nulls(_plain(data, schema), schema)
    if isinstance(data, pa.RecordBatch):
        return _with_typed_nulls(_plain(pa.Table.from_batches([data]), schema), schema)
    try:
        names = {*key_columns, *(() if schema is None else schema.names)}
        return _with_typed_nulls(_plain(_converted(data, schema, names), schema), schema)
    except NO_FIT as error:
        raise column_refused(data, error, schema) from error
    except (UnicodeError, RecursionError) as error:
        raise ConfigError(
            f"The data ({_name(data)}) has a name or a value that no file can hold: {quoted(str(error))}. Nothing was "
            "written."
        ) from error


def _converted(data: object, schema: pa.Schema | None, names: Collection[str]) -> pa.Table | pa.RecordBatchReader:
    if isinstance(data, RowFiles):
        return data.read(schema)
    module = type(data).__module__.partition(".")[0]
    if type(data).__name__ == "Series" or isinstance(data, pa.Array | pa.ChunkedArray):
        conversion = "series.to_frame()" if hasattr(data, "to_frame") else "pyarrow.table({'name': array})"
        raise ConfigError(f"{_name(data)} is one column, and rows have several: {conversion}. Nothing was written.")
    if isinstance(data, str | bytes | os.PathLike):
        raise ConfigError(
            f"The data is {data!r:.100}, not rows. Parquet files are added by table.maintenance.add_files(path), "
            "for a new table by pyhudi.bootstrap; other files are read first, by pyarrow.csv.read_csv or pandas. "
            "Nothing was written."
        )
    check_frame(data)
    if module == "pandas" and type(data).__name__ == "DataFrame":
        frame = _with_index(cast("pd.DataFrame", data), names)
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if module == "polars" and type(data).__name__ == "LazyFrame":
        data = cast("pl.LazyFrame", data).collect()
        check_frame(data)
    if type(data).__module__.startswith("pyarrow._dataset"):
        scanner = data if hasattr(data, "to_reader") else cast("ds.Dataset", data).scanner()
        return cast("ds.Scanner", scanner).to_reader()
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(cast("ArrowStream", data))
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(cast("ArrowArray", data))])
    if isinstance(data, Mapping):
        return from_columns(data, schema)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        if all(isinstance(row, Mapping) for row in data):
            return from_dicts(data, schema)
        if all(hasattr(part, "__arrow_c_stream__") or hasattr(part, "__arrow_c_array__") for part in data):
            return pa.concat_tables([pa.table(part) for part in data])
    elif isinstance(data, Iterator):
        return _from_batches(data)
    elif callable(data):
        return _converted(data(), schema, names)
    raise ConfigError(
        f"Data of type {_name(data)} can't be read. Give a Spark DataFrame, a pyarrow Table, RecordBatchReader or "
        "Dataset, a pandas or polars frame, an object with __arrow_c_stream__ (DuckDB, Ibis), a list of dicts, a dict "
        "of lists, an iterator of batches, or a function that returns one of these."
    )


def _with_index(frame: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """A pandas frame with those levels of its index as columns that are columns of the table or the write."""
    levels = [name for name in frame.index.names if name in names and name not in frame.columns]
    return frame.reset_index(level=levels) if levels else frame


def _from_batches(parts: Iterator[object]) -> pa.RecordBatchReader:
    """Batches, or tables, one after the other as a stream; the first one decides the columns."""
    first = next(parts, None)
    if first is None:
        raise ConfigError("The iterator of batches has none, so it names no columns. Nothing was written.")

    def tables() -> Iterator[pa.Table]:
        for part in itertools.chain([first], parts):
            if not (hasattr(part, "__arrow_c_stream__") or hasattr(part, "__arrow_c_array__")):
                raise ConfigError(
                    f"The iterator gives {_name(part)}; it may give batches and tables of Arrow only. Rows as dicts go "
                    "into a list. Nothing was written."
                )
            yield pa.table(cast("ArrowStream", part))

    rows = tables()
    table = next(rows)
    batches = (batch for part in itertools.chain([table], rows) for batch in part.cast(table.schema).to_batches())
    return pa.RecordBatchReader.from_batches(table.schema, batches)


def _plain(data: pa.Table | pa.RecordBatchReader, schema: pa.Schema | None) -> pa.Table | pa.RecordBatchReader:
    """The rows in forms that kernels support: views, runs and dictionaries of views (polars) become their values.

    Avro has no unsigned integers of 64 bits: they become decimals of 20 digits, as Spark reads them from Parquet, or
    signed integers if the table's column has these; a value that is too large for them is refused as it is read.
    """
    plain = pa.schema([field.with_type(_signed(field, schema)) for field in data.schema])
    if plain.equals(data.schema):
        return data
    if isinstance(data, pa.Table):
        return project(_with_signed(data, plain), plain)
    return pa.RecordBatchReader.from_batches(plain, (project(_with_signed(batch, plain), plain) for batch in data))


Batch = TypeVar("Batch", pa.Table, pa.RecordBatch)


def _with_signed(rows: Batch, plain: pa.Schema) -> Batch:
    """The rows with their unsigned columns in the types of `plain`. Raises SchemaMismatch for values too large."""
    for at, (column, target) in enumerate(zip(rows.schema, plain, strict=True)):
        if pt.is_uint64(column.type):
            try:
                rows = rows.set_column(at, target, rows.column(at).cast(target.type))
            except pa.ArrowInvalid as error:
                raise SchemaMismatch(
                    f"Column {column.name!r} is of type {target.type} and can't hold a number of type uint64: {error}. "
                    "Nothing was written."
                ) from error
    return rows


def _signed(field: pa.Field, schema: pa.Schema | None) -> pa.DataType:
    plain = plain_type(field.type)
    if not pt.is_uint64(plain):
        return plain
    return pa.int64() if type_in(schema, field.name) == pa.int64() else pa.decimal128(20, 0)


def _with_typed_nulls(
    data: pa.Table | pa.RecordBatchReader, schema: pa.Schema | None
) -> pa.Table | pa.RecordBatchReader:
    """Give columns without values, which have no type in pandas and Arrow, the table's type."""
    table_columns = set() if schema is None else set(schema.names)
    untyped = [field.name for field in data.schema if pa.types.is_null(field.type) and field.name in table_columns]
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


def _name(data: object) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def input_of(data: TableInput, spark: SparkSession | None, key_columns: frozenset[str] = frozenset()) -> WriteInput:
    """A caller's data as input of a write. `key_columns`: names of pandas index levels that become columns."""
    if not is_spark_frame(data):
        return ArrowInput(data, session_options(spark), key_columns)
    from pyhudi.spark.frame_input import FrameInput  # pyspark is loaded only when it is used

    return FrameInput(data)


def choose_writer(source: WriteInput, options: WriteOptions, keys: Iterable[str]) -> tuple[Frame, Engine]:
    """Choose the writer: this process for its own rows and those of a small DataFrame, Spark for a large one.

    Args:    keys: of the caller's options.
    Returns: the rows as a frame, and its engine.
    """
    rows = source.fetched(options, keys)
    if not is_spark_frame(rows):
        return in_this_process(cast("ArrowRows", rows))
    from pyhudi.spark.engine import SparkEngine  # pyspark is loaded only when it is used

    return frame_and_engine(rows, SparkEngine(rows.sparkSession))


def arrow_schema(schema: pa.Schema | StructType) -> pa.Schema:
    """Columns of a new table, from the caller's schema. Raises ConfigError for other values."""
    if isinstance(schema, pa.Schema):
        return schema
    if type(schema).__module__.startswith("pyspark"):
        from pyhudi.spark.types import arrow_from_spark

        return arrow_from_spark(schema)
    raise ConfigError(f"The schema is of type {type(schema).__name__}; give a pyarrow.Schema or a Spark StructType.")
