"""Which columns of a Parquet file are worth a dictionary.

A dictionary on a column of mostly different values is paid twice, in time and in size; on few values it is the best
encoding. A sample of the first row group decides, leaf by leaf: how many different values it holds tells how many the
row group has.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["dictionary_paths"]

_SAMPLE_ROWS = 2048
# Different values by rows of a row group up to which a dictionary is written faster and read faster than plain values
# (measured with zstd on strings, integers and doubles: they break even between 0.1 and 0.25).
_WORTH_SHARE = 0.15


def dictionary_paths(table: pa.Table, schema: pa.Schema) -> list[str]:
    """Parquet paths of the leaves of `table` (a row group, columns of `schema`) that should have a dictionary."""
    if len(table) == 0:
        return []
    # Evenly spread over the rows: in sorted data neighbours are alike.
    at = pa.array(np.unique(np.linspace(0, len(table) - 1, min(len(table), _SAMPLE_ROWS)).astype(np.int64)))
    paths: list[str] = []
    for field, column in zip(schema, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            paths.append(field.name)  # somebody found out already
        else:
            _collect(column.take(at).combine_chunks(), field.name, len(table), paths)
    return paths


def _collect(values: pa.Array, path: str, rows: int, paths: list[str]) -> None:
    """Judge the leaves below `path`; `values` are its sample."""
    kind = values.type
    if pa.types.is_struct(kind):
        for index, child in enumerate(values.flatten()):
            _collect(child, f"{path}.{kind.field(index).name}", rows, paths)
    elif pa.types.is_map(kind):
        _collect(values.keys, f"{path}.key_value.key", rows, paths)
        _collect(values.items, f"{path}.key_value.value", rows, paths)
    elif pa.types.is_list(kind):
        _collect(values.flatten(), f"{path}.list.element", rows, paths)
    elif not pa.types.is_boolean(kind):
        known = len(values) - values.null_count
        if pc.count_distinct(values).as_py() <= _most_distinct(known, rows):
            paths.append(path)


def _most_distinct(sample: int, rows: int) -> float:
    """How many different values a sample of a column has on average that is just worth a dictionary."""
    values = max(1.0, _WORTH_SHARE * rows)
    return max(1.0, values * -math.expm1(-sample / values))
