"""`pyhudi export` and `pyhudi report`: a table as files on this machine: rows, instants, a page for the browser."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.errors import ConfigError
from pyhudi.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WrittenFile", "export", "report"]


def export(
    table: TablePath,
    file: str,
    /,
    *,
    columns: str | None = None,
    where: str | None = None,
    as_of: str | None = None,
    instants: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """Write the rows of a table to a Parquet, CSV or Arrow file, or its instants to a folder.

    Rows stream. The file appears when all of them are in it; a file of this name is replaced.

    Args:
        file: The file on this machine: its name ends in .parquet, .csv or .arrow. With --instants a folder.
        columns: Their names, with commas; the data columns without it.
        where: SQL text that rows must pass.
        as_of: The table at that moment: an instant time, or a date or time.
        instants: Write the bodies of completed instants, one JSON file each.
    """
    if instants:
        from pyhudi import call

        Path(file).mkdir(parents=True, exist_ok=True)
        call("export_instants", common.path(table), local_folder=file, limit=-1)
        return Reply(WrittenFile(file))
    opened = common.open(table)
    names = opened.schema.names if columns is None else [name.strip() for name in columns.split(",")]
    rows = opened.scan(names, where, as_of, options=common.options).to_batches()
    temporary = f"{file}.part"
    try:
        _write(rows, temporary, Path(file).suffix.lower())
        os.replace(temporary, file)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return Reply(WrittenFile(file))


def _write(rows: pa.RecordBatchReader, path: str, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    if suffix == ".parquet":
        with pq.ParquetWriter(path, rows.schema, compression="zstd") as parquet:
            for batch in rows:
                parquet.write_batch(batch)
    elif suffix == ".csv":
        with pc.CSVWriter(path, rows.schema) as lines:
            for batch in rows:
                lines.write_batch(batch)
    elif suffix == ".arrow":
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as arrow:
            for batch in rows:
                arrow.write_batch(batch)
    else:
        raise ConfigError(f"export writes .parquet, .csv and .arrow files, found a name that ends in {suffix!r}.")


@dataclass(frozen=True, slots=True, repr=False)
class WrittenFile(Result):
    """A file that a command has written."""

    path: str

    def __str__(self) -> str:
        return self.path


def report(table: TablePath, file: str, /, *, common: CommonOptions = COMMON) -> Reply:
    """Write a page for the browser: timeline, files, health, schema, properties.

    Args:
        file: The HTML file on this machine, which is overwritten.
    """
    written = common.open(table).report(file, options=common.options)
    return Reply(WrittenFile(str(written)))
