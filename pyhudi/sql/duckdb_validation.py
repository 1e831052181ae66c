"""DuckDB as the engine of validators (`actions/validation.py`): queries of tables in uncommitted states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError
from pyhudi.expressions.duckdb import quoted_name
from pyhudi.sql.duckdb_frames import ScanDataset, duckdb_errors, open_duckdb
from pyhudi.sql.duckdb_text import Part, duckdb_text
from pyhudi.sql.session import TableName
from pyhudi.table.scan import scan_of_state

if TYPE_CHECKING:
    from pyhudi.actions.validation import TableState

__all__ = ["rows"]


def rows(text: str, states: Mapping[str, TableState]) -> pa.Table:
    """Run a query and return its rows. `states`: the tables that it names; it sees no others.

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

            def columns_of(name: TableName | str) -> tuple[str, pa.Schema]:
                quoted = quoted_name(name.parts[-1]) if isinstance(name, TableName) else name
                return quoted, connection.sql(f"FROM {quoted} LIMIT 0").to_arrow_table().schema

            query = duckdb_text(text, (), _no_part, columns_of).text
            result: pa.Table = connection.sql(query).to_arrow_table()
    finally:
        connection.close()
    return result


def _no_part(part: Part) -> str:
    raise ConfigError(f"A validator's query reads <TABLE_NAME>; found {part}.")
