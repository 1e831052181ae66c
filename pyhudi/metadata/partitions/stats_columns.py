"""The columns that have statistics in the metadata table, and their bounds as values of the column's type.

`indexed_columns` names the columns:

    version 8, 9    three meta columns, and the named or else the table's first columns, of types that have bounds
    below           all columns, including the five meta columns, or exactly the named ones

`bounds` reads a bound, which is a union of wrappers (`member0` Boolean, 1 Int, 2 Long, 3 Float, 4 Double, 5 Bytes,
6 String, 7 Date, 8 Decimal, 9 TimeMicros, 10 TimestampMicros, 11 LocalDate). Hudi's release decides which wrapper holds
a value. So the column's type decides how the value is read, whichever wrapper has it.

Source: docs/formats/metadata-table.md, "Bounds", "Indexed columns".
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.formats.column_stats import column_type
from pyhudi.formats.stored_ranges import OLD_DECIMAL
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.schema import MetadataKind
from pyhudi.model.keys import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_format import TableFormat

__all__ = ["bounds", "columns_with_stats", "indexed_columns", "statistics_partitions"]


_WHOLE = ("member1", "member2", "member7", "member11", "member9", "member10")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "boolean": ("member0",),
    "whole": _WHOLE,
    "float": ("member3", "member4"),
    "binary": ("member5",),
    "text": ("member6",),
    "decimal": ("member8", "member5"),
}
_OLD_DECIMAL_SCALE = 15  # scale of all decimals in statistics without a value type


def bounds(wrapped: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    """The bounds (`minValue` or `maxValue` of many records) as `data_type`; null where there is none.

    Args:   has_value_type: the records say the type of their values, as those of table version 9 do.
    Raises: CorruptFile for values that the type does not have.
    """
    if not pa.types.is_struct(wrapped.type):
        return pa.nulls(len(wrapped), data_type)
    assert isinstance(wrapped, pa.StructArray)
    kind = _kind(data_type)
    typed = pa.nulls(len(wrapped), data_type)
    for member in _MEMBERS[kind]:
        index = wrapped.type.get_field_index(member)
        if index < 0:
            continue
        values = pc.struct_field(wrapped, [member, "value"])
        if values.null_count == len(values):
            continue
        typed = pc.coalesce(typed, _typed(values, data_type, has_value_type))
    return typed


def _kind(data_type: pa.DataType) -> str:
    if pa.types.is_boolean(data_type):
        return "boolean"
    if pa.types.is_decimal(data_type):
        return "decimal"
    if pa.types.is_floating(data_type):
        return "float"
    if pa.types.is_string(data_type):
        return "text"
    return "binary" if pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type) else "whole"


def _typed(values: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    try:
        if pa.types.is_decimal(data_type):
            return _decimals(values, data_type, has_value_type)
        if pa.types.is_temporal(data_type):
            width = pa.int32() if data_type.bit_width == 32 else pa.int64()
            return values.cast(width).view(data_type)
        return values.cast(data_type)
    except (pa.ArrowInvalid, decimal.DecimalException, OverflowError) as error:
        raise CorruptFile(f"Column statistics hold a bound that is no {data_type} ({error}).") from error


def _decimals(values: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    """Decimals from their bytes. A loop over values: one per file, and Arrow can't convert bytes of varying length."""
    assert isinstance(data_type, pa.Decimal128Type)
    if pa.types.is_decimal(values.type):
        return values.cast(data_type)
    scale = data_type.scale if has_value_type else _OLD_DECIMAL_SCALE
    raw_values = cast("list[bytes | None]", values.to_pylist())
    with decimal.localcontext(prec=60):
        numbers = [
            None if raw is None else decimal.Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)
            for raw in raw_values
        ]
    return pa.array(numbers, pa.decimal128(38, scale)).cast(data_type)


_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def indexed_columns(
    schema: pa.Schema, options: MetadataOptions, table_version: int, *, populate_meta_fields: bool = True
) -> tuple[str, ...]:
    """The names of the indexed columns in Hudi's order; fields of structs have dotted names.

    Args: schema: the data columns, as files store them.
    """
    listed = options.column_stats_columns
    if not TableFormat(table_version).leaves_out_meta_columns:
        return listed or ((*META_COLUMNS, *schema.names) if populate_meta_fields else tuple(schema.names))
    candidates = [name for name in listed or schema.names if name not in META_COLUMNS]
    columns = [name for name in candidates if _is_supported(column_type(schema, name), table_version)]
    if not listed:
        columns = columns[: options.column_stats_columns_max]
    return tuple(dict.fromkeys((*(_ALWAYS if populate_meta_fields else ()), *columns)))


def columns_with_stats(meta: MetaClient, schema: pa.Schema, options: MetadataOptions) -> tuple[str, ...] | None:
    """The columns whose statistics a write to the table reports; None when its metadata table has no statistics.

    These are the columns in the index definitions and those that the call names. An indexed column stays indexed, or
    the statistics of partitions would cover its older values only. If the definitions list the table's first columns,
    because no call named any, columns added since then follow.

    Args:   schema: the data columns, as files store them.
    Raises: CorruptFile for index definitions that can't be read.
    """
    config = meta.config
    name = MetadataKind.COLUMN_STATS.value.prefix
    if name not in (*config.metadata_partitions, *config.metadata_partitions_inflight):
        return None
    version, has_meta = config.table_version, config.populate_meta_fields
    columns = indexed_columns(schema, options, version, populate_meta_fields=has_meta)
    definition = read_index_definitions(meta.storage).by_name.get(name)
    if definition is None:
        return columns
    listed = definition.source_fields
    goes_on = listed == columns[: len(listed)]
    together = (*listed, *(columns if goes_on or options.column_stats_columns else ()))
    extended = replace(options, column_stats_columns=tuple(dict.fromkeys(together)))
    return indexed_columns(schema, extended, version, populate_meta_fields=has_meta)


def statistics_partitions(options: MetadataOptions, table_version: int, *, is_partitioned: bool) -> Mapping[str, int]:
    """The partitions with statistics and bloom filters that a new metadata table gets, in the order in which they are
    built: name → number of file groups.
    """
    groups: dict[str, int] = {}
    if options.column_stats:
        groups[MetadataKind.COLUMN_STATS.value.prefix] = options.column_stats_file_groups
    if options.bloom_filters:
        groups[MetadataKind.BLOOM_FILTERS.value.prefix] = options.bloom_filters_file_groups
    has_partitions = is_partitioned and TableFormat(table_version).has_partition_stats
    if options.column_stats and options.partition_stats and has_partitions:
        groups[MetadataKind.PARTITION_STATS.value.prefix] = options.partition_stats_file_groups
    return groups


def _is_supported(kind: pa.DataType | None, table_version: int) -> bool:
    if kind is None or pa.types.is_nested(kind):
        return False
    if not TableFormat(table_version).has_value_types and pa.types.is_decimal(kind):
        whole_digits = OLD_DECIMAL.precision - OLD_DECIMAL.scale
        return bool(kind.scale <= OLD_DECIMAL.scale and kind.precision - kind.scale <= whole_digits)
    return True
