"""The work of one write task: rows of a slice are read, paired with source rows, changed, and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.clauses import BoundClause, When
from pyhudi.actions.changes.computed import CLAUSE, NEW_CLAUSE, NumberedClause
from pyhudi.actions.changes.slice_reader import IS_LATE, SliceReader, StoredColumns
from pyhudi.actions.changes.values import ClauseRows
from pyhudi.actions.constraints import BoundConstraint, check_rows
from pyhudi.actions.partitioner import WriteTask
from pyhudi.actions.rows import KEYED_FIELDS, marked_rows
from pyhudi.actions.writes.slot_work import WriteSlot
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError
from pyhudi.formats.damage import check_text_column
from pyhudi.keygen.base import read_field
from pyhudi.merge import combine, merge_mode
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import row_names, stored_row_names
from pyhudi.model.keys import (
    CHANGE,
    COMMIT_SEQNO,
    CONTROL_COLUMNS,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    STORED_ROW,
)
from pyhudi.queries.plan import ReadSlice
from pyhudi.schema.projection import project

__all__ = ["ChangeSlot", "ChangeTask"]

_WHOLE_ROW = -1  # no clause has this number


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """The work of one slot. `read`: the slice whose rows may change; None: the slot has none."""

    slot: int
    write: WriteTask
    read: ReadSlice | None


@dataclass(frozen=True, slots=True)
class ChangeSlot:
    """Group work with the source rows of a slot, and fan-out work (`alone`) for slots without source rows.

    Rows are matched by their keys. Where a file group has a key twice and its rows change differently, they are matched
    by the names of single rows (`by_row`); log files have no such names, so that is an error there.

    `schema`: the table's data columns, none when every clause deletes; `merging`: there is a source, `computed`: from a
    query of the table. `columns`: the columns to read from the slice.
    """

    write: WriteSlot
    stored: SliceReader
    clauses: tuple[BoundClause | NumberedClause, ...]
    schema: pa.Schema
    rules: MergeRules
    merging: bool
    computed: bool = False
    columns: StoredColumns = field(default_factory=StoredColumns)
    by_row: bool = False
    constraints: tuple[BoundConstraint, ...] = ()
    combines: bool = False  # of several source rows of a key one is taken
    must_win: bool = False  # a row with a lower ordering value than the stored one is an error
    arrives: int = -1  # the clause of rows from another partition, where no row of their key may be

    def __call__(
        self, context: TaskContext, task: ChangeTask, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        kind = task.write.kind
        if kind == "drop":
            return
        rows = pa.Table.from_batches(arrived)
        try:
            # A slot's rows are collected before a file is begun, so nothing is written if two of them conflict.
            unique = self._one_per_key(rows)
            combined = len(rows) - len(unique) if self.combines else 0
            yield from self._written(context, task, self._merged(task, unique, rows), combined)
        except _StoredTwice as twice:
            if kind != "merge":
                raise twice.refusal() from None
            exact = replace(self, by_row=True, write=replace(self.write, combining=None))
            yield from exact._by_row(context, task, _named(rows))

    def _by_row(self, context: TaskContext, task: ChangeTask, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._written(context, task, self._merged(task, self._one_per_key(arrived), arrived))
        except _StoredTwice as twice:
            raise twice.refusal() from None

    def alone(self, context: TaskContext, task: ChangeTask) -> Iterator[pa.RecordBatch]:
        """Change the rows of a slice without source rows."""
        assert task.read is not None
        yield from self._written(context, task, self._without_source(task.read))

    def _written(
        self, context: TaskContext, task: ChangeTask, changed_batches: Iterator[pa.RecordBatch], combined: int = 0
    ) -> Iterator[pa.RecordBatch]:
        first = next(changed_batches, None)
        if first is not None:  # a slice without changes stays as it is
            yield from self.write(context, (task.slot, task.write), chain([first], changed_batches), combined)

    def _without_source(self, read: ReadSlice) -> Iterator[pa.RecordBatch]:
        for stored, visible in self.stored.batches(read):
            clause_rows = ClauseRows(visible, merging=self.merging)
            yield from self._changed(When.NOT_MATCHED_BY_SOURCE, _with_path(stored, read), clause_rows)

    def _merged(self, task: ChangeTask, arrived: pa.Table, everything: pa.Table) -> Iterator[pa.RecordBatch]:
        """The changed rows of a slot. `arrived`: its source rows, one for each key; `everything`: all of them."""
        keys = single_array(arrived.column(self._name))
        control_columns = {*CONTROL_COLUMNS, *META_COLUMNS}
        source = arrived.select([name for name in arrived.column_names if name not in control_columns])
        has_partner = np.zeros(len(arrived), np.bool_)
        changes_rest = any(clause.when is When.NOT_MATCHED_BY_SOURCE for clause in self.clauses)
        read = task.read
        if read is not None:
            for stored, visible in self.stored.batches(read, self.columns, task.write.kind == "merge"):
                names = self._names_of(stored, arrived)
                partner = pc.fill_null(pc.index_in(names, value_set=keys), -1).to_numpy()
                is_matched = partner >= 0
                with_path = _with_path(stored, read)
                if is_matched.any():
                    at = pa.array(partner[is_matched])
                    has_partner[partner[is_matched]] = True
                    pairs = ClauseRows(visible.filter(pa.array(is_matched)), source.take(at), merging=True)
                    rows = with_path.filter(pa.array(is_matched))
                    self._check_arrivals(arrived.take(at))
                    self._check_siblings(rows, arrived, at, everything)
                    yield from self._changed(When.MATCHED, rows, pairs)
                if changes_rest and not is_matched.all():
                    unmatched = ClauseRows(visible.filter(pa.array(~is_matched)), merging=True)
                    yield from self._changed(
                        When.NOT_MATCHED_BY_SOURCE, with_path.filter(pa.array(~is_matched)), unmatched
                    )
        new = pa.array(~has_partner)
        fresh = arrived.select([RECORD_KEY, PARTITION_PATH]).filter(new)
        if len(everything) > len(arrived):
            self._check_new(fresh, everything)
        yield from self._changed(When.NOT_MATCHED, fresh, ClauseRows(None, source.filter(new), merging=True))

    @property
    def _name(self) -> str:
        """The column of the source rows by which stored rows are matched."""
        return STORED_ROW if self.by_row else RECORD_KEY

    def _names_of(self, stored: pa.Table, arrived: pa.Table) -> pa.ChunkedArray:
        """The values by which stored rows are matched."""
        keys = stored.column(RECORD_KEY)
        if not self.by_row:
            return keys
        fresh = pc.is_in(keys, value_set=single_array(arrived.column(self._name)))
        if pc.any(fresh).as_py():  # which of the key's rows a new row would replace is undefined
            raise _StoredTwice(keys.filter(fresh)[0].as_py())
        return stored_row_names(keys, stored.column(COMMIT_SEQNO))

    def _one_per_key(self, arrived: pa.Table) -> pa.Table:
        """The source rows of a slot, one for each key, or for each row by name.

        Several computed rows may match one stored row: as in Hudi, the one with the greatest ordering value wins, and
        several deletes agree. All other cases are ambiguous, so they are an error.
        """
        keys = single_array(arrived.column(self._name))
        if pc.count_distinct(keys).as_py() == len(keys):
            return arrived
        if not self.computed and not self.combines:
            raise _not_unique(keys)
        if self.combines:
            return self._combined(arrived)
        counts = pc.value_counts(keys)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        self._check_arrivals(arrived.filter(pc.is_in(keys, value_set=twice)))
        deletes = self._deletes(arrived)
        updates = arrived if deletes is None else arrived.filter(pc.invert(deletes))
        if COMMIT_SEQNO in updates.column_names and not self.by_row:
            rows = updates.group_by([RECORD_KEY]).aggregate([(COMMIT_SEQNO, "count_distinct")])
            several = rows.filter(pc.greater(rows.column(f"{COMMIT_SEQNO}_count_distinct"), 1))
            if len(several):
                raise _StoredTwice(several.column(RECORD_KEY)[0].as_py())
        if self._is_ordered(updates):
            return combine(arrived, self.rules.mode, self.rules.ordering_fields, (self._name, PARTITION_PATH))
        return combine(self._agreeing(arrived, updates), "COMMIT_TIME_ORDERING", (), (self._name, PARTITION_PATH))

    def _agreeing(self, arrived: pa.Table, updates: pa.Table) -> pa.Table:
        """The rows without deletes of keys that get a new row. `updates`: those that no clause deletes.

        Raises: ConfigError if rows of a key do not agree on what it becomes, stored or new.
        """
        changed_keys = single_array(updates.column(self._name))
        if pc.count_distinct(changed_keys).as_py() != len(changed_keys):
            raise _not_unique(changed_keys)
        if len(updates) == len(arrived):
            return arrived
        is_new = pa.chunked_array([pa.repeat(False, len(updates))])
        if COMMIT_SEQNO in updates.column_names:
            is_new = pc.is_null(updates.column(COMMIT_SEQNO))
        deletes = self._deletes(arrived)
        assert deletes is not None
        of_changed = pc.is_in(arrived.column(self._name), value_set=changed_keys.filter(pc.invert(is_new)))
        both = arrived.filter(pc.and_(deletes, of_changed))
        if len(both):
            stored = [name for name in (RECORD_KEY, COMMIT_SEQNO) if name in arrived.column_names]
            if len(both.select(stored).join(updates.select(stored), stored, join_type="left semi")):
                raise _not_unique(single_array(arrived.column(self._name)))
            raise _StoredTwice(both.column(RECORD_KEY)[0].as_py())
        replaced = pc.is_in(arrived.column(self._name), value_set=changed_keys.filter(is_new))
        return arrived.filter(pc.invert(pc.and_(deletes, replaced)))

    def _check_new(self, fresh: pa.Table, everything: pa.Table) -> None:
        """Raise ConfigError if several rows, which would all delete the stored row of their key, insert a new one."""
        if NEW_CLAUSE not in everything.column_names or self._is_ordered(everything):
            return
        inserts = everything.filter(pc.is_valid(everything.column(NEW_CLAUSE)))
        keys = inserts.column(RECORD_KEY).filter(
            pc.is_in(inserts.column(RECORD_KEY), value_set=single_array(fresh.column(RECORD_KEY)))
        )
        if pc.count_distinct(keys).as_py() != len(keys):
            raise _not_unique(single_array(keys))

    def _is_ordered(self, rows: pa.Table) -> bool:
        """True if ordering values say which of several rows of a key wins."""
        fields = self.rules.ordering_fields if self.rules.by_ordering else ()
        return bool(fields) and all(read_field(rows, name) is not None for name in fields)

    def _combined(self, arrived: pa.Table) -> pa.Table:
        """One row for each key: by the ordering values where the rows have them, else the last one."""
        fields = self.rules.ordering_fields if self._is_ordered(arrived) else ()
        return combine(
            arrived, self.rules.mode if fields else "COMMIT_TIME_ORDERING", fields, (RECORD_KEY, PARTITION_PATH)
        )

    def _deletes(self, arrived: pa.Table) -> pa.ChunkedArray | None:
        """A mask of the computed rows that are deleted; None when no clause deletes."""
        clauses = [c for c in self.clauses if isinstance(c, NumberedClause) and c.verb == "delete"]
        if not clauses:
            return None
        flags = [pc.fill_null(pc.equal(arrived.column(c.numbers), c.number), False) for c in clauses]
        return reduce(pc.or_, flags)

    def _check_arrivals(self, rows: pa.Table) -> None:
        """Raise ConfigError for a row from another partition. `rows`: those whose key has another row here."""
        if self.arrives < 0:
            return
        comes = rows.filter(pc.fill_null(pc.equal(rows.column(CLAUSE), self.arrives), False))
        if len(comes):
            key, path = comes.column(RECORD_KEY)[0].as_py(), comes.column(PARTITION_PATH)[0].as_py()
            raise ConfigError(
                f"The statement moves the row of key {key!r} to the partition {path!r}, which has or gets another row "
                "of this key. Nothing was written. Say which row is to stay: delete the other one first, or move the "
                "rows in two statements."
            )

    def _check_siblings(self, stored: pa.Table, unique: pa.Table, at: pa.Array, arrived: pa.Table) -> None:
        """Raise _StoredTwice when a change of some rows of a key would also change its other rows in the file group.

        Files are rewritten by key. `stored`: rows of the table; `unique`, `at`: computed rows, and the one that matches
        each stored row; `arrived`: all computed rows.
        """
        if not self.computed or self.by_row or COMMIT_SEQNO not in arrived.column_names:
            return
        paired = unique.column(COMMIT_SEQNO).take(at)
        differs = pc.fill_null(pc.not_equal(stored.column(COMMIT_SEQNO), paired), False)
        if not pc.any(differs).as_py():
            return
        others = stored.select([RECORD_KEY, COMMIT_SEQNO]).filter(differs)
        deletes = self._deletes(arrived)
        deleted = arrived.slice(0, 0) if deletes is None else arrived.filter(deletes)
        missing = others.join(
            deleted.select([RECORD_KEY, COMMIT_SEQNO]), [RECORD_KEY, COMMIT_SEQNO], join_type="left anti"
        )
        if len(missing):
            raise _StoredTwice(missing.column(RECORD_KEY)[0].as_py())

    def _changed(self, when: When, rows: pa.Table, clause_rows: ClauseRows) -> Iterator[pa.RecordBatch]:
        """The rows that a clause takes, with its changes."""
        open_rows = np.ones(len(rows), np.bool_)
        for number, clause in enumerate(self.clauses):
            if clause.when is not when or not open_rows.any():
                continue
            chosen = open_rows & clause.holds(clause_rows)
            open_rows &= ~chosen
            if not chosen.any():
                continue
            matches = rows.filter(pa.array(chosen))
            for batch in self._made(number, clause, matches, clause_rows.filter(chosen)):
                if self.must_win and when is When.MATCHED and self._in_time(batch, matches).num_rows < batch.num_rows:
                    raise _loses(batch, self._in_time(batch, matches), self.rules)
                yield self._in_time(batch, matches) if number in self.write.partial else batch

    def _made(
        self, number: int, clause: BoundClause | NumberedClause, rows: pa.Table, clause_rows: ClauseRows
    ) -> Iterator[pa.RecordBatch]:
        count = len(rows)
        values = {assigned.column.name: assigned.of(clause_rows) for assigned in clause.assignments}
        for name, column in values.items():
            check_text_column(name, column)  # the caller's functions may return them
        data, given_names = [], set(rows.column_names)
        for column_field in self.schema:
            if column_field.name in values:
                data.append(single_array(values[column_field.name]))
            elif column_field.name in given_names:
                # Source rows may have widened its type.
                data.append(_as_field(single_array(rows.column(column_field.name)), column_field))
            else:
                data.append(pa.nulls(count, column_field.type))
        batch = pa.RecordBatch.from_arrays(data, schema=self.schema) if data else None
        is_deleted = pa.repeat(pa.scalar(clause.verb == "delete"), count)
        if batch is not None and clause.verb != "delete":
            is_deleted = marked_rows(batch, self.rules)
            check_rows(self.constraints, batch, self.rules)
        control = [
            single_array(rows.column(RECORD_KEY)),
            single_array(rows.column(PARTITION_PATH)),
            pa.array(np.zeros(count, np.int64)),
            is_deleted,
            _change_numbers(number, rows),
        ]
        fields = [*self.schema, *KEYED_FIELDS, pa.field(CHANGE, pa.int32(), nullable=False)]
        if self.by_row:
            fields.append(pa.field(STORED_ROW, pa.string()))
            control.append(_stored_rows(rows))
        yield pa.RecordBatch.from_arrays([*data, *control], schema=pa.schema(fields))

    def _in_time(self, changed_rows: pa.RecordBatch, stored: pa.Table) -> pa.RecordBatch:
        """The partial updates whose ordering value is not below the stored row's.

        The others change nothing, but a later partial update would pick up their columns.
        """
        if not self.rules.by_ordering:
            return changed_rows
        fields = self.rules.ordering_fields
        incoming = ordering_columns(pa.Table.from_batches([changed_rows]), fields)
        wins = merge_mode(self.rules.mode, fields).replaces(ordering_columns(stored, fields), incoming, None)
        return changed_rows if wins.all() else changed_rows.filter(pa.array(wins))


def _as_field(column: pa.Array, target: pa.Field) -> pa.Array:
    if column.type.equals(target.type):
        return column
    rows = pa.RecordBatch.from_arrays([column], schema=pa.schema([target.with_type(column.type)]))
    return project(rows, pa.schema([target])).column(0)


def _change_numbers(number: int, rows: pa.Table) -> pa.Array:
    """The clause that made each row; rows that must be written whole have none."""
    numbers = np.full(len(rows), number, np.int32)
    if IS_LATE in rows.column_names:
        numbers[single_array(rows.column(IS_LATE)).to_numpy(zero_copy_only=False)] = _WHOLE_ROW
    return pa.array(numbers)


def _with_path(stored: pa.Table, read: ReadSlice) -> pa.Table:
    """The rows with their partition path."""
    path = pa.chunked_array([pa.repeat(pa.scalar(read.file_slice.group.partition_path), len(stored))])
    at = stored.schema.get_field_index(PARTITION_PATH)
    return stored.append_column(PARTITION_PATH, path) if at < 0 else stored.set_column(at, PARTITION_PATH, path)


def _not_unique(keys: pa.Array) -> ConfigError:
    counts = pc.value_counts(keys)
    key = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    return ConfigError(
        f"Several rows of the source have the key {key!r}, so it is not clear what the row of the table becomes. Make "
        "keys unique in the source; nothing was written."
    )


def _loses(rows: pa.RecordBatch, winners: pa.RecordBatch, rules: MergeRules) -> ConfigError:
    wins = pc.is_in(rows.column(RECORD_KEY), value_set=winners.column(RECORD_KEY))
    key = rows.column(RECORD_KEY).filter(pc.invert(wins))[0].as_py()
    return ConfigError(
        f"The row of key {key!r} has a lower value of {', '.join(rules.ordering_fields)} than the stored one, so in "
        "the log files of a merge-on-read table it could not take its place. Give it a value that is not lower, "
        "overwrite whole partitions, or delete the rows first. Nothing was changed."
    )


def _named(arrived: pa.Table) -> pa.Table:
    """Computed rows with the names of their stored rows; new rows with their keys."""
    keys = arrived.column(RECORD_KEY)
    return arrived.append_column(STORED_ROW, row_names(stored_row_names(keys, arrived.column(COMMIT_SEQNO)), keys))


def _stored_rows(rows: pa.Table) -> pa.Array:
    """The names of rows of the table, nulls for new ones."""
    if COMMIT_SEQNO not in rows.column_names:
        return pa.nulls(len(rows), pa.string())
    return single_array(stored_row_names(rows.column(RECORD_KEY), rows.column(COMMIT_SEQNO)))


class _StoredTwice(Exception):
    """A file group has the key `key` twice, and its rows change differently."""

    def __init__(self, key: object) -> None:
        super().__init__(key)
        self.key = key

    def refusal(self) -> ConfigError:
        """The error for files where single rows have no names."""
        return ConfigError(
            f"The table has the key {self.key!r} twice in one file group, as INSERT INTO makes it, and the statement "
            "changes its rows differently, which log files and new rows can't say: they name rows by keys. Nothing was "
            "written. Delete all rows of the key by DELETE FROM … WHERE with the key alone, and insert the row that is "
            "to stay."
        )
