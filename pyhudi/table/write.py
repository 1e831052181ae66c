"""The path of a write from the table's path and parsed options to the result.

`write_table` is the common path of all entry points that write rows, `change_table` of those that change some:

    open or create the table → bring its metadata table up to date → undo dead writers → run the action

A write that gave way to another writer takes this path again from the start. The steps before the first attempt, which
happen once, are in `save.py`.
Source: Hudi's meaning of Spark's save modes; docs/architecture.md, "How a table changes"; docs/formats/writers.md,
"Steps of a write".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

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
    open_or_create,
    table_removed_on_error,
)
from pyhudi.actions.key_types import with_key_types
from pyhudi.actions.open_table import prepare, table_lock
from pyhudi.actions.replacement import aside, replacing
from pyhudi.actions.result import WriteResult
from pyhudi.actions.runner import run
from pyhudi.actions.stream_batches import check_is_missing
from pyhudi.actions.table_keys import is_automatic
from pyhudi.actions.writes.bulk_insert import BulkInsert, bulk_insert
from pyhudi.actions.writes.delete_partition import DeletePartitions, delete_partition
from pyhudi.actions.writes.index_lookup import buckets_changed, with_table_index
from pyhudi.actions.writes.insert_overwrite import Overwrite, insert_overwrite, insert_overwrite_table
from pyhudi.actions.writes.keyed_write import KeyedWrite, delete, insert, upsert
from pyhudi.completed import naming_completed
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local_frame import LocalFrame, ReopenedRows
from pyhudi.errors import ConfigError, StaleRead, TableNotFound, WriteConflict
from pyhudi.formats.damage import check_text, text_checked
from pyhudi.listeners import notify_afterwards
from pyhudi.meta_client import MetaClient
from pyhudi.model.buckets import BUCKET_KEYS
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.schema.column_paths import zones_of
from pyhudi.services.after_write import served
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.staged_table import StagedTable
from pyhudi.table.calls import calling
from pyhudi.view.consistent_read import stale_reads

__all__ = [
    "OPERATIONS",
    "change_table",
    "replace_table",
    "write_table",
]

_SYSTEM_CLOCK = SystemClock()
KEPT_BYTES = 32 << 20  # of a stream's rows that are kept for another attempt


class _Written(NamedTuple):
    """A complete write; `context`: the table as it was before."""

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
    """Write rows to a table, which is created if it does not exist.

    Args:
        table: storage rooted at the table, or its path.
        frame: rows of the engine: a DataFrame for Spark; for the LocalEngine an Arrow table, a reader of batches or
            anything with `__arrow_c_stream__`.
        options: the operation (`options.operation`, one of OPERATIONS) and its settings.
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
    rows = _Rows(storage, frame, engine, options, operation, clock)
    with calling(options.operation.lower(), storage, options) as work:
        written = with_retries(rows.attempt, options, frame, clock)
        # Plans of services name files by their full paths, so services wait until the files are in their place.
        result = written.result if isinstance(storage, StagedTable) else served(*written)
        work.result = result = replace(result, zones=zones_of(engine.schema(frame)))
    return result


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows for a table, the input of every attempt."""

    storage: Storage
    frame: Frame
    engine: Engine
    options: WriteOptions
    operation: Callable[[Frame, WriteOptions], DataWrite]
    clock: Clock

    def attempt(self, number: int) -> _Written:
        """One attempt at a write, repeated if the table was removed since it began."""
        for is_again in (False, True):
            try:
                with self._opened(number) as (action, context, undone):
                    return _Written(_numbered(run(action, context, undone), number), context)
            except TableNotFound as error:
                # The table may be that of a failed first write, which removed it while this one waited for the lock.
                if is_again:
                    raise WriteConflict(
                        f"{self.storage.root}: other processes keep removing the table while this write is at "
                        f"work. Nothing of it is visible; write again."
                    ) from error
                if not can_be_read_again(self.frame):
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _opened(self, number: int) -> Iterator[tuple[Action[Any], ActionContext, tuple[str, ...]]]:
        """The current table, ready for the action. A table that is created here is removed if the block fails."""
        options, engine = self.options, self.engine
        meta, is_ours = open_or_create(self.storage, options, self.clock, self._check_new)
        if number:
            check_is_missing(options.stream, meta)
        with table_removed_on_error(self._context(meta)) if is_ours else stale_reads(meta):
            context, undone = prepare(meta, engine, options, self.clock)
            frame = self.frame
            if options.schema_mode != "overwrite":  # else the columns get the types of the data
                frame = with_key_types(frame, engine, context.meta)  # writes may just have been undone
            if options.operation.lower() == "insert_overwrite_table" and not options.explicit.isdisjoint(BUCKET_KEYS):
                with buckets_changed(context):
                    yield _action(self.operation, frame, options, meta), context, undone
                return
            context = with_table_index(context)
            partial_rows = partial_upsert(frame, context) if options.operation.lower() == "upsert" else None
            yield partial_rows or _action(self.operation, frame, context.options, meta), context, undone

    def _check_new(self, planned: MetaClient) -> None:
        """Refuse rows before the table is created, as far as possible."""
        check_fields(self.options, self.engine.schema(self.frame).names)
        _action(self.operation, self.frame, self.options, planned).schedule(self._context(planned))

    def _context(self, meta: MetaClient) -> ActionContext:
        lock = table_lock(self.options, self.storage, self.clock)
        return ActionContext(meta, self.options, lock, self.clock, self.engine)


def replace_table(
    storage: Storage,
    options: WriteOptions,
    engine: Engine,
    build: Callable[[Storage, WriteOptions], WriteResult],
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Replace the old table by a new one; the old one remains until the new one is complete.

    Args:    build: writes the new table to a storage, with these options; it runs no table services.
    Raises:  HudiError; the old table is then unchanged, unless the error says that the new one counts.
    """
    storage = with_sync(storage, options.storage_sync)
    with naming_completed():
        with notify_afterwards(holds=True), replacing(storage, options, clock) as staged:
            result = build(staged, aside(options))
        meta = MetaClient.load(storage, clock)
        return served(result, ActionContext(meta, options, table_lock(options, meta.storage, clock), clock, engine))


def change_table(
    table: Storage | str | os.PathLike[str],
    change: ChangeRows | DeletePartitions | AlterSchema | Overwrite,
    engine: Engine,
    options: WriteOptions,
    *,
    clock: Clock = _SYSTEM_CLOCK,
) -> WriteResult:
    """Change a table: update, delete by a filter, merge, delete partitions, alter the schema.

    Args:    change: the change; its source, if any, is a frame of the engine, which an overwrite can read twice.
    Raises:  HudiError; unless the call returns, nothing of it is visible.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    if isinstance(change, ChangeRows):
        check_writable(meta.config, options)
        change = replace(change, source=None if change.source is None else _checked_text(change.source))
    elif isinstance(change, DeletePartitions | AlterSchema):
        check_files_writable(meta.config)  # a change without merging needs no merger
    else:
        check_writable(meta.config, options)
    rows = change.source if isinstance(change, ChangeRows) else None

    def first_look(number: int) -> tuple[ActionContext, ChangeRows | DeletePartitions | AlterSchema | Overwrite]:
        """Prepare the first attempt, so that invalid changes are refused early."""
        now = meta.reload() if number else meta
        with stale_reads(now):
            context = ActionContext(now, options, table_lock(options, storage, clock), clock, engine)
            context = context if isinstance(change, DeletePartitions | AlterSchema) else with_table_index(context)
            keyed = _with_key_types(change, engine, now)
            keyed.schedule(context)
            return context, keyed

    first, keyed = with_retries(first_look, options, rows, clock, after=(StaleRead,))

    def attempt(number: int) -> _Written:
        now = first.meta.reload() if number else first.meta
        with stale_reads(now):
            context, undone = prepare(now, engine, first.options, clock)
            is_delta = context.meta.config.is_merge_on_read and isinstance(keyed, ChangeRows | AlterSchema)
            action: Action[Any] = replace(keyed, kind=ActionKind.DELTACOMMIT) if is_delta else keyed
            return _Written(_numbered(run(action, context, undone), number), context)

    with calling(str(change.operation), storage, options) as work:
        work.result = result = served(*with_retries(attempt, options, rows, clock))
    return result


def _with_key_types(change: ChangeT, engine: Engine, meta: MetaClient) -> ChangeT:
    """The change with its rows' keys in the table's types; rows of an overwrite have these types already."""
    if isinstance(change, ChangeRows) and change.source is not None:
        return replace(change, source=with_key_types(change.source, engine, meta))
    if isinstance(change, DeletePartitions) and change.frame is not None:
        return replace(change, frame=with_key_types(change.frame, engine, meta))
    return change


def _checked_text(frame: Frame) -> Frame:
    """Check texts of rows in this process: those in memory now, a stream as it is read; tasks check Spark's rows."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        check_text(frame)
    if isinstance(frame, ReopenedRows):
        reopened: ReopenedRows = frame
        return Frame(replace(reopened, open=lambda: text_checked(reopened.open())))
    return Frame(text_checked(frame)) if isinstance(frame, pa.RecordBatchReader) else frame


def _rereadable(frame: Frame) -> Frame:
    """Rows of a stream as a frame, which keeps them for another attempt if there are few."""
    return Frame(LocalFrame.of(frame, kept_bytes=KEPT_BYTES)) if isinstance(frame, pa.RecordBatchReader) else frame


def _numbered(result: WriteResult, number: int) -> WriteResult:
    """The result of an attempt, with the number of earlier attempts."""
    return replace(result, retries=number) if number else result


def _action(
    operation: Callable[[Frame, WriteOptions], DataWrite], frame: Frame, options: WriteOptions, meta: MetaClient
) -> DataWrite:
    if options.operation.lower() == "upsert" and is_automatic(meta.config):
        if "hoodie.datasource.write.operation" in options.explicit:
            raise ConfigError(
                f"{meta.storage.root}: the table has no key fields, every row gets a generated key, so there is "
                "nothing to upsert. Use operation insert or bulk_insert, or create a table with "
                "hoodie.datasource.write.recordkey.field."
            )
        operation = OPERATIONS["insert"]
    action = operation(frame, options)
    if meta.config.is_merge_on_read and isinstance(action, KeyedWrite | BulkInsert):
        return replace(action, kind=ActionKind.DELTACOMMIT)
    return action
