"""`pyhudi query`, `pyhudi head`: rows."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from pyhudi.cli.options import COMMON, SPARKS_CATALOG, CommonOptions, TablePath, pairs_of
from pyhudi.cli.parsing import STANDARD_INPUT
from pyhudi.cli.reply import ArrowRows, Reply
from pyhudi.errors import ConfigError

__all__ = ["head", "query"]


def query(
    sql: str,
    /,
    *,
    table: list[str] | None = None,
    dialect: Literal["spark", "duckdb"] = "spark",
    common: CommonOptions = COMMON,
) -> Reply:
    """Run a statement of SQL and answer with its rows.

    Names are those of --catalog and --table; hudi.`/lake/rides` names a path. DuckDB runs it, which the extra
    `cli` brings for Python 3.11 and newer; with --spark Spark does.

    Args:
        sql: The statement; "-" reads it from standard input.
        table: NAME=PATH: a name for a table. May be given several times.
        dialect: A query means what Spark says, or is refused; "duckdb" says that it is in DuckDB's own words.
    """
    import pyarrow as pa

    from pyhudi.sql.duckdb_frames import shown_columns

    text = sys.stdin.read() if sql == STANDARD_INPUT else sql
    names = pairs_of("--table", table)
    session = common.session()
    if session is not None:
        if dialect != "spark":
            raise ConfigError(f"With --spark a statement is in Spark's words; found --dialect {dialect}.")
        if common.catalog not in (None, SPARKS_CATALOG):
            raise ConfigError(
                f"With --spark the names of a statement are those of the session, and of --table; found "
                f"--catalog {common.catalog}. Give --table NAME=PATH."
            )
        from pyhudi.session.enable import enable
        from pyhudi.spark.arrow_transfer import arrow_of

        enable(session)
        for name, path in names.items():
            session.read.format("hudi").load(path).createOrReplaceTempView(name)
        for key, value in common.options.items():
            session.conf.set(key, value)
        frame = session.sql(text)
        shown = shown_columns(frame.columns)
        frame = frame.select(*(f"`{name}`" for name in shown)) if len(shown) < len(frame.columns) else frame
        return Reply(ArrowRows(frame.columns, arrow_of(frame)))
    if common.catalog == SPARKS_CATALOG or (common.catalog or "").startswith("thrift://"):
        raise ConfigError(
            f"Without --spark the names of a statement are those of a folder, and of --table; found --catalog "
            f"{common.catalog}. Give --table NAME=PATH."
        )
    from pyhudi import DuckDbSession

    duckdb = DuckDbSession(
        names, catalog=common.catalog, options=common.options, storage_options=common.storage_options
    )
    rows = duckdb.sql(text, dialect=dialect).to_batches()
    shown = shown_columns(rows.schema.names)
    if len(shown) < len(rows.schema.names):
        schema = pa.schema([rows.schema.field(name) for name in shown])
        rows = pa.RecordBatchReader.from_batches(schema, (batch.select(shown) for batch in rows))
    return Reply(rows)


def head(
    table: TablePath,
    /,
    *,
    rows: Annotated[int, Parameter(name=["--rows", "--limit", "-n"])] = 10,
    columns: str | None = None,
    where: str | None = None,
    as_of: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """The first rows that come; no more is read than they need.

    Args:
        rows: How many.
        columns: Their names, with commas; the data columns without it.
        where: SQL text that rows must pass.
        as_of: The table at that moment: an instant time, or a date or time.
    """
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    scan = common.open(table).scan(names, where, as_of, meta_columns=False, options=common.options)
    return Reply(scan.head(rows))
