"""The data of callers as Arrow: tables and batches, pandas, Arrow's C stream, lists of dicts.

`ArrowInput` reads nothing without need: a stream stays a stream, and the write reads it once.

`column_of` makes a column of a caller's values. If the column can't hold one of them, the error names the value and a
way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list, plain_type
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local import ArrowStream, in_this_process
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.predicate.limits import brief
from pyhudi.schema.casts import can_cast
from pyhudi.schema.projection import project
from pyhudi.shown_text import is_text, quoted
from pyhudi.storage.base import Storage
from pyhudi.table.calls import session_options

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

    from pyhudi.spark.names import SparkDataFrame, SparkSession, StructType

__all__ = [
    "NO_FIT",
    "ArrowInput",
    "TableInput",
    "WriteInput",
    "arrow_schema",
    "check_frame",
    "column_of",
    "column_refused",
    "input_of",
    "is_spark_frame",
    "to_arrow_rows",
]


NO_FIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
_WRITTEN = {pa.int64(): "int64()", pa.float32(): "float32()", pa.float64(): "float64()", pa.string(): "string()"}


class NamedColumns(Protocol):
    """A DataFrame of pandas or polars, as far as its columns are looked at one by one."""

    @property
    def columns(self) -> Iterable[object]: ...

    def __getitem__(self, name: object) -> object: ...


def column_of(name: object, values: Sequence[object], data_type: pa.DataType | None) -> pa.Array:
    """Python values as a column. `data_type`: of the table's column, None where it has none. Raises SchemaMismatch."""
    if not isinstance(name, str):
        raise SchemaMismatch(f"A row has the key {brief(name)}, which is no text: columns are named by text.")
    try:
        column = pa.array(values, data_type)
    except UnicodeError:
        raise
    except (*NO_FIT, TypeError, ValueError) as error:
        bad = next((value for value in values if not _fits(value, data_type)), None)
        raise _refused(name, bad, data_type, error) from error
    cut = None if data_type is None else next((v for v in values if _loses_digits(v, data_type)), None)
    if cut is not None:
        raise _refused(name, cut, data_type, "digits behind the point would be lost")
    return column


def _fits(value: object, data_type: pa.DataType | None) -> bool:
    try:
        pa.array([value], data_type)
    except (*NO_FIT, TypeError, ValueError):
        return False
    return True


def _loses_digits(value: object, data_type: pa.DataType) -> bool:
    """Is there a fraction where the column has whole numbers? Arrow cuts it."""
    if isinstance(value, float):
        return pt.is_integer(data_type) and not value.is_integer()
    if pt.is_struct(data_type) and isinstance(value, Mapping):
        return any(_loses_digits(value.get(field.name), field.type) for field in data_type.fields)
    if pt.is_map(data_type) and isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(
            _loses_digits(item, data_type.item_type) for _, item in cast("Iterable[tuple[object, object]]", pairs)
        )
    if is_list(data_type) and isinstance(value, list | tuple):
        return any(_loses_digits(inner, data_type.value_type) for inner in value)
    return False


def _refused(name: str, value: object, data_type: pa.DataType | None, reason: object) -> SchemaMismatch:
    example = "" if value is None else f" {brief(value)} (of type {type(value).__name__})"
    if data_type is None:
        what = "has a value that no column can hold:" if value is not None else "has values of several types"
        return SchemaMismatch(
            f"Column {name!r} {what}{example}: {reason}. Give its values one type that Arrow knows. "
            "Nothing was written."
        )
    wider = _wider(data_type, value)
    way = "" if wider is None else f", or let the column hold them: table.alter(ChangeType({name!r}, pa.{wider}))"
    return SchemaMismatch(
        f"Column {name!r} is of type {data_type} and can't hold{example or ' these values'}: {reason}. Convert the "
        f"values{way}. Nothing was written."
    )


def _wider(data_type: pa.DataType, value: object) -> str | None:
    """How the type is written that holds the column's values and this one; None when there is none."""
    if not isinstance(value, int | float | Decimal | str):
        return None
    try:
        value_type = pa.scalar(value).type
    except (*NO_FIT, TypeError, ValueError):
        return None
    if pt.is_decimal(data_type) and pt.is_decimal(value_type):
        scale = max(data_type.scale, value_type.scale)
        precision = max(data_type.precision - data_type.scale, value_type.precision - value_type.scale) + scale
        return f"decimal128({precision}, {scale})" if precision <= 38 else None
    return _WRITTEN.get(value_type) if value_type != data_type and can_cast(data_type, value_type) else None


def check_frame(data: object) -> None:
    """Raises SchemaMismatch for DataFrames with a name twice, and for polars columns of Python objects: Arrow gets the
    addresses of these.
    """
    module = type(data).__module__.partition(".")[0]
    if type(data).__name__ != "DataFrame" or module not in ("pandas", "polars"):
        return
    names = [str(name) for name in cast("NamedColumns", data).columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ()
    if twice:
        raise SchemaMismatch(f"The DataFrame has several columns called {', '.join(twice)}. Rename or drop the others.")
    if module == "polars":
        kinds = cast("Mapping[str, object]", getattr(data, "schema", {}))
        objects = [name for name, kind in kinds.items() if str(kind).startswith("Object")]
        if objects:
            raise SchemaMismatch(
                f"Column {objects[0]!r} is of polars' type Object: Python objects, which no table can hold. Make "
                "texts, numbers or structs of them, or drop the column. Nothing was written."
            )


def column_refused(data: object, error: BaseException, schema: pa.Schema | None) -> SchemaMismatch:
    """The error for data that Arrow does not take, with the column at fault where it can be told."""
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
    """Each column by its name, and what makes an Arrow column of it."""
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


# Rows in the caller's form; `to_arrow_rows` describes their conversion.
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
        """The columns, which are checked. `table`: None for a new one. Raises HudiError."""
        ...

    def rows(self, options: WriteOptions, keys: Iterable[str]) -> tuple[Frame, Engine]:
        """The rows as a frame, and the engine that it is for. `keys`: of the options that the caller gave."""
        ...

    def check_outlives(self, storage: Storage, rows: Frame) -> None:
        """Raise ConfigError when deleting the table would take rows away that have not been read yet."""
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

    def rows(self, options: WriteOptions, keys: Iterable[str]) -> tuple[Frame, Engine]:
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
    """A column without values has no type in pandas and Arrow; it gets the table's."""
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


def _from_dicts(rows: Sequence[Mapping[str, object]], schema: pa.Schema | None) -> pa.Table:
    """Columns in the order of their first appearance, with the table's types where it has them."""
    if not rows and schema is not None:
        return schema.empty_table()
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        is_table_column = schema is not None and is_text(name) and schema.get_field_index(name) >= 0
        data_type = schema.field(name).type if schema is not None and is_table_column else None
        columns.append(column_of(name, [row.get(name) for row in rows], data_type))
    return pa.Table.from_arrays(columns, names=names)


def _name(data: object) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def input_of(data: TableInput, spark: SparkSession | None) -> WriteInput:
    """Data of a caller, as a write takes it."""
    if not is_spark_frame(data):
        return ArrowInput(data, session_options(spark))
    from pyhudi.spark.frame_input import FrameInput  # pyspark is loaded only when it is used

    return FrameInput(data)


def arrow_schema(schema: pa.Schema | StructType) -> pa.Schema:
    """Columns of a new table, from the caller's schema. Raises ConfigError for other values."""
    if isinstance(schema, pa.Schema):
        return schema
    if type(schema).__module__.startswith("pyspark"):
        from pyhudi.spark.types import arrow_from_spark

        return arrow_from_spark(schema)
    raise ConfigError(f"The schema is of type {type(schema).__name__}; give a pyarrow.Schema or a Spark StructType.")
