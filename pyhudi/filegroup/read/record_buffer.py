"""The log records of one file slice: added oldest first, merged to one version per key.

Rows go to temporary Arrow files once they pass a limit, and so do the keys and ordering values by which they merge.
They are read back by position from a memory map. Keys beyond the limit are merged in shares that fit into memory. Each
key takes some 20 bytes of memory, and 40 while keys are merged: the positions of its entry and its row, and a delete
flag.

Merging also needs the record keys of stored rows (`with_record_keys`) and their delete flags (`delete_flags`).

Source: docs/formats/merging.md, "Deletes", "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.filegroup.read.spill import Positions, StoredRows, WaitingRows, keep_to
from pyhudi.formats.base import BATCH_ROWS
from pyhudi.formats.log.blocks.delete import DeleteRecords
from pyhudi.java.hashes import java_string_hash
from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge import merge_mode
from pyhudi.merge.base import Mask, Place
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.rules import MergeRules, marked_deletes
from pyhudi.merge.versions import Versions, merge_versions
from pyhudi.model.keys import DELETE_FLAG_COLUMN, META_COLUMNS, RECORD_KEY

__all__ = ["DEFAULT_MEMORY_BYTES", "LogRecords", "RecordBuffer", "delete_flags", "with_record_keys"]


DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024

_NO_ROW = -1
_NONE = np.zeros(0, np.int64)
_ENTRY = (pa.field(RECORD_KEY, pa.string()), pa.field("is delete", pa.bool_()), pa.field("row", pa.int64()))
_FIRST_ORDERING = len(_ENTRY)
_SHARES = 256  # at most
_SHARE_BYTES = 4 << 20  # at least, except the last
_SHARE_OF_MEMORY = 8  # merging a share takes several times its size
_ODD = 0x9E3779B1


@dataclass(frozen=True, slots=True)
class LogRecords:
    """One version per key, numbered in the order in which keys first occurred.

    `absent`: columns that partial updates did not set, see `Versions`. `positions`: the base row of each key; None when
    a block lacks positions.
    """

    is_delete: Mask
    absent: Mapping[str, Mask]
    positions: Positions | None
    _entries: StoredRows
    _at: Positions  # positions of these versions' entries
    _rows: StoredRows
    _row_numbers: Positions

    def __len__(self) -> int:
        return len(self._at)

    def keys(self, versions: Positions) -> pa.Array:
        """The record keys of these versions."""
        return single_array(self._entries.take(self._at[versions], [RECORD_KEY]).column(0))

    def key_parts(self) -> Iterator[tuple[int, pa.Array]]:
        """All keys in order, in parts, each with the number of its first version."""
        step = BATCH_ROWS if self._entries.in_file else max(1, len(self))
        for first in range(0, len(self), step):
            yield first, self.keys(np.arange(first, min(first + step, len(self))))

    def ordering(self, versions: Positions) -> list[pa.Array]:
        """One array per ordering field, null where a version has no value."""
        names = self._entries.schema.names[_FIRST_ORDERING:]
        return [single_array(column) for column in self._entries.take(self._at[versions], names).columns]

    def take(self, versions: Positions) -> pa.Table:
        """The rows of versions that are not deletes."""
        return self._rows.take(self._row_numbers[versions])

    def versions(self, versions: Positions) -> Versions:
        """These versions, to be merged pair by pair; only for a buffer that merges in pairs."""
        return Versions(
            self.take(versions),
            self.is_delete[versions],
            tuple(self.ordering(versions)),
            {name: mask[versions] for name, mask in self.absent.items()},
        )


class RecordBuffer:
    """Collects the rows and deletes of a slice's blocks, in merge order.

    Args:    schema: columns of the rows, including RECORD_KEY and the ordering fields' columns; in_pairs: results can
                 have columns of several versions; memory: the limit in bytes, and the folder for what exceeds it.
    """

    def __init__(
        self,
        schema: pa.Schema,
        rules: MergeRules,
        *,
        in_pairs: bool,
        memory: tuple[int, str | None] = (DEFAULT_MEMORY_BYTES, None),
    ) -> None:
        self._schema, self._rules, self._in_pairs = schema, rules, in_pairs
        self._ordering_fields = rules.ordering_fields if rules.by_ordering else ()
        self._memory_bytes, self._spill_folder = memory
        self._ordering_types = [a.type for a in ordering_columns(schema.empty_table(), self._ordering_fields)]
        self._absent: list[tuple[int, frozenset[str]]] = []
        self._positions: list[Positions | None] = []
        self._entries, self._rows = self._new_buffers()

    def _new_buffers(self) -> tuple[WaitingRows, WaitingRows]:
        ordering = [pa.field(f"ordering {i}", kind) for i, kind in enumerate(self._ordering_types)]
        entries = pa.schema([*_ENTRY, *ordering])
        return WaitingRows(entries, self._spill_folder), WaitingRows(self._schema, self._spill_folder)

    def add_rows(
        self,
        rows: pa.Table,
        is_delete: Mask | None = None,
        absent: frozenset[str] = frozenset(),
        positions: Positions | None = None,
    ) -> None:
        """Add the rows of one block, with the columns of `schema`.

        Args:    is_delete: marks rows that delete their key; absent: columns that the block lacks because it holds
                     partial updates; positions: the base rows of their keys, None when the block lacks them.
        """
        if not rows.num_rows:
            return
        self._positions.append(positions)
        deletes = np.zeros(len(rows), np.bool_) if is_delete is None else is_delete
        keys = single_array(rows.column(RECORD_KEY))
        self._note(keys, ordering_columns(rows, self._ordering_fields), deletes, self._store(rows, absent))

    def _store(self, rows: pa.Table, absent: frozenset[str]) -> Positions:
        first = self._rows.count
        self._absent.append((len(rows), absent))
        self._rows.add(rows)
        return np.arange(first, first + len(rows), dtype=np.int64)

    def _note(self, keys: pa.Array, ordering: Sequence[pa.Array], is_delete: Mask, numbers: Positions) -> None:
        columns = [keys, pa.array(is_delete), pa.array(numbers), *ordering]
        self._entries.add(pa.Table.from_arrays(columns, schema=self._entries.schema))
        keep_to(self._memory_bytes, self._entries, self._rows)

    def add_deletes(self, deletes: DeleteRecords) -> None:
        """Add the deletes of one block, or of a part of it; call `add_positions` next."""
        count = deletes.keys.num_rows
        if not count:
            return
        keys = deletes.keys.column(RECORD_KEY)
        numbers = np.full(count, _NO_ROW, np.int64)
        if self._in_pairs:
            columns = [keys if field.name == RECORD_KEY else pa.nulls(count, field.type) for field in self._schema]
            numbers = self._store(pa.Table.from_arrays(columns, schema=self._schema), frozenset())
        ordering = [self._delete_ordering(deletes, i) for i in range(len(self._ordering_types))]
        self._note(keys, ordering, np.ones(count, np.bool_), numbers)

    def add_positions(self, positions: Positions | None) -> None:
        """Add the base rows of the keys of a delete block that is not empty; None if the block lacks them."""
        self._positions.append(positions)

    def _delete_ordering(self, deletes: DeleteRecords, field: int) -> pa.Array:
        kind = self._ordering_types[field]
        if len(self._ordering_types) != len(deletes.ordering):  # values of other fields don't compare
            return pa.nulls(deletes.keys.num_rows, kind)
        values = deletes.ordering[field]
        try:
            # A local timestamp is written as an instant, and decimals with more digits than their column has.
            return values.cast(kind, safe=False) if values.type != kind else values
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatch(
                f"A delete block orders {self._ordering_fields[field]!r} by {values.type}, the table by {kind}: "
                f"{error}."
            ) from error

    def merge(self) -> LogRecords:
        """Merge to one version per key. The result does not need the buffer."""
        entries, rows = self._entries.to_stored().joined(), self._rows.to_stored()
        return self._in_pairs_merged(entries, rows) if self._in_pairs else self._picked(entries, rows)

    def _picked(self, entries: StoredRows, rows: StoredRows) -> LogRecords:
        """Pick the winning version of each key."""
        mode = merge_mode(self._rules.mode, self._rules.ordering_fields)
        # Ordered by the first entry of each key, which needs neither a copy nor a sort.
        kind = np.int32 if entries.count <= np.iinfo(np.int32).max else np.int64
        winner, number_of = np.full(entries.count, _NO_ROW, kind), np.empty(entries.count, kind)
        deletes = np.empty(entries.count, np.bool_)
        for at, share in self._shares(entries):
            keys, is_delete, number, ordering = _columns(share)
            groups = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
            won = mode.last_of_each(groups, ordering, is_delete)
            first = at[np.unique(groups, return_index=True)[1]]
            winner[first], deletes[first], number_of[first] = at[won], is_delete[won], number[won]
        order = np.flatnonzero(winner != _NO_ROW)
        won, is_delete, number = winner[order].astype(np.int64), deletes[order], number_of[order].astype(np.int64)
        of_base = self._of_base(won)
        if not entries.in_file:  # copying frees the memory of losing versions
            entries, won = entries.only(won), np.arange(len(won))
        return LogRecords(is_delete, {}, of_base, entries, won, rows, number)

    def _in_pairs_merged(self, entries: StoredRows, rows: StoredRows) -> LogRecords:
        """Merge all versions of each key."""
        merger, masks = pair_merger(self._rules), self._absent_masks()
        merged_entries, merged_rows = self._new_buffers()
        firsts, deletes = [_NONE], [_NONE.astype(np.bool_)]
        absent: list[tuple[int, Mapping[str, Mask]]] = []
        for at, share in self._shares(entries):
            keys, is_delete, number, ordering = _columns(share)
            in_share = {name: mask[at] for name, mask in masks.items()}
            versions = Versions(rows.take(number), is_delete, tuple(ordering), in_share)
            first, merged = merge_versions(keys, versions, merger, Place.LOGS)
            firsts.append(at[first])
            deletes.append(merged.is_delete)
            absent.append((len(merged), merged.absent))
            numbers = pa.array(np.arange(len(merged)) + merged_rows.count)
            noted = [keys.take(pa.array(first)), pa.array(merged.is_delete), numbers, *merged.ordering]
            merged_entries.add(pa.Table.from_arrays(noted, schema=merged_entries.schema))
            merged_rows.add(merged.rows)
            keep_to(self._memory_bytes, merged_entries, merged_rows)
        first = np.concatenate(firsts)
        order = np.argsort(first, kind="stable")
        masks = {name: mask[order] for name, mask in _joined_masks(absent).items()}
        of_base = self._of_base(first[order])
        is_delete = np.concatenate(deletes)[order]
        return LogRecords(is_delete, masks, of_base, merged_entries.to_stored(), order, merged_rows.to_stored(), order)

    def _shares(self, entries: StoredRows) -> Iterator[tuple[Positions, pa.Table]]:
        """The entries and their positions, with all entries of a key together: all at once, or split by the keys'
        hashes into shares that fit into memory.
        """
        share_bytes = max(_SHARE_BYTES, self._memory_bytes // _SHARE_OF_MEMORY)
        count = min(_SHARES, -(-entries.size_bytes // share_bytes))
        if count <= 1:
            yield np.arange(entries.count), entries.whole()
            return
        share_of = np.concatenate([_share_numbers(batch.column(0), count) for batch in entries.batches])
        for share in range(count):
            at = np.flatnonzero(share_of == share)
            yield at, entries.take(at)

    def _of_base(self, versions: Positions) -> Positions | None:
        """The base rows of these versions, if all blocks name theirs."""
        known = [positions for positions in self._positions if positions is not None]
        return np.concatenate([_NONE, *known])[versions] if len(known) == len(self._positions) else None

    def _absent_masks(self) -> dict[str, Mask]:
        names = frozenset[str]().union(*(absent for _, absent in self._absent))
        return {
            name: np.concatenate([np.full(rows, name in absent, np.bool_) for rows, absent in self._absent])
            for name in names
        }


def _columns(entries: pa.Table) -> tuple[pa.Array, Mask, Positions, list[pa.Array]]:
    """The keys, delete flags, row numbers and ordering values of entries."""
    keys, deletes, numbers, *ordering = (single_array(column) for column in entries.columns)
    return keys, deletes.to_numpy(zero_copy_only=False), numbers.to_numpy(), ordering


def _share_numbers(keys: pa.Array, count: int) -> npt.NDArray[np.uint8]:
    hashes = java_string_hash(keys).view(np.uint32) * np.uint32(_ODD)
    return ((hashes >> 16) % count).astype(np.uint8)


def _joined_masks(parts: Sequence[tuple[int, Mapping[str, Mask]]]) -> dict[str, Mask]:
    names = dict.fromkeys(name for _, masks in parts for name in masks)
    return {
        name: np.concatenate([masks.get(name, np.zeros(rows, np.bool_)) for rows, masks in parts]) for name in names
    }


def with_record_keys(generator: KeyGenerator | None, rows: pa.Table) -> pa.Table:
    """Add the record keys, which tables without meta columns do not store."""
    if generator is None:
        return rows
    plain = rows.select([name for name in rows.column_names if name not in META_COLUMNS])
    keys = pa.chunked_array([generator.columns(b).record_key for b in plain.combine_chunks().to_batches()], pa.string())
    at = rows.schema.get_field_index(RECORD_KEY)
    return rows.append_column(RECORD_KEY, keys) if at < 0 else rows.set_column(at, RECORD_KEY, keys)


def delete_flags(rules: MergeRules, rows: pa.Table) -> Mask | None:
    """Flags for data rows that are deletes by their flag column or by the configured marker."""
    flags: Mask | None = None
    if DELETE_FLAG_COLUMN in rows.column_names and pa.types.is_boolean(rows.schema.field(DELETE_FLAG_COLUMN).type):
        flags = pc.fill_null(single_array(rows.column(DELETE_FLAG_COLUMN)), False).to_numpy(zero_copy_only=False)
    if rules.delete_field is not None and rules.delete_field in rows.column_names:
        marked = marked_deletes(rules, single_array(rows.column(rules.delete_field)))
        flags = marked if flags is None else flags | marked
    return flags
