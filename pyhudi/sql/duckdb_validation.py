"""DuckDB as the engine of validators (`actions/validation.py`): a query of tables in states not committed yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError
from pyhudi.sql.duckdb_frames import ScanDataset, duckdb_errors, open_duckdb
from pyhudi.sql.duckdb_text import Part, duckdb_text
from pyhudi.table.scan import scan_of_state

if TYPE_CHECKING:
    from pyhudi.actions.validation import TableState

__all__ = ["rows"]


def rows(text: str, states: Mapping[str, TableState]) -> pa.Table:
    """The rows of a query. `states`: the tables that it names; it sees nothing besides.

    Raises: ConfigError with DuckDB's message for a query that it can't evaluate; MissingLibrary when it is not
        installed; the errors of reading the table.
    """
    connection, failures = open_duckdb(), list[HudiError]()
    try:
        connection.execute("SET enable_external_access = false").fetchall()
        connection.execute("SET lock_configuration = true").fetchall()
        with duckdb_errors(failures):
            for name, state in states.items():
                connection.register(name, ScanDataset(scan_of_state(state), failures))
            result: pa.Table = connection.sql(duckdb_text(text, (), _no_part).text).to_arrow_table()
    finally:
        connection.close()
    return result


def _no_part(part: Part) -> str:
    raise ConfigError(f"A validator's query reads <TABLE_NAME>; found {part}.")
