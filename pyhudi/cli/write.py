"""`pyhudi write`, `bootstrap` and `import`: rows of files and of tables of others into a table."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.parsing import STANDARD_INPUT
from pyhudi.cli.reply import Reply

__all__ = ["bootstrap", "import_table", "write"]


def write(
    table: TablePath,
    files: Annotated[list[str], Parameter(consume_multiple=True)],
    /,
    *,
    operation: str | None = None,
    mode: str = "append",
    where: str | None = None,
    format: str | None = None,
    encoding: str = "utf-8",
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering: str | None = None,
    table_type: str | None = None,
    table_name: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """Write the rows of files to a table, which is made when there is none.

    All rows go into one commit. Columns of CSV and JSON get the types of the table, where there is one; otherwise all
    rows decide. In CSV an empty field is null and "" an empty text. Texts of JSON stay texts in a new table.

    Args:
        files: Parquet, CSV, JSON (an array, or a row a line) or Arrow files; "-" is standard input.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite or insert_overwrite_table.
        mode: append, overwrite, replace, ignore or error, when there is a table.
        where: With --mode overwrite: only these rows are replaced.
        format: parquet, csv, json or arrow; without it what the names of the files say.
        encoding: Of CSV and JSON: utf-8, latin-1, cp1252 and so on.
        record_key: Key columns of a new table, with commas.
        partition_by: Partition columns of a new table, with commas.
        ordering: The columns whose greater value wins, with commas.
        table_type: Of a new table: COPY_ON_WRITE or MERGE_ON_READ.
        table_name: Of a new table; its folder's name without it.
    """
    from pyhudi import write_hudi
    from pyhudi.table.row_files import RowFiles

    given = [sys.stdin.buffer if file == STANDARD_INPUT else file for file in files]
    written = write_hudi(
        common.path(table),
        RowFiles.of(given, format, encoding),
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


def bootstrap(
    source: str,
    table: TablePath,
    /,
    *,
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering: str | None = None,
    mode: str | None = None,
    regex: str | None = None,
    table_type: str | None = None,
    table_name: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """Make a table of a folder of Parquet or ORC files, by default without copying them.

    Args:
        source: The folder. It must stay as it is while the table uses its files.
        record_key: Key columns, with commas; METADATA_ONLY needs them.
        partition_by: Partition columns, with commas; without it those that folders name (city=rome).
        ordering: The columns whose greater value wins, with commas.
        mode: METADATA_ONLY leaves rows in the source; FULL_RECORD copies them.
        regex: The mode is for partitions whose whole path matches; others have the other mode.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        table_name: Its folder's name without it.
    """
    import pyhudi

    written = pyhudi.bootstrap(
        source,
        common.path(table),
        record_key=names_of(record_key),
        partition_by=names_of(partition_by),
        ordering=names_of(ordering),
        mode=mode,
        regex=regex,
        table_type=table_type,
        table_name=table_name,
        storage_options=common.storage_options,
        options=common.options,
    )
    return Reply(written)


def import_table(
    kind: str,
    source: str,
    table: TablePath,
    /,
    *,
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering: str | None = None,
    table_type: str | None = None,
    table_name: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """Copy the current snapshot of an Iceberg or Delta table into a new table, in one commit.

    It needs the extra `iceberg` or `delta`.

    Args:
        kind: iceberg or delta.
        source: The folder of the other table; for Iceberg also a metadata.json.
        record_key: Key columns, with commas; generated keys without it.
        partition_by: Partition columns, with commas; those of the source without it.
        ordering: The columns whose greater value wins, with commas.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        table_name: Its folder's name without it.
    """
    import pyhudi

    written = pyhudi.import_table(
        source,
        common.path(table),
        kind,
        record_key=names_of(record_key),
        partition_by=names_of(partition_by),
        ordering=names_of(ordering),
        table_type=table_type,
        table_name=table_name,
        storage_options=common.storage_options,
        options=common.options,
    )
    return Reply(written)
