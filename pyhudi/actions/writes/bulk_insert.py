"""Bulk insert: rows go to new files, optionally sorted; without index lookup, and without filling small files.

Sort modes (`hoodie.bulkinsert.sort.mode`): NONE; GLOBAL_SORT by partition path and key over the whole input;
PARTITION_SORT the same inside each task; PARTITION_PATH_REPARTITION sends each partition path to one task, ..._AND_SORT
sorts it, too. Chosen columns (`hoodie.bulkinsert.user.defined.partitioner.sort.columns`) replace partition path and
key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.rows import CombineRows, input_rules
from pyhudi.actions.table_keys import PROBE_TIME, RowNumbers, keys_to_write, table_keygen
from pyhudi.actions.writes.keyed_write import KeyedWrite, insert
from pyhudi.actions.writes.preparation import (
    commit_body,
    constrained,
    data_columns,
    schedule_write,
    write_spec,
)
from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import ConfigError
from pyhudi.filegroup.write.new_files import write_partitioned
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table, to_batch
from pyhudi.formats.damage import check_text
from pyhudi.index.chosen import index_class
from pyhudi.keygen import KeyGenerator
from pyhudi.metadata.staged_index import StagedIndexWriter, merge_staged
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import COMBINED, PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.schema.projection import project
from pyhudi.storage.clock import Clock

__all__ = ["BulkInsert", "WritePartitioned", "bulk_insert"]


def bulk_insert(frame: Frame, options: WriteOptions) -> BulkInsert | KeyedWrite:
    """The action. It takes insert's path in a table of buckets, because a key's bucket is its file group, and with a
    policy on duplicates, which needs the stored keys.
    """
    if index_class(options).places_inserts or options.insert_dup_policy != "none":
        return insert(frame, options, operation=OperationType.BULK_INSERT)
    return BulkInsert(frame)


@dataclass(frozen=True, slots=True)
class BulkInsert:
    """Write rows to new files."""

    frame: Frame
    kind: ActionKind = field(default=ActionKind.COMMIT)

    @property
    def operation(self) -> str:
        return OperationType.BULK_INSERT

    def schedule(self, context: ActionContext) -> Schedule:
        return schedule_write(self.frame, table_keygen(context, PROBE_TIME), context)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[KeyGenerator]:
        keygen = table_keygen(context, instant.requested_time)
        spec = write_spec(schedule, keygen, instant, context)
        rows = self._arranged(constrained(data_columns(self.frame, context), context), keygen, context)
        # The distribution of rows is known only after writing, so there is no profile, as in Hudi.
        return PreparedWrite(instant, schedule, spec, None, rows, keygen)

    def execute(self, prepared: PreparedWrite[KeyGenerator], context: ActionContext) -> tuple[WriteStatus, ...]:
        pieces = StagedIndexWriter.of(context.meta, prepared.instant.requested_time)
        work = WritePartitioned(prepared.spec, prepared.plan, context.clock, pieces)
        assert prepared.frame is not None
        rows = context.engine.map(prepared.frame, work, STATUS_SCHEMA)
        statuses = tuple(from_table(context.engine.collect(rows)))
        return merge_staged(context.engine, pieces, statuses)

    def summarise(
        self, prepared: PreparedWrite[KeyGenerator], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return commit_body(self.operation, prepared.schedule, statuses, context)

    def _arranged(self, rows: Frame, keygen: KeyGenerator, context: ActionContext) -> Frame:
        """The rows in the order of the sort mode, with keys if the sort needed them."""
        engine, options = context.engine, context.options
        mode, chosen = options.bulk_insert_sort_mode.upper(), options.bulk_insert_sort_columns
        missing = [name for name in chosen if name not in engine.schema(rows).names]
        if missing:
            raise ConfigError(
                f"hoodie.bulkinsert.user.defined.partitioner.sort.columns names {', '.join(missing)}, which the data "
                f"doesn't have; its columns: {', '.join(engine.schema(rows).names)}."
            )
        if options.combine_before_bulk_insert:
            rows = self._combined(self._with_keys(rows, keygen, context), context)
        if chosen:
            return engine.arrange(rows, sort_by=list(chosen), scope="global")
        if mode == "NONE":
            return rows
        with_keys = rows if RECORD_KEY in engine.schema(rows).names else self._with_keys(rows, keygen, context)
        sort_columns = [PARTITION_PATH, RECORD_KEY]
        if mode == "GLOBAL_SORT":
            return engine.arrange(with_keys, sort_by=sort_columns, scope="global")
        if mode == "PARTITION_SORT":
            return engine.arrange(with_keys, sort_by=sort_columns)
        sort_by = sort_columns if mode == "PARTITION_PATH_REPARTITION_AND_SORT" else []
        return engine.arrange(with_keys, partition_by=[PARTITION_PATH], sort_by=sort_by)

    def _with_keys(self, rows: Frame, keygen: KeyGenerator, context: ActionContext) -> Frame:
        columns = list(keygen.input_columns) or list(context.engine.schema(rows).names)
        return context.engine.extend(rows, columns, AddKeyColumns(keygen), _KEY_SCHEMA)

    def _combined(self, with_keys: Frame, context: ActionContext) -> Frame:
        engine = context.engine
        work = CombineRows((RECORD_KEY, PARTITION_PATH), input_rules(context), counts=True)
        schema = work.schema(engine.schema(with_keys))
        return engine.map(engine.arrange(with_keys, partition_by=[RECORD_KEY]), work, schema)


def _counted(batches: Iterable[pa.RecordBatch], combined: list[int]) -> Iterator[pa.RecordBatch]:
    """The rows; their COMBINED counts are added to `combined`."""
    for batch in batches:
        if COMBINED in batch.schema.names:
            combined.append(pc.sum(batch.column(COMBINED)).as_py() or 0)
        yield batch


_KEY_SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in (RECORD_KEY, PARTITION_PATH)])


@dataclass(frozen=True)
class AddKeyColumns:
    """Column work: record key and partition path."""

    keygen: KeyGenerator
    _numbers: RowNumbers = field(default_factory=RowNumbers, compare=False, repr=False)

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        first = self._numbers.first_of(context, batch)
        keys = keys_to_write(self.keygen, batch, context.partition_id, first)
        return pa.RecordBatch.from_arrays([keys.record_key, keys.partition_path], schema=_KEY_SCHEMA)


@dataclass(frozen=True, slots=True)
class WritePartitioned:
    """Stream work: a task's rows become files. Keys are made here unless the rows have them already.

    `pieces`: makes index records of many keys.
    """

    spec: WriteSpec
    keygen: KeyGenerator
    clock: Clock
    pieces: StagedIndexWriter | None = None

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        combined: list[int] = []  # by rows that were read since the last status
        statuses = write_partitioned(self.spec, context, self._fitted(context, _counted(batches, combined)), self.clock)
        for status in statuses if self.pieces is None else self.pieces.reported(context, statuses):
            yield to_batch([replace(status, combined=sum(combined))])
            combined.clear()

    def _fitted(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if RECORD_KEY in batch.schema.names:
                keys = [batch.column(RECORD_KEY), batch.column(PARTITION_PATH)]
            else:
                key_columns = keys_to_write(self.keygen, batch, context.partition_id, first)
                keys = [key_columns.record_key, key_columns.partition_path]
            first += batch.num_rows
            data = [name for name in batch.schema.names if name not in (RECORD_KEY, PARTITION_PATH)]
            if not self.spec.texts_are_checked:
                check_text(batch.select(data))
            fitted = project(batch.select(data), self.spec.schema, exact=True)
            schema = pa.schema([*fitted.schema, *_KEY_SCHEMA])
            yield pa.RecordBatch.from_arrays([*fitted.columns, *keys], schema=schema)
