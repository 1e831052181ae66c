"""Statistics of the metadata table as ranges of the column's type, in columns.

Source: docs/formats/metadata-table.md, "Bounds", "Statistics".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.column_stats import bounds
from pyhudi.queries.range_columns import RangeColumns

__all__ = ["stored_bounds", "stored_ranges"]

_TIMESTAMP_KINDS = {"ms": (15, 18), "us": (16, 19), "ns": (17, 20)}  # unit → ordinals of value types


def stored_ranges(stats: pa.Array, data_type: pa.DataType) -> RangeColumns:
    """The ranges of statistics of files (structs), as far as they can be trusted; nothing is known without counts.

    Raises: CorruptFile.
    """
    low, high = (stored_bounds(stats, name, data_type) for name in ("minValue", "maxValue"))
    floating = pa.types.is_floating(data_type)
    if floating:
        # Real Hudi writes zeros for a column with a not-a-number, and one is no bound of the others.
        wrong = pc.or_kleene(
            pc.and_(pc.equal(low, 0.0), pc.equal(high, 0.0)), pc.or_kleene(pc.is_nan(low), pc.is_nan(high))
        )
        none = pa.scalar(None, data_type)
        low, high = (pc.if_else(pc.fill_null(wrong, False), none, bound) for bound in (low, high))
    count, nulls = (pc.struct_field(stats, name) for name in ("valueCount", "nullCount"))
    known = pc.and_(count.is_valid(), nulls.is_valid())
    may_be_null, only_null = (
        pc.if_else(known, flags, pa.scalar(None, pa.bool_()))
        for flags in (pc.greater(nulls, 0), pc.equal(nulls, count))
    )
    return RangeColumns(low, high, may_be_null, only_null, may_be_nan=floating)


def stored_bounds(stats: pa.Array, name: str, data_type: pa.DataType) -> pa.Array:
    """`minValue` or `maxValue` of statistics; null where there is none, or it is in another unit than the column."""
    wrapped, kinds = pc.struct_field(stats, name), _value_types(stats)
    trusted = _trusted(stats, kinds, data_type)
    parts, places, taken = [pa.nulls(0, data_type)], np.full(len(stats), -1), 0
    for has_value_type in (True, False):
        rows = pc.and_(trusted, pc.equal(kinds.is_valid(), has_value_type)).to_numpy(zero_copy_only=False).nonzero()[0]
        if len(rows) == len(stats):
            return bounds(wrapped, data_type, has_value_type)
        parts.append(bounds(wrapped.take(pa.array(rows)), data_type, has_value_type))
        places[rows] = np.arange(taken, taken + len(rows))
        taken += len(rows)
    return pa.concat_arrays(parts).take(pa.array(places, mask=places < 0))


def _value_types(stats: pa.Array) -> pa.Array:
    """Ordinals of the values' types; null in statistics of versions before 9."""
    if stats.type.get_field_index("valueType") < 0:
        return pa.nulls(len(stats), pa.int32())
    return pc.struct_field(stats, ["valueType", "typeOrdinal"])


def _trusted(stats: pa.Array, kinds: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Are the bounds in the unit, or the scale, of the column's type? Files may be older than the type."""
    everywhere = pa.repeat(pa.scalar(True), len(stats))
    if pa.types.is_timestamp(data_type):
        kinds_of_unit = pa.array(_TIMESTAMP_KINDS.get(data_type.unit, ()), pa.int32())
        # Before version 9 nothing says the unit: Spark's has always been the microsecond.
        unsaid = pa.repeat(pa.scalar(data_type.unit == "us"), len(stats))
        return pc.if_else(kinds.is_valid(), pc.is_in(kinds, kinds_of_unit), unsaid)
    if pa.types.is_decimal(data_type) and kinds.null_count < len(kinds):
        kept = pc.match_substring_regex(pc.struct_field(stats, ["valueType", "additionalInfo"]), f",{data_type.scale}$")
        return pc.if_else(kinds.is_valid(), pc.fill_null(kept, False), everywhere)
    return everywhere
