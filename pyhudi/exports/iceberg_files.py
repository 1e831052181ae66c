"""A base file as Iceberg lists it: its partition, and the statistics of its outer columns, from the Parquet footer.

The upper bound of floats stays open: NaN is outside of Parquet's bounds, and greater than all other values for Spark.
Long texts are cut as Iceberg does it. Source: the Iceberg specification, "Manifests", "Single-value serialization".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import cast

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType, IcebergType, PrimitiveType
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros
from pyiceberg.utils.truncate import truncate_upper_bound_text_string

from pyhudi.errors import SchemaMismatch
from pyhudi.exports.commits import DataFile
from pyhudi.exports.footer_bounds import ColumnBounds, bounds_in_footer
from pyhudi.formats.parquet.footer import ParquetFooter

__all__ = ["ExportedColumns", "listed_file"]

_TEXT_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class ExportedColumns:
    """The exported table's columns: `ids` by the names that files have, outer ones. `arrow_types`: by these names, of
    columns that are there. `partitioned`: names of partition columns.
    """

    schema: Schema
    spec: PartitionSpec
    ids: Mapping[str, int]
    types: Mapping[int, IcebergType] = field(init=False)
    arrow_types: Mapping[str, pa.DataType] = field(init=False)
    partitioned: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        fields = self.schema.fields
        arrow = dict(zip((one.field_id for one in fields), self.schema.as_arrow().types, strict=True))
        sources = {part.source_id for part in self.spec.fields}
        object.__setattr__(self, "types", {one.field_id: one.field_type for one in fields})
        object.__setattr__(self, "arrow_types", {name: arrow[id] for name, id in self.ids.items() if id in arrow})
        object.__setattr__(self, "partitioned", frozenset(name for name, id in self.ids.items() if id in sources))


def listed_file(file: DataFile, url: str, footer: ParquetFooter, columns: ExportedColumns) -> IcebergFile:
    """The file's entry. Raises SchemaMismatch when its rows are not of the partition that its path says."""
    found = bounds_in_footer(footer, columns.arrow_types, columns.partitioned)
    ranges = {columns.ids[one.name]: one for one in found}
    lower = {number: _lower(one, columns.types[number]) for number, one in ranges.items()}
    upper = {number: _upper(one, columns.types[number]) for number, one in ranges.items()}
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
        lower_bounds={number: bound for number, bound in lower.items() if bound is not None},
        upper_bounds={number: bound for number, bound in upper.items() if bound is not None},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    listed.spec_id = columns.spec.spec_id
    return listed


# ---- partition


def _partition(file: DataFile, columns: ExportedColumns, ranges: Mapping[int, ColumnBounds]) -> Record:
    values = []
    for part in columns.spec.fields:
        name = columns.schema.find_column_name(part.source_id) or part.name
        value = file.partition_values[name]
        plain = _plain(value)
        found = ranges.get(part.source_id)
        if found is not None and not _is_only(plain, found):
            raise SchemaMismatch(
                f"{file.path}: the path says that {name} is {value!r:.100} in all rows, and the file holds "
                f"{_said(found)}. Iceberg has one value for a file's partition column. Nothing was exported. Rewrite "
                "these rows with the value of their partition."
            )
        values.append(plain)
    return Record(*values)


def _plain(value: object) -> object:
    """Iceberg's form of a partition value: days, microseconds."""
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    return date_to_days(value) if isinstance(value, date) else value


def _is_only(value: object, found: ColumnBounds) -> bool:
    """May the column have this value only?"""
    if value is None:
        return found.nulls is None or found.nulls == found.values
    return not found.nulls and (found.least is None or found.least == found.greatest == value)


# ---- statistics


def _said(one: ColumnBounds) -> str:
    nulls = f"{one.nulls:,} nulls and " if one.nulls else ""
    return f"{nulls}values from {one.least!r:.100} to {one.greatest!r:.100}"


def _lower(one: ColumnBounds, kind: IcebergType) -> bytes | None:
    least = one.least[:_TEXT_CHARACTERS] if isinstance(one.least, str) else one.least
    return None if least is None else to_bytes(cast("PrimitiveType", kind), least)


def _upper(one: ColumnBounds, kind: IcebergType) -> bytes | None:
    """None when it stays open."""
    if isinstance(kind, FloatType | DoubleType):
        return None
    greatest = one.greatest
    if isinstance(greatest, str):
        greatest = truncate_upper_bound_text_string(greatest, _TEXT_CHARACTERS)
    return None if greatest is None else to_bytes(cast("PrimitiveType", kind), greatest)
