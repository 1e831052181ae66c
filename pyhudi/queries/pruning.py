"""What a partition's path says about its rows, before a file is read: column values, and ranges to prune by.

As in real Hudi, a partition column has the path's value wherever the path gives it exactly, whatever the file says: a
global index that leaves a key in its partition stores the new value in the file, and "" is stored with null in the
default partition. So what is read and what is pruned agree. Where a path leaves a doubt (values with slashes, formatted
times, floating point, columns inside structs) the file's value counts and nothing is pruned by it.
Source: docs/formats/keys.md, "Partition paths", "Custom", "Times", "Automatic keys", "Text of values".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import date

import pyarrow as pa

from pyhudi.keygen.parse import partition_values, split_partition_path
from pyhudi.keygen.partition_path import url_decode
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION, OLD_DEFAULT_PARTITION
from pyhudi.model.predicate import Column, ValueRange
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.read_schema import columns_from_path
from pyhudi.schema.casts import cast

__all__ = ["PARTITION_PATH_COLUMN", "PathValues", "parsed_path_values", "partition_ranges", "path_values"]

PARTITION_PATH_COLUMN = Column(("_hoodie_partition_path",))
PathValues = tuple[tuple[str, str | None], ...]  # column → text that casts to its type, None for null
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_DAY = re.compile(r"\d{4}([-/])\d\d\1\d\d")


def path_values(config: TableConfig, partition_path: str, schema: pa.Schema) -> PathValues:
    """The columns of `schema` whose value in this partition must come from the path: the files lack or differ by rule.

    Raises KeyGenError when a table has its partition columns in the path only and this path can't be divided.
    """
    values = dict(_only_in_path(config, partition_path))
    for name, text in _parsed_from_path(config, partition_path, schema):
        if text is None and _is_text(schema.field(name).type):
            values[name] = None  # "" is stored there with null
    return tuple((name, text) for name, text in values.items() if schema.get_field_index(name) >= 0)


def parsed_path_values(config: TableConfig, partition_path: str, schema: pa.Schema) -> PathValues:
    """The columns of `schema` whose value the path gives. Files hold the same, but for keys that a global index left in
    their partition when their own value changed.
    """
    return tuple(_parsed_from_path(config, partition_path, schema))


def partition_ranges(config: TableConfig, partition_path: str, schema: pa.Schema) -> dict[Column, ValueRange]:
    """Ranges of the partition columns (and of the meta column with the path) in one partition.

    Args:    schema: the table's read schema; fields that it lacks are left out.
    """
    ranges = {PARTITION_PATH_COLUMN: ValueRange(partition_path, partition_path, may_be_null=False)}
    for name, text in _parsed_from_path(config, partition_path, schema):
        if text is None:
            ranges[Column((name,))] = ValueRange(only_null=True)
        else:
            value = cast(pa.array([text], pa.string()), schema.field(name).type)[0].as_py()
            ranges[Column((name,))] = ValueRange(value, value, may_be_null=False)
    return ranges


def _only_in_path(config: TableConfig, partition_path: str) -> Iterator[tuple[str, str | None]]:
    """Columns that the files lack, and the text of slash-separated dates, which real Hudi reads from the path."""
    columns = columns_from_path(config)
    if columns:
        texts = partition_values(
            partition_path,
            config.partition_fields,
            config.hive_style_partitioning,
            config.url_encode_partitioning,
            old_default=config.table_version < 5,
        )
        for field, text in zip(config.partition_fields, texts, strict=True):
            if field in columns:
                yield field, text


def _parsed_from_path(config: TableConfig, partition_path: str, schema: pa.Schema) -> Iterator[tuple[str, str | None]]:
    """Partition columns of `schema` and their texts, None for the default partition; only exact ones."""
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
        if schema.get_field_index(field) < 0:
            continue
        if text == HIVE_DEFAULT_PARTITION:
            yield field, None
            continue
        if text == OLD_DEFAULT_PARTITION and config.table_version < 5:
            continue  # rows without a value, or with this one
        parsed = _exact(url_decode(text) if config.url_encode_partitioning else text, schema.field(field).type)
        if parsed is not None:
            yield field, parsed


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _exact(text: str, data_type: pa.DataType) -> str | None:
    """The text as Arrow casts it to the type; None when the column may hold something else than the path says."""
    if _is_text(data_type):
        return text
    if pa.types.is_integer(data_type) and _WHOLE_NUMBER.fullmatch(text):
        half = 2 ** (data_type.bit_width - 1)
        return text if -half <= int(text) < half else None
    if pa.types.is_boolean(data_type) and text in ("true", "false"):
        return text
    if pa.types.is_date(data_type) and _DAY.fullmatch(text):
        with contextlib.suppress(ValueError):  # no such day
            return date.fromisoformat(text.replace("/", "-")).isoformat()
    return None
