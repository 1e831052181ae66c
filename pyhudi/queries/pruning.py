"""What a partition's path tells of its rows, before a file is read: column values, and ranges to prune by.

Pruning only ever drops what cannot hold a matching row. A value that the path does not tell exactly (timestamps,
formatted dates, floats) is unknown.
Source: spec, files and records 4.3 to 4.7.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.parse import partition_values, split_partition_path
from pyhudi.keygen.partition_path import url_decode
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION
from pyhudi.model.predicate import Column, ValueRange
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.filters import resolve
from pyhudi.queries.read_schema import columns_from_path

__all__ = ["PARTITION_PATH_COLUMN", "partition_ranges", "path_values"]

PARTITION_PATH_COLUMN = Column(("_hoodie_partition_path",))
PathValues = tuple[tuple[str, str | None], ...]


def path_values(config: TableConfig, partition_path: str, schema: pa.Schema) -> PathValues:
    """Columns whose value in this partition is the path's, as text (None is null), not the files'.

    Those are `columns_from_path`, and text columns in the default partition: "" is stored there beside null, and real
    Hudi returns both as null. Raises KeyGenError when the path of a table without the columns can't be divided.
    """
    always = columns_from_path(config)
    values: dict[str, str | None] = {}
    if always:
        texts = partition_values(
            partition_path, config.partition_fields, config.hive_style_partitioning, config.url_encode_partitioning
        )
        values = {
            field: text
            for field, text in zip(config.partition_fields, texts, strict=True)
            if field in always and schema.get_field_index(field) >= 0
        }
    for field, path, data_type, text in _told_by_path(config, partition_path, schema):
        if text is None and len(path) == 1 and _is_text(data_type):
            values[field] = None
    return tuple(values.items())


def partition_ranges(config: TableConfig, partition_path: str, schema: pa.Schema) -> dict[Column, ValueRange]:
    """Ranges of the partition columns (and of the meta column with the path) in one partition.

    Args:    schema: the table's read schema; fields that it lacks are left out.
    """
    ranges = {PARTITION_PATH_COLUMN: ValueRange(partition_path, partition_path, may_be_null=False)}
    for _, path, data_type, text in _told_by_path(config, partition_path, schema):
        if text is None:
            # Inside a struct, the text column of the default partition keeps its "" (see `path_values`).
            if len(path) == 1 or not _is_text(data_type):
                ranges[Column(path)] = ValueRange(only_null=True)
            continue
        value = text if _is_text(data_type) else _parsed(text, data_type)
        if value is not None:
            ranges[Column(path)] = ValueRange(value, value, may_be_null=False)
    return ranges


def _told_by_path(
    config: TableConfig, partition_path: str, schema: pa.Schema
) -> Iterator[tuple[str, tuple[str, ...], pa.DataType, str | None]]:
    """Field, its path and type in the schema, and its text (None: the default partition), for the fields whose own
    value is in the path. Nothing for a path that leaves a doubt about where a value begins or ends.
    """
    fields = config.partition_fields
    segments = partition_path.split("/") if len(fields) > 1 else [partition_path]
    if len(segments) != len(fields):
        return
    named = [segment.startswith(f"{field}=") for segment, field in zip(segments, fields, strict=True)]
    if not all(named) if config.hive_style_partitioning else any(named):
        return
    texts = split_partition_path(partition_path, fields, config.hive_style_partitioning) or ()
    kinds = config.partition_field_types or ("",) * len(fields)
    generator = (config.key_generator or "").upper()
    for field, kind, text in zip(fields, kinds, texts, strict=False):
        if kind.upper() == "TIMESTAMP" or (not kind and generator in ("TIMESTAMP", "CUSTOM")):
            continue  # the path holds a formatted time (or, below version 8, may hold one), not the column's value
        try:
            path, data_type = resolve(Column(tuple(field.split("."))), schema)
        except ConfigError:
            continue
        value = url_decode(text) if config.url_encode_partitioning else text
        yield field, path, data_type, None if text == HIVE_DEFAULT_PARTITION else value


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _parsed(text: str, data_type: pa.DataType) -> Any:
    with contextlib.suppress(ValueError, InvalidOperation):
        if pa.types.is_integer(data_type):
            return int(text)
        if pa.types.is_boolean(data_type):
            return {"true": True, "false": False}.get(text)
        if pa.types.is_decimal(data_type):
            return Decimal(text)
        if pa.types.is_date(data_type):
            return date.fromisoformat(text.replace("/", "-"))
    return None
