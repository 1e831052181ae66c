"""The five meta columns of rows that a write puts into a base file.

Source: docs/formats/base-files.md, "Meta columns".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["constant", "no_values", "sequence_numbers"]


def constant(value: str, rows: int) -> pa.Array:
    """One text for all rows, as a dictionary of one value: half the cost to write, and a plain string in the file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value], pa.string()))


def no_values(rows: int) -> pa.Array:
    """Nulls for all rows."""
    return pa.nulls(rows, pa.string())


def sequence_numbers(instant_time: str, partition_id: int, first: int, rows: int) -> pa.Array:
    """`<instant>_<task partition>_<row>`, rows counted from `first`."""
    numbers = pa.array(np.arange(first, first + rows)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant_time}_{partition_id}_", numbers, "")
