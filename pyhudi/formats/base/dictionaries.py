"""Which columns of a Parquet file are worth a dictionary.

A dictionary on a column of mostly different values is paid twice, in time and in size; on few values it is the best
encoding. Two samples of the first row group decide, leaf by leaf: rows spread over the group, from which the number of
different values is estimated (Chao's estimator: values seen once against values seen twice), and neighbouring rows,
which show the runs of sorted data.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["dictionary_paths"]

_SAMPLE_ROWS = 2048
# Different values by rows of a row group up to which a dictionary is written faster and read faster than plain values
# (measured with zstd on strings, integers and doubles: they break even between 0.1 and 0.25).
_WORTH_SHARE = 0.15


def dictionary_paths(table: pa.Table, schema: pa.Schema, plain: Collection[str] = ()) -> list[str]:
    """Parquet paths of the leaves of `table` (a row group, columns of `schema`) that should have a dictionary.

    Args: plain: columns that are known to be worth none.
    """
    rows = len(table)
    if rows == 0:
        return []
    spread = pa.array(np.unique(np.linspace(0, rows - 1, min(rows, _SAMPLE_ROWS)).astype(np.int64)))
    paths: list[str] = []
    for field, column in zip(schema, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            paths.append(field.name)  # somebody found out already
        elif field.name not in plain:
            neighbours = column.slice(max(0, rows - _SAMPLE_ROWS) // 2, _SAMPLE_ROWS).combine_chunks()
            _collect(column.take(spread).combine_chunks(), neighbours, field.name, rows / len(spread), paths)
    return paths


def _collect(spread: pa.Array, neighbours: pa.Array, path: str, scale: float, paths: list[str]) -> None:
    """Judge the leaves below `path`; `scale`: rows of the group by rows of the spread sample."""
    kind = spread.type
    below: list[tuple[str, pa.Array, pa.Array]] = []
    if isinstance(spread, pa.StructArray) and isinstance(neighbours, pa.StructArray):
        names = [kind.field(index).name for index in range(kind.num_fields)]
        below = list(zip(names, spread.flatten(), neighbours.flatten(), strict=True))
    elif isinstance(spread, pa.MapArray) and isinstance(neighbours, pa.MapArray):
        below = [
            ("key_value.key", spread.keys, neighbours.keys),
            ("key_value.value", spread.items, neighbours.items),
        ]
    elif isinstance(spread, pa.ListArray) and isinstance(neighbours, pa.ListArray):
        below = [("list.element", spread.flatten(), neighbours.flatten())]
    elif not pa.types.is_boolean(kind) and (_few_by_estimate(spread, scale) or _few_by_runs(neighbours)):
        paths.append(path)
    for name, of_spread, of_neighbours in below:
        _collect(of_spread, of_neighbours, f"{path}.{name}", scale, paths)


def _few_by_estimate(sample: pa.Array, scale: float) -> bool:
    counts = pc.value_counts(sample.drop_null()).field("counts").to_numpy()
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    # A sample of all rows has seen all values; else every value seen once hints at values not seen.
    unseen = 0.0 if scale == 1 or once == 0 else once**2 / (2 * twice) if twice else np.inf
    return bool(len(counts) + unseen <= _most_distinct(len(sample) * scale))


def _few_by_runs(sample: pa.Array) -> bool:
    return bool(pc.count_distinct(sample).as_py() <= _most_distinct(len(sample)))


def _most_distinct(rows: float) -> float:
    return max(1.0, _WORTH_SHARE * rows)
