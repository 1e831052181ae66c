"""Options of databases and of queries as sources of the Streamer."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["JdbcOptions", "SqlSourceOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_JDBC = "hoodie.streamer.jdbc."
_SQL = "hoodie.streamer.source.sql."


@dataclass(frozen=True, slots=True)
class JdbcOptions:
    """Options of a database as a source."""

    url: str | None = option(
        f"{_JDBC}url",
        None,
        "The database: jdbc:postgresql://host/db, jdbc:mysql://host/db, jdbc:mariadb://host/db or jdbc:sqlite:path.",
        Kind.TEXT,
        scopes=_STREAM,
        secret=True,
    )
    user: str | None = option(f"{_JDBC}user", None, "The user.", Kind.TEXT, scopes=_STREAM)
    password: str | None = option(
        f"{_JDBC}password", None, "The user's password.", Kind.TEXT, scopes=_STREAM, secret=True
    )
    password_file: str | None = option(
        f"{_JDBC}password.file", None, "A file with the password.", Kind.TEXT, scopes=_STREAM
    )
    table: str | None = option(
        f"{_JDBC}table.name", None, "The table or view that is read, also schema.table.", Kind.TEXT, scopes=_STREAM
    )
    is_incremental: bool = option(
        f"{_JDBC}incr.pull",
        False,
        "Each round reads the rows behind the greatest value of the incrementing column. false: the whole table.",
        scopes=_STREAM,
    )
    column: str | None = option(
        f"{_JDBC}table.incr.column.name",
        None,
        "The incrementing column: a number, a text, a date or a time that grows with each new or changed row.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    falls_back: bool = option(
        f"{_JDBC}incr.fallback.to.full.fetch",
        False,
        "If rows behind the checkpoint can't be read, start over with the first row.",
        scopes=_STREAM,
    )
    lookback: int = option(
        "hoodie.pyhudi.streamer.jdbc.lookback",
        0,
        "Rows that were committed late are looked for so far behind the checkpoint: seconds of times, units of "
        "numbers, days of dates. 0: at the value of the checkpoint itself.",
        minimum=0,
        scopes=_STREAM,
    )
    rows_a_fetch: int = option(
        f"{_JDBC}extra.options.fetchsize",
        10_000,
        "Rows that come from the database at once.",
        minimum=1,
        aliases=(f"{_JDBC}extra.options.fetchSize",),
        scopes=_STREAM,
    )
    first_statement: str | None = option(
        f"{_JDBC}extra.options.sessionInitStatement",
        None,
        "A statement that each connection begins with.",
        Kind.TEXT,
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class SqlSourceOptions:
    """Options of a query over Hudi tables as a source."""

    query: str | None = option(
        f"{_SQL}sql.query", None, "SqlSource: the query, in Spark's words.", Kind.TEXT, scopes=_STREAM
    )
    file: str | None = option(
        f"{_SQL}file", None, "SqlFileBasedSource: a file with statements; the last is the query.", Kind.TEXT,
        scopes=_STREAM,
    )  # fmt: skip
    emits_time: bool = option(
        f"{_SQL}checkpoint.emit",
        False,
        "SqlFileBasedSource: the commit notes the milliseconds of its time as the checkpoint. false: none.",
        scopes=_STREAM,
    )
