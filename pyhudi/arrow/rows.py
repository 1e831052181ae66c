"""Combine the rows of two tables. Columns keep the dictionaries of the first, larger table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["concat_rows", "replace_rows"]


def concat_rows(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return both tables, one after the other; columns have the encoding of `first`."""
    columns = []
    for ours, theirs in zip(first.columns, second.columns, strict=True):
        if pa.types.is_dictionary(ours.type) and not pa.types.is_dictionary(theirs.type):
            theirs = theirs.dictionary_encode()
        elif theirs.type != ours.type:
            theirs = theirs.cast(ours.type)
        columns.append(pa.chunked_array([*ours.chunks, *theirs.chunks], ours.type))
    return pa.Table.from_arrays(columns, names=first.column_names)


def replace_rows(rows: pa.Table, places: npt.NDArray[np.int64], others: pa.Table) -> pa.Table:
    """Return `rows` with the rows of `others` at these places; columns have the types of `rows`."""
    at = np.arange(len(rows))
    at[places] = len(rows) + np.arange(len(others))
    return concat_rows(rows, others).combine_chunks().take(pa.array(at))
