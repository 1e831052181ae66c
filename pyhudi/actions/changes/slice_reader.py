"""The rows of a slice for a change: stored rows for rewrites, and rows as a query shows them for conditions.

The two forms differ in partition columns: a query takes their values from the partition's path where the path has them.
`StoredColumns` names the columns that a task must read from its slice before it writes.

A row may have won against a later version in the log files with an older ordering value. A partial update after that
late version would be merged with it first, and would carry its values into the table. `SliceReader` marks such rows,
and they are written whole.

Source: docs/formats/merging.md, "Two versions of a key", "Partial updates".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.clauses import BoundClause
from pyhudi.actions.changes.computed import NumberedClause
from pyhudi.actions.changes.values import mask_of
from pyhudi.expressions.filters import Truth
from pyhudi.filegroup.read.slice import SliceSpec, read_with_late_keys
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.base import BATCH_ROWS
from pyhudi.merge.rules import MergeRules
from pyhudi.model.keys import COMMIT_SEQNO, RECORD_KEY
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.schema import with_path_values
from pyhudi.queries.snapshot import row_group_test
from pyhudi.schema.projection import project

__all__ = ["ALL_COLUMNS", "IS_LATE", "SliceReader", "StoredColumns"]


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Columns to read, depending on whether the task writes a new base file or log blocks. None: all.

    `whole`: for rows that are written whole.
    """

    for_file: tuple[str, ...] | None = None
    for_log: tuple[str, ...] | None = None
    whole: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        clauses: Sequence[BoundClause | NumberedClause],
        spec: WriteSpec,
        rules: MergeRules,
        untouched: Mapping[int, frozenset[str]],
        partial: Mapping[int, frozenset[str]],
        *,
        is_placed: bool,
    ) -> StoredColumns:
        """For the clauses of a change.

        Args:
            untouched: by clause number, the columns that the rewrite of a file copies from its rows.
            partial: by clause number, the columns of its partial updates.
            is_placed: the rows of the change name the stored rows they came from.
        """
        if not spec.populate_meta_fields or not all(isinstance(clause, NumberedClause) for clause in clauses):
            return cls()
        ordering = {name.partition(".")[0] for name in rules.ordering_fields}
        unset = {
            number: set(spec.schema.names) - {assigned.column.name for assigned in clause.assignments}
            for number, clause in enumerate(clauses)
            if clause.verb == "update"
        }
        required = {field.name for field in spec.schema if not field.nullable}

        metas = (COMMIT_SEQNO, RECORD_KEY) if is_placed else (RECORD_KEY,)

        def columns(column_sets: Iterable[set[str]]) -> tuple[str, ...]:
            names = ordering.union(*column_sets)
            return (*metas, *(name for name in spec.schema.names if name in names))

        return cls(
            columns(names - untouched.get(number, frozenset()) for number, names in unset.items()),
            columns(names & required if number in partial else names for number, names in unset.items()),
            columns(unset.values()),
        )


ALL_COLUMNS = StoredColumns()


IS_LATE = "_pyhudi_late"  # bool


@dataclass(frozen=True, slots=True)
class SliceReader:
    """The reader of a change's slices. Picklable.

    `spec`: all columns that the table stores, meta columns first; `plan`: the columns that a query of the whole table
    returns, and the filter for the affected rows.
    """

    spec: SliceSpec
    plan: ReadPlan

    def batches(
        self, read: ReadSlice, columns: StoredColumns = ALL_COLUMNS, rewrites: bool = False
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """(stored, shown): rows that pass the filter; `stored` has the column IS_LATE if any row is marked.

        Args:
            columns: the stored columns that a change needs; if not all, rows are shown as they are stored.
            rewrites: the slice's base file is rewritten; else its rows go to a log file.
        Raises: CorruptFile, ConfigError, SchemaMismatch.
        """
        plan = self.plan
        truth = None if plan.keeps_all_rows else Truth.of(plan.predicate, plan.read_schema)
        names = columns.for_file if rewrites else columns.for_log
        for batch, late in self._stored(read, names, columns.whole):
            visible = batch if names else with_path_values(batch, read.from_path, plan.read_schema)
            visible_rows = pa.Table.from_batches([visible])
            stored = pa.Table.from_batches([batch])
            if len(late):
                stored = stored.append_column(IS_LATE, pc.is_in(stored.column(RECORD_KEY), value_set=late))
            if truth is not None:
                passes = mask_of(truth(visible_rows))
                if not passes.all():
                    stored, visible_rows = stored.filter(pa.array(passes)), visible_rows.filter(pa.array(passes))
            if len(stored):
                yield stored, visible_rows

    def _stored(
        self, read: ReadSlice, names: tuple[str, ...] | None, whole: tuple[str, ...] | None
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        spec = self.spec
        columns = list(names or spec.schema.names)
        if read.merges or spec.key_generator is not None or spec.history:
            rows_before = 0
            for rows, late in read_with_late_keys(spec, read.file_slice, columns):
                if len(late) and names != whole:
                    yield from self._whole(read, whole, rows_before)
                    return
                rows_before += len(rows)
                yield from ((batch, late) for batch in rows.combine_chunks().to_batches())
            return
        none = pa.array([], pa.string())
        with spec.open_base(read.base_file.path) as reader:
            schema = pa.schema([spec.schema.field(name) for name in columns])
            names_there = reader.columns_of(columns)
            for batch in reader.batches(names_there, BATCH_ROWS, may_match=row_group_test(self.plan, read, reader)):
                yield project(batch, schema), none

    def _whole(
        self, read: ReadSlice, names: tuple[str, ...] | None, first: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """The rows from `first` on, with all columns: a late row follows, and the affected rows are written whole."""
        columns, end = list(names or self.spec.schema.names), 0
        for rows, late in read_with_late_keys(self.spec, read.file_slice, columns):
            start, end = end, end + len(rows)
            rest = rows.slice(max(0, first - start))
            yield from ((batch, late) for batch in rest.combine_chunks().to_batches())
