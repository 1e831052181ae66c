"""A base file as Iceberg lists it: its partition, and the statistics of its outer columns, from the Parquet footer.

Bounds let readers skip files, so a wrong one hides rows. A column has bounds only if each row group with values says
both, whole, in a Parquet type that is the column's own or is widened to it. The upper bound of floats stays open: NaN
is outside of Parquet's bounds, and greater than all other values for Spark. Long texts are cut as Iceberg does it.
Source: the Iceberg specification, "Manifests", "Single-value serialization"; the Parquet format, "Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros
from pyiceberg.utils.truncate import truncate_upper_bound_text_string

from pyhudi.errors import SchemaMismatch
from pyhudi.exports.commits import DataFile
from pyhudi.formats.parquet.footer import ParquetFooter

__all__ = ["ExportedColumns", "listed_file"]

_TEXT_CHARACTERS = 16
_COLUMNS_MAX = 32  # with statistics: each commit rewrites the manifests with these, of every file
# One value in all rows of a file, or values of no use for skipping.
_WITHOUT_STATISTICS = frozenset(("_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name"))
_STORED_AS: Mapping[type[IcebergType], tuple[str, ...]] = {
    BooleanType: ("BOOLEAN",),
    IntegerType: ("INT32",),
    LongType: ("INT32", "INT64"),
    FloatType: ("FLOAT",),
    DoubleType: ("FLOAT", "DOUBLE"),
    DateType: ("INT32",),
    TimestampType: ("INT64",),
    TimestamptzType: ("INT64",),
    StringType: ("BYTE_ARRAY",),
    DecimalType: ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"),
}
_Statistics: TypeAlias = Any  # pyarrow's, or None: its stubs lack has_null_count
_EXACT = Context(prec=76)


@dataclass(frozen=True, slots=True)
class ExportedColumns:
    """The exported table's columns: `ids` by the names that files have, outer ones."""

    schema: Schema
    spec: PartitionSpec
    ids: Mapping[str, int]
    types: Mapping[int, IcebergType] = field(init=False)  # of outer columns that are there

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", {one.field_id: one.field_type for one in self.schema.fields})


def listed_file(file: DataFile, url: str, footer: ParquetFooter, columns: ExportedColumns) -> IcebergFile:
    """The file's entry. Raises SchemaMismatch when its rows are not of the partition that its path says."""
    ranges = {one.field_id: one for one in _ranges(footer, columns)}
    listed = IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=url,
        file_format=FileFormat.PARQUET,
        partition=_partition(file, columns, ranges),
        record_count=footer.metadata.num_rows,
        file_size_in_bytes=file.size_bytes,
        column_sizes=None,  # of no use for skipping, and a fifth of the manifest
        value_counts={number: one.values for number, one in ranges.items()},
        null_value_counts={number: one.nulls for number, one in ranges.items() if one.nulls is not None},
        nan_value_counts=None,
        lower_bounds={number: _lower(one) for number, one in ranges.items() if _has_bounds(one)},
        upper_bounds={n: upper for n, one in ranges.items() if _has_bounds(one) if (upper := _upper(one)) is not None},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    listed.spec_id = columns.spec.spec_id
    return listed


# ---- partition


def _partition(file: DataFile, columns: ExportedColumns, ranges: Mapping[int, _Range]) -> Record:
    values = []
    for part in columns.spec.fields:
        name = columns.schema.find_column_name(part.source_id) or part.name
        value = file.partition_values[name]
        plain = _plain(value)
        found = ranges.get(part.source_id)
        if found is not None and not _is_only(plain, found):
            raise SchemaMismatch(
                f"{file.path}: the path says that {name} is {value!r:.100} in all rows, and the file holds "
                f"{found.said()}. Iceberg has one value for a file's partition column. Nothing was exported. Rewrite "
                "these rows with the value of their partition."
            )
        values.append(plain)
    return Record(*values)


def _plain(value: object) -> object:
    """Iceberg's form of a partition value: days, microseconds."""
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    return date_to_days(value) if isinstance(value, date) else value


def _is_only(value: object, found: _Range) -> bool:
    """May the column have this value only?"""
    if value is None:
        return found.nulls is None or found.nulls == found.values
    return not found.nulls and (found.least is None or found.least == found.greatest == value)


# ---- statistics


@dataclass(frozen=True, slots=True)
class _Range:
    """A column in a file. `least`, `greatest`: None when a bound is unknown, or there is no value. `nulls`: None when
    unknown.
    """

    field_id: int
    name: str
    type: IcebergType
    values: int
    nulls: int | None
    least: Any = None
    greatest: Any = None

    def said(self) -> str:
        nulls = f"{self.nulls:,} nulls and " if self.nulls else ""
        return f"{nulls}values from {self.least!r:.100} to {self.greatest!r:.100}"


def _ranges(footer: ParquetFooter, columns: ExportedColumns) -> Iterator[_Range]:
    """Of outer columns without parts, in the order of the file."""
    metadata = footer.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    partitioned = {part.source_id for part in columns.spec.fields}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        field_id = columns.ids.get(column.path)
        kind = None if field_id is None else columns.types.get(field_id)
        if field_id is None or not isinstance(kind, PrimitiveType) or column.max_repetition_level:
            continue
        if (index >= _COLUMNS_MAX or column.path in _WITHOUT_STATISTICS) and field_id not in partitioned:
            continue
        chunks = [group.column(index) for group in groups]
        is_readable = not any((number, index) in footer.unreadable_chunks for number in range(len(groups)))
        statistics: list[_Statistics] = [
            chunk.statistics if is_readable and chunk.is_stats_set else None for chunk in chunks
        ]
        counts = [one.null_count if one is not None and one.has_null_count else None for one in statistics]
        least, greatest = None, None
        if not any((number, index) in footer.cut_chunks for number in range(len(groups))):
            least, greatest = _bounds(column, kind, chunks, statistics)
        yield _Range(
            field_id,
            column.path,
            kind,
            sum(chunk.num_values for chunk in chunks),
            None if None in counts else sum(count for count in counts if count is not None),
            least,
            greatest,
        )


def _bounds(
    column: pq.ColumnSchema,
    kind: IcebergType,
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


def _reader(column: pq.ColumnSchema, kind: IcebergType) -> Callable[[pq.Statistics, str], Any] | None:
    """How a bound is read from statistics as the value that Iceberg stores; None for types without bounds."""
    if column.physical_type not in _STORED_AS.get(type(kind), ()):
        return None
    if isinstance(kind, TimestampType | TimestamptzType):
        unit = json.loads(column.logical_type.to_json()).get("timeUnit")
        factor = {"milliseconds": 1000, "microseconds": 1}.get(unit)
        return None if factor is None else lambda one, bound: getattr(one, f"{bound}_raw") * factor
    if isinstance(kind, DecimalType):
        if column.scale != kind.scale:
            return None
        return _decimal_reader(column.physical_type, kind.scale)
    if isinstance(kind, StringType):
        return lambda one, bound: value if isinstance(value := getattr(one, bound), str) else None
    if isinstance(kind, BooleanType | FloatType | DoubleType):
        return getattr
    return lambda one, bound: getattr(one, f"{bound}_raw")


def _decimal_reader(physical_type: str, scale: int) -> Callable[[pq.Statistics, str], Any]:
    def read(one: pq.Statistics, bound: str) -> Decimal | None:
        raw = getattr(one, f"{bound}_raw")
        number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(number).scaleb(-scale, _EXACT)

    return read


def _has_bounds(one: _Range) -> bool:
    return one.least is not None


def _lower(one: _Range) -> bytes:
    least = one.least[:_TEXT_CHARACTERS] if isinstance(one.least, str) else one.least
    return to_bytes(cast("PrimitiveType", one.type), least)


def _upper(one: _Range) -> bytes | None:
    """None when it stays open."""
    if isinstance(one.type, FloatType | DoubleType):
        return None
    greatest = one.greatest
    if isinstance(greatest, str):
        greatest = truncate_upper_bound_text_string(greatest, _TEXT_CHARACTERS)
    return None if greatest is None else to_bytes(cast("PrimitiveType", one.type), greatest)
