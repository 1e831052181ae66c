"""Names for stored rows where a key does not tell them apart: the key with the row's sequence number.

`INSERT INTO` may put a key into a file group twice. A sequence number is drawn for each row that a commit writes, so
together they mean one row. Source: docs/formats/base-files.md, "Meta columns".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["row_names", "stored_row_names"]

_BETWEEN = "\0"  # in no sequence number, so a name is no other row's


def stored_row_names(keys: pa.ChunkedArray, sequence_numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """The names of stored rows; null for rows without a sequence number, which are new."""
    return pc.binary_join_element_wise(keys, sequence_numbers, _BETWEEN)


def row_names(stored_rows: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """What rows on their way into a file are matched by: the name of the stored row that each replaces, for new rows
    their key, which is the name of no stored row.
    """
    return pc.coalesce(stored_rows, keys)
