"""Combining a batch with itself: one winner per key before anything is written.

Source: docs/formats/merging.md, "Within one batch".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.merge.base import MergeMode
from pyhudi.model.keys import ARRIVAL, IS_DELETE

__all__ = ["combine_rows", "deletes_of", "duplicate_key_rows", "key_numbers", "ordering_columns", "single_array"]


def combine_rows(table: pa.Table, mode: MergeMode, ordering_fields: Sequence[str], keys: Sequence[str]) -> pa.Table:
    """See `merge.combine`."""
    at, numbers = duplicate_key_rows(table, keys)
    if not len(at):
        return table
    rows = pa.array(at)
    ordering = ordering_columns(table, ordering_fields, rows)
    won = at[mode.last_of_each(_dense(numbers), ordering, deletes_of(table, rows))]
    keep = np.ones(len(table), np.bool_)
    keep[at] = False
    keep[won] = True
    return table.take(pa.array(np.flatnonzero(keep)))


def duplicate_key_rows(table: pa.Table, keys: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions of the rows whose key occurs more than once, in order of arrival, and for each the number of its key.

    Only these rows compete; most batches have few of them.
    """
    numbers = key_numbers(table, keys)
    at = np.flatnonzero(np.bincount(numbers)[numbers] > 1)
    if len(at) and ARRIVAL in table.column_names:
        at = at[np.argsort(table.column(ARRIVAL).to_numpy()[at], kind="stable")]
    return at, numbers[at]


def key_numbers(table: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return a number per row, equal for rows with equal values in all of `keys`, from 0 without gaps."""
    numbers = np.zeros(len(table), np.int64)
    for name in keys:
        coded = single_array(table.column(name)).dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        size = max(1, len(coded.dictionary))
        numbers = codes if not numbers.any() else _dense(numbers * size + codes)
    return numbers


def _dense(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the same grouping, numbered from 0 without gaps."""
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def ordering_columns(table: pa.Table, fields: Sequence[str], rows: pa.Array | None = None) -> list[pa.Array]:
    """Return values of the ordering fields (dots go into structs), for all rows or some positions.

    The list is empty when a field is missing and all rows are deletes, which have no ordering value. Otherwise a
    missing field raises SchemaMismatch.
    """
    columns = []
    for field in fields:
        top, *path = [field] if field in table.column_names else field.split(".")
        if top not in table.column_names:
            if IS_DELETE in table.column_names and pc.all(table.column(IS_DELETE)).as_py():
                return []
            raise SchemaMismatch(
                f"Ordering field {field!r} is not in the data; columns: {', '.join(table.column_names)}."
            )
        values = table.column(top) if rows is None else table.column(top).take(rows)
        for name in path:
            values = pc.struct_field(values, name)
        columns.append(single_array(values))
    return columns


def single_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, dictionaries decoded."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks: list[pa.Array] = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], column.type)])


def deletes_of(table: pa.Table, rows: pa.Array | None = None) -> npt.NDArray[np.bool_]:
    """Return which rows are deletes, of all rows or some positions; none in a table without IS_DELETE."""
    if IS_DELETE not in table.column_names:
        return np.zeros(len(table) if rows is None else len(rows), np.bool_)
    column = table.column(IS_DELETE) if rows is None else table.column(IS_DELETE).take(rows)
    flags: npt.NDArray[np.bool_] = single_array(column).to_numpy(zero_copy_only=False)
    return flags
