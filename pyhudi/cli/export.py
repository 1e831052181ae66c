"""`pyhudi export` and `pyhudi report`: a table elsewhere: rows, instants, a whole copy, a page for the browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.errors import ConfigError
from pyhudi.result import Result

__all__ = ["Exported", "WrittenFile", "export", "report"]


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Result):
    """`items`: how many `kind`: rows, instants, or data files of a copy. `instant_time`, `size_bytes`: of a copy, else
    null.
    """

    path: str
    items: int
    kind: Literal["rows", "instants", "files"]
    instant_time: str | None = None
    size_bytes: int | None = None

    def __str__(self) -> str:
        of_then = "" if self.instant_time is None else f", as of {self.instant_time}"
        return f"{self.path}: {self.items:,} {self.kind}{of_then}"


def export(
    table: TablePath,
    file: str,
    /,
    *,
    columns: str | None = None,
    where: str | None = None,
    as_of: str | None = None,
    instants: bool = False,
    copy: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """Write a table elsewhere: rows to a Parquet, CSV or Arrow file, instants as JSON, or a copy of the table.

    Rows stream. The file appears when all of them are in it; a file of this name is replaced. A copy is a whole table
    for every reader and writer, with the files as they are; nothing older than --as-of can be read in it.

    Args:
        file: The file on this machine: its name ends in .parquet, .csv or .arrow. With --instants a folder; with --copy
            the path or URI of the new table.
        columns: Their names, with commas; the data columns without it.
        where: SQL text that rows must pass.
        as_of: The table at that moment: an instant time, or a date or time.
        instants: Write the bodies of completed instants, one JSON file each.
        copy: Copy the table.
    """
    rows_only = columns is not None or where is not None
    if (instants and copy) or ((instants or copy) and rows_only) or (instants and as_of is not None):
        raise ConfigError(
            "--instants, --copy, and --columns or --where say three things about what goes out; give one of them. "
            "--as-of is not for --instants."
        )
    opened = common.open(table)
    if copy:
        made = opened.maintenance.copy_to(file, as_of, storage_options=common.storage_options)
        return Reply(Exported(made.path, made.files, "files", made.instant_time, made.size_bytes))
    if instants:
        written = opened.inspect.export_instants(file)
    else:
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        written = opened.export(file, names, where, as_of, options=common.options)
    return Reply(Exported(written.path, written.items, written.kind))


@dataclass(frozen=True, slots=True, repr=False)
class WrittenFile(Result):
    """A file that a command has written."""

    path: str

    def __str__(self) -> str:
        return self.path


def report(table: TablePath, file: str, /, *, common: CommonOptions = COMMON) -> Reply:
    """Write a page for the browser: rows, size, last write, health, timeline, files, schema, properties.

    Args:
        file: The HTML file on this machine, which is overwritten.
    """
    written = common.open(table).inspect.report(file, options=common.options)
    return Reply(WrittenFile(str(written)))
