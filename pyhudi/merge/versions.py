"""Versions of rows, and merging them pair by pair.

The simple modes pick a winner per key in one sort (`MergeMode.last_of_each`). Where a result can take columns from both
versions, versions of a key are merged from the oldest to the newest, all keys at once: the k-th round merges the k-th
newer version of every key that has one.

`INSERT INTO` may put a key into a file group twice, so a key alone does not identify a stored row there. Each row that
a commit writes gets one sequence number, so key and sequence number together do (`stored_row_names`).
Source: docs/formats/merging.md, "Two versions of a key"; docs/formats/base-files.md, "Meta columns".

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.base import Mask, Place

__all__ = ["PairMerger", "Versions", "merge_versions", "row_names", "stored_row_names"]


Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Versions:
    """One version per row: `rows` (nulls where `is_delete`), and per ordering field its values (null = none).

    `absent`: columns that some versions do not have at all (partial updates): column → true where it is absent.
    `is_older`: where the older version of a merged pair stayed unchanged; None for versions that were not merged.
    """

    rows: pa.Table
    is_delete: Mask
    ordering: tuple[pa.Array, ...] = ()
    absent: Mapping[str, Mask] = field(default_factory=dict)
    is_older: Mask | None = None

    def __len__(self) -> int:
        return len(self.is_delete)

    def take(self, positions: Positions) -> Versions:
        """Return the versions at these positions."""
        indices = pa.array(positions)
        return Versions(
            self.rows.take(indices),
            self.is_delete[positions],
            tuple(values.take(indices) for values in self.ordering),
            {name: mask[positions] for name, mask in self.absent.items()},
        )

    def followed_by(self, other: Versions) -> Versions:
        """Return these versions followed by those of `other`."""
        names = {*self.absent, *other.absent}
        return Versions(
            pa.concat_tables([self.rows, other.rows]),
            np.concatenate([self.is_delete, other.is_delete]),
            tuple(pa.concat_arrays([a, b]) for a, b in zip(self.ordering, other.ordering, strict=True)),
            {name: np.concatenate([self._absent(name), other._absent(name)]) for name in names},
        )

    def is_absent(self, name: str) -> Mask:
        """Return where a column is absent."""
        return self._absent(name)

    def _absent(self, name: str) -> Mask:
        return self.absent.get(name, np.zeros(len(self), np.bool_))


class PairMerger(Protocol):
    """Merges matched pairs: `older[i]` and `newer[i]` are versions of one key, `newer` was written later."""

    def merge(self, older: Versions, newer: Versions, place: Place) -> Versions:
        """Return the merged version of each pair. Associative: merge(a, merge(b, c)) equals merge(merge(a, b), c)."""
        ...


def merge_versions(keys: pa.Array, versions: Versions, merger: PairMerger, place: Place) -> tuple[Positions, Versions]:
    """Return one version per key, from versions in order of arrival.

    Returns: for each key the position of its first version, and the merged versions, in the same order.
    """
    groups = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1])) if len(order) else order
    counts = np.diff(np.append(starts, len(order)))
    result = versions.take(order[starts])
    for turn in range(1, int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > turn)
        merged = merger.merge(result.take(rows), versions.take(order[starts[rows] + turn]), place)
        result = replaced(result, rows, merged)
    return order[starts], result


def replaced(versions: Versions, positions: Positions, by: Versions) -> Versions:
    """Return `versions` with those at `positions` replaced by `by`."""
    index = np.arange(len(versions))
    index[positions] = len(versions) + np.arange(len(positions))
    return versions.followed_by(by).take(index)


def columns_from(names: Sequence[str], first: pa.Table, second: pa.Table, from_second: Mapping[str, Mask]) -> pa.Table:
    """Return each column's values of `second` where its mask is true, else those of `first`; rows are pairs."""
    rows = len(first)
    columns = []
    for name in names:
        mask = from_second[name]
        if not mask.any():
            columns.append(first.column(name))
        elif mask.all():
            columns.append(second.column(name))
        else:
            kind = first.schema.field(name).type
            both = pa.chunked_array([*first.column(name).chunks, *second.column(name).chunks], kind)
            columns.append(both.take(pa.array(np.arange(rows) + rows * mask)))
    return pa.Table.from_arrays(columns, schema=first.schema)


_BETWEEN = "\0"  # occurs in no sequence number, so names are unique


def stored_row_names(keys: pa.ChunkedArray, sequence_numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the names of stored rows; null for rows without a sequence number, which are new."""
    return pc.binary_join_element_wise(keys, sequence_numbers, _BETWEEN)


def row_names(stored_rows: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """The names by which rows to be written are matched: the name of the stored row that each replaces; for new rows
    their key, which is no stored row's name.
    """
    return pc.coalesce(stored_rows, keys)
