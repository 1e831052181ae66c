"""What a Parquet row group says of its columns, as ranges for pruning.

Bounds are only taken where they are promises for each row: not for INT96, not for repeated columns. Not-a-number is
left out of the bounds by writers, so a float column may always hold one.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.formats.base.parquet_footer import ParquetFooter
from pyhudi.model.predicate import Column, ValueRange

__all__ = ["RangeTest", "Ranges", "row_groups_that_may_match"]

Ranges = Callable[[Column], "ValueRange | None"]
RangeTest = Callable[[Ranges], bool]


def row_groups_that_may_match(footer: ParquetFooter, may_match: RangeTest | None) -> list[int]:
    """Numbers of the row groups for which `may_match`, told their ranges, does not answer no; all without a test."""
    metadata = footer.metadata
    numbers = list(range(metadata.num_row_groups))
    if may_match is None:
        return numbers
    positions, unreadable = footer.leaves, footer.unreadable_chunks

    def ranges(number: int) -> Ranges:
        group = metadata.row_group(number)

        def of(column: Column) -> ValueRange | None:
            position = positions.get(column.path)
            return None if position is None or (number, position) in unreadable else _range(group, position)

        return of

    return [number for number in numbers if may_match(ranges(number))]


def _range(group: pq.RowGroupMetaData, position: int) -> ValueRange | None:
    chunk = group.column(position)
    statistics = chunk.statistics
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None  # type: ignore[attr-defined]
    only_null = nulls is not None and nulls == group.num_rows
    low = high = None
    if statistics.has_min_max and chunk.physical_type != "INT96":
        try:
            low, high = statistics.min, statistics.max
        except (ValueError, OverflowError, UnicodeDecodeError, pa.ArrowException):
            low = high = None  # a bound that Python can't hold: a cut text, a year beyond 9999
    may_be_nan = chunk.physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY") and not isinstance(low, bytes)
    return ValueRange(low, high, may_be_null=nulls != 0, only_null=only_null, may_be_nan=may_be_nan)
