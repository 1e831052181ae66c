"""DuckDB's relations as the frames of a session: as streams, without meta columns, with their errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError
from pyhudi.model.keys import META_COLUMNS
from pyhudi.sql.duckdb_text import quoted_name
from pyhudi.sql.session import SqlFrame, TableName

if TYPE_CHECKING:
    import duckdb

__all__ = ["duckdb_errors", "names_in", "relation", "stream", "without_meta"]

_BATCH_ROWS = 65_536  # rows of DuckDB's answer that are in memory at once: what a write takes as one batch


@contextmanager
def duckdb_errors(failures: list[HudiError]) -> Iterator[None]:
    """DuckDB's error inside ours; one of ours, which reading a table noted, as itself."""
    import duckdb

    failures.clear()
    try:
        yield
    except duckdb.Error as error:
        if failures:
            raise failures[-1] from error
        raise ConfigError(f"DuckDB can't evaluate the statement: {error}") from error


def relation(frame: SqlFrame) -> duckdb.DuckDBPyRelation:
    """A frame as what it is in this session."""
    return cast("duckdb.DuckDBPyRelation", frame)


def stream(frame: SqlFrame, failures: list[HudiError]) -> pa.RecordBatchReader:
    """The rows of a frame, in bounded memory."""
    if isinstance(frame, pa.Table):
        return frame.to_reader()
    with duckdb_errors(failures):
        rows: pa.RecordBatchReader = relation(frame).to_arrow_reader(_BATCH_ROWS)
    return rows


def without_meta(frame: SqlFrame) -> SqlFrame:
    """A frame without Hudi's meta columns, which every write makes anew."""
    if isinstance(frame, pa.Table):
        return frame
    rows = relation(frame)
    kept = [quoted_name(name) for name in rows.columns if name not in META_COLUMNS]
    return cast("SqlFrame", rows.project(", ".join(kept))) if len(kept) < len(rows.columns) else frame


def names_in(tree: object) -> Iterator[TableName]:
    """The tables of a query that DuckDB parsed."""
    if isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE":
            parts = (tree.get("catalog_name"), tree.get("schema_name"), tree["table_name"])
            yield TableName(tuple(part for part in parts if part))
        for value in tree.values():
            yield from names_in(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from names_in(value)
