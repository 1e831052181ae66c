"""DuckDB as the engine of SQL values (`queries/sql_values.py`): one expression over Arrow rows, in their order."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.duckdb_frames import open_duckdb
from pyhudi.sql.duckdb_text import duckdb_text
from pyhudi.table.dataset import whole_batches

if TYPE_CHECKING:
    import duckdb

    from pyhudi.sql.duckdb_text import Part

__all__ = ["evaluate"]

_ROWS = "__hudi_rows"
_NO_COLUMN = "__hudi_none"
_local = threading.local()


def evaluate(text: str, rows: pa.Table, zone: str = "UTC") -> pa.ChunkedArray:
    """The values of a Spark expression for these rows. `zone`: that of times which name none.

    Raises: ConfigError with DuckDB's message for an expression that it can't evaluate; MissingLibrary when it is not
        installed.
    """
    connection = _connection(zone)
    import duckdb

    if not rows.column_names:  # DuckDB takes no rows without a column
        rows = pa.table([pa.nulls(rows.num_rows)], [_NO_COLUMN])
    connection.register(_ROWS, pa.Table.from_batches(whole_batches(rows.to_batches()), rows.schema))
    try:
        values: pa.ChunkedArray = connection.sql(_query(text)).to_arrow_table().column(0)
    except duckdb.Error as error:
        raise ConfigError(f"DuckDB can't evaluate {text!r:.200}: {error}") from error
    finally:
        connection.unregister(_ROWS)
    return values


@lru_cache(maxsize=100)
def _query(text: str) -> str:
    return duckdb_text(f"SELECT {text}\n AS value FROM {_ROWS}", (), _no_part).text


def _no_part(part: Part) -> str:
    raise ConfigError(f"A value is an expression of one row's columns; found the table {part}.")


def _connection(zone: str) -> duckdb.DuckDBPyConnection:
    """A database of the thread's own, for this zone."""
    by_zone: dict[str, duckdb.DuckDBPyConnection] = _local.__dict__.setdefault("by_zone", {})
    if zone not in by_zone:
        opened = open_duckdb()
        opened.execute("SET TimeZone = '" + zone.replace("'", "") + "'").fetchall()
        # The text may be a constraint in a table of somebody else's: it sees the rows and nothing besides.
        opened.execute("SET enable_external_access = false").fetchall()
        opened.execute("SET lock_configuration = true").fetchall()
        by_zone[zone] = opened
    return by_zone[zone]
