"""Column statistics of files: of one that is there, and of a log file that is being written.

A base file has a row for each indexed column that it has. A log file has one for each indexed column of the table, of
the rows in its data blocks: of deletes nobody knows more than the key, so a log file of deletes alone has rows without
values. Source: docs/formats/metadata-table.md, "Statistics".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pyarrow as pa

from pyhudi.formats.base import Footer, open_base_file
from pyhudi.formats.column_stats import RangesOfRows, stats_rows
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import scan_log
from pyhudi.model.filenames import LogFileName
from pyhudi.model.keys import META_COLUMNS
from pyhudi.storage.base import Storage

__all__ = ["LogStats", "bloom_filters_of_files", "side_by_side", "stats_of_file", "stats_of_files"]

Read = TypeVar("Read")
_FILES_AT_ONCE = 8  # footers wait for the store; of files with floats or long texts a batch each is in memory


def stats_of_file(
    storage: Storage, path: str, columns: Sequence[str], table_version: int, schema: pa.Schema
) -> pa.Table:
    """The statistics of a base or log file, read from itself.

    Args:    columns: the indexed ones; schema: the data columns of the table, as files store them.
    Returns: columns as `stats_schema` has them.
    Raises:  CorruptFile, PathNotFound, UnsupportedTable.
    """
    name = path.rpartition("/")[2]
    if LogFileName.parse(name) is None:
        with open_base_file(storage, path) as reader:
            return stats_rows(table_version, name, reader.ranges(columns))
    stats = LogStats(columns, schema)
    wanted = {column.partition(".")[0] for column in columns} | set(columns)
    for block in scan_log(storage, path):
        if isinstance(block, CorruptRange) or not block.is_data:
            continue  # whoever reads its rows says what is missing
        stats.add(block.rows(wanted))
    return stats.rows(table_version, name)


def stats_of_files(
    storage: Storage, paths: Iterable[str], columns: Sequence[str], table_version: int, schema: pa.Schema
) -> Iterator[tuple[str, pa.Table]]:
    """Path and statistics of each file, in the order of the paths; some files are read side by side, and no more
    statistics than theirs wait in memory. See `stats_of_file`.
    """
    read = partial(stats_of_file, storage, columns=columns, table_version=table_version, schema=schema)
    yield from side_by_side(paths, read)


def bloom_filters_of_files(storage: Storage, paths: Iterable[str]) -> Iterator[tuple[str, Footer]]:
    """Path and footer of each base file, which has its bloom filter; otherwise as `stats_of_files`."""
    yield from side_by_side(paths, partial(_footer, storage))


def _footer(storage: Storage, path: str) -> Footer:
    with open_base_file(storage, path) as reader:
        return reader.footer


def side_by_side(paths: Iterable[str], read: Callable[[str], Read]) -> Iterator[tuple[str, Read]]:
    """Path and what was read of each file, in the order of the paths; some are read at the same time."""
    waiting: deque[tuple[str, Future[Read]]] = deque()
    with ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="hudi-stats") as pool:
        try:
            for path in paths:
                waiting.append((path, pool.submit(read, path)))
                if len(waiting) > _FILES_AT_ONCE:
                    first, future = waiting.popleft()
                    yield first, future.result()
            for last, future in waiting:
                yield last, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


class LogStats:
    """Ranges of the rows that go into one log file.

    Args: columns: the indexed ones; schema: the data columns of the table.
    """

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
        self._ranges = RangesOfRows(columns, pa.schema([*meta, *schema]))

    def add(self, rows: pa.Table) -> None:
        """Take the rows of a data block in; columns that it lacks, as a partial update does, count as nulls."""
        self._ranges.add(rows, missing_as_null=True)

    def rows(self, table_version: int, file_name: str) -> pa.Table:
        """The statistics, columns as `stats_schema` has them."""
        return stats_rows(table_version, file_name, self._ranges.ranges())
