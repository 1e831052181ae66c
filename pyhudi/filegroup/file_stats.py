"""Column statistics of files: of one that is there, and of a log file that is being written.

A base file has a row for each indexed column that it has. A log file has one for each indexed column of the table, of
the rows in its data blocks: of deletes nobody knows more than the key, so a log file of deletes alone has rows without
values. Source: docs/formats/metadata-table.md, "Statistics".
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyhudi.formats.base import open_base_file
from pyhudi.formats.column_ranges import RangesOfRows
from pyhudi.formats.column_stats import stats_rows
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import scan_log
from pyhudi.model.filenames import LogFileName
from pyhudi.model.keys import META_COLUMNS
from pyhudi.storage.base import Storage

__all__ = ["LogStats", "stats_of_file"]


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
