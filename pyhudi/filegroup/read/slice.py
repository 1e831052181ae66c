"""The reader of one file slice: base file and log files, merged into a stream of batches.

    log blocks, oldest first → RecordBuffer → one version per key
    base rows, batch by batch → losing rows are dropped, their replacements added → finally rows that only logs have

Filters on ordinary columns run after this: a base row that fails one may be an old version of a row that passes.
Source: docs/architecture.md, "How a table is read"; docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyhudi.arrow.rows import concat_rows
from pyhudi.errors import UnsupportedTable
from pyhudi.filegroup.read.log_blocks import (
    BlockRules,
    DamageRules,
    LogTotals,
    blocks_of,
    check_columns,
    scan_slice,
)
from pyhudi.filegroup.read.matching import KeyFilter, KeyMatching, Matching, PositionMatching, positions_fit
from pyhudi.filegroup.read.record_buffer import (
    DEFAULT_MEMORY_BYTES,
    LogRecords,
    RecordBuffer,
    delete_flags,
    with_record_keys,
)
from pyhudi.filegroup.read.spill import Positions
from pyhudi.formats.base import BATCH_ROWS, BaseFileReader, open_base_file
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock
from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge import merge_mode
from pyhudi.merge.base import Mask, Place
from pyhudi.merge.combine import ordering_columns
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import Versions
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import DELETE_FLAG_COLUMN, RECORD_KEY
from pyhudi.model.table_format import TableFormat
from pyhudi.schema.column_mapping import file_columns
from pyhudi.schema.internal import InternalSchema
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage

__all__ = ["SliceMerge", "SliceSpec", "read_file_slice", "read_with_late_keys"]


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """The rules by which slices of one table are read. Picklable.

    `schema`: all of the table's columns, meta columns first; `blocks`: which log blocks count; `key_generator`:
    recomputes keys in tables without meta columns; `memory_bytes`: log rows beyond this limit spill to a file in
    `spill_folder`, None: the system's temporary folder. `history`: the table's schemas, newest first, () if columns of
    files match by name. `damage`: the reaction to log files that lack bytes of completed writes, None: no check.
    `whole`: for a query that reads only blocks of some instants: finds the slice as of the last of these instants with
    a log file in it, which holds the other columns of partial updates; None if it no longer exists. `check_pages`: see
    `open_base_file`.
    """

    storage: Storage
    schema: pa.Schema
    blocks: BlockRules
    merge: MergeRules
    key_generator: KeyGenerator | None = None
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    spill_folder: str | None = None
    history: tuple[InternalSchema, ...] = ()
    damage: DamageRules | None = None
    whole: Callable[[FileSlice], FileSlice | None] | None = None
    check_pages: bool = True

    def open_base(self, path: str) -> BaseFileReader:
        """Open a base file of the table. Raises PathNotFound, CorruptFile, UnsupportedTable."""
        return open_base_file(self.storage, path, check_pages=self.check_pages)

    def read_schema(self, columns: Sequence[str]) -> pa.Schema:
        """`columns` and the columns that merging needs, in table order."""
        if self.merge.merger is not None:  # a user's merger gets whole rows
            return self.schema
        names = {*columns, *self.deciding, DELETE_FLAG_COLUMN, self.merge.delete_field or RECORD_KEY}
        return pa.schema([column for column in self.schema if column.name in names])

    @property
    def deciding(self) -> frozenset[str]:
        """The columns that decide whether a base row is kept: its key and its ordering values."""
        names = {RECORD_KEY, *(name.partition(".")[0] for name in self.merge.ordering_fields)}
        if self.key_generator is not None:
            names |= set(self.key_generator.input_columns)
        return frozenset(names)


def read_file_slice(
    spec: SliceSpec,
    file_slice: FileSlice,
    columns: Sequence[str],
    batch_rows: int = BATCH_ROWS,
    key_filter: KeyFilter | None = None,
) -> Iterator[pa.RecordBatch]:
    """Merged rows of a slice as of `spec.blocks`, with `columns` in that order.

    Args:   key_filter: other rows may be left out.
    Raises CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    for rows, _ in read_with_late_keys(spec, file_slice, columns, batch_rows, key_filter):
        yield from rows.combine_chunks().to_batches()


def read_with_late_keys(
    spec: SliceSpec,
    file_slice: FileSlice,
    columns: Sequence[str],
    batch_rows: int = BATCH_ROWS,
    key_filter: KeyFilter | None = None,
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Like `read_file_slice`; each table comes with the keys whose base row won against a version in the log files.

    All tables have the nullability of `spec.schema`, which versions from log files lack.
    """
    read_schema = spec.read_schema(columns)
    merge = SliceMerge.of(spec, file_slice, read_schema, needs_keys=RECORD_KEY in columns, key_filter=key_filter)
    with ExitStack() as stack:
        for rows in merge.rows(_open_base(spec, merge.file_slice, stack), batch_rows, key_filter):
            chosen = rows.select(list(columns))
            fields = [field.with_nullable(read_schema.field(field.name).nullable) for field in chosen.schema]
            yield pa.Table.from_arrays(chosen.columns, schema=pa.schema(fields)), merge.late_keys


def _open_base(spec: SliceSpec, file_slice: FileSlice, stack: ExitStack) -> BaseFileReader | None:
    base = file_slice.base_file
    return None if base is None else stack.enter_context(spec.open_base(base.path))


def _whole(spec: SliceSpec, file_slice: FileSlice) -> tuple[SliceSpec, FileSlice]:
    """The spec and slice to read if blocks of some instants lack columns: the whole slice as of the last of these
    instants.
    """
    whole = None if spec.whole is None else spec.whole(file_slice)
    if whole is None:
        raise UnsupportedTable(
            f"{spec.storage.root}: the log file {file_slice.log_files[0].path} has rows of a partial update, whose "
            "other columns were committed before the range of this incremental query and no longer exist. Begin later, "
            "or compare snapshots (as_of)."
        )
    # From version 8 on whole files have been left out; below, a log file has blocks of several instants.
    has_whole_files = TableFormat(spec.blocks.table_version).has_own_log_files
    last = None if has_whole_files else max(spec.blocks.instants or (), default=None)
    return replace(spec, blocks=replace(spec.blocks, instants=None, latest_instant=last)), whole


class SliceMerge:
    """The log records of a slice, one version per key, ready to be merged with its base rows.

    `file_slice`: the merged slice, see `of`. `in_pairs`: a row can have columns of several versions. Counts grow as
    rows are read: `updated` base rows got a new version, `deleted` ones none, `inserted` rows are only in logs.
    `late_keys`: keys of the latest batch whose log version lost against the base row. Base rows are merged in the order
    of their file, each once.
    """

    def __init__(
        self,
        spec: SliceSpec,
        file_slice: FileSlice,
        read_schema: pa.Schema,
        records: LogRecords,
        in_pairs: bool,
        log: LogTotals,
        needs_keys: bool,
    ) -> None:
        self.records, self.log, self.file_slice = records, log, file_slice
        self._base_instant = file_slice.base_file.instant_time if file_slice.base_file is not None else ""
        self.updated = self.deleted = self.inserted = 0
        self.late_keys: pa.Array = pa.array([], pa.string())
        self._spec, self._read_schema, self._rules = spec, read_schema, spec.merge
        self._merge = pair_merger(spec.merge)
        self._mode = merge_mode(spec.merge.mode, spec.merge.ordering_fields)
        self.in_pairs = in_pairs
        self._needs_keys = needs_keys
        self._matching: Matching = KeyMatching(len(records), records.key_parts)
        self._is_matched = np.zeros(len(records), np.bool_)

    @classmethod
    def of(
        cls,
        spec: SliceSpec,
        file_slice: FileSlice,
        read_schema: pa.Schema,
        *,
        needs_keys: bool = True,
        key_filter: KeyFilter | None = None,
        keeps_blocks: bool = False,
    ) -> SliceMerge:
        """Read the log files of a slice, or of its whole slice (`SliceSpec.whole`) if blocks lack columns.

        Args:    read_schema: the columns of the result, see `SliceSpec.read_schema`; needs_keys: False if base rows may
                     lack their record key when the logs have their positions; key_filter: other rows may be left out;
                     keeps_blocks: the file cache keeps the rows of blocks, as with a key filter.
        Raises:  DamagedLog, depending on `spec.damage`; UnsupportedTable for rows that need other commits to be
            complete.
        """
        parts = scan_slice(spec.storage, file_slice, spec.damage)
        blocks = blocks_of(parts, spec.blocks)
        partial = any(block.is_partial for block in blocks)
        if partial and spec.blocks.instants is not None and file_slice.base_file is None:
            return cls.of(*_whole(spec, file_slice), read_schema, needs_keys=needs_keys, key_filter=key_filter)
        in_pairs = spec.merge.needs_pairs or partial
        buffer = RecordBuffer(read_schema, spec.merge, in_pairs=in_pairs, memory=(spec.memory_bytes, spec.spill_folder))
        base = file_slice.base_file.instant_time if file_slice.base_file and not in_pairs else ""
        count = 0
        for block in blocks:
            if block.is_delete:
                deleted = 0
                for deletes in block.delete_parts():
                    buffer.add_deletes(deletes)
                    deleted += deletes.keys.num_rows
                if deleted:
                    buffer.add_positions(block.delete_positions(base, deleted))
                count += deleted
                continue
            columns = file_columns(spec.history, block.instant_time, read_schema.names)
            block_rows = block.rows(columns.names, keep=keeps_blocks or key_filter is not None)
            missing = set(columns.names).difference(block_rows.column_names)
            if missing and not block.is_partial:
                has_meta = spec.key_generator is None
                check_columns(block, missing, spec.schema.names, spec.blocks, has_meta=has_meta)
            keyed_rows = with_record_keys(spec.key_generator, columns.named(block_rows))
            rows = project(keyed_rows, read_schema)
            absent = (
                frozenset(read_schema.names) - frozenset(keyed_rows.column_names)
                if block.is_partial
                else frozenset[str]()
            )
            count += len(rows)
            if key_filter is not None and not block.is_partial:
                rows, positions = key_filter.filter(rows), None
                if not len(rows):
                    continue
            else:
                positions = block.positions(base, block_rows)
            buffer.add_rows(rows, delete_flags(spec.merge, rows), absent, positions)
        corrupt = sum(isinstance(block, CorruptRange) for block in parts)
        rollbacks = sum(isinstance(block, LogBlock) and block.rollback_target is not None for block in parts)
        instants = tuple(dict.fromkeys(block.instant_time for block in blocks))
        totals = LogTotals(len(blocks), count, instants, corrupt, rollbacks)
        return cls(spec, file_slice, read_schema, buffer.merge(), in_pairs, totals, needs_keys)

    def rows(
        self, base: BaseFileReader | None, batch_rows: int = BATCH_ROWS, key_filter: KeyFilter | None = None
    ) -> Iterator[pa.Table]:
        """All merged rows: those of the base file in its order, then those that only logs have. `key_filter`: other
        rows of the base file may be left out.
        """
        if base is not None and key_filter is not None and key_filter.applies_to(base):
            yield from (self.with_base(stored_rows) for stored_rows in self._filtered_rows(base, key_filter))
        elif base is not None:
            yield from self.base_rows(base, batch_rows)
        yield from self.log_rows(batch_rows)

    def base_rows(
        self, base: BaseFileReader, batch_rows: int = BATCH_ROWS, *, keep_dictionaries: bool = False
    ) -> Iterator[pa.Table]:
        """The merged rows of the base file's keys, a table per batch of the file.

        Args:    keep_dictionaries: string columns with few values may be dictionary-encoded.
        """
        dictionaries = self._dictionaries(base) if keep_dictionaries else frozenset[str]()
        for stored_rows in self.stored_rows(base, self._read_schema, batch_rows, dictionaries):
            yield self.with_base(stored_rows)

    def stored_rows(
        self,
        base: BaseFileReader,
        schema: pa.Schema,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = frozenset(),
    ) -> Iterator[pa.Table]:
        """The unmerged rows of the base file, in its order, with their keys if these are needed."""
        self._matching = self._matching_in(base)
        columns = file_columns(self._spec.history, self._base_instant, schema.names)
        names = base.columns_of(columns.names)
        if isinstance(self._matching, PositionMatching) and not self._needs_keys and len(names) > 1:
            names = [name for name in names if name != RECORD_KEY]
            schema = pa.schema([column for column in schema if column.name != RECORD_KEY])
        for batch in base.batches(names, batch_rows, dictionaries):
            rows = pa.Table.from_batches([batch])
            yield (
                rows
                if dictionaries
                else project(with_record_keys(self._spec.key_generator, columns.named(rows)), schema)
            )

    def _filtered_rows(self, base: BaseFileReader, key_filter: KeyFilter) -> Iterator[pa.Table]:
        """The base rows that a filter lets through. Log records match them by key, as positions refer to all rows."""
        self._matching = KeyMatching(len(self.records), self.records.key_parts)
        names = base.columns_of(self._read_schema.names)
        for batch in key_filter.read(base, names):
            yield project(with_record_keys(self._spec.key_generator, pa.Table.from_batches([batch])), self._read_schema)

    def _matching_in(self, base: BaseFileReader) -> Matching:
        positions = self.records.positions
        if positions is not None and positions_fit(positions, base.num_rows):
            return PositionMatching(positions)
        return KeyMatching(len(self.records), self.records.key_parts)

    def replaced_by_position(self, base: BaseFileReader) -> Positions | None:
        """The replaced base rows, if they can be found without reading the base file."""
        if self._rules.by_ordering:
            return None
        matching = self._matching_in(base)
        return matching.rows if isinstance(matching, PositionMatching) else None

    def _dictionaries(self, base: BaseFileReader) -> frozenset[str]:
        """The columns that may remain dictionary-encoded: none if rows are converted or merged column by column."""
        types = {field.name: field.type for field in base.schema}
        as_is = all(types.get(field.name) == field.type for field in self._read_schema)
        if not as_is or self.in_pairs or self._spec.key_generator is not None or self._spec.history:
            return frozenset()
        compared = {RECORD_KEY, *(name.partition(".")[0] for name in self._rules.ordering_fields)}
        return frozenset(base.low_cardinality_columns()) & frozenset(self._read_schema.names) - compared

    def log_rows(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """The rows whose keys no base row has. Read `base_rows` to its end first."""
        self.late_keys = self.late_keys[:0]
        for versions in self.only_in_logs(batch_rows):
            self.inserted += len(versions)
            yield self.records.take(versions)

    def only_in_logs(self, batch_rows: int = BATCH_ROWS) -> Iterator[Positions]:
        """The positions of live versions without a base row."""
        for first in range(0, len(self.records), batch_rows):
            window = slice(first, first + batch_rows)
            yield np.flatnonzero(~self._is_matched[window] & ~self.records.is_delete[window]) + first

    def with_base(self, stored_rows: pa.Table) -> pa.Table:
        """The winning base rows, followed by the log rows that replace the others."""
        replaced, replacements = self.merge_batch(stored_rows)
        if not len(replaced):
            return stored_rows
        keep = np.ones(len(stored_rows), np.bool_)
        keep[replaced] = False
        return concat_rows(stored_rows.filter(pa.array(keep)), replacements.select(stored_rows.column_names))

    def merge_batch(self, stored_rows: pa.Table) -> tuple[Positions, pa.Table]:
        """The positions of the replaced base rows, and the live rows that replace them."""
        hits, partners = self._matches(stored_rows)
        if self.in_pairs and len(hits):
            replacements = self._merged_pairs(stored_rows, hits, partners)
            self.updated += len(replacements)
            self.deleted += len(hits) - len(replacements)
            return hits, replacements
        replaced, partners = self._replaced(stored_rows, hits, partners)
        updates = partners[~self.records.is_delete[partners]]
        self.updated += len(updates)
        self.deleted += len(partners) - len(updates)
        return replaced, self.records.take(updates)

    def replaced_rows(self, stored_rows: pa.Table) -> tuple[Positions, Positions]:
        """The positions of replaced base rows and of losing log versions, from keys and ordering values alone."""
        hits, partners = self._matches(stored_rows)
        if self.in_pairs:
            return hits, partners[:0]
        replaced, won = self._replaced(stored_rows, hits, partners)
        return replaced, np.setdiff1d(partners, won, assume_unique=True)

    def _matches(self, stored_rows: pa.Table) -> tuple[Positions, Positions]:
        """The positions of the base rows whose key is in the logs, and the versions with that key."""
        self.late_keys = self.late_keys[:0]
        hits, partners = self._matching.find(stored_rows)
        self._is_matched[partners] = True
        return hits, partners

    def _replaced(self, stored_rows: pa.Table, hits: Positions, partners: Positions) -> tuple[Positions, Positions]:
        """The matches in which the log version wins."""
        if not len(hits) or not self._rules.by_ordering:
            return hits, partners
        wins = self._judge(stored_rows, hits, partners)
        self.late_keys = self.records.keys(partners[~wins])
        return hits[wins], partners[wins]

    def _merged_pairs(self, stored_rows: pa.Table, hits: Positions, partners: Positions) -> pa.Table:
        older_rows = stored_rows.take(pa.array(hits))
        ordering = ordering_columns(older_rows, self._rules.ordering_fields) if self._rules.by_ordering else []
        older = Versions(older_rows, np.zeros(len(hits), np.bool_), tuple(ordering))
        merged = self._merge.merge(older, self.records.versions(partners), Place.SLICE)
        if merged.is_older is not None:
            self.late_keys = self.records.keys(partners[merged.is_older])
        return merged.rows.filter(pa.array(~merged.is_delete))

    def _judge(self, stored_rows: pa.Table, hits: Positions, partners: Positions) -> Mask:
        existing = ordering_columns(stored_rows, self._rules.ordering_fields, pa.array(hits))
        return self._mode.replaces(existing, self.records.ordering(partners), self.records.is_delete[partners])
