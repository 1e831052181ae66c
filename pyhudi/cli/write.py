"""`pyhudi write`: the rows of files, or of standard input, into a table."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["write"]


def write(
    table: TablePath,
    files: Annotated[list[str], Parameter(consume_multiple=True)],
    /,
    *,
    operation: str | None = None,
    mode: str = "append",
    where: str | None = None,
    format: str | None = None,
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering: str | None = None,
    table_type: str | None = None,
    table_name: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """Write the rows of files to a table, which is made when there is none.

    Rows stream, in one commit. Columns of CSV and JSON get the types of the table, where there is one.

    Args:
        files: Parquet, CSV, JSON (an array, or a row a line) or Arrow files; "-" is standard input.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite or insert_overwrite_table.
        mode: append, overwrite, replace, ignore or error, when there is a table.
        where: With --mode overwrite: only these rows are replaced.
        format: parquet, csv, json or arrow; without it what the names of the files say.
        record_key: Key columns of a new table, with commas.
        partition_by: Partition columns of a new table, with commas.
        ordering: The columns whose greater value wins, with commas.
        table_type: Of a new table: COPY_ON_WRITE or MERGE_ON_READ.
        table_name: Of a new table; its folder's name without it.
    """
    from pyhudi import HudiTable, write_hudi
    from pyhudi.cli.files import rows_of_files

    path = common.path(table)
    schema = None
    if HudiTable.exists(path, storage_options=common.storage_options):
        schema = common.open(table).schema
    written = write_hudi(
        path,
        rows_of_files(files, format, schema),
        operation,
        record_key=names_of(record_key),
        partition_by=names_of(partition_by),
        ordering=names_of(ordering),
        table_name=table_name,
        table_type=table_type,
        mode=mode,
        where=where,
        spark=common.session(),
        storage_options=common.storage_options,
        options=common.options,
    )
    return Reply(written, None if written is not None else "there is a table already; nothing was written")


def names_of(text: str | None) -> list[str] | None:
    """Names with commas; None for none."""
    return None if text is None else [name.strip() for name in text.split(",")]
