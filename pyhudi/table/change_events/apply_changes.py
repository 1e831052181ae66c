"""`apply_changes`: change events of a source are applied to a table, by SCD type 1 or 2, in one commit.

    events → newest note and hidden events → rows of the events' keys → merge/change_events.py → one commit

Rows, hidden events and the note come into the table together. When another commit comes between, all of it is computed
again from the newest state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.actions.applied_changes import (
    NO_CHANGES,
    AppliedChanges,
    ChangesMoved,
    add_hidden,
    delete_unneeded,
    matching,
    newest_changes,
    read_hidden,
)
from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause
from pyhudi.actions.create_table import is_unfinished
from pyhudi.actions.result import WriteResult
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError, HudiError, StaleRead, StandingConflict, TableNotFound, WriteConflict
from pyhudi.expressions.binding import Where
from pyhudi.merge.change_events import (
    CLOSE,
    DELETE,
    END_AT,
    INSERT,
    NEW,
    SEQUENCE,
    START_AT,
    UPDATE,
    RowChanges,
    histories,
    newest_rows,
)
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import IS_DELETE, META_COLUMNS
from pyhudi.model.options import OptionScope, WriteOptions, check_names
from pyhudi.model.options.streaming import CHANGES_AFTER, CHANGES_NOTE
from pyhudi.queries.query import Query
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.table.calls import Options, PathLike, open_place, session_options, session_zone
from pyhudi.table.change_events.flow import ChangeFlow, names_of
from pyhudi.table.hudi_table import HudiTable
from pyhudi.table.input import TableInput, is_spark_frame, to_arrow_rows
from pyhudi.table.save import write
from pyhudi.table.scan import Scan
from pyhudi.table.write import change_table
from pyhudi.table.wrong_names import checked_call
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["apply_changes", "apply_events"]

_OPERATION = "APPLY CHANGES"
_RUNS = 12  # others may commit in between
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
_SYSTEM_CLOCK = SystemClock()


@checked_call
def apply_changes(
    source: TableInput,
    table: HudiTable | PathLike | Storage,
    *,
    keys: str | Sequence[str],
    sequence_by: str,
    apply_as_deletes: Where = None,
    scd_type: int | str = 1,
    column_list: str | Sequence[str] | None = None,
    except_column_list: str | Sequence[str] | None = None,
    track_history_column_list: str | Sequence[str] | None = None,
    track_history_except_column_list: str | Sequence[str] | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult:
    """Apply change events to a table, in the words of Spark's `create_auto_cdc_flow`. docs/apply-changes.md.

    Events may come in any order, twice, and in any batches: the table is the same in the end.

    Args:
        source: the events of a batch, in any form that `write_hudi` takes, other than a Spark DataFrame. All of them
            are in memory.
        table: a table or its path. It is made when there is none.
        keys: the columns that identify a row.
        sequence_by: the column that orders the events of a key.
        apply_as_deletes: the condition of events that delete their key: `"op = 'd'"`. Others insert or update.
        scd_type: 1: the newest row of each key. 2: all of them, with `__START_AT` and `__END_AT`, which are values of
            `sequence_by`; the current row has null in `__END_AT`.
        column_list, except_column_list: the columns that the table stores; None: all.
        track_history_column_list, track_history_except_column_list: of type 2, the columns whose changes open a new
            row; changes of others update the newest one. None: all but the keys.
        options: Hudi's own keys (docs/options.md), of a new table and of the write.
    Returns: the result of the commit.
    Raises:  ConfigError; SchemaMismatch; WriteConflict when other writers came between again and again: call it again.
        Unless the call returns, nothing became visible.
    """
    spark = table._handle.spark if isinstance(table, HudiTable) else None
    flow = ChangeFlow(
        names_of(keys),
        sequence_by,
        int(scd_type) if scd_type in ("1", "2") else cast("int", scd_type),  # the flow checks it
        apply_as_deletes,
        names_of(column_list),
        names_of(except_column_list),
        names_of(track_history_column_list),
        names_of(track_history_except_column_list),
        session_zone(spark),
    )
    check_names(options or {}, OptionScope.WRITE, partial(session_options, spark))
    if is_spark_frame(source):
        raise ConfigError(
            "apply_changes computes in this process and takes no Spark DataFrame: collect the batch, as "
            "df.toArrow() or df.toPandas(). Nothing was written."
        )
    storage = table if isinstance(table, Storage) else _storage_of(table, storage_options)
    rows = to_arrow_rows(source, _columns_of(storage))
    events = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
    return apply_events(storage, events, flow, options or {}, spark)


def _storage_of(table: HudiTable | PathLike, storage_options: Mapping[str, object] | None) -> Storage:
    return table._handle.storage if isinstance(table, HudiTable) else open_place(table, storage_options, None)


def _columns_of(storage: Storage) -> pa.Schema | None:
    """The columns of the table, by which values of Python get types; None for a new one."""
    meta = _opened(storage)
    return None if meta is None else meta.table_schema()


def _opened(storage: Storage) -> MetaClient | None:
    """The table; None where there is none, or that of a first write that is not complete."""
    if not table_exists(storage):
        return None
    meta = MetaClient.load(storage)
    return None if is_unfinished(meta) else meta


def apply_events(
    storage: Storage,
    rows: pa.Table,
    flow: ChangeFlow,
    options: Options,
    spark: SparkSession | None = None,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """`apply_changes`, of rows in memory."""
    given = flow.options(options)
    for run in range(_RUNS):
        if run:
            clock.sleep_s(min(_PAUSE_S * 2 ** (run - 1), _PAUSE_MAX_S) * (0.5 + int(clock.new_uuid()[:4], 16) / 65536))
        try:
            return _Batch(storage, rows, flow, given, spark, clock).run()
        except (WriteConflict, StaleRead, TableNotFound) as error:
            if isinstance(error, StandingConflict) and not isinstance(error, ChangesMoved):
                raise
            if run == _RUNS - 1:
                raise WriteConflict(
                    f"{storage.root}: other writers came between {_RUNS} times while changes were applied. Nothing of "
                    f"this batch is visible; apply it again. The last one: {error}"
                ) from error
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class _Batch:
    """One attempt."""

    storage: Storage
    rows: pa.Table
    flow: ChangeFlow
    options: Options
    spark: SparkSession | None
    clock: Clock

    def run(self) -> WriteResult:
        meta, flow = _opened(self.storage), self.flow
        if meta is None:
            flow.check_new(self.options, self.storage.root)
            events = flow.events(self.rows, None, None)
            changes, before = self._compared(events, _no_rows(flow, events), events.schema.empty_table()), None
        else:
            flow.check_table(meta)
            before = newest_changes(meta)
            parsed = WriteOptions.parse(self.options, session_options(self.spark), meta.config)
            events = flow.events(self.rows, meta, parsed)
            if before is not None:
                flow.check_same(before, _data(events.schema), self.storage.root)
            stored = _stored_rows(meta, flow, events)
            hidden = self._hidden(before, events)
            changes = self._compared(events, stored.drop_columns(list(META_COLUMNS)), hidden)
        note = self._note(changes, before, events)
        after = NO_CHANGES if before is None else before.instant_time
        options = {**self.options, CHANGES_AFTER: after, CHANGES_NOTE: note.encoded()}
        options["hoodie.allow.empty.commit"] = "true"
        if meta is None:
            result = write(self.storage, changes.rows, {**flow.creating(), **options}, "append", self.spark)
            assert result is not None  # mode append
        else:
            result = self._changed(meta, changes, stored, options)
        if before is not None and list(before.hidden) != list(note.hidden):
            with suppress(HudiError):  # the commit is complete; the next one looks again
                delete_unneeded(MetaClient.load(self.storage), self.clock)
        return replace(result, operation=_OPERATION)

    def _compared(self, events: pa.Table, stored: pa.Table, hidden: pa.Table) -> RowChanges:
        flow = self.flow
        if flow.scd_type == 1:
            return newest_rows(stored, hidden, events, flow.keys)
        return histories(stored, hidden, events, flow.keys, flow.tracked_of(_data(events.schema)))

    def _hidden(self, before: AppliedChanges | None, events: pa.Table) -> pa.Table:
        schema = events.schema
        if self.flow.scd_type == 1:
            schema = pa.schema([schema.field(name) for name in (*self.flow.keys, SEQUENCE, IS_DELETE)])
        files = () if before is None else before.hidden
        return read_hidden(self.storage, files, schema, events.select(list(self.flow.keys)))

    def _note(self, changes: RowChanges, before: AppliedChanges | None, events: pa.Table) -> AppliedChanges:
        """The note of the commit, whose hidden events are stored by now."""
        files = () if before is None else before.hidden
        sort_by = (*self.flow.keys, SEQUENCE)
        files = add_hidden(self.storage, files, changes.hidden, sort_by, self.clock)
        return replace(self.flow.note(_data(events.schema)), hidden=files)

    def _changed(self, meta: MetaClient, changes: RowChanges, stored: pa.Table, options: Options) -> WriteResult:
        """Commit changes of a table that was read as of `meta`."""
        parsed = WriteOptions.parse(options, session_options(self.spark), meta.config)
        parsed = replace(parsed, concurrency=replace(parsed.concurrency, conflict_retries=0))  # `apply_events` retries
        places = pa.array(changes.places, mask=changes.places == NEW)
        located = stored.select(list(META_COLUMNS)).take(places)
        for field, column in zip(changes.rows.schema, changes.rows.columns, strict=True):
            located = located.append_column(field, column)
        located = located.append_column(CLAUSE, pa.array(changes.kinds, pa.int32()))
        names = changes.rows.schema.names
        fixed = {*meta.config.record_key_fields, *meta.config.partition_fields}
        clauses = [
            NumberedClause(When.MATCHED, "delete", DELETE, {}),
            NumberedClause(When.MATCHED, "update", UPDATE, {name: name for name in names if name not in fixed}),
            NumberedClause(When.NOT_MATCHED, "insert", INSERT, {name: name for name in names}),
        ]
        if self.flow.times:
            clauses.append(NumberedClause(When.MATCHED, "update", CLOSE, {END_AT: END_AT}))
        table = meta.table_schema()
        evolves = any(f.name not in table.names or table.field(f.name).type != f.type for f in changes.rows.schema)
        source, engine = in_this_process(located)
        computed = Computed(read=meta.timeline.commits())
        change = ChangeRows(tuple(clauses), source=source, computed=computed, evolves=evolves)
        return change_table(self.storage, change, engine, parsed)


def _data(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name not in (SEQUENCE, IS_DELETE)]


def _compared_columns(flow: ChangeFlow, events: pa.Schema) -> pa.Schema:
    """The columns that stored rows are compared by: keys and the sequence, of type 2 all."""
    if flow.scd_type == 1:
        return pa.schema([*(events.field(name) for name in flow.keys), events.field(SEQUENCE)])
    times = [events.field(SEQUENCE).with_name(name) for name in (START_AT, END_AT)]
    return pa.schema([*(events.field(name) for name in _data(events)), *times])


def _no_rows(flow: ChangeFlow, events: pa.Table) -> pa.Table:
    return _compared_columns(flow, events.schema).empty_table()


def _stored_rows(meta: MetaClient, flow: ChangeFlow, events: pa.Table) -> pa.Table:
    """The stored rows of the events' keys, with their meta columns."""
    compared = _compared_columns(flow, events.schema)
    if not len(events):
        return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *compared]).empty_table()
    names = [flow.sequence if name == SEQUENCE else name for name in compared.names]
    known = meta.table_schema().names
    read = [name for name in dict.fromkeys((*META_COLUMNS, *names)) if name in known or name in META_COLUMNS]
    where = [(name, "in", values) for name in flow.keys if (values := _values(events.column(name))) is not None]
    scan = Scan(meta, Query(tuple(read), where or None))
    named = [field.with_name(name) for field, name in zip(compared, names, strict=True)]
    rows = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *named])
    found = matching(iter(scan.to_batches()), rows, events.select(list(flow.keys)))
    return found.rename_columns([*META_COLUMNS, *compared.names])


def _values(column: pa.ChunkedArray) -> list[object] | None:
    """The values of a key column for a filter; None for types whose values Python does not hold exactly."""
    kind = column.type
    if pt.is_integer(kind) or pt.is_string(kind) or pt.is_large_string(kind) or pt.is_date32(kind):
        values: list[object] = pc.unique(column).to_pylist()
        return values
    return None
