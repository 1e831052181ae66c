"""What is known of a column before a file is read: from the partition's path, and from Parquet's row-group statistics.

Pruning only ever drops what cannot hold a matching row. A value that the path does not tell exactly (timestamps,
formatted dates, floats) is unknown.
Source: spec, files and records 4.3 to 4.7.
"""

from __future__ import annotations

import contextlib
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.parse import partition_values
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION
from pyhudi.model.predicate import Column, ValueRange
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.filters import resolve

__all__ = ["PARTITION_PATH_COLUMN", "partition_ranges"]

PARTITION_PATH_COLUMN = Column(("_hoodie_partition_path",))
_OLD_DEFAULT_PARTITION = "default"  # what ancient releases wrote for null


def partition_ranges(config: TableConfig, partition_path: str, schema: pa.Schema) -> dict[Column, ValueRange]:
    """Ranges of the partition columns (and of the meta column with the path) in one partition.

    Args:    schema: the table's read schema; fields that it lacks are left out.
    """
    ranges = {PARTITION_PATH_COLUMN: ValueRange(partition_path, partition_path, may_be_null=False)}
    kinds = config.partition_field_types or ("",) * len(config.partition_fields)
    generator = (config.key_generator or "").upper()
    for field, kind, text in zip(config.partition_fields, kinds, _texts(config, partition_path), strict=False):
        if kind.upper() == "TIMESTAMP" or (not kind and generator in ("TIMESTAMP", "CUSTOM")):
            continue  # the path holds a formatted time (or, below version 8, may hold one), not the column's value
        try:
            path, data_type = resolve(Column(tuple(field.split("."))), schema)
        except ConfigError:
            continue
        known = _value_range(text, data_type)
        if known is not None:
            ranges[Column(path)] = known
    return ranges


def _texts(config: TableConfig, partition_path: str) -> tuple[str | None, ...]:
    """Texts of the partition fields, () where the path leaves a doubt about where a value begins or ends."""
    fields = config.partition_fields
    segments = partition_path.split("/") if len(fields) > 1 else [partition_path]
    if len(segments) != len(fields):
        return ()
    named = [segment.startswith(f"{field}=") for segment, field in zip(segments, fields, strict=True)]
    if not all(named) if config.hive_style_partitioning else any(named):
        return ()
    return partition_values(partition_path, fields, config.hive_style_partitioning, config.url_encode_partitioning)


def _value_range(text: str | None, data_type: pa.DataType) -> ValueRange | None:
    is_text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
    if text is None or text in (HIVE_DEFAULT_PARTITION, _OLD_DEFAULT_PARTITION):
        # Null and "" go to the default partition, and so does a text that reads like its name.
        names = [HIVE_DEFAULT_PARTITION, _OLD_DEFAULT_PARTITION, ""]
        return ValueRange(min(names), max(names)) if is_text else ValueRange(only_null=True)
    value = text if is_text else _parsed(text, data_type)
    return None if value is None else ValueRange(value, value, may_be_null=False)


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
