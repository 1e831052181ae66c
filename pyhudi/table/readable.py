"""Readable: the rows of a query in the forms of Python's data tools. Its subclasses are HudiTable, TableAt and Scan.

The libraries of these tools are needed for nothing else, so each is imported on use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import tzinfo
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, overload

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from pyhudi.expressions.binding import Where
    from pyhudi.meta_client import MetaClient
    from pyhudi.queries.plan import ReadPlan
    from pyhudi.spark.names import SparkDataFrame, SparkSession
    from pyhudi.storage.base import Storage
    from pyhudi.table.dataset import HudiDataset

__all__ = ["Readable", "SelectedRows", "polars_frame"]


class SelectedRows(Protocol):
    """A query that can be narrowed and run again: a `Scan`."""

    meta: MetaClient
    spark: SparkSession | None
    limit: int | None

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def plan(self) -> ReadPlan: ...

    @property
    def storage(self) -> Storage: ...

    @property
    def zone(self) -> tzinfo: ...

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> SelectedRows: ...

    def first_rows(self, n: int | None) -> SelectedRows: ...

    def read_rows(self, threads: int | None = None) -> pa.RecordBatchReader: ...

    def count_rows(self) -> int: ...

    def to_batches(self) -> pa.RecordBatchReader: ...

    def to_arrow(self) -> pa.Table: ...

    def to_dataset(self) -> HudiDataset: ...

    def count(self) -> int: ...


@checked_methods
class Readable(ABC):
    """Rows that can be read in several forms. `columns`, `where` and `meta_columns` are those of `HudiTable.scan`."""

    __slots__ = ()
    _meta_columns_in_head: ClassVar[bool | None] = False

    @abstractmethod
    def _selected(self, columns: Sequence[str] | None, where: Where, meta_columns: bool | None) -> SelectedRows:
        """The query of these columns and rows. `meta_columns`: None: the default of the subclass."""

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        threads: int | None = None,
    ) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory. `threads`: files that are read at the same time."""
        return self._selected(columns, where, meta_columns).read_rows(threads)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        threads: int | None = None,
    ) -> pa.Table:
        """All rows in memory. `threads`: as for `to_batches`."""
        return self.to_batches(columns, where, meta_columns=meta_columns, threads=threads).read_all()

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """All rows as a pandas DataFrame; `options` go to `pyarrow.Table.to_pandas`. Raises MissingLibrary."""
        if find_spec("pandas") is None:
            raise _missing("to_pandas", "pandas", "pandas")
        return self.to_arrow(columns, where, meta_columns=meta_columns).to_pandas(**options)

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        lazy: Literal[False] = False,
    ) -> pl.DataFrame: ...

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        lazy: Literal[True],
    ) -> pl.LazyFrame: ...

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        lazy: bool = False,
    ) -> pl.DataFrame | pl.LazyFrame:
        """All rows as a polars DataFrame. Raises MissingLibrary.

        Args:   lazy: as a LazyFrame, whose columns, filters and `head` reach the files.
        """
        rows = self._selected(columns, where, meta_columns)
        if not lazy:
            return polars_frame(rows.to_arrow)
        try:
            from pyhudi.table.polars_source import polars_source
        except ImportError as error:
            raise _missing("to_polars", "polars", "polars") from error
        return polars_source(rows)

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, which reads them again for each query.

        Args:   connection: None: DuckDB's own, that of `duckdb.sql`.
        Raises: MissingLibrary.
        """
        try:
            import duckdb
        except ImportError as error:
            raise _missing("to_duckdb", "DuckDB", "'pyhudi[sql]'") from error
        scan = self._selected(columns, where, meta_columns)
        rows = scan.to_dataset() if scan.limit is None else scan.to_arrow()
        if not rows.schema.names:
            raise ConfigError(
                "to_duckdb needs a column, and columns=[] names none. `count()` returns the number of rows."
            )
        return (duckdb if connection is None else connection).from_arrow(rows)

    def to_spark(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
        spark: SparkSession | None = None,
    ) -> SparkDataFrame:
        """The rows as a Spark DataFrame, planned natively by Spark.

        Args:    spark: the session; None: the one that the table was opened with, else the active one.
        Raises:  ConfigError without a session, MissingLibrary.
        """
        if hasattr(columns, "createDataFrame"):
            raise ConfigError("to_spark takes its session by name: to_spark(spark=spark).")
        scan = self._selected(columns, where, meta_columns)
        try:
            from pyhudi.spark.session import active_session

            session = spark or scan.spark or active_session()
        except ImportError as error:
            raise _missing("to_spark", "PySpark", "'pyhudi[spark]'") from error
        if session is None:
            raise ConfigError(
                "to_spark needs a session, and none is active: to_spark(spark=spark), or HudiTable.open(path, "
                "spark=spark)."
            )
        from pyhudi.spark.reader import frame_of_plan

        frame = frame_of_plan(session, scan.meta, scan.plan)
        return frame if scan.limit is None else frame.limit(scan.limit)

    def to_dataset(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool | None = None
    ) -> HudiDataset:
        """The rows as a `pyarrow.dataset.Dataset`, for DuckDB, polars, DataFusion, Ibis and others: they read only the
        columns, partitions, files and row groups that a query needs.

        Raises: ConfigError for a scan with a limit: a query's filter would come before it.
        """
        scan = self._selected(columns, where, meta_columns)
        if scan.limit is not None:
            raise ConfigError("A scan with a limit is no dataset: filters would come before it. Fetch its rows.")
        from pyhudi.table.dataset import HudiDataset  # pyarrow.dataset is loaded only when it is used

        return HudiDataset(scan)

    def head(
        self,
        n: int = 5,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool | None = None,
    ) -> pa.Table:
        """The first `n` rows; usually only one row group of the first file is read. A table shows its data columns, and
        Hudi's with `meta_columns`.
        """
        meta_columns = self._meta_columns_in_head if meta_columns is None else meta_columns
        return self._selected(columns, where, meta_columns).first_rows(n).read_rows(threads=1).read_all()

    def count(self, where: Where = None) -> int:
        """Number of rows.

        It comes from footers if no log files are merged and the filter, if any, has only partition columns. With other
        filters their columns are read, except in row groups that statistics decide.
        """
        return self._selected(None, where, None).count_rows()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, with rows or without: `if table` reads nothing."""
        return True

    def __arrow_c_schema__(self) -> object:
        """Columns and types, by Arrow's C interface."""
        return self._selected(None, None, None).schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows, for pyarrow, polars, DuckDB and others. Only the columns of a requested schema are read."""
        from pyhudi.table.dataset import arrow_stream

        return arrow_stream(self._selected(None, None, None), requested_schema)


def polars_frame(rows: Callable[[], pa.Table]) -> pl.DataFrame:
    """Rows as a polars DataFrame. `rows` is called after polars is imported. Raises MissingLibrary."""
    try:
        import polars
    except ImportError as error:
        raise _missing("to_polars", "polars", "polars") from error
    frame = polars.from_arrow(rows())
    assert isinstance(frame, polars.DataFrame)
    return frame


def _missing(call: str, library: str, package: str) -> MissingLibrary:
    return MissingLibrary(f"{call} needs {library}, which is not installed: pip install {package}.")
