"""Hudi's table functions, as functions of a table and arguments.

    hudi_query(t, 'read_optimized')                   hudi_query_timeline(t[, archived])
    hudi_table_changes(t, 'cdc', begin[, end])        hudi_metadata(t)
                                                      hudi_filesystem_view(t[, glob])
Source: Apache Hudi 1.2.0, table-valued functions of its Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant, State
from pyhudi.model.options.queries import BEGIN, END
from pyhudi.sql.procedures.files import log_sizes, matches, view_with_replaced
from pyhudi.sql.procedures.history import CommitRow
from pyhudi.sql.tokens import Constant
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.listing import instant_path
from pyhudi.view.consistent_read import read_consistently

if TYPE_CHECKING:
    from pyhudi.table import HudiTable
    from pyhudi.table.scan import Scan

__all__ = ["TABLE_FUNCTIONS", "file_system_view", "metadata_records", "query_timeline", "rows_of_function"]

TABLE_FUNCTIONS = ("hudi_query", "hudi_table_changes", "hudi_query_timeline", "hudi_metadata", "hudi_filesystem_view")

_TIMELINE = pa.schema(
    [
        *((name, pa.string()) for name in ("Timestamp", "Action", "State", "Completion_Time", "File_Name")),
        ("Total_Bytes_Written", pa.int64()),
        ("Total_Files_Updated", pa.int64()),
        ("Total_Partitions_Written", pa.int64()),
        ("Total_Records_Written", pa.int64()),
        ("Total_Updated_Records_Written", pa.int64()),
        ("Total_Write_Errors", pa.int64()),
    ]
)
_NO_WRITE = (-1,) * 6  # the totals of a completed instant that writes no rows
_UNKNOWN = (0,) * 6  # the totals of a pending instant, and of an archived instant that writes no rows
_VIEW = pa.schema(
    [
        *((name, pa.string()) for name in ("File_ID", "Partition_Path", "Base_Instant_Time", "Base_File_Path")),
        *((name, pa.int64()) for name in ("Base_File_Size", "Log_File_Count", "Log_File_Size")),
        *((name, pa.int64()) for name in ("Log_File_Scheduled", "Log_File_Unscheduled")),
    ]
)
# The columns of a metadata record, in Hudi's order; a partition has some of them.
_RECORD = (
    "key",
    "type",
    "filesystemMetadata",
    "BloomFilterMetadata",
    "ColumnStatsMetadata",
    "recordIndexMetadata",
    "SecondaryIndexMetadata",
)


def rows_of_function(
    function: str, arguments: Sequence[Constant], table_of: Callable[[str], HudiTable]
) -> Scan | pa.Table:
    """The rows of a call: a scan of the table, or a table with metadata.

    Args:   table_of: finds the table that the first argument names, by name or path.
    Raises: ConfigError for wrong arguments.
    """
    if not arguments or not isinstance(arguments[0], str):
        raise ConfigError(f"{function} takes a table's name or path as its first argument.")
    texts = [str(argument) for argument in arguments[1:]]
    _check(function, texts)
    table = table_of(arguments[0])
    if function == "hudi_query":
        return table.scan(query_type=texts[0])
    if function == "hudi_table_changes":
        times = dict(zip((BEGIN, END), texts[1:], strict=False))
        return table.changes(format=texts[0], options=times)
    if function == "hudi_query_timeline":
        return query_timeline(table, archived=bool(texts) and texts[0].lower() == "true")
    if function == "hudi_filesystem_view":
        return file_system_view(table, texts[0] if texts else "*")
    return metadata_records(table)


# Function → the number of arguments that may follow the table.
_FOLLOWING = {
    "hudi_query": (1, 1),
    "hudi_table_changes": (2, 3),
    "hudi_query_timeline": (0, 1),
    "hudi_metadata": (0, 0),
    "hudi_filesystem_view": (0, 1),
}


def _check(function: str, texts: Sequence[str]) -> None:
    if function not in _FOLLOWING:
        raise ConfigError(f"Unknown table function {function!r:.100}; there are {', '.join(TABLE_FUNCTIONS)}.")
    least, most = _FOLLOWING[function]
    if not least <= len(texts) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise ConfigError(f"{function} takes {count} arguments behind the table, found {len(texts)}.")
    if function == "hudi_query_timeline" and texts and texts[0].lower() not in ("true", "false"):
        raise ConfigError(
            f"{function} takes 'true' for archived instants as well, or 'false'; found {texts[0]!r:.100}."
        )


def query_timeline(table: HudiTable, *, archived: bool = False) -> pa.Table:
    """`hudi_query_timeline`: the instants, with the totals of commits. `archived`: including archived instants."""
    meta = table.state()
    rows = [_instant_row(meta, instant) for instant in meta.timeline]
    if archived:
        active = set(meta.timeline.instants)
        for entry in load_archived_timeline(meta.storage, meta.config).instants():
            if entry.instant not in active:
                body = entry.commit() if entry.instant.action.is_commit else None
                rows.append(_row(meta, entry.instant, _UNKNOWN if body is None else _totals(entry.instant, body)))
    columns = zip(*sorted(rows, key=lambda row: str(row[0])), strict=True) if rows else [[] for _ in _TIMELINE]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, _TIMELINE, strict=True)]
    return pa.table(arrays, schema=_TIMELINE)


def _instant_row(meta: MetaClient, instant: Instant) -> tuple[object, ...]:
    is_write = instant.is_completed and instant.action.is_commit
    none = _NO_WRITE if instant.is_completed else _UNKNOWN
    return _row(meta, instant, _totals(instant, meta.commits.metadata(instant)) if is_write else none)


def _row(meta: MetaClient, instant: Instant, totals: tuple[int, ...]) -> tuple[object, ...]:
    name = instant_path(instant, meta.config).rpartition("/")[2]
    completed = instant.completion_time if instant.state is State.COMPLETED else None
    head = (instant.requested_time, instant.action.value, instant.state.name, completed, name)
    return (*head, *totals)


def _totals(instant: Instant, body: CommitMetadata) -> tuple[int, ...]:
    row = CommitRow.of(instant, body)
    return row.bytes_written, row.files_updated, row.partitions, row.rows_written, row.rows_updated, row.errors


def metadata_records(table: HudiTable) -> pa.Table:
    """`hudi_metadata`: the live records of all partitions of the metadata table.

    Raises: ConfigError when the table has none, CorruptFile.
    """
    metadata = table.metadata
    if not metadata.partitions:
        raise ConfigError(f"{table.path} has no metadata table. CALL create_metadata_table makes one.")
    parts = [metadata.partition(name).to_arrow() for name in metadata.partitions]
    types = {field.name: field.type for part in parts for field in part.schema}
    schema = pa.schema([(name, types[name]) for name in _RECORD if name in types])
    return pa.concat_tables([_with_columns(part, schema) for part in parts])


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    column_names = set(rows.schema.names)
    columns = [
        rows.column(field.name) if field.name in column_names else pa.nulls(len(rows), field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)


def file_system_view(table: HudiTable, pattern: str = "*") -> pa.Table:
    """`hudi_filesystem_view`: all slices of all file groups in partitions whose paths match a pattern."""
    rows = list(_slices(table, pattern))
    columns = zip(*rows, strict=True) if rows else [[] for _ in _VIEW]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, _VIEW, strict=True)]
    return pa.table(arrays, schema=_VIEW)


def _slices(table: HudiTable, pattern: str) -> Iterator[tuple[object, ...]]:
    meta = table.state()
    view = read_consistently(meta, view_with_replaced)
    for path, groups in view.groups.items():
        if not matches(path, pattern):
            continue
        for group in groups:
            for file_slice in group.slices:
                base = file_slice.base_file
                scheduled, unscheduled = log_sizes(file_slice)
                yield (
                    file_slice.group.file_id,
                    path,
                    file_slice.base_instant,
                    meta.storage.full_path(base.path) if base is not None else "",
                    base.size_bytes if base is not None else 0,
                    len(file_slice.log_files),
                    scheduled + unscheduled,
                    scheduled,
                    unscheduled,
                )
