"""The way of a write: from the public API to the write path, and from the table's path to the result.

`write` gives a save mode its meaning and chooses the engine. Either engine writes Spark DataFrames
(`spark/frame_input.py`). All other data is Arrow, and the LocalEngine writes it.

`write_table` is the common path of all entry points:

    open or create the table → make its metadata table, or build it anew → undo dead writers → run the action

A write that gave way to another writer goes this way again, from its beginning.
Source: Hudi's meaning of Spark's save modes; docs/architecture.md, "How a table changes"; docs/formats/writers.md,
"Steps of a write".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from pyhudi.actions.action import Action, ActionContext
from pyhudi.actions.alter import AlterSchema
from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.partial_upsert import partial_upsert
from pyhudi.actions.concurrency import can_be_read_again, with_retries
from pyhudi.actions.create_table import (
    check_fields,
    check_files_writable,
    check_writable,
    create_from_options,
    is_written,
    new_table,
    open_or_create,
    options_for,
    planned_table,
    table_removed_on_error,
)
from pyhudi.actions.key_types import with_key_types
from pyhudi.actions.open_table import prepare, table_lock
from pyhudi.actions.replacement import aside, replacing
from pyhudi.actions.result import WriteResult
from pyhudi.actions.runner import run
from pyhudi.actions.save_modes import (
    REPLACE,
    SAVE_MODES,
    canonical_mode,
    check_place,
    decide_save,
    operation_in_place,
    options_in_place,
    remove_table,
)
from pyhudi.actions.stream_batches import check_is_missing
from pyhudi.actions.table_keys import is_automatic
from pyhudi.actions.writes.bulk_insert import BulkInsert, bulk_insert
from pyhudi.actions.writes.delete_partition import DeletePartitions, delete_partition
from pyhudi.actions.writes.index_lookup import buckets_changed, with_table_index
from pyhudi.actions.writes.insert_overwrite import Overwrite, insert_overwrite, insert_overwrite_table
from pyhudi.actions.writes.keyed_write import KeyedWrite, delete, insert, upsert
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local_frame import LocalFrame, ReopenedRows
from pyhudi.errors import ConfigError, SchemaMismatch, StaleRead, TableNotFound, WriteConflict
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.formats.damage import check_text, text_checked
from pyhudi.meta_client import MetaClient
from pyhudi.model.buckets import BUCKET_KEYS
from pyhudi.model.instant import ActionKind
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.schema.column_paths import check_twins, zones_of
from pyhudi.services.after_write import served
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.staged_table import StagedTable
from pyhudi.table.calls import Options, TableHandle, calling, session_options
from pyhudi.table.input import TableInput, WriteInput, arrow_schema, input_of
from pyhudi.table.replacement import replace_table
from pyhudi.timeline.table_properties import table_exists
from pyhudi.view.consistent_read import stale_reads

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession, StructType

__all__ = [
    "OPERATIONS",
    "SAVE_MODES",
    "change_table",
    "create",
    "write",
    "write_rows",
    "write_table",
]

_SYSTEM_CLOCK = SystemClock()
KEPT_BYTES = 32 << 20  # of the rows of a stream, for another attempt


class _Written(NamedTuple):
    """A write that is complete; `context`: the table as it was before."""

    result: WriteResult
    context: ActionContext


ChangeT = TypeVar("ChangeT", bound=ChangeRows | DeletePartitions | AlterSchema | Overwrite)
DataWrite = KeyedWrite | BulkInsert | Overwrite | DeletePartitions
OPERATIONS: Mapping[str, Callable[[Frame, WriteOptions], DataWrite]] = {
    "upsert": upsert,
    "insert": insert,
    "bulk_insert": bulk_insert,
    "delete": lambda frame, _: delete(frame),
    "insert_overwrite": insert_overwrite,
    "insert_overwrite_table": insert_overwrite_table,
    "delete_partition": delete_partition,
}


def write_table(
    table: Storage | str | os.PathLike[str],
    frame: Frame,
    engine: Engine,
    options: WriteOptions,
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Write rows to a table; the table is made first when there is none.

    Args:
        table: storage rooted at the table, or its path.
        frame: rows of the engine: a DataFrame for Spark; for the LocalEngine an Arrow table, a reader of batches or
            anything with `__arrow_c_stream__`.
        options: what to do (`options.operation`, a word of OPERATIONS) and how.
    Raises: HudiError; unless the call returns, the rows are not visible.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    operation = OPERATIONS.get(options.operation.lower())
    if operation is None:
        raise ConfigError(
            f"hoodie.datasource.write.operation={options.operation}: this release writes with {', '.join(OPERATIONS)}."
        )
    frame = _rereadable(_checked_text(frame))
    if options.operation.lower() == "delete_partition":
        return change_table(storage, delete_partition(frame, options), engine, options, clock=clock)
    write = partial(_write, operation, frame, storage, engine, options, clock)
    attempt = partial(_attempt, write, frame, storage)
    with calling(options.operation.lower(), storage, options) as work:
        written = with_retries(attempt, options, frame, clock)
        # Plans of services name files by their full paths, so services wait until the files are in their place.
        result = written.result if isinstance(storage, StagedTable) else served(*written)
        work.result = result = replace(result, zones=zones_of(engine.schema(frame)))
    return result


def _attempt(write: Callable[[int], _Written], frame: Frame, storage: Storage, number: int) -> _Written:
    """One attempt at a write; once more when the table that it began on was removed meanwhile."""
    try:
        return write(number)
    except TableNotFound:
        # The table may be that of a first write, which failed and took it back while we waited for the lock.
        if not can_be_read_again(frame):
            raise
    try:
        return write(number)
    except TableNotFound as error:
        raise WriteConflict(
            f"{storage.root}: other processes remove the table again and again while this write is at work. Nothing of "
            f"it is visible; write again."
        ) from error


def _write(
    operation: Callable[[Frame, WriteOptions], DataWrite],
    frame: Frame,
    storage: Storage,
    engine: Engine,
    options: WriteOptions,
    clock: Clock,
    number: int,
) -> _Written:
    planned = planned_table(storage, options, clock)
    if planned is not None:
        # What can be refused is refused before there is a table.
        check_fields(options, engine.schema(frame).names)
        _action(operation, frame, options, planned).schedule(
            ActionContext(planned, options, table_lock(options, storage, clock), clock, engine)
        )
    meta, is_ours = open_or_create(storage, options, clock)
    if number:
        check_is_missing(options.stream, meta)
    taken_back = table_removed_on_error(
        ActionContext(meta, options, table_lock(options, storage, clock), clock, engine)
    )
    with taken_back if is_ours else stale_reads(meta):
        context, undone = prepare(meta, engine, options, clock)
        if options.schema_mode != "overwrite":  # else the columns get the types of the data
            frame = with_key_types(frame, engine, context.meta)  # others may have been undone just now
        if options.operation.lower() == "insert_overwrite_table" and not options.explicit.isdisjoint(BUCKET_KEYS):
            with buckets_changed(context):
                return _run(_action(operation, frame, options, meta), context, undone, number)
        context = with_table_index(context)
        partial_rows = partial_upsert(frame, context) if options.operation.lower() == "upsert" else None
        action = _action(operation, frame, context.options, meta) if partial_rows is None else partial_rows
        return _run(action, context, undone, number)


def change_table(
    table: Storage | str | os.PathLike[str],
    change: ChangeRows | DeletePartitions | AlterSchema | Overwrite,
    engine: Engine,
    options: WriteOptions,
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Changes of a table: update, delete by a filter, merge, delete partitions, alter the schema.

    Args:    change: what to change; its source, if any, is a frame of the engine, which an overwrite can read twice.
    Raises:  HudiError; unless the call returns, nothing of it is visible.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    if isinstance(change, ChangeRows):
        check_writable(meta.config, options)
        change = replace(change, source=None if change.source is None else _checked_text(change.source))
    elif isinstance(change, DeletePartitions | AlterSchema):
        check_files_writable(meta.config)  # without merging no merger is needed
    else:
        check_writable(meta.config, options)
    rows = change.source if isinstance(change, ChangeRows) else None

    def first_look(number: int) -> tuple[ActionContext, ChangeRows | DeletePartitions | AlterSchema | Overwrite]:
        """What can be refused is refused first."""
        now = meta.reload() if number else meta
        with stale_reads(now):
            context = ActionContext(now, options, table_lock(options, storage, clock), clock, engine)
            context = context if isinstance(change, DeletePartitions | AlterSchema) else with_table_index(context)
            typed = _with_key_types(change, engine, now)
            typed.schedule(context)
            return context, typed

    looked, typed = with_retries(first_look, options, rows, clock, after=(StaleRead,))

    def attempt(number: int) -> _Written:
        now = looked.meta.reload() if number else looked.meta
        with stale_reads(now):
            context, undone = prepare(now, engine, looked.options, clock)
            is_delta = context.meta.config.is_merge_on_read and isinstance(typed, ChangeRows | AlterSchema)
            return _run(replace(typed, kind=ActionKind.DELTACOMMIT) if is_delta else typed, context, undone, number)

    with calling(str(change.operation), storage, options) as work:
        work.result = result = served(*with_retries(attempt, options, rows, clock))
    return result


def _with_key_types(change: ChangeT, engine: Engine, meta: MetaClient) -> ChangeT:
    """The change with rows whose keys have the table's types, if it has rows; those of an overwrite have them."""
    if isinstance(change, ChangeRows) and change.source is not None:
        return replace(change, source=with_key_types(change.source, engine, meta))
    if isinstance(change, DeletePartitions) and change.frame is not None:
        return replace(change, frame=with_key_types(change.frame, engine, meta))
    return change


def _checked_text(frame: Frame) -> Frame:
    """Rows in this process, their texts checked: those in memory now, a stream as it is read; tasks check Spark's."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        check_text(frame)
    if isinstance(frame, ReopenedRows):
        reopened: ReopenedRows = frame
        return Frame(replace(reopened, open=lambda: text_checked(reopened.open())))
    return Frame(text_checked(frame)) if isinstance(frame, pa.RecordBatchReader) else frame


def _rereadable(frame: Frame) -> Frame:
    """Rows of a stream as a frame, which keeps them for another attempt as long as they are few."""
    return Frame(LocalFrame.of(frame, kept_bytes=KEPT_BYTES)) if isinstance(frame, pa.RecordBatchReader) else frame


def _run(action: Action[Any], context: ActionContext, undone: tuple[str, ...], number: int) -> _Written:
    result = run(action, context, undone)
    return _Written(replace(result, retries=number) if number else result, context)


def _action(
    operation: Callable[[Frame, WriteOptions], DataWrite], frame: Frame, options: WriteOptions, meta: MetaClient
) -> DataWrite:
    if options.operation.lower() == "upsert" and is_automatic(meta.config):
        if "hoodie.datasource.write.operation" in options.explicit:
            raise ConfigError(
                f"{meta.storage.root}: the table has no key fields, every row gets a key of its own, so there is "
                "nothing to upsert. Use operation insert or bulk_insert, or make a table with "
                "hoodie.datasource.write.recordkey.field."
            )
        operation = OPERATIONS["insert"]
    action = operation(frame, options)
    if meta.config.is_merge_on_read and isinstance(action, KeyedWrite | BulkInsert):
        return replace(action, kind=ActionKind.DELTACOMMIT)
    return action


_NAME = "hoodie.table.name"
_OPERATION = "hoodie.datasource.write.operation"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_COLUMN_KEYS = {"hoodie.datasource.write.recordkey.field", _PARTITION_FIELDS, "hoodie.table.ordering.fields"}
_NAME_KEYS = (_NAME, "hoodie.datasource.write.table.name")


def create(
    storage: Storage,
    schema: pa.Schema | StructType,
    options: Options,
    spark: SparkSession | None,
    *,
    replaces_table: bool = False,
) -> MetaClient:
    """Make an empty table of these columns. Raises TableExists, unless it replaces a table, and ConfigError."""
    columns = without_meta(arrow_schema(schema))
    check_twins(columns, pa.schema([]))
    session = session_options(spark)
    parsed = WriteOptions.parse(_with_name(options, storage, session), session, None)
    check_fields(parsed, columns.names)
    assert parsed.table_name is not None
    text = avro_from_arrow(columns, parsed.table_name, with_meta=False)
    storage = with_sync(storage, parsed.storage_sync)
    if replaces_table:
        with replacing(storage, parsed, _SYSTEM_CLOCK) as staged:
            create_from_options(staged, aside(parsed), _SYSTEM_CLOCK, text)
    else:
        create_from_options(storage, parsed, _SYSTEM_CLOCK, text)
    return MetaClient.load(storage)


def write_rows(
    handle: TableHandle, data: TableInput, operation: str, options: Options | None, more: Options
) -> WriteResult:
    """Write rows to an existing table: `HudiTable.upsert`, `insert` and their like."""
    write_options = handle.options(options, {**more, "operation": operation})
    result = write(handle.storage, data, write_options, "append", handle.spark)
    assert result is not None
    return result


def write(
    storage: Storage,
    data: TableInput,
    options: Options,
    mode: str,
    spark: SparkSession | None,
    partition_by: Sequence[str] = (),
    *,
    keeps_history: bool = False,
) -> WriteResult | None:
    """Write rows to a table, which is made when there is none.

    Args:
        data: as for `write_hudi`.
        options: Hudi's keys, the operation among them.
        mode: one of SAVE_MODES.
        partition_by: the partition fields, if the options don't name them.
        keeps_history: mode overwrite replaces the rows of a table that is there, and mode replace the table; else
            overwrite replaces the table, as in Hudi, and there is no mode replace.
    Returns: None when mode is ignore and there is a table.
    """
    word = canonical_mode(mode, has_replace=keeps_history)
    source = input_of(data, spark, _columns_named(options))
    session = source.session_options
    write_options = _with_partition_by(options, partition_by)
    in_place = None
    if word in ("overwrite", REPLACE):
        unbound = WriteOptions.parse(write_options, session, None)
        in_place = operation_in_place(unbound)
        if word == "overwrite" and keeps_history and table_exists(storage):
            return _overwritten(storage, source, options_in_place(write_options, unbound))
    written = word in ("ignore", "error") and is_written(storage)
    decision = decide_save(mode, is_written=written, operation_in_place=in_place, root=storage.root)
    if decision.skips:
        return None
    check_place(storage, overwrite=decision.replaces_table)
    if decision.operation is not None:
        write_options = {**write_options, _OPERATION: decision.operation}
    return _written(storage, source, write_options, replaces_table=decision.replaces_table)


def _overwritten(storage: Storage, source: WriteInput, options: Options) -> WriteResult:
    """Rows in the place of all rows of a table that is there. What doesn't fit it is refused, and the way out named."""
    try:
        return _written(storage, source, options)
    except (SchemaMismatch, ConfigError) as error:
        raise type(error)(
            f"{error} Mode overwrite keeps the table, its columns and its history; mode='replace' makes a new table in "
            "its place, and the history goes."
        ) from error


def _written(storage: Storage, source: WriteInput, options: Options, *, replaces_table: bool = False) -> WriteResult:
    session = source.session_options
    # A table that is to be replaced need not be readable.
    meta = MetaClient.load(storage) if not replaces_table and table_exists(storage) else None
    for_new = _with_name(options, storage, session)
    if meta is None:
        parsed, is_new = WriteOptions.parse(for_new, session, None), True
    else:
        parsed, is_new = options_for(storage, options, session, meta.config, for_new)
    names = source.column_names(None if is_new else meta)
    if is_new:
        # What can be refused is refused before the old table goes.
        new_table_properties(new_table(parsed))
        check_fields(parsed, names)
    rows, engine = source.rows(parsed, options)
    if replaces_table and table_exists(storage):
        return replace_table(storage, parsed, engine, lambda place, aside: write_table(place, rows, engine, aside))
    if replaces_table:
        remove_table(with_sync(storage, parsed.storage_sync), parsed.lock)  # what a removal that died has left
    return write_table(storage, rows, engine, parsed)


def _columns_named(options: Options) -> frozenset[str]:
    """The columns that the options name as keys, partition fields and ordering fields."""
    values = [options[key] for key in options if canonical_keys([key]) & _COLUMN_KEYS]
    texts = [part for value in values for part in (value if isinstance(value, list | tuple) else str(value).split(","))]
    return frozenset(str(text).strip().partition(":")[0] for text in texts)


def _with_partition_by(options: Options, columns: Sequence[str]) -> dict[str, object]:
    """The options with `partitionBy` as the partition fields."""
    with_fields = dict(options)
    if not columns:
        return with_fields
    keys = [key for key in with_fields if canonical_keys([key]) == {_PARTITION_FIELDS} and with_fields[key]]
    for key in keys:
        if [text.strip().partition(":")[0] for text in str(with_fields[key]).split(",")] != list(columns):
            raise ConfigError(
                f"partitionBy names {', '.join(columns)}, but {key}={with_fields[key]}. Give one of them, or the "
                "same columns."
            )
    if not keys:
        with_fields[_PARTITION_FIELDS] = ",".join(columns)
    return with_fields


def _with_name(options: Options, storage: Storage, session: Options) -> dict[str, object]:
    """The options of a new table; without a name it gets its folder's."""
    if any(options.get(key) or session.get(key) for key in _NAME_KEYS):
        return dict(options)
    return {**options, _NAME: storage.root.rstrip("/").rpartition("/")[2]}
