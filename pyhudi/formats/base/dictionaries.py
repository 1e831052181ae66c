"""Which columns of a Parquet file are worth a dictionary.

A dictionary on a column of mostly different values is paid twice, in time and in size; on few values it is the best
encoding. A sample of the first rows decides, leaf by leaf.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["dictionary_paths"]

_SAMPLE_ROWS = 8192
_MAX_DISTINCT_SHARE = 0.3  # of the sample's values


def dictionary_paths(table: pa.Table, schema: pa.Schema) -> list[str]:
    """Parquet paths of the leaves of `table` (columns of `schema`) that should have a dictionary."""
    if len(table) == 0:
        return []
    # Evenly spread over the rows: in sorted data neighbours are alike.
    at = np.unique(np.linspace(0, len(table) - 1, min(len(table), _SAMPLE_ROWS)).astype(np.int64))
    paths: list[str] = []
    for field, column in zip(schema, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            paths.append(field.name)  # somebody found out already
            continue
        _collect(column.take(pa.array(at)).combine_chunks(), field.name, paths)
    return paths


def _collect(values: pa.Array, path: str, paths: list[str]) -> None:
    kind = values.type
    if pa.types.is_struct(kind):
        for index, child in enumerate(values.flatten()):
            _collect(child, f"{path}.{kind.field(index).name}", paths)
    elif pa.types.is_map(kind):
        _collect(values.keys, f"{path}.key_value.key", paths)
        _collect(values.items, f"{path}.key_value.value", paths)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _collect(values.flatten(), f"{path}.list.element", paths)
    elif not pa.types.is_boolean(kind):
        known = len(values) - values.null_count
        if known == 0 or pc.count_distinct(values).as_py() <= max(1, _MAX_DISTINCT_SHARE * known):
            paths.append(path)
