"""The rewrite of one base file with updates, deletes, and inserts that go into its file group.

The key column is matched once against the incoming rows. Then the file is streamed: losing rows of each batch are
filtered out, and the incoming rows that replace them follow the batch, so that rows remain in their row group and
statistics remain narrow; rows with new keys come last. Remaining rows keep their meta columns, except for the file
name. Row groups without matches are copied as they are stored, without being decoded. If rows change only in some
columns, the chunks of the other columns are copied.
Source: docs/formats/base-files.md, "Meta columns"; docs/formats/parquet.md, "Copied row groups";
docs/formats/merging.md, "Two versions of a key"; docs/formats/timeline.md, "Commit metadata".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.rows import concat_rows, replace_rows
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.filegroup.write.base_file import NewBaseFile, stored_columns
from pyhudi.filegroup.write.change_log import ChangeLog
from pyhudi.filegroup.write.incoming_rows import NOTHING_UNCHANGED, IncomingRows, UnchangedColumns
from pyhudi.filegroup.write.key_filter import ReusedFooter
from pyhudi.filegroup.write.markers import MERGE
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.base import BaseFileReader, open_base_file
from pyhudi.merge import merge_mode
from pyhudi.merge.base import Place
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.versions import Versions, stored_row_names
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import COMMIT_SEQNO, FILE_NAME, META_COLUMNS, RECORD_KEY
from pyhudi.schema.column_mapping import file_columns
from pyhudi.schema.projection import project
from pyhudi.storage.clock import Clock

__all__ = ["merge_file"]

# Share of a full row group from which one without changes is copied, not decoded and encoded.
COPIED_FROM = 0.5

_Flags = npt.NDArray[np.bool_]
_Positions = npt.NDArray[np.int64]


def merge_file(
    spec: WriteSpec, task: TaskContext, base: BaseFile, incoming: pa.Table, clock: Clock,
    *, match_keys: bool = True, first_seq: int = 0, unchanged: Mapping[int, frozenset[str]] = NOTHING_UNCHANGED,
) -> WriteStatus:  # fmt: skip
    """Write the next version of a base file.

    Args:
        base: the file group's newest base file.
        incoming: columns of `spec.schema` and RECORD_KEY, one row per key; IS_DELETE marks deletes (absent: none). When
            all rows are deletes, data columns may be absent; deletes without ordering values always win. With
            STORED_ROW there is one row per stored row that it names, and other rows of the key stay.
        match_keys: False appends `incoming` as it is (inserts into a small file, keys may repeat).
        first_seq: row number of the first new row in the sequence numbers.
        unchanged: by the number in a row's CHANGE: the columns that the row lacks and takes from the stored row. Not
            for ordering columns, and not where versions are merged pair by pair.
    Returns: the status of the one new file. The file and its change log are written even if no rows remain.
    Raises:  ConfigError if incoming keys repeat, SchemaMismatch, KeyGenError, CorruptFile.
    """
    started_s = clock.monotonic_s()
    rows = IncomingRows.of(spec, incoming, match_keys)
    with open_base_file(spec.storage, base.path, check_pages=spec.file.page_checksums) as reader:
        merge = _Merge(spec, base, reader, rows, match_keys, UnchangedColumns.of(incoming, unchanged))
        scanned_s = clock.monotonic_s()
        file = NewBaseFile(
            replace(spec, file=replace(spec.file, plain_columns=reader.plain_columns())),
            task,
            base.partition_path,
            base.file_id,
            MERGE,
            clock,
            bloom=merge.keys.bloom,
            keys=merge.keys.key_range,
            gathers=True,
        )
        try:
            if spec.change_log is not None:
                merge.changes = ChangeLog(spec, spec.change_log, task, base.partition_path, base.file_id)
            merge.run(file, first_seq)
            stat = file.close_rewritten(base, merge, (started_s, scanned_s), clock)
            if merge.changes is not None:
                stat = replace(stat, cdc_stats=merge.changes.close())
        except BaseException:
            file.abandon()
            raise
    return WriteStatus(
        stat,
        rows_read=len(incoming),
        skipped=merge.skipped,
        column_stats=file.column_stats(),
        new_keys=file.new_keys,
        removed_keys=merge.removed_keys,
    )


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The replaced stored rows of a batch. `rows`: their positions; `partners`: the incoming rows of their keys;
    `deleted`: flags of those without replacement; `replacements`: the rows that replace the others, in their order.
    """

    rows: _Positions
    partners: _Positions
    deleted: _Flags
    replacements: pa.Table


class _Merge:
    """One pass over the stored rows. `changes`: the change log, if there is one."""

    changes: ChangeLog | None = None

    def __init__(
        self,
        spec: WriteSpec,
        base: BaseFile,
        reader: BaseFileReader,
        incoming: IncomingRows,
        match_keys: bool,
        unchanged: UnchangedColumns,
    ) -> None:
        self._unchanged_columns = unchanged
        self._spec, self._base, self._reader, self._incoming = spec, base, reader, incoming
        self._stored_columns = stored_columns(spec)
        self._rules = spec.merging
        self._mode = merge_mode(self._rules.mode, self._rules.ordering_fields)
        self._file_schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *self._stored_columns])
        self._is_matched = np.zeros(len(incoming.keys), np.bool_)  # incoming keys that the file holds
        self.updated = self.inserted = self.deleted = self.skipped = 0
        self._removed: list[pa.Array] = []
        self._stored_keys = reader.column(RECORD_KEY) if spec.populate_meta_fields else None
        self._matches: npt.NDArray[np.int32] | None = None
        self._staying_keys: list[pa.Array] = []  # keys of incoming rows that other rows of the file keep
        if self._stored_keys is not None and match_keys:
            names = self._stored_keys
            if incoming.by_row:
                names = stored_row_names(names, reader.column(COMMIT_SEQNO))
            self._matches = _positions(names, incoming.names)
        elif not match_keys:
            self._matches = np.full(reader.num_rows, -1, np.int32)
        deletes = incoming.keys.filter(pa.array(incoming.is_delete))
        self.keys = ReusedFooter.of(spec, reader.footer, reader.num_rows, deletes, self._most_new_keys())

    def _most_new_keys(self) -> int:
        """The greatest possible number of incoming keys that the file does not hold."""
        is_new = ~self._incoming.is_delete
        if self._matches is not None:
            is_new[self._matches[self._matches >= 0]] = False
        return int(np.count_nonzero(is_new))

    def run(self, file: NewBaseFile, first_seq: int) -> None:
        """Write all rows of the new file."""
        self._seq = first_seq
        first = self._run_parts(file)
        if first != self._reader.num_rows:
            raise CorruptFile(f"{self._base.path}: the footer says {self._reader.num_rows} rows, found {first}.")
        new = np.flatnonzero(~self._is_matched & ~self._incoming.is_delete)
        if self._unchanged_columns.any_of(new):
            raise CorruptFile(f"{self._base.path}: rows that are to be changed here are not in the file.")
        self.inserted = len(new)
        self._write_inserts(file, new)

    def _run_parts(self, file: NewBaseFile) -> int:
        """Copy, patch or merge the parts of the stored file, in order; return the number of their rows."""
        copied = self._copied_columns(file)
        if copied:
            file.start_copying(self._reader)
        first, sizes = 0, self._reader.part_rows
        for is_copied, parts in groupby(range(len(sizes)), copied.__contains__):
            if not is_copied:
                for batch in self._stored_batches(list(parts) if copied else None, first):
                    self._merge_batch(file, batch, first)
                    first += len(batch)
                continue
            for part in parts:
                if self._stored_keys is not None:
                    self._add_copied_keys(file, self._stored_keys.slice(first, sizes[part]))
                file.copy_part(part, sizes[part], self._patched(file, part, first, copied[part]))
                first += sizes[part]
        return first

    def _copied_columns(self, file: NewBaseFile) -> Mapping[int, frozenset[str]]:
        """The columns to copy as they are stored, by part number.

        A part without matching keys has all of its columns copied. A part without deletes has those columns copied that
        no update changes. Small parts are merged with others, or each write would leave one more of them.
        """
        matches, sizes = self._matches, self._reader.part_rows
        if matches is None or self._stored_keys is None or self._incoming.by_row or self._spec.history:
            return {}
        full_rows = self._batch_rows()
        copied: dict[int, frozenset[str]] = {}
        for part, (start, end) in enumerate(pairwise(np.cumsum([0, *sizes]).tolist())):
            partners = matches[start:end][matches[start:end] >= 0].astype(np.int64)
            if not 0 < end - start >= COPIED_FROM * full_rows:
                continue
            if not len(partners):
                copied[part] = frozenset(self._file_schema.names)
            elif self.changes is None and end - start <= 2 * full_rows and not self._incoming.is_delete[partners].any():
                copied[part] = self._unchanged_columns.of_all(partners)
        copyable = file.copyable_parts(self._reader) if any(copied.values()) else frozenset()
        return {part: names for part, names in copied.items() if names and part in copyable}

    def _patched(self, file: NewBaseFile, part: int, first: int, copied: frozenset[str]) -> pa.Table | None:
        """The columns of a part except `copied`, with changed rows in place; None without changes."""
        names = [name for name in self._file_schema.names if name not in copied]
        if not names:
            return None
        stored_rows = pa.concat_tables(self._stored_batches([part], first, names)).combine_chunks()
        replaced = self._replaced(stored_rows, first)
        if replaced is None or not len(replaced.rows):
            return None
        replacements = self._new_rows(file, replaced.replacements)
        return replace_rows(stored_rows, replaced.rows, replacements.select(stored_rows.column_names)).drop_columns(
            [RECORD_KEY]
        )

    def _write_inserts(self, file: NewBaseFile, new: _Positions) -> None:
        group_rows = self._spec.file.row_group_rows
        for first in range(0, len(new), group_rows):
            rows = self._take(new[first : first + group_rows])
            if self.changes is not None:
                self.changes.inserted(single_array(rows.column(RECORD_KEY)), rows)
            file.write(self._new_rows(file, rows))
            file.add_keys(rows.column(RECORD_KEY))
            file.note_new_keys(rows.column(RECORD_KEY))

    @property
    def removed_keys(self) -> pa.Array | None:
        """Keys that left the file group; None unless the spec asks for reports."""
        if not self._spec.reports_keys:
            return None
        removed = pa.concat_arrays([pa.array([], pa.string()), *self._removed])
        if not self._staying_keys:
            return removed
        return pc.unique(removed.filter(pc.invert(pc.is_in(removed, value_set=pa.concat_arrays(self._staying_keys)))))

    def _stored_batches(
        self, parts: Sequence[int] | None, first: int, only: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The stored rows with the new file's columns and types, without the file name, in file order.

        Args:    parts: see `BaseFileReader.batches`; first: the number of their first row; only: these columns and the
                     key, and without dictionaries.
        """
        # The key column is already in memory, since it was matched as a whole.
        excluded = (FILE_NAME,) if self._stored_keys is None else (FILE_NAME, RECORD_KEY)
        from_file = [name for name in (self._file_schema.names if only is None else only) if name not in excluded]
        stored_types = {field.name: field.type for field in self._reader.schema}
        columns = file_columns(self._spec.history, self._base.instant_time, from_file)
        names = self._reader.columns_of(from_file if columns.by_id is None else columns.names)
        as_is = columns.by_id is None and all(
            stored_types.get(name) == self._file_schema.field(name).type for name in from_file
        )
        # Key generators and projections get plain columns.
        keep_dictionaries = as_is and self._spec.populate_meta_fields and not self._rules.needs_pairs and only is None
        dictionaries = set(self._reader.low_cardinality_columns() if keep_dictionaries else ()) & set(from_file)
        target = pa.schema([self._file_schema.field(name) for name in from_file])
        for batch in self._reader.batches(names, self._batch_rows(), dictionaries, parts=parts):
            table = columns.named(pa.Table.from_batches([batch]))
            if not as_is:
                table = project(table, target)
            if self._stored_keys is not None:
                keys = self._stored_keys.slice(first, len(table))
                table = table.add_column(META_COLUMNS.index(RECORD_KEY), RECORD_KEY, keys)
            first += len(table)
            yield table

    def _batch_rows(self) -> int:
        """The number of rows of a batch, and so of a row group: fewer for wide rows."""
        options = self._spec.file
        row_bytes = self._reader.plain_bytes / max(1, self._reader.num_rows)
        return max(1, min(options.row_group_rows, int(options.row_group_bytes / max(row_bytes, 1.0))))

    def _replaced(self, stored_rows: pa.Table, first: int) -> _Replaced | None:
        """Find and count the replaced rows of a batch; None if no key matches."""
        matches = self._match(stored_rows, first)
        hits = np.flatnonzero(matches >= 0)
        if not len(hits):
            return None
        partners = matches[hits].astype(np.int64)
        self._is_matched[partners] = True
        replaced = (self._merged if self._rules.needs_pairs else self._won)(stored_rows, hits, partners)
        rows, replacements = replaced.rows, replaced.replacements
        self.skipped += len(hits) - len(rows)
        self.updated += len(replacements)
        self.deleted += len(rows) - len(replacements)
        if self._spec.reports_keys and len(rows) > len(replacements):
            keys = self._incoming.keys.take(pa.array(partners[np.isin(hits, rows)]))
            stays = pc.is_in(keys, value_set=single_array(replacements.column(RECORD_KEY)))
            self._removed.append(keys.filter(pc.invert(stays)))
        return replaced

    def _merge_batch(self, file: NewBaseFile, stored_rows: pa.Table, first: int) -> None:
        copied, replacements = stored_rows, None
        replaced = self._replaced(stored_rows, first)
        if replaced is not None:
            replacements = replaced.replacements
            if len(replaced.rows):
                self._note(stored_rows, replaced)
                keep = np.ones(len(stored_rows), np.bool_)
                keep[replaced.rows] = False
                copied = stored_rows.filter(pa.array(keep))
        if self._incoming.by_row and self._spec.reports_keys:
            for staying in (copied, *([] if replacements is None else [replacements])):
                keys = single_array(staying.column(RECORD_KEY))
                self._staying_keys.append(keys.filter(pc.is_in(keys, value_set=self._incoming.keys)))
        self._add_copied_keys(file, copied.column(RECORD_KEY))
        rows = file.copied_rows(copied)
        if replacements is not None and len(replacements):
            self._add_copied_keys(file, replacements.column(RECORD_KEY))
            rows = concat_rows(rows, self._new_rows(file, replacements))
        file.write(rows)

    def _note(self, stored_rows: pa.Table, replaced: _Replaced) -> None:
        """Log the changes of stored rows."""
        if self.changes is None:
            return
        for deleted in (False, True):
            chosen = np.flatnonzero(replaced.deleted == deleted)
            keys = self._incoming.keys.take(pa.array(replaced.partners[chosen]))
            before = stored_rows.take(pa.array(replaced.rows[chosen])).select(self._stored_columns.names)
            if deleted:
                self.changes.deleted(keys, before)
            else:
                self.changes.updated(keys, before, replaced.replacements)

    def _add_copied_keys(self, file: NewBaseFile, keys: pa.ChunkedArray) -> None:
        """Add the keys of copied rows."""
        if self.keys.rebuild_bloom or self.keys.rebuild_range:
            file.add_keys(keys, to_bloom=self.keys.rebuild_bloom, to_range=self.keys.rebuild_range)

    def _match(self, stored_rows: pa.Table, first: int) -> npt.NDArray[np.int32]:
        """The position of each stored row's key among the incoming keys, -1 for none."""
        if self._matches is not None:
            return self._matches[first : first + len(stored_rows)]
        generator = self._spec.key_generator
        if generator is None:
            raise ConfigError("Rewriting a file without meta columns needs the table's key generator.")
        rows = stored_rows.select([name for name in stored_rows.column_names if name not in META_COLUMNS])
        for name in self._spec.partition_columns_dropped:
            # The partition is known, but the generator may ask for its columns.
            rows = rows.append_column(name, pa.nulls(len(rows), self._spec.schema.field(name).type))
        keys = [generator.columns(batch).record_key for batch in rows.combine_chunks().to_batches()]
        return _positions(pa.chunked_array(keys, pa.string()), self._incoming.keys)

    def _won(self, stored_rows: pa.Table, hits: _Positions, partners: _Positions) -> _Replaced:
        """The replaced rows among `hits`, with the incoming rows that replace them."""
        wins = self._judge(stored_rows, hits, partners)
        partners = partners[wins]
        deleted = self._incoming.is_delete[partners]
        changed, places = partners[~deleted], hits[wins][~deleted]
        replacements = self._unchanged_columns.completed(self._take(changed), changed, stored_rows, places)
        return _Replaced(hits[wins], partners, deleted, replacements)

    def _merged(self, stored_rows: pa.Table, hits: _Positions, partners: _Positions) -> _Replaced:
        """Like `_won`, where rows are merged pair by pair: the new row can have values of both."""
        rows, incoming = project(stored_rows.take(pa.array(hits)), self._incoming.rows.schema), self._incoming
        indices = pa.array(partners)
        fields = self._rules.ordering_fields if self._rules.by_ordering else ()
        existing = ordering_columns(rows, fields)
        ordering = [values.take(indices) for values in incoming.ordering] or [
            pa.nulls(len(hits), a.type) for a in existing
        ]
        older = Versions(rows, np.zeros(len(hits), np.bool_), tuple(existing))
        newer = Versions(self._take(partners), incoming.is_delete[partners], tuple(ordering))
        merged = pair_merger(self._rules).merge(older, newer, Place.FILE)
        assert merged.is_older is not None
        newer_won = ~merged.is_older
        replacements = merged.rows.filter(pa.array(newer_won & ~merged.is_delete))
        return _Replaced(hits[newer_won], partners[newer_won], merged.is_delete[newer_won], replacements)

    def _judge(self, stored_rows: pa.Table, hits: _Positions, partners: _Positions) -> _Flags:
        """Flags of the incoming partners that win against the stored rows `hits`."""
        if not self._rules.by_ordering:
            return np.ones(len(hits), np.bool_)
        existing = ordering_columns(stored_rows, self._rules.ordering_fields, pa.array(hits))
        indices = pa.array(partners)
        ordering = [values.take(indices) for values in self._incoming.ordering]
        return self._mode.replaces(existing, ordering, self._incoming.is_delete[partners])

    def _take(self, positions: _Positions) -> pa.Table:
        return self._incoming.rows.take(pa.array(positions))

    def _new_rows(self, file: NewBaseFile, rows: pa.Table) -> pa.Table:
        self._seq += len(rows)
        return file.new_rows(rows, self._seq - len(rows))


def _positions(keys: pa.ChunkedArray, incoming_keys: pa.Array) -> npt.NDArray[np.int32]:
    """The position of each key in `incoming_keys`, -1 if it is missing."""
    # One call for the whole column: each call builds the hash table of `incoming_keys` again.
    numbers = pc.fill_null(pc.index_in(keys, value_set=incoming_keys), -1)
    positions: npt.NDArray[np.int32] = numbers.to_numpy()
    return positions
