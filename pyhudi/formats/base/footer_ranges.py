"""Ranges of columns from what a Parquet footer says of their chunks, without a look at the data.

A footer says enough where each chunk has exact bounds and counts its nulls. It does not for INT96, for text that was
cut or left out as too long, and for float columns: most writers leave not-a-numbers out of the bounds. Java's take them
for the greatest values. Source: docs/formats/metadata-table.md, "Statistics"; docs/formats/base-files.md, "Footer".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.formats.base.parquet_footer import Place, leaf_positions
from pyhudi.formats.column_ranges import (
    ColumnRange,
    Plain,
    RangesOfRows,
    column_type,
    has_order,
    joined,
    values_of,
)

__all__ = ["FooterRanges", "nan_columns", "ranges_of_file"]

_JAVA = "parquet-mr"  # what `created_by` begins with; its not-a-numbers are the greatest values
_ARROW_SCHEMA = b"ARROW:schema"  # a footer with it may give columns other units than their chunks have


class FooterRanges:
    """The ranges that a footer tells.

    Args:
        schema: all columns of the file.
        unreadable, cut: chunks that must not be looked at, and those whose bounds are cut ones.
        nan_columns: names of the float columns that hold a not-a-number, None when nobody knows.
    """

    def __init__(
        self,
        metadata: pq.FileMetaData,
        schema: pa.Schema,
        unreadable: Collection[Place] = (),
        cut: Collection[Place] = (),
        nan_columns: Collection[str] | None = None,
    ) -> None:
        self._metadata, self._schema = metadata, schema
        self._unreadable, self._cut, self._nan_columns = unreadable, cut, nan_columns
        self._positions = leaf_positions(metadata)
        self._has_units = _ARROW_SCHEMA not in (metadata.metadata or {})

    def of(self, name: str) -> tuple[ColumnRange | None, bool]:
        """The range of a column, and whether it says all that the values do; (None, True) for one that is not there,
        or of which there is no range: a list, a map, a struct.
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
            part, is_said = self._chunk(whole, number, position)
            whole = joined(whole, part)
            is_exact &= is_said
        return whole, is_exact

    def top_level(self, name: str) -> str:
        """The column of the file that has this one in it."""
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
        """Bounds of floats count only where no value is a not-a-number."""
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
        if pa.types.is_temporal(kind) and not self._has_units:
            return None, None
        raw = (statistics.min_raw, statistics.max_raw)  # type: ignore[attr-defined]
        least, greatest = (_plain(value, kind) for value in raw)
        return least, greatest


def _plain(value: Plain | None, kind: pa.DataType) -> Plain | None:
    """A bound as the footer has it, as plain value of the column's type."""
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
    """What hands out the rows of a file."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]: ...


def ranges_of_file(reader: Batches | None, footer: FooterRanges, names: Sequence[str]) -> tuple[ColumnRange, ...]:
    """The ranges of these columns: as the footer tells them, and from the rows where it does not.

    Args:    reader: None when the footer is known to tell all.
    """
    found: dict[str, ColumnRange] = {}
    unsaid: list[str] = []
    for name in names:
        known, is_exact = footer.of(name)
        if known is not None:
            found[name] = known
            unsaid += [] if is_exact else [name]
    if unsaid and reader is not None:
        rows = RangesOfRows(unsaid)
        for batch in reader.batches(tuple(dict.fromkeys(footer.top_level(name) for name in unsaid))):
            rows.add(pa.Table.from_batches([batch]))
        for looked in rows.ranges():
            sizes = found[looked.name]
            found[looked.name] = replace(looked, stored_bytes=sizes.stored_bytes, plain_bytes=sizes.plain_bytes)
    return tuple(found.values())


def nan_columns(rows: pa.Table, names: Sequence[str]) -> Iterator[str]:
    """Which of these columns are of floats and hold a not-a-number."""
    for name in names:
        kind = column_type(rows.schema, name)
        if kind is not None and pa.types.is_floating(kind) and pc.any(pc.is_nan(values_of(rows, name))).as_py():
            yield name
