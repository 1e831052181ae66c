"""Rows that are the same: found column by column, without a look at whole rows.

The records of a record index say where a key is, and a file's keys are all there.
Source: docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["SameRows", "same_rows"]

_MANY = 2  # rows to one that differs: else nothing is gained
_CODES = 2**62


@dataclass(frozen=True, slots=True)
class SameRows:
    """`first`: the first row of each kind; `numbers`: for each row, the number of its kind."""

    first: pa.Array
    numbers: pa.Array


def same_rows(rows: pa.RecordBatch) -> SameRows | None:
    """Which rows are the same; None where most differ, or columns are of types that have no place here."""
    most = len(rows) // _MANY
    codes, kinds = np.zeros(len(rows), np.int64), 1
    for column in _leaves(rows.columns):
        if column is None or kinds > most:
            return None
        coded = column.dictionary_encode(null_encoding="encode")
        assert isinstance(coded, pa.DictionaryArray)
        values = max(1, len(coded.dictionary))
        if kinds * values > _CODES:
            return None
        if values > 1:
            codes, kinds = _numbered(codes * values + coded.indices.to_numpy())
    if not len(rows) or kinds > most:
        return None
    first = np.empty(kinds, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several that are assigned the last stays
    return SameRows(pa.array(first), pa.array(codes))


def _numbered(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """The codes as numbers from 0 on, without gaps, and how many there are."""
    coded = pa.array(codes).dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)


def _leaves(columns: list[pa.Array]) -> Iterator[pa.Array | None]:
    """Whole numbers and texts of columns and structs, and numbers in dictionaries; None for anything else, and for
    structs that are null.
    """
    for column in columns:
        kind = column.type
        if isinstance(column, pa.StructArray) and not column.null_count:
            yield from _leaves(column.flatten())
        elif isinstance(column, pa.DictionaryArray) and not column.indices.null_count:
            yield column.indices
        else:
            is_plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
            yield column if is_plain else None
