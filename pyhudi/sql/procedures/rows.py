"""The rows that procedures make, and the table that they become."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError

__all__ = ["Row", "Rows", "rows_as_table"]

Row: TypeAlias = tuple[object, ...]
Rows: TypeAlias = Iterable[Row]

# Rows of one answer: so many file slices or write stats fit into some 100 MB of Python objects. `limit` takes fewer.
MAX_PROCEDURE_ROWS = 1_000_000


def rows_as_table(columns: pa.Schema, rows: Rows) -> pa.Table:
    """Rows as a table of these columns. Raises ConfigError for more than MAX_PROCEDURE_ROWS."""
    found = list(islice(rows, MAX_PROCEDURE_ROWS + 1))
    if len(found) > MAX_PROCEDURE_ROWS:
        raise ConfigError(f"The answer has more than {MAX_PROCEDURE_ROWS:,} rows; give a limit.")
    values = list(zip(*found, strict=True)) or [() for _ in columns]
    return pa.table([pa.array(value, field.type) for value, field in zip(values, columns, strict=True)], schema=columns)
