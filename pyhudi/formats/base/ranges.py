"""Ranges of columns, row groups and record keys of a base file, from its footer where that is sufficient.

`FooterRanges` derives the range of a column from its chunks. A footer is sufficient where each chunk has exact bounds
and counts its nulls. It is not for INT96, for text that was truncated or omitted as too long, and for float columns:
most writers leave NaN out of the bounds, and Java's treat it as the greatest value. There `ranges_of_file` reads the
rows.

`row_groups_that_may_match` prunes row groups. It uses bounds only where they hold for each row: not for INT96, not for
repeated columns. Since writers leave NaN out of the bounds, a float column may always hold it.

`KeyRange` is the least and the greatest record key of a file. Java compares strings by UTF-16 unit. That is the order
of UTF-8 bytes, except that characters beyond U+FFFF come before those from U+E000 on. Hudi's row writer compares bytes
and its look-up compares units, so for such keys a range is only a hint.

Source: docs/formats/metadata-table.md, "Statistics"; docs/formats/base-files.md, "Footer", "Key range".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.expressions.predicates import Column
from pyhudi.expressions.statistics.ranges import ValueRange
from pyhudi.formats.column_stats import (
    ColumnRange,
    Plain,
    RangesOfRows,
    column_type,
    has_order,
    joined,
    values_of,
)
from pyhudi.formats.parquet.footer import ParquetFooter, Place, leaf_positions

__all__ = [
    "FooterRanges",
    "KeyRange",
    "RangeTest",
    "Ranges",
    "nan_columns",
    "ranges_of_file",
    "row_groups_that_may_match",
]


_JAVA = "parquet-mr"  # prefix of `created_by`; these writers treat NaN as the greatest value
_FIRST_SAFE_YEAR = 1900  # both calendars agree from here on
_ARROW_SCHEMA = b"ARROW:schema"  # a footer with it may give columns other units than their chunks


class FooterRanges:
    """The ranges in a footer.

    Args:
        schema: all columns of the file.
        unreadable, cut: chunks that must not be read, and chunks with truncated bounds.
        nan_columns: names of the float columns with NaN, None if unknown.
        has_old_days: bounds of dates and times may count by Java's old calendar (`parquet_calendar.py`).
    """

    def __init__(
        self,
        metadata: pq.FileMetaData,
        schema: pa.Schema,
        unreadable: Collection[Place] = (),
        cut: Collection[Place] = (),
        nan_columns: Collection[str] | None = None,
        *,
        has_old_days: bool = False,
    ) -> None:
        self._metadata, self._schema = metadata, schema
        self._unreadable, self._cut, self._nan_columns = unreadable, cut, nan_columns
        self._has_old_days = has_old_days
        self._positions = leaf_positions(metadata)
        self._has_units = _ARROW_SCHEMA not in (metadata.metadata or {})

    def of(self, name: str) -> tuple[ColumnRange | None, bool]:
        """The range of a column, and whether it is as exact as the values; (None, True) for a missing column and for
        one without a range: a list, a map, a struct.
        """
        kind = column_type(self._schema, name)
        path = (name,) if self._schema.get_field_index(name) >= 0 else tuple(name.split("."))
        position = self._positions.get(path, self._positions.get((name,)))
        if kind is None or position is None:
            return None, True
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        whole = ColumnRange(name, kind, None, None, 0, 0)
        is_exact = True
        for number in range(self._metadata.num_row_groups):
            if (number, position) in self._unreadable:
                return whole, False
            part, is_chunk_exact = self._chunk(whole, number, position)
            whole = joined(whole, part)
            is_exact &= is_chunk_exact
        return whole, is_exact

    def top_level(self, name: str) -> str:
        """Return the file's top-level column that contains this one."""
        return name if self._schema.get_field_index(name) >= 0 else name.partition(".")[0]

    def _chunk(self, whole: ColumnRange, number: int, position: int) -> tuple[ColumnRange, bool]:
        chunk = self._metadata.row_group(number).column(position)
        kind, statistics = whole.data_type, chunk.statistics
        has_nulls = statistics is not None and bool(statistics.has_null_count)  # type: ignore[attr-defined]
        nulls = (statistics.null_count or 0) if statistics is not None and has_nulls else 0
        sizes = (int(chunk.total_compressed_size), int(chunk.total_uncompressed_size))
        rows = int(chunk.num_values)
        part = ColumnRange(whole.name, kind, None, None, rows, nulls, *sizes)
        if not has_nulls:
            return part, False
        if nulls == rows or not has_order(kind):
            return part, True
        least, greatest = self._bounds(chunk, kind, (number, position) in self._cut)
        if least is None or greatest is None:
            return part, False
        if isinstance(least, float) and isinstance(greatest, float):
            return self._float_chunk(part, least, greatest)
        return ColumnRange(whole.name, kind, least, greatest, rows, nulls, *sizes), True

    def _float_chunk(self, part: ColumnRange, least: float, greatest: float) -> tuple[ColumnRange, bool]:
        """Return the chunk's bounds of floats, which are valid only without NaN."""
        if math.isnan(least) or math.isnan(greatest):
            return part, True
        name, kind, sizes = part.name, part.data_type, (part.stored_bytes, part.plain_bytes)
        bounded = ColumnRange(name, kind, least, greatest, part.values, part.nulls, *sizes)
        if self._nan_columns is not None:
            return (part if name in self._nan_columns else bounded), True
        return bounded, str(self._metadata.created_by).startswith(_JAVA)

    def _bounds(
        self, chunk: pq.ColumnChunkMetaData, kind: pa.DataType, is_cut: bool
    ) -> tuple[Plain | None, Plain | None]:
        statistics = chunk.statistics
        physical = chunk.physical_type
        if statistics is None or not statistics.has_min_max or is_cut or physical == "INT96":
            return None, None
        if pa.types.is_temporal(kind) and (self._has_old_days or not self._has_units):
            return None, None
        raw = (statistics.min_raw, statistics.max_raw)  # type: ignore[attr-defined]
        least, greatest = (_plain(value, kind) for value in raw)
        return least, greatest


def _plain(value: Plain | None, kind: pa.DataType) -> Plain | None:
    """Return a footer's bound as a plain value of the column's type."""
    if not isinstance(value, bytes):
        return value
    if pa.types.is_decimal(kind):
        return int.from_bytes(value, "big", signed=True)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


class Batches(Protocol):
    """A source of a file's rows."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]: ...


def ranges_of_file(reader: Batches | None, footer: FooterRanges, names: Sequence[str]) -> tuple[ColumnRange, ...]:
    """Return the ranges of these columns, from the footer or, where that is not sufficient, from the rows.

    Args:    reader: None when the footer is known to be sufficient.
    """
    by_name: dict[str, ColumnRange] = {}
    unsaid: list[str] = []
    for name in names:
        from_footer, is_exact = footer.of(name)
        if from_footer is not None:
            by_name[name] = from_footer
            unsaid += [] if is_exact else [name]
    if unsaid and reader is not None:
        rows = RangesOfRows(unsaid)
        for batch in reader.batches(tuple(dict.fromkeys(footer.top_level(name) for name in unsaid))):
            rows.add(pa.Table.from_batches([batch]))
        for looked in rows.ranges():
            sizes = by_name[looked.name]
            by_name[looked.name] = replace(looked, stored_bytes=sizes.stored_bytes, plain_bytes=sizes.plain_bytes)
    return tuple(by_name.values())


def nan_columns(rows: pa.Table, names: Sequence[str]) -> Iterator[str]:
    """Yield the float columns among these that hold NaN."""
    for name in names:
        kind = column_type(rows.schema, name)
        if kind is not None and pa.types.is_floating(kind) and pc.any(pc.is_nan(values_of(rows, name))).as_py():
            yield name


Ranges = Callable[[Column], "ValueRange | None"]
RangeTest = Callable[[Ranges], bool]


def row_groups_that_may_match(
    footer: ParquetFooter, may_match: RangeTest | None, *, has_old_days: bool = False
) -> list[int]:
    """Numbers of the row groups whose ranges `may_match` does not exclude; all without a test. `has_old_days` as for
    `FooterRanges`.
    """
    metadata = footer.metadata
    numbers = list(range(metadata.num_row_groups))
    if may_match is None:
        return numbers
    positions, unreadable = footer.leaves, footer.unreadable_chunks

    def ranges(number: int) -> Ranges:
        group = metadata.row_group(number)

        def of(column: Column) -> ValueRange | None:
            position = positions.get(column.path)
            return (
                None if position is None or (number, position) in unreadable else _range(group, position, has_old_days)
            )

        return of

    return [number for number in numbers if may_match(ranges(number))]


def _range(group: pq.RowGroupMetaData, position: int, has_old_days: bool) -> ValueRange | None:
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
            low = high = None  # a bound that Python can't hold: a truncated text, a year beyond 9999
        if has_old_days and isinstance(low, date) and low.year < _FIRST_SAFE_YEAR:
            low = high = None
        if low != low or high != high:
            low = high = None  # old writers of Parquet used NaN as the least or the greatest value
    may_be_nan = chunk.physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY") and not isinstance(low, bytes)
    return ValueRange(low, high, may_be_null=nulls != 0, only_null=only_null, may_be_nan=may_be_nan)


_FIRST_ASTRAL_BYTE = 0xF0  # UTF-8 bytes of characters beyond U+FFFF start here


class KeyRange:
    """Least and greatest of the keys added so far, in Java's order; None before the first."""

    def __init__(self) -> None:
        self.least: str | None = None
        self.greatest: str | None = None

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add `keys`: strings without nulls."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            if len(chunk) == 0:
                continue
            if _has_astral(chunk):
                texts = cast("list[str]", chunk.to_pylist())  # rare: only for keys with such a character
                self.include(min(texts, key=_java_order), max(texts, key=_java_order))
            else:
                ends = pc.min_max(chunk)
                self.include(ends["min"].as_py(), ends["max"].as_py())

    def include(self, least: str, greatest: str) -> None:
        """Add a range."""
        if self.least is None or _java_order(least) < _java_order(self.least):
            self.least = least
        if self.greatest is None or _java_order(greatest) > _java_order(self.greatest):
            self.greatest = greatest


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _has_astral(keys: pa.Array) -> bool:
    """True if some key has a character beyond U+FFFF."""
    _, offsets_buffer, data_buffer = keys.buffers()
    if data_buffer is None or data_buffer.size == 0 or len(keys) == 0:
        return False
    ends = buffer_numbers(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4)
    data = buffer_numbers(data_buffer, np.uint8)[ends[0] : ends[-1]]
    return len(data) > 0 and bool(data.max() >= _FIRST_ASTRAL_BYTE)
