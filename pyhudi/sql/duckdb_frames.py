"""Scans as DuckDB tables, DuckDB relations as frames of a session, and DuckDB's errors as HudiErrors.

DuckDB reads a scan as an Arrow dataset (`pyhudi/table/dataset.py`). Frames stream, without meta columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pyhudi.display import html_lines, html_table, text_table
from pyhudi.engine.local_frame import ArrowStream
from pyhudi.errors import ConfigError, HudiError, MissingLibrary
from pyhudi.expressions.duckdb import quoted_name
from pyhudi.expressions.functions import KERNELS, MACROS
from pyhudi.model.keys import META_COLUMNS
from pyhudi.result import plain
from pyhudi.sql.session import SqlFrame
from pyhudi.table.dataset import HudiDataset
from pyhudi.table.readable import polars_frame
from pyhudi.table.scan import Scan

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.compute as pc

__all__ = [
    "VIEW_PREFIX",
    "ScanDataset",
    "SqlResult",
    "duckdb_errors",
    "error_text",
    "open_duckdb",
    "relation",
    "shown_columns",
    "stream",
    "without_meta",
]


VIEW_PREFIX = "__hudi_"  # of names that a statement gives rows while it runs
_OWN_NAME = re.compile(rf'"?{VIEW_PREFIX}\d+"?\.?')
_OWN_LINE = re.compile(r"\n+LINE \d+:[^\n]*(?:spark_|__\d+\"|CAST\()[^\n]*(?:\n.*)?$", re.DOTALL)
_SHOWN_ROWS = 20
_MACROS = ";\n".join(f"CREATE MACRO {call} AS {body}" for call, body in MACROS.items())
_BATCH_ROWS = 65_536  # rows of DuckDB's result in memory at once: one batch of a write


def error_text(error: Exception) -> str:
    """DuckDB's error without our internal names, and without the quoted line of a text that we generated."""
    return _OWN_LINE.sub("", _OWN_NAME.sub("", str(error))).strip()


@contextmanager
def duckdb_errors(failures: list[HudiError]) -> Iterator[None]:
    """Turn DuckDB's error into a ConfigError; if reading a table failed, raise its HudiError instead."""
    import duckdb

    failures.clear()
    try:
        yield
    except duckdb.Error as error:
        if failures:
            raise failures[-1] from error
        raise ConfigError(f"DuckDB can't evaluate the statement: {error_text(error)}") from error


def relation(frame: SqlFrame) -> duckdb.DuckDBPyRelation:
    """Convert a frame to a DuckDB relation."""
    return cast("duckdb.DuckDBPyRelation", frame)


def stream(frame: SqlFrame, failures: list[HudiError]) -> pa.RecordBatchReader:
    """Stream the rows of a frame in bounded memory."""
    if isinstance(frame, pa.Table):
        return frame.to_reader()
    with duckdb_errors(failures):
        rows: pa.RecordBatchReader = relation(frame).to_arrow_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(rows.schema, _batches(rows, failures))


def _batches(rows: pa.RecordBatchReader, failures: list[HudiError]) -> Iterator[pa.RecordBatch]:
    with duckdb_errors(failures):
        yield from rows


def without_meta(frame: SqlFrame) -> SqlFrame:
    """Drop Hudi's meta columns from a frame, as every write creates its own."""
    if isinstance(frame, pa.Table):
        return frame
    rows = relation(frame)
    columns = [quoted_name(name) for name in rows.columns if name not in META_COLUMNS]
    return cast("SqlFrame", rows.project(", ".join(columns))) if len(columns) < len(rows.columns) else frame


def shown_columns(names: Sequence[str]) -> list[str]:
    """The columns to show: if a `*` selected all five meta columns of Hudi, they are left out."""
    data = [name for name in names if name not in META_COLUMNS]
    return data if data and set(META_COLUMNS) <= set(names) else list(names)


def _values(rows: pa.Table) -> list[list[object]]:
    """Convert the rows to readable values."""
    return [[_readable(plain(value)) for value in row.values()] for row in rows.to_pylist()]


def _readable(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


@dataclass(frozen=True, slots=True, repr=False)
class SqlResult:
    """The result of a statement. Its rows are computed when the caller takes them; it may have no columns.

    In a terminal or a notebook it shows its first rows.
    """

    _frame: SqlFrame
    _failures: list[HudiError] = field(default_factory=list, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        frame = self._frame
        return tuple(frame.column_names if isinstance(frame, pa.Table) else relation(frame).columns)

    def __repr__(self) -> str:
        return self._text(_SHOWN_ROWS)

    def _repr_html_(self) -> str:
        rows, more = self._first(_SHOWN_ROWS)
        return html_table(rows.column_names, _values(rows)) + (html_lines(more) if more else "")

    def show(self, n: int = _SHOWN_ROWS) -> None:
        """Print the first `n` rows. Hudi's meta columns are left out unless the query names them."""
        print(self._text(n))

    def _text(self, n: int) -> str:
        rows, more = self._first(n)
        if not rows.num_columns:
            return "done"
        return "\n".join([text_table(rows.column_names, _values(rows)), *([more] if more else [])])

    def _first(self, n: int) -> tuple[pa.Table, str]:
        """The first rows as they are shown, and a note on the others."""
        if isinstance(self._frame, pa.Table):
            rows = self._frame.slice(0, n + 1)
        else:
            with duckdb_errors(self._failures):
                rows = relation(self._frame).limit(n + 1).to_arrow_table()
        more = f"and more; these are the first {n:,} rows" if rows.num_rows > n else ""
        return rows.select(shown_columns(rows.column_names)).slice(0, n), more

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory. Take them before the session's next statement."""
        return stream(self._frame, self._failures)

    def to_arrow(self) -> pa.Table:
        """All rows in memory. Raises ConfigError with DuckDB's message if it can't evaluate the statement."""
        if isinstance(self._frame, pa.Table):
            return self._frame
        with duckdb_errors(self._failures):
            rows: pa.Table = relation(self._frame).to_arrow_table()
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame. Raises MissingLibrary."""
        return polars_frame(self.to_arrow)

    df = to_pandas  # DuckDB's relations have this name, too
    pl = to_polars

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows to polars and other libraries."""
        rows: ArrowStream = self.to_batches()
        return rows.__arrow_c_stream__(requested_schema)


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """Open a database in memory. Raises MissingLibrary if DuckDB is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingLibrary(
            'SQL without Spark needs DuckDB, which is not installed: pip install "pyhudi[sql]".'
        ) from error
    # DuckDB would search our functions for variables, not the caller's; `DuckDbSession.query` searches the caller's.
    connection = duckdb.connect(config={"python_enable_replacements": False})
    connection.execute("SET GLOBAL TimeZone = 'UTC'").fetchall()
    for name, kernel in KERNELS.items():
        connection.create_function(name, kernel, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[call-overload]
    connection.execute(_MACROS).fetchall()
    return connection


class ScanDataset(HudiDataset):
    """The rows of a scan in a statement. DuckDB turns read errors into text, so the original error is kept here."""

    def __init__(self, scan: Scan, failures: list[HudiError]) -> None:
        """`failures`: collects the errors of reading."""
        super().__init__(scan)
        self._failures = failures

    def _stream(
        self, columns: Sequence[str] | None, filter: pc.Expression | None, batch_size: int, threads: int
    ) -> pa.RecordBatchReader:
        with self._keep_failures():
            rows = super()._stream(columns, filter, batch_size, threads)
        return pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows))

    def _batches(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._keep_failures():
            yield from rows

    @contextmanager
    def _keep_failures(self) -> Iterator[None]:
        try:
            yield
        except HudiError as error:
            self._failures.append(error)
            raise
