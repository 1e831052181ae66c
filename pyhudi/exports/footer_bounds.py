"""Counts and bounds of a file's outer columns, from its Parquet footer: for the statistics of other formats.

Bounds let readers skip files, so a wrong one hides rows. A column has bounds only if each row group with values says
both, whole, in a Parquet type that is the column's own or is widened to it.
Source: the Parquet format, "Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.formats.base.base import open_stored
from pyhudi.formats.parquet.footer import ParquetFooter, read_footer
from pyhudi.storage.base import Storage

__all__ = ["ColumnBounds", "bounds_in_footer", "footer_of"]

_COLUMNS_MAX = 32  # with statistics: metadata have them for every file
# One value in all rows of a file, or values of no use for skipping.
_WITHOUT_STATISTICS = frozenset(("_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name"))
_EXACT = Context(prec=76)
_Statistics: TypeAlias = Any  # pyarrow's, or None: its stubs lack has_null_count


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """A column in a file. `values`: rows. `nulls`: None when unknown. `least`, `greatest`: None for an unknown bound,
    and when there is no value; dates as days, timestamps as microseconds.
    """

    name: str
    values: int
    nulls: int | None
    least: Any = None
    greatest: Any = None


def footer_of(storage: Storage, path: str) -> ParquetFooter:
    """Read the footer of a base file. Raises StorageError and pyarrow's errors."""
    with open_stored(storage, path) as source:
        return read_footer(source)


def bounds_in_footer(
    footer: ParquetFooter, types: Mapping[str, pa.DataType], always: Collection[str] = ()
) -> Iterator[ColumnBounds]:
    """Of outer columns without parts, in the order of the file.

    Args: types: those of the table, by the names that files have. `always`: also columns that would have no statistics.
    Raises: LookupError, ValueError, RecursionError for a damaged footer.
    """
    metadata = footer.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        kind = types.get(column.path)
        if kind is None or pa.types.is_nested(kind) or column.max_repetition_level:
            continue
        if (index >= _COLUMNS_MAX or column.path in _WITHOUT_STATISTICS) and column.path not in always:
            continue
        chunks = [group.column(index) for group in groups]
        places = [(number, index) for number in range(len(groups))]
        is_readable = footer.unreadable_chunks.isdisjoint(places)
        statistics: list[_Statistics] = [
            chunk.statistics if is_readable and chunk.is_stats_set else None for chunk in chunks
        ]
        counts = [one.null_count if one is not None and one.has_null_count else None for one in statistics]
        least, greatest = None, None
        if footer.cut_chunks.isdisjoint(places):
            least, greatest = _bounds(column, kind, chunks, statistics)
        yield ColumnBounds(
            column.path,
            sum(chunk.num_values for chunk in chunks),
            None if None in counts else sum(count for count in counts if count is not None),
            least,
            greatest,
        )


def _bounds(
    column: pq.ColumnSchema,
    kind: pa.DataType,
    chunks: Sequence[pq.ColumnChunkMetaData],
    statistics: Sequence[_Statistics],
) -> tuple[Any, Any]:
    """The least and the greatest value; None, None when a row group with values does not say both."""
    read = _reader(column, kind)
    if read is None:
        return None, None
    pairs = []
    for chunk, one in zip(chunks, statistics, strict=True):
        if one is not None and one.has_null_count and one.null_count == chunk.num_values:
            continue
        if one is None or not one.has_min_max:
            return None, None
        try:
            pairs.append((read(one, "min"), read(one, "max")))
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            return None, None  # pyarrow has no form for these
    if not pairs or any(value is None or value != value for pair in pairs for value in pair):
        return None, None
    return min(least for least, _ in pairs), max(greatest for _, greatest in pairs)


def _reader(column: pq.ColumnSchema, kind: pa.DataType) -> Callable[[pq.Statistics, str], Any] | None:
    """How a bound is read from statistics; None for types without bounds."""
    types = pa.types
    stored = column.physical_type
    if types.is_boolean(kind):
        return getattr if stored == "BOOLEAN" else None
    if types.is_floating(kind):
        return getattr if stored in (("FLOAT",) if kind.bit_width == 32 else ("FLOAT", "DOUBLE")) else None
    if types.is_signed_integer(kind):
        return _raw if stored in (("INT32", "INT64") if kind.bit_width == 64 else ("INT32",)) else None
    if types.is_date(kind):
        return _raw if stored == "INT32" else None
    if types.is_timestamp(kind) and stored == "INT64":
        unit = json.loads(column.logical_type.to_json()).get("timeUnit")
        factor = {"milliseconds": 1000, "microseconds": 1}.get(unit)
        return None if factor is None else lambda one, bound: _raw(one, bound) * factor
    if types.is_decimal(kind) and stored in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY") and column.scale == kind.scale:
        return lambda one, bound: _decimal(_raw(one, bound), kind.scale)
    if (types.is_string(kind) or types.is_large_string(kind)) and stored == "BYTE_ARRAY":
        return lambda one, bound: value if isinstance(value := getattr(one, bound), str) else None
    return None


def _raw(one: pq.Statistics, bound: str) -> Any:
    return getattr(one, f"{bound}_raw")


def _decimal(raw: Any, scale: int) -> Decimal:
    number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    return Decimal(number).scaleb(-scale, _EXACT)
