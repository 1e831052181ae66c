"""Statistics of base and log files: of columns, and of expressions in expression indexes.

Column statistics are read from a stored file, or collected while a log file is being written (`LogStats`). A base file
has a row for each indexed column that it holds. A log file has a row for each indexed column of the table, which covers
its data blocks. Deletes have only keys, so a log file with only deletes has rows without values.

For an expression index a file has the range of the expression's values (`stats_of_expression`) or a bloom filter of
them (`bloom_filters_of_expression`). A log file's values are those of its data blocks; a file without rows, or with
only deletes, has no statistics. Counts are numbers of rows. Sizes are estimated from the size of the file, as in Apache
Hudi.

Source: docs/formats/metadata-table.md, "Statistics", "Expression index".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.expressions.column_functions import compute, result_type
from pyhudi.expressions.predicates import Call
from pyhudi.formats.base import Footer, open_base_file
from pyhudi.formats.bloom import DYNAMIC_V0, BloomFilter
from pyhudi.formats.column_stats import ColumnRange, RangesOfRows, joined, range_of_values
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import scan_log
from pyhudi.formats.stored_ranges import StoredRange, rows_of_files, stats_rows, stats_schema, stored_ranges
from pyhudi.model.filenames import LogFileName
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.casts import cast
from pyhudi.storage.base import Storage

__all__ = [
    "ExpressionReading",
    "LogStats",
    "bloom_filters_of_expression",
    "bloom_filters_of_files",
    "ranges_of_file",
    "side_by_side",
    "stats_of_expression",
    "stats_of_file",
    "stats_of_files",
]


Read = TypeVar("Read")
_FILES_AT_ONCE = 8  # reading footers waits for the store; files with floats or long texts take a batch of memory each


def stats_of_file(
    storage: Storage, path: str, columns: Sequence[str], table_version: int, schema: pa.Schema
) -> pa.Table:
    """The statistics of a base or log file, read from the file.

    Args:    columns: the indexed columns; schema: the data columns of the table, as files store them. Returns: columns
                 as `stats_schema` has them.
    Raises:  CorruptFile, PathNotFound, UnsupportedTable.
    """
    ranges = ranges_of_file(storage, path, columns, table_version, schema)
    return rows_of_files(table_version, [(path.rpartition("/")[2], ranges)])


def ranges_of_file(
    storage: Storage, path: str, columns: Sequence[str], table_version: int, schema: pa.Schema
) -> tuple[StoredRange, ...]:
    """Like `stats_of_file`, as ranges."""
    if LogFileName.parse(path.rpartition("/")[2]) is None:
        with open_base_file(storage, path) as reader:
            return stored_ranges(table_version, reader.ranges(columns))
    stats = LogStats(columns, schema)
    names = {column.partition(".")[0] for column in columns} | set(columns)
    for block in scan_log(storage, path):
        if isinstance(block, CorruptRange) or not block.is_data:
            continue  # a reader of its rows reports the damage
        stats.add(block.rows(names))
    return stats.ranges(table_version)


def stats_of_files(
    storage: Storage, paths: Iterable[str], columns: Sequence[str], table_version: int, schema: pa.Schema
) -> Iterator[tuple[str, pa.Table]]:
    """The path and statistics of each file, in the order of the paths. A few files are read in parallel, and only their
    statistics are in memory. See `stats_of_file`.
    """
    read = partial(stats_of_file, storage, columns=columns, table_version=table_version, schema=schema)
    yield from side_by_side(paths, read)


def bloom_filters_of_files(storage: Storage, paths: Iterable[str]) -> Iterator[tuple[str, Footer]]:
    """The path and footer, with the bloom filter, of each base file; otherwise like `stats_of_files`."""
    yield from side_by_side(paths, partial(_footer, storage))


def _footer(storage: Storage, path: str) -> Footer:
    with open_base_file(storage, path) as reader:
        return reader.footer


def side_by_side(paths: Iterable[str], read: Callable[[str], Read]) -> Iterator[tuple[str, Read]]:
    """The path and the result of `read` for each file, in the order of the paths; a few are read at the same time."""
    running: deque[tuple[str, Future[Read]]] = deque()
    with ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="hudi-stats") as pool:
        try:
            for path in paths:
                running.append((path, pool.submit(read, path)))
                if len(running) > _FILES_AT_ONCE:
                    first, future = running.popleft()
                    yield first, future.result()
            for last, future in running:
                yield last, future.result()
        finally:
            for _, future in running:
                future.cancel()


class LogStats:
    """Collects the ranges of the rows that go into one log file.

    Args: columns: the indexed ones; schema: the data columns of the table.
    """

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
        self._ranges = RangesOfRows(columns, pa.schema([*meta, *schema]))

    def add(self, rows: pa.Table) -> None:
        """Add the rows of a data block; columns that it lacks, as in a partial update, count as nulls."""
        self._ranges.add(rows, missing_as_null=True)

    def ranges(self, table_version: int) -> tuple[StoredRange, ...]:
        """The ranges in the form of a table version."""
        return stored_ranges(table_version, self._ranges.ranges())


_READ_ROWS = 1 << 17
_PLAIN_SIZE = 2  # times the size of the file, as in Hudi
_BLOOM_ERROR_RATE = 1e-9  # Hudi's value, as are the numbers below
_BLOOM_KEYS, _BLOOM_MAX_KEYS = 60_000, 100_000
_BLOOM_LEAST_KEYS = 100  # smaller filters don't pay


@dataclass(frozen=True, slots=True)
class ExpressionReading:
    """Reads the values of an expression. `call`: an expression that supports `kind`, the type of its column in the
    table; a file that lacks the column has nulls.
    """

    storage: Storage
    call: Call
    kind: pa.DataType

    def values(self, path: str) -> Iterator[pa.Array]:
        """The expression's values for all rows in a base or log file. Raises CorruptFile, PathNotFound."""
        (column,) = self.call.column.path
        if LogFileName.parse(path.rpartition("/")[2]) is None:
            with open_base_file(self.storage, path) as reader:
                columns = reader.columns_of([column])
                has_column = bool(columns)
                for batch in reader.batches(columns, _READ_ROWS):
                    yield self._computed(batch.column(0) if has_column else None, len(batch))
            return
        for block in scan_log(self.storage, path):
            if isinstance(block, CorruptRange) or not block.is_data:
                continue  # a reader of its rows reports the damage
            rows = block.rows({column})
            has_column = column in rows.schema.names
            yield self._computed(rows.column(column).combine_chunks() if has_column else None, rows.num_rows)

    def _computed(self, values: pa.Array | None, rows: int) -> pa.Array:
        if values is None:
            return pa.nulls(rows, result_type(self.call, self.kind))
        if isinstance(values, pa.DictionaryArray):
            values = values.dictionary_decode()
        return compute(self.call, values if values.type == self.kind else cast(values, self.kind))


def stats_of_expression(
    reading: ExpressionReading, sizes: Iterable[tuple[str, int]], table_version: int
) -> Iterator[tuple[str, pa.Table]]:
    """The path and statistics of each file, in the columns of `stats_schema`: one row, or none for a file without rows.

    Args: sizes: path and size in bytes of each file.
    """
    by_path = dict(sizes)
    read = partial(_range, reading)
    for path, column_range in side_by_side(by_path, read):
        if column_range is None:
            yield path, stats_schema(table_version).empty_table()
            continue
        size_bytes = by_path[path]
        sized = replace(column_range, stored_bytes=size_bytes, plain_bytes=size_bytes * _PLAIN_SIZE)
        yield path, stats_rows(table_version, path.rpartition("/")[2], [sized])


def _range(reading: ExpressionReading, path: str) -> ColumnRange | None:
    whole: ColumnRange | None = None
    (column,) = reading.call.column.path
    for values in reading.values(path):
        if len(values):
            more = range_of_values(column, pa.chunked_array([values]))
            whole = more if whole is None else joined(whole, more)
    return whole


def bloom_filters_of_expression(reading: ExpressionReading, paths: Iterable[str]) -> Iterator[tuple[str, BloomFilter]]:
    """The path of each base file and a filter of the texts of all its non-null values."""
    yield from side_by_side(paths, partial(_bloom_filter, reading))


def _bloom_filter(reading: ExpressionReading, path: str) -> BloomFilter:
    with open_base_file(reading.storage, path) as reader:
        keys = min(max(reader.num_rows, _BLOOM_LEAST_KEYS), _BLOOM_KEYS)
    bloom = BloomFilter(keys, _BLOOM_ERROR_RATE, DYNAMIC_V0, _BLOOM_MAX_KEYS)
    for values in reading.values(path):
        bloom.add(pc.unique(values.drop_null()).cast(pa.string()))
    return bloom
