"""Parquet files of the archived timeline from table version 8 on: one row per instant.

    instantTime | completionTime | action     text
    metadata                                  the completed file's bytes
    plan                                      the bytes of the plan, for actions that have one
    version                                   1

GZIP, no dictionaries, and only Hudi's two footer keys. Source: docs/formats/history.md, "Merge tree".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.formats.damage import FOREIGN_ERRORS
from pyhudi.formats.parquet.footer import ParquetFooter, Place, read_footer
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.storage.base import Storage, as_storage_error

__all__ = [
    "HISTORY_SCHEMA",
    "TIME_COLUMNS",
    "RowGroup",
    "read_history_file",
    "row_groups_of",
    "write_history_file",
]

_ROW_GROUP_ROWS = 10_000  # at a few kB of metadata per instant; a reader of a time range skips the other groups
_FIRST_TIME, _LAST_TIME = "", "9" * 24
TIME_COLUMNS = ("instantTime", "completionTime", "action")

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


def write_history_file(storage: Storage, path: str, tables: Iterable[pa.Table]) -> int:
    """Write rows of HISTORY_SCHEMA, one table after the other; return the file's size in bytes."""
    footer = {"parquet.avro.schema": body_schema("HoodieLSMTimelineInstant"), "writer.model.name": "avro"}
    with as_storage_error(storage.full_path(path)), storage.open_output(path) as sink:
        with pq.ParquetWriter(
            sink, HISTORY_SCHEMA, version="1.0", compression="gzip", compression_level=1, use_dictionary=False,
            store_schema=False,
        ) as writer:  # fmt: skip
            for table in tables:
                writer.write_table(table.cast(HISTORY_SCHEMA), row_group_size=_ROW_GROUP_ROWS)
            writer.add_key_value_metadata(footer)
        return int(sink.tell())


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A part of a file that can be read alone. `first`, `last`: its smallest and greatest instant time.
    `last_completion`: its greatest completion time.
    """

    number: int
    first: str
    last: str
    last_completion: str


def row_groups_of(
    storage: Storage, path: str, since: str | None = None, until: str | None = None
) -> tuple[RowGroup, ...]:
    """Return the row groups that may hold instant times in [since, until]; only the footer is read.

    Raises CorruptFile, PathNotFound.
    """
    with storage.open_input(path) as source:
        where = f"{storage.root}/{path}"
        groups = _row_groups(_open(source, where)[1], where)
        return tuple(g for g in groups if (until is None or g.first <= until) and (since is None or g.last >= since))


def read_history_file(
    storage: Storage,
    path: str,
    columns: Sequence[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    row_groups: Sequence[int] | None = None,
    completed_after: str | None = None,
) -> pa.Table:
    """Read rows whose instant time lies in [since, until]; row groups out of range are not read.

    Args:    columns: names of HISTORY_SCHEMA, `instantTime` among them; None: all of them. row_groups: only these.
             completed_after: row groups that were complete by then are not read, either.
    Raises:  CorruptFile, PathNotFound.
    """
    where = f"{storage.root}/{path}"
    names = HISTORY_SCHEMA.names if columns is None else list(columns)
    schema = pa.schema([HISTORY_SCHEMA.field(name) for name in names])
    with storage.open_input(path) as source:
        file, footer = _open(source, where)
        if row_groups is None:
            groups = _row_groups(footer, where)
            row_groups = [
                g.number
                for g in groups
                if (until is None or g.first <= until)
                and (since is None or g.last >= since)
                and (completed_after is None or g.last_completion > completed_after)
            ]
        try:
            table = file.read_row_groups(list(row_groups), columns=names, use_threads=False).select(names).cast(schema)
            table.validate(full=True)  # its texts may not be UTF-8
        except FOREIGN_ERRORS as error:
            raise _corrupt(where, error) from error
    return _within(table, since, until)


def _open(source: pa.NativeFile, where: str) -> tuple[pq.ParquetFile, ParquetFooter]:
    try:
        footer = read_footer(source)
        file = pq.ParquetFile(source, metadata=footer.metadata)
    except FOREIGN_ERRORS as error:
        raise _corrupt(where, error) from error
    missing = set(TIME_COLUMNS) - set(file.schema_arrow.names)
    if missing:
        raise CorruptFile(
            f"{where}: expected a file of archived instants, found no column {', '.join(sorted(missing))}."
        )
    return file, footer


def _row_groups(footer: ParquetFooter, where: str) -> tuple[RowGroup, ...]:
    metadata = footer.metadata
    try:
        unreadable = footer.unreadable_chunks
        return tuple(_row_group(metadata, number, unreadable) for number in range(metadata.num_row_groups))
    except FOREIGN_ERRORS as error:
        raise _corrupt(where, error) from error


def _row_group(metadata: pq.FileMetaData, number: int, unreadable: Container[Place]) -> RowGroup:
    """Return a row group by the statistics of its times; without them it may hold any time."""
    row_group = metadata.row_group(number)
    ranges = dict[str, tuple[str, str]]()
    for place in range(row_group.num_columns):
        if (number, place) in unreadable:
            continue
        column = row_group.column(place)
        if column.path_in_schema in ("instantTime", "completionTime"):
            statistics = column.statistics
            if statistics is not None and statistics.has_min_max:
                ranges[column.path_in_schema] = str(statistics.min), str(statistics.max)
    first, last = ranges.get("instantTime", (_FIRST_TIME, _LAST_TIME))
    return RowGroup(number, first, last, ranges.get("completionTime", (_FIRST_TIME, _LAST_TIME))[1])


def _within(table: pa.Table, since: str | None, until: str | None) -> pa.Table:
    times = table.column("instantTime")
    if since is not None:
        table = table.filter(pc.greater_equal(times, since))
        times = table.column("instantTime")
    return table if until is None else table.filter(pc.less_equal(times, until))


def _corrupt(where: str, error: Exception) -> CorruptFile:
    return CorruptFile(
        f"{where}: the file of archived instants can't be read ({error}). The table itself can be; only its history "
        f"from this file is lost. Restore the file from a backup."
    )
