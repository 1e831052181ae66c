"""Readers of Avro fields that are made of others: unions, records, arrays and maps.

Nulls are read by visiting only the positions that have a value, arrays and maps in waves: the k-th item of every
record. A reader raises CorruptFile for bytes that are no value of its type.
Source: Avro specification 1.11, "Binary encoding", "Complex Types".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.varint import Positions
from pyhudi.formats.avro.walk import Found, Reader, Walk

__all__ = ["nullable", "record", "repeated", "sole_branch", "union"]

_MOST_PIECES = 1024  # arrays of one item of each record that are kept apart: each takes more than its values

_Repeated: TypeAlias = pa.ListType | pa.MapType


def sole_branch(inner: Reader) -> Reader:
    """Of a union of one type."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        branches, behind = walk.varints(at, limits)
        if branches.any():
            raise CorruptFile(f"{walk.where}: an Avro union has no branch {int(branches.max())}.")
        return inner(walk, behind, limits, build)

    return read


def nullable(inner: Reader, null_branch: int, arrow: pa.DataType) -> Reader:
    """Of a union of null and one type."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        branches, behind = walk.varints(at, limits)
        if ((branches < 0) | (branches > 1)).any():
            raise CorruptFile(f"{walk.where}: an Avro union of two has no branch {int(branches.max())}.")
        present = branches != null_branch
        if present.all():
            return inner(walk, behind, limits, build)
        rows = np.flatnonzero(present)
        if not len(rows):
            return (pa.nulls(len(at), arrow) if build else None), behind
        array, ends = inner(walk, behind[rows], limits[rows], build)
        behind[rows] = ends
        if array is None:
            return None, behind
        indices = np.cumsum(present) - 1
        return array.take(pa.array(indices, mask=~present)), behind

    return read


def union(readers: Sequence[Reader | None], arrow: pa.StructType) -> Reader:
    """A union of several types as a struct of them; at most one member of a row is not null, none for null.

    Args:    readers: of the branches in their order, None for null; arrow: a struct of those that are not null.
    """
    inner = {branch: reader for branch, reader in enumerate(readers) if reader is not None}
    members = list(inner)

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        branches, behind = walk.varints(at, limits)
        if ((branches < 0) | (branches >= len(readers))).any():
            raise CorruptFile(f"{walk.where}: an Avro union of {len(readers)} has no branch {int(branches.max())}.")
        arrays: list[pa.Array] = []
        for number, branch in enumerate(members):
            rows = np.flatnonzero(branches == branch)
            if not len(rows):
                arrays.append(pa.nulls(len(at) if build else 0, arrow.field(number).type))
                continue
            array, behind[rows] = inner[branch](walk, behind[rows], limits[rows], build)
            if array is not None:
                present = branches == branch
                arrays.append(array.take(pa.array(np.cumsum(present) - 1, mask=~present)))
        if not build:
            return None, behind
        absent = pa.array(~np.isin(branches, members))
        return pa.StructArray.from_arrays(arrays, fields=list(arrow), mask=absent), behind

    return read


def record(inner: list[Reader], arrow: pa.StructType) -> Reader:
    """Of a record, by the readers of its fields."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        arrays: list[pa.Array] = []
        for field in inner:
            array, at = field(walk, at, limits, build)
            if array is not None:
                arrays.append(array)
        if not build:
            return None, at
        if not arrays:
            return pa.array([{}] * len(at), arrow), at
        return pa.StructArray.from_arrays(arrays, fields=list(arrow)), at

    return read


def repeated(item: Reader, arrow: _Repeated) -> Reader:
    """Of an array or a map, by the reader of its items."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        at = at.copy()
        pieces: list[pa.Array] = []
        owners: list[npt.NDArray[np.int64]] = []
        joined: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        open_rows = np.arange(len(at))
        left = limits - at
        while len(open_rows):
            counts, at[open_rows] = _block_counts(walk, at[open_rows], limits[open_rows])
            # An item takes a byte at least, so more items are forged; this also bounds the waves.
            left[open_rows] -= counts
            if (left < 0).any():
                raise CorruptFile(f"{walk.where}: an Avro array or map of more items than its record has bytes.")
            open_rows = open_rows[counts != 0]
            counts = counts[counts != 0]
            done = 0
            rows = open_rows
            while len(rows):
                array, at[rows] = item(walk, at[rows], limits[rows], build)
                if array is not None:
                    pieces.append(array)
                    owners.append(rows)
                    if len(pieces) == _MOST_PIECES:
                        joined.append((pa.concat_arrays(pieces), np.concatenate(owners)))
                        pieces, owners = [], []
                done += 1
                rows = open_rows[counts > done]
        if not build:
            return None, at
        pieces = [*(array for array, _ in joined), *pieces]
        owners = [*(rows for _, rows in joined), *owners]
        return _lists(pieces, owners, len(at), arrow), at

    return read


def _block_counts(walk: Walk, at: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
    """Item counts of the next blocks; a negative count is followed by the block's size in bytes."""
    counts, behind = walk.varints(at, limits)
    sized = counts < 0
    if sized.any():
        rows = np.flatnonzero(sized)
        _, behind[rows] = walk.varints(behind[rows], limits[rows])
        counts = np.abs(counts)
    if (counts < 0).any():
        raise CorruptFile(f"{walk.where}: an Avro array or map with a count of more than 63 bits.")
    return counts, behind


def _lists(pieces: list[pa.Array], owners: list[npt.NDArray[np.int64]], rows: int, arrow: _Repeated) -> pa.Array:
    item_type = pa.struct([arrow.key_field, arrow.item_field]) if pa.types.is_map(arrow) else arrow.value_type
    offsets = np.zeros(rows + 1, dtype=np.int32)
    values: pa.Array = pa.array([], item_type)
    if pieces:
        owner = np.concatenate(owners)
        np.cumsum(np.bincount(owner, minlength=rows), out=offsets[1:])
        # Waves are in item order, so a stable sort by record restores each list.
        values = pa.concat_arrays(pieces).take(pa.array(np.argsort(owner, kind="stable")))
    if pa.types.is_map(arrow):
        assert isinstance(values, pa.StructArray)
        return pa.MapArray.from_arrays(pa.array(offsets), values.field(0), values.field(1), type=arrow)  # type: ignore[call-overload,no-any-return]
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=arrow)
