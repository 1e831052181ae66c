"""Commands that read and write rows: queries, files, tables of other formats."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyhudi.cli.options import SPARKS_CATALOG, Common
from pyhudi.cli.reply import JsonColumns, Reply
from pyhudi.errors import ConfigError
from pyhudi.result import Result

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

_STANDARD_INPUT = ("-", "/dev/stdin")


def query(
    common: Common, sql: str, tables: dict[str, str] | None = None, dialect: Literal["spark", "duckdb"] = "spark"
) -> Reply:
    """The rows of a statement, by the session of `--spark`, or by DuckDB. Raises ConfigError for other catalogs.

    The meta columns are left out unless the statement names them.
    """
    from pyhudi import DuckDbSession
    from pyhudi.sql.duckdb_frames import shown_columns

    text = sys.stdin.read() if sql in _STANDARD_INPUT else sql
    session = common.session()
    if session is not None:
        if dialect != "spark":
            raise ConfigError(f"With --spark a statement is in Spark's SQL; found --dialect {dialect}.")
        return _query_spark(common, session, text, tables or {})
    if common.catalog == SPARKS_CATALOG or (common.catalog or "").startswith("thrift://"):
        raise ConfigError(
            f"Without --spark the names in a statement come from a folder and from --table; found --catalog "
            f"{common.catalog}. Give --table NAME=PATH."
        )
    rows = (
        DuckDbSession(tables or {}, catalog=common.catalog, **common.settings).sql(text, dialect=dialect).to_batches()
    )
    names = rows.schema.names
    shown = shown_columns(names)
    batches = (batch.select(shown) for batch in rows) if len(shown) < len(names) else rows
    return Reply(JsonColumns.of_arrow(shown, batches))


def _query_spark(common: Common, session: SparkSession, text: str, tables: dict[str, str]) -> Reply:
    from pyhudi.session.enable import enable
    from pyhudi.spark.arrow_transfer import arrow_of
    from pyhudi.sql.duckdb_frames import shown_columns

    if common.catalog not in (None, SPARKS_CATALOG):
        raise ConfigError(
            f"With --spark the names in a statement come from the session and from --table; found "
            f"--catalog {common.catalog}. Give --table NAME=PATH."
        )
    enable(session)
    for name, path in tables.items():
        session.read.format("hudi").load(path).createOrReplaceTempView(name)
    for key, value in common.options.items():
        session.conf.set(key, value)
    frame = session.sql(text)
    shown = shown_columns(frame.columns)
    frame = frame.select(*(f"`{name}`" for name in shown)) if len(shown) < len(frame.columns) else frame
    return Reply(JsonColumns.of_arrow(frame.columns, arrow_of(frame)))


def head(
    common: Common,
    table: str,
    rows: int = 10,
    columns: list[str] | None = None,
    where: str | None = None,
    as_of: str | None = None,
) -> Reply:
    """The data columns of the first rows, by a scan, which takes Hudi's options."""
    shown = common.open(table).scan(columns, where, as_of, meta_columns=False, options=common.options).head(rows)
    return Reply(JsonColumns.of_arrow(shown.schema.names, shown.to_batches()))


def write(
    common: Common, table: str, files: list[str], format: str | None = None, encoding: str = "utf-8", **more: Any
) -> Reply:
    """Write the rows of files. `more`: arguments of write_hudi."""
    from pyhudi import write_hudi
    from pyhudi.table.row_files import RowFiles

    rows = RowFiles.of([sys.stdin.buffer if one in _STANDARD_INPUT else one for one in files], format, encoding)
    written = write_hudi(common.path(table), rows, **more, spark=common.session(), **common.settings)
    return Reply(written, None if written is not None else "the table exists already; nothing was written")


def bootstrap(common: Common, source: str, table: str, **more: Any) -> Reply:
    """Bootstrap a table. `more`: arguments of pyhudi.bootstrap."""
    import pyhudi

    return Reply(pyhudi.bootstrap(source, common.path(table), **more, **common.settings))


def import_table(common: Common, kind: str, source: str, table: str, **more: Any) -> Reply:
    """Import a table. `more`: arguments of pyhudi.import_table."""
    import pyhudi

    return Reply(pyhudi.import_table(source, common.path(table), kind, **more, **common.settings))


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Result):
    """`items`: the number of items of the `kind`: rows, instants, or data files of a copy. `instant_time`,
    `size_bytes`: of a copy, else null.
    """

    path: str
    items: int
    kind: Literal["rows", "instants", "files"]
    instant_time: str | None = None
    size_bytes: int | None = None

    def __str__(self) -> str:
        as_of = "" if self.instant_time is None else f", as of {self.instant_time}"
        return f"{self.path}: {self.items:,} {self.kind}{as_of}"


def export(
    common: Common,
    table: str,
    file: str,
    columns: list[str] | None = None,
    where: str | None = None,
    as_of: str | None = None,
    instants: bool = False,
    copy: bool = False,
) -> Reply:
    """Export rows, instants or the table. Raises ConfigError for two of them."""
    rows_only = columns is not None or where is not None
    if (instants and copy) or ((instants or copy) and rows_only) or (instants and as_of is not None):
        raise ConfigError(
            "--instants, --copy, and --columns or --where exclude each other; give one of them. "
            "--as-of does not apply to --instants."
        )
    hudi_table = common.open(table)
    if copy:
        table_copy = hudi_table.maintenance.copy_to(file, as_of, storage_options=common.storage_options)
        return Reply(
            Exported(table_copy.path, table_copy.files, "files", table_copy.instant_time, table_copy.size_bytes)
        )
    if instants:
        written = hudi_table.inspect.export_instants(file)
    else:
        written = hudi_table.export(file, columns, where, as_of, options=common.options)
    return Reply(Exported(written.path, written.items, written.kind))


@dataclass(frozen=True, slots=True, repr=False)
class WrittenFile(Result):
    """A file that a command has written."""

    path: str

    def __str__(self) -> str:
        return self.path


def report(common: Common, table: str, file: str) -> Reply:
    """Write the page; the answer is its path."""
    return Reply(WrittenFile(str(common.open(table).inspect.report(file, options=common.options))))
