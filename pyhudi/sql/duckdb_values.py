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
_databases: dict[tuple[int, str], duckdb.DuckDBPyConnection] = {}  # by process id (processes fork) and zone
_lock = threading.Lock()


def evaluate(expression: str, rows: pa.Table, zone: str = "UTC") -> pa.ChunkedArray:
    """Evaluate an expression in DuckDB's SQL for these rows. `zone`: that of times without a zone.

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
    """A separate connection of the caller to the database for this zone. Arrow's threads call this, too, and may end at
    any time. If the database ended with one of them, its Python functions would be lost.
    """
    with _lock:
        place = (os.getpid(), zone)
        if place not in _databases:
            database = open_duckdb()
            database.execute("SET GLOBAL TimeZone = '" + zone.replace("'", "") + "'").fetchall()
            # The text may be a constraint of an untrusted table, so it must see only the rows.
            database.execute("SET enable_external_access = false").fetchall()
            database.execute("SET lock_configuration = true").fetchall()
            _databases[place] = database
        return _databases[place].cursor()
