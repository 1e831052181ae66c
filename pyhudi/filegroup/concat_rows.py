"""Rows of two origins in one table, without giving up the dictionaries of the larger one."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["concat_rows"]


def concat_rows(first: pa.Table, second: pa.Table) -> pa.Table:
    """Both tables, one after the other; columns take the encoding that they have in `first`."""
    columns = []
    for ours, theirs in zip(first.columns, second.columns, strict=True):
        if pa.types.is_dictionary(ours.type) and not pa.types.is_dictionary(theirs.type):
            theirs = theirs.dictionary_encode()
        elif theirs.type != ours.type:
            theirs = theirs.cast(ours.type)
        columns.append(pa.chunked_array([*ours.chunks, *theirs.chunks], ours.type))
    return pa.Table.from_arrays(columns, names=first.column_names)
