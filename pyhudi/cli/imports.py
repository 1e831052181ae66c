"""`pyhudi bootstrap` and `pyhudi import`: tables of files and tables that others made."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.cli.write import names_of

__all__ = ["bootstrap", "import_table"]


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
