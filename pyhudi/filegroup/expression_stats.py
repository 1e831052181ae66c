"""What an expression index knows of a file: the range of the expression's values, or a bloom filter of them.

Log files have the rows of their data blocks; one without rows, of deletes alone, has nothing. Counts are of rows; sizes
are an estimate from the file's, as Apache Hudi's are. Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.file_stats import side_by_side
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import DYNAMIC_V0, BloomFilter
from pyhudi.formats.column_stats import ColumnRange, joined, range_of_values, stats_rows, stats_schema
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import scan_log
from pyhudi.java.spark_functions import compute, result_type
from pyhudi.model.filenames import LogFileName
from pyhudi.model.predicate.tree import Call
from pyhudi.schema.casts import cast
from pyhudi.storage.base import Storage

__all__ = ["ExpressionReading", "bloom_filters_of_expression", "stats_of_expression"]

_READ_ROWS = 1 << 17
_PLAIN_SIZE = 2  # times the size of the file, says Hudi
_BLOOM_ERROR_RATE = 1e-9  # Hudi's own, as the numbers below
_BLOOM_KEYS, _BLOOM_MAX_KEYS = 60_000, 100_000
_BLOOM_LEAST_KEYS = 100  # smaller files are not worth a smaller filter


@dataclass(frozen=True, slots=True)
class ExpressionReading:
    """How the values of an expression are read. `call`: one that can be computed of `kind`, the type of its column in
    the table; a file that lacks the column has nulls.
    """

    storage: Storage
    call: Call
    kind: pa.DataType

    def values(self, path: str) -> Iterator[pa.Array]:
        """The expression's values of all rows in a base or log file. Raises CorruptFile, PathNotFound."""
        (column,) = self.call.column.path
        if LogFileName.parse(path.rpartition("/")[2]) is None:
            with open_base_file(self.storage, path) as reader:
                has_column = column in reader.schema.names
                for batch in reader.batches([column] if has_column else [], _READ_ROWS):
                    yield self._computed(batch.column(0) if has_column else None, len(batch))
            return
        for block in scan_log(self.storage, path):
            if isinstance(block, CorruptRange) or not block.is_data:
                continue  # whoever reads its rows says what is missing
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
    """Path and statistics of each file, columns as `stats_schema` has them: a row, or none where the file has no rows.

    Args: sizes: path and size in bytes of each file.
    """
    by_path = dict(sizes)
    read = partial(_range, reading)
    for path, found in side_by_side(by_path, read):
        if found is None:
            yield path, stats_schema(table_version).empty_table()
            continue
        size_bytes = by_path[path]
        sized = replace(found, stored_bytes=size_bytes, plain_bytes=size_bytes * _PLAIN_SIZE)
        yield path, stats_rows(table_version, path.rpartition("/")[2], [sized])


def _range(reading: ExpressionReading, path: str) -> ColumnRange | None:
    found: ColumnRange | None = None
    (column,) = reading.call.column.path
    for values in reading.values(path):
        if len(values):
            more = range_of_values(column, pa.chunked_array([values]))
            found = more if found is None else joined(found, more)
    return found


def bloom_filters_of_expression(reading: ExpressionReading, paths: Iterable[str]) -> Iterator[tuple[str, BloomFilter]]:
    """Path and filter of each base file: of the texts of all values that are not null."""
    yield from side_by_side(paths, partial(_bloom_filter, reading))


def _bloom_filter(reading: ExpressionReading, path: str) -> BloomFilter:
    with open_base_file(reading.storage, path) as reader:
        keys = min(max(reader.num_rows, _BLOOM_LEAST_KEYS), _BLOOM_KEYS)
    found = BloomFilter(keys, _BLOOM_ERROR_RATE, DYNAMIC_V0, _BLOOM_MAX_KEYS)
    for values in reading.values(path):
        found.add(pc.unique(values.drop_null()).cast(pa.string()))
    return found
