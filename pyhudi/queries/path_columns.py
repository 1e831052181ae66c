"""Columns whose value the partition's path tells.

Source: docs/formats/keys.md, "Partition paths".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.schema.casts import cast

__all__ = ["with_path_values"]


def with_path_values(rows: pa.RecordBatch, from_path: Mapping[str, str | None], target: pa.Schema) -> pa.RecordBatch:
    """The rows as a query returns them: columns of `target`, those of `from_path` with the value of the path."""
    columns = [
        _constant(from_path[field.name], field.type, rows.num_rows)
        if field.name in from_path
        else rows.column(field.name)
        for field in target
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _constant(text: str | None, data_type: pa.DataType, rows: int) -> pa.Array:
    value = cast(pa.array([text], pa.string()), data_type)[0] if text is not None else pa.scalar(None, data_type)
    return pa.repeat(value, rows)
