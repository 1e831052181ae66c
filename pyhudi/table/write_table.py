"""One write from the table's path to its result: the common path of all entry points.

    open or create the table → make its metadata table, or build it anew → undo dead writers → run the action

A write that gave way to another writer goes this way again, from its beginning.

Source: docs/architecture.md, "How an upsert flows"; docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.actions.action import Action, ActionContext
from pyhudi.actions.alter import AlterSchema
from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.concurrency import can_be_read_again, with_retries
from pyhudi.actions.create import check_fields, check_files_writable, check_writable, open_or_create, planned_table
from pyhudi.actions.first_write import table_removed_on_error
from pyhudi.actions.opening import ready, table_lock
from pyhudi.actions.result import WriteResult
from pyhudi.actions.runner import run
from pyhudi.actions.stream_batches import check_is_missing
from pyhudi.actions.table_keys import is_automatic
from pyhudi.actions.writes.bulk_insert import BulkInsert, bulk_insert
from pyhudi.actions.writes.delete_partition import DeletePartitions, delete_partition
from pyhudi.actions.writes.index_lookup import buckets_changed, with_table_index
from pyhudi.actions.writes.insert_overwrite import Overwrite, insert_overwrite, insert_overwrite_table
from pyhudi.actions.writes.keyed_write import KeyedWrite, delete, insert, upsert
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local import LocalFrame
from pyhudi.errors import ConfigError, TableNotFound, WriteConflict
from pyhudi.formats.damage import check_text, text_checked
from pyhudi.meta_client import MetaClient
from pyhudi.model.buckets import BUCKET_KEYS
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.after_write import serve_after_write
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock

__all__ = ["OPERATIONS", "change_table", "write_table"]

_SYSTEM_CLOCK = SystemClock()
KEPT_BYTES = 32 << 20  # of the rows of a stream, for another attempt


@dataclass(frozen=True, slots=True)
class _Written:
    """A write that is complete; `context`: the table as it was before."""

    result: WriteResult
    context: ActionContext


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
    Raises: errors of the family; unless the call returns, the rows are not visible.
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
    return _with_services(with_retries(attempt, options, frame, clock))


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
            ActionContext(planned, engine, options, table_lock(options, storage, clock), clock)
        )
    meta, is_ours = open_or_create(storage, options, clock)
    if number:
        check_is_missing(options.stream, meta)
    taken_back = table_removed_on_error(
        ActionContext(meta, engine, options, table_lock(options, storage, clock), clock)
    )
    with taken_back if is_ours else nullcontext():
        context, undone = ready(meta, engine, options, clock)
        if options.operation.lower() == "insert_overwrite_table" and not options.explicit.isdisjoint(BUCKET_KEYS):
            with buckets_changed(context):
                return _run(_action(operation, frame, options, meta), context, undone, number)
        context = with_table_index(context)
        return _run(_action(operation, frame, context.options, meta), context, undone, number)


def change_table(
    table: Storage | str | os.PathLike[str],
    change: ChangeRows | DeletePartitions | AlterSchema,
    engine: Engine,
    options: WriteOptions,
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Change what is in a table: update, delete by a filter, merge, delete partitions, alter the schema.

    Args:    change: what to change; its source, if any, is a frame of the engine.
    Raises:  errors of the family; unless the call returns, nothing of it is visible.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    if isinstance(change, ChangeRows):
        check_writable(meta.config, options)
        change = replace(change, source=None if change.source is None else _checked_text(change.source))
    else:
        check_files_writable(meta.config)  # whoever merges nothing needs no merger
    if meta.config.is_merge_on_read and not isinstance(change, DeletePartitions):
        change = replace(change, kind=ActionKind.DELTACOMMIT)
    lock = table_lock(options, storage, clock)
    asked = ActionContext(meta, engine, options, lock, clock)
    asked = with_table_index(asked) if isinstance(change, ChangeRows) else asked
    change.schedule(asked)  # what can be refused is refused first
    rows = change.source if isinstance(change, ChangeRows) else None

    def attempt(number: int) -> _Written:
        context, undone = ready(meta.reload() if number else meta, engine, asked.options, clock)
        return _run(change, context, undone, number)

    return _with_services(with_retries(attempt, options, rows, clock))


def _checked_text(frame: Frame) -> Frame:
    """Rows in this process, their texts checked: those in memory now, a stream as it is read; tasks check Spark's."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        check_text(frame)
    return Frame(text_checked(frame)) if isinstance(frame, pa.RecordBatchReader) else frame


def _rereadable(frame: Frame) -> Frame:
    """Rows of a stream as a frame, which keeps them for another attempt as long as they are few."""
    return Frame(LocalFrame.of(frame, kept_bytes=KEPT_BYTES)) if isinstance(frame, pa.RecordBatchReader) else frame


def _run(action: Action[Any], context: ActionContext, undone: tuple[str, ...], number: int) -> _Written:
    result = run(action, context, undone)
    return _Written(replace(result, retries=number) if number else result, context)


def _with_services(written: _Written) -> WriteResult:
    """The result of a write that is complete, after the table services that its options want."""
    result = written.result
    served, seconds = serve_after_write(written.context)
    return replace(result, services=served, seconds={**result.seconds, **seconds}) if served else result


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
