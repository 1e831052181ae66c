"""The log records of one file slice: added oldest first, merged to one version per key.

Keys, ordering values and positions stay in memory; whole rows go to a temporary Arrow file once they pass a limit, and
are read back by position from its memory map. Source: docs/formats/merging.md, "Deletes", "Two versions of a key".

What merging needs of stored rows: their record keys, and which of them are deletes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.log.blocks.delete import DeleteRecords
from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge import merge_mode
from pyhudi.merge.base import Mask, Place
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.rules import MergeRules, marked_deletes
from pyhudi.merge.versions import Versions, merge_versions
from pyhudi.model.keys import DELETE_FLAG_COLUMN, META_COLUMNS, RECORD_KEY
from pyhudi.storage.base import as_temporary_error

__all__ = ["DEFAULT_MEMORY_BYTES", "LogRecords", "RecordBuffer", "delete_flags", "with_record_keys"]


DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024

Positions = npt.NDArray[np.int64]
_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class LogRecords:
    """One version per key. `ordering`: one array per ordering field, null where the version has no value.

    `absent`: columns that partial updates did not set, see `Versions`. `positions`: the base row of each key; None when
    a block did not say.
    """

    keys: pa.Array
    is_delete: Mask
    ordering: tuple[pa.Array, ...]
    absent: Mapping[str, Mask]
    positions: Positions | None
    _rows: pa.Table
    _row_numbers: Positions

    def take(self, positions: Positions) -> pa.Table:
        """Rows of versions that are not deletes."""
        return self._rows.take(pa.array(self._row_numbers[positions]))

    def versions(self, positions: Positions) -> Versions:
        """Versions to merge pair by pair; only of a buffer that merges in pairs."""
        taken = pa.array(positions)
        return Versions(
            self.take(positions),
            self.is_delete[positions],
            tuple(values.take(taken) for values in self.ordering),
            {name: mask[positions] for name, mask in self.absent.items()},
        )


class RecordBuffer:
    """Collects the rows and deletes of a slice's blocks, in merge order.

    Args:    schema: columns of the rows, RECORD_KEY and the ordering fields' columns among them; in_pairs: results can
             have columns of several versions; memory: bytes of rows, and the folder where those beyond it wait.
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
        self._keys: list[pa.Array] = []
        self._ordering: list[list[pa.Array]] = []
        self._deletes: list[Mask] = []
        self._numbers: list[Positions] = []
        self._positions: list[Positions | None] = []
        self._rows: list[pa.Table] = []
        self._row_count = self._waiting_bytes = 0
        self._spill: _Spill | None = None

    def add_rows(
        self,
        rows: pa.Table,
        is_delete: Mask | None = None,
        absent: frozenset[str] = frozenset(),
        positions: Positions | None = None,
    ) -> None:
        """Rows of one block, columns of `schema`.

        Args:    is_delete: marks rows that delete their key; absent: columns that the block does not have because it
                 holds partial updates; positions: the base rows of their keys, None when the block does not say.
        """
        if not rows.num_rows:
            return
        self._keys.append(single_array(rows.column(RECORD_KEY)))
        self._ordering.append(ordering_columns(rows, self._ordering_fields))
        self._deletes.append(np.zeros(len(rows), np.bool_) if is_delete is None else is_delete)
        self._positions.append(positions)
        self._store(rows, absent)

    def _store(self, rows: pa.Table, absent: frozenset[str]) -> None:
        self._numbers.append(np.arange(self._row_count, self._row_count + len(rows), dtype=np.int64))
        self._row_count += len(rows)
        self._absent.append((len(rows), absent))
        self._rows.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes > self._memory_bytes:
            self._spill = self._spill or _Spill(self._schema, self._spill_folder)
            self._spill.write(self._rows)
            self._rows, self._waiting_bytes = [], 0

    def add_deletes(self, deletes: DeleteRecords, positions: Positions | None = None) -> None:
        """Deletes of one block; see `add_rows`."""
        count = deletes.keys.num_rows
        if not count:
            return
        self._keys.append(deletes.keys.column(RECORD_KEY))
        self._ordering.append([self._delete_ordering(deletes, i) for i in range(len(self._ordering_types))])
        self._deletes.append(np.ones(count, np.bool_))
        self._positions.append(positions)
        if not self._in_pairs:
            self._numbers.append(np.full(count, _NO_ROW, np.int64))
            return
        columns = [
            deletes.keys.column(RECORD_KEY) if field.name == RECORD_KEY else pa.nulls(count, field.type)
            for field in self._schema
        ]
        self._store(pa.Table.from_arrays(columns, schema=self._schema), frozenset())

    def _delete_ordering(self, deletes: DeleteRecords, field: int) -> pa.Array:
        wanted = self._ordering_types[field]
        if len(self._ordering_types) != len(deletes.ordering):  # values of other fields don't compare
            return pa.nulls(deletes.keys.num_rows, wanted)
        values = deletes.ordering[field]
        try:
            # A local timestamp is written as an instant, and decimals with more digits than their column has.
            return values.cast(wanted, safe=False) if values.type != wanted else values
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatch(
                f"A delete block orders {self._ordering_fields[field]!r} by {values.type}, the table by {wanted}: "
                f"{error}."
            ) from error

    def merge(self) -> LogRecords:
        """One version per key; the buffer may be dropped afterwards, the result keeps what it needs."""
        keys = pa.concat_arrays(self._keys) if self._keys else pa.array([], pa.string())
        ordering = tuple(
            pa.concat_arrays([columns[i] for columns in self._ordering]) if self._ordering else pa.array([], kind)
            for i, kind in enumerate(self._ordering_types)
        )
        deletes = np.concatenate([np.zeros(0, np.bool_), *self._deletes])
        numbers = np.concatenate([np.zeros(0, np.int64), *self._numbers])
        if self._in_pairs:
            versions = Versions(self._table(), deletes, ordering, self._absent_masks())
            first, merged = merge_versions(keys, versions, pair_merger(self._rules), Place.LOGS)
            numbers = np.arange(len(merged))
            return LogRecords(
                keys.take(pa.array(first)), merged.is_delete, merged.ordering, merged.absent, self._of_base(first),
                merged.rows, numbers,
            )  # fmt: skip
        groups = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        won = merge_mode(self._rules.mode, self._rules.ordering_fields).last_of_each(groups, ordering, deletes)
        taken = pa.array(won)
        return LogRecords(
            keys.take(taken),
            deletes[won],
            tuple(values.take(taken) for values in ordering),
            {},
            self._of_base(won),
            self._table(),
            numbers[won],
        )

    def _of_base(self, versions: Positions) -> Positions | None:
        """The base rows of these versions, if all blocks name theirs."""
        named = [positions for positions in self._positions if positions is not None]
        return np.concatenate([np.zeros(0, np.int64), *named])[versions] if len(named) == len(self._positions) else None

    def _absent_masks(self) -> dict[str, Mask]:
        names = frozenset[str]().union(*(absent for _, absent in self._absent))
        return {
            name: np.concatenate([np.full(rows, name in absent, np.bool_) for rows, absent in self._absent])
            for name in names
        }

    def _table(self) -> pa.Table:
        spilled = [self._spill.read()] if self._spill is not None else []
        return pa.concat_tables([self._schema.empty_table(), *spilled, *self._rows])


_SPILL_FOLDER = "hoodie.memory.spillable.map.path"


class _Spill:
    """Rows in a temporary Arrow file, in the order in which they came."""

    def __init__(self, schema: pa.Schema, folder: str | None) -> None:
        # Deleted with this object and the tables mapped from it.
        try:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115
                prefix="pyhudi-log-records-", suffix=".arrow", dir=folder
            )
        except OSError as error:
            raise ConfigError(
                f"Log rows that don't fit into memory can't be written to {folder or tempfile.gettempdir()} ({error}); "
                f"name a folder in {_SPILL_FOLDER} that every machine can write to."
            ) from error
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            self._sink = pa.OSFile(self._file.name, "wb")
            self._writer = pa.ipc.new_file(self._sink, schema)

    def write(self, tables: Sequence[pa.Table]) -> None:
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            for table in tables:
                self._writer.write_table(table)

    def read(self) -> pa.Table:
        """All rows, mapped into memory; no writes afterwards."""
        with as_temporary_error(self._file.name, _SPILL_FOLDER):
            self._writer.close()
            self._sink.close()
            return pa.ipc.open_file(pa.memory_map(self._file.name)).read_all()


def with_record_keys(generator: KeyGenerator | None, rows: pa.Table) -> pa.Table:
    """The rows with their record key, which tables without meta columns do not store."""
    if generator is None:
        return rows
    plain = rows.select([name for name in rows.column_names if name not in META_COLUMNS])
    keys = pa.chunked_array([generator.columns(b).record_key for b in plain.combine_chunks().to_batches()], pa.string())
    at = rows.schema.get_field_index(RECORD_KEY)
    return rows.append_column(RECORD_KEY, keys) if at < 0 else rows.set_column(at, RECORD_KEY, keys)


def delete_flags(rules: MergeRules, rows: pa.Table) -> Mask | None:
    """Data rows that are deletes by their flag column or by the configured marker."""
    flags: Mask | None = None
    if DELETE_FLAG_COLUMN in rows.column_names and pa.types.is_boolean(rows.schema.field(DELETE_FLAG_COLUMN).type):
        flags = pc.fill_null(single_array(rows.column(DELETE_FLAG_COLUMN)), False).to_numpy(zero_copy_only=False)
    if rules.delete_field is not None and rules.delete_field in rows.column_names:
        marked = marked_deletes(rules, single_array(rows.column(rules.delete_field)))
        flags = marked if flags is None else flags | marked
    return flags
