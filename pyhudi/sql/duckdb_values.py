"""DuckDB as the engine of SQL values (`expressions/engines.py`): one expression over Arrow rows, in their order."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.duckdb_frames import error_text, open_duckdb
from pyhudi.table.dataset import whole_batches

if TYPE_CHECKING:
    import duckdb

__all__ = ["evaluate"]

_ROWS = "__hudi_rows"
_NO_COLUMN = "__hudi_none"
_databases: dict[tuple[int, str], duckdb.DuckDBPyConnection] = {}  # by process, as one may fork, and zone
_lock = threading.Lock()


def evaluate(expression: str, rows: pa.Table, zone: str = "UTC") -> pa.ChunkedArray:
    """The values of an expression in DuckDB's words for these rows. `zone`: that of times which name none.

    Raises: ConfigError with DuckDB's message for an expression that it can't evaluate; MissingLibrary when it is not
        installed.
    """
    connection = _connection(zone)
    import duckdb

    if not rows.column_names:  # DuckDB takes no rows without a column
        rows = pa.table([pa.nulls(rows.num_rows)], [_NO_COLUMN])
    connection.register(_ROWS, pa.Table.from_batches(whole_batches(rows.to_batches()), rows.schema))
    try:
        values: pa.ChunkedArray = (
            connection.sql(f"SELECT {expression} AS value FROM {_ROWS}").to_arrow_table().column(0)
        )
    except duckdb.Error as error:
        raise ConfigError(error_text(error)) from error
    finally:
        connection.unregister(_ROWS)
    return values


def _connection(zone: str) -> duckdb.DuckDBPyConnection:
    """A connection of the caller's own to the database for this zone. Arrow's threads call too, and threads of theirs
    end whenever they like: a database that ends with one of them would take its functions in Python along.
    """
    with _lock:
        place = (os.getpid(), zone)
        if place not in _databases:
            opened = open_duckdb()
            opened.execute("SET GLOBAL TimeZone = '" + zone.replace("'", "") + "'").fetchall()
            # The text may be a constraint in a table of somebody else's: it sees the rows and nothing besides.
            opened.execute("SET enable_external_access = false").fetchall()
            opened.execute("SET lock_configuration = true").fetchall()
            _databases[place] = opened
        return _databases[place].cursor()
