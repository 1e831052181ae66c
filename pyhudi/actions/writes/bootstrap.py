"""Bootstrap by metadata: a skeleton base file for each file of a folder, whose rows are not moved.

A task reads the key columns of one source file and writes the meta columns of its rows, in the file's order. The index
of the source files is written before the commit, so it is there as soon as a reader sees the skeletons. A mixed
bootstrap copies the rows of other files by a separate action inside this one: they share the instant, so readers
see all rows or none.
Source: docs/formats/bootstrap.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.bulk_insert import BulkInsert
from pyhudi.actions.writes.preparation import check_keys, commit_body, write_spec
from pyhudi.engine.base import TaskContext
from pyhudi.errors import SchemaMismatch, TableError
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table, to_batch
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.base.joined import source_batches
from pyhudi.formats.bootstrap import SourceFile, write_index
from pyhudi.keygen import KeyGenerator
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.filenames import SKELETON_TIME
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import RECORD_KEY
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["Bootstrap"]

_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, slots=True)
class _Plan:
    """`copied`: the write that `copy` has prepared."""

    keygen: KeyGenerator
    copied: PreparedWrite[KeyGenerator] | None


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Write skeletons. `folder`: the source folder as hoodie.properties names it, `source` its storage; `schema`: the
    data columns, including those of the folders; `copy`: inserts the rows of other files of the folder.
    """

    folder: str
    source: Storage
    files: tuple[SourceFile, ...]
    schema: pa.Schema
    kind: ActionKind = field(default=ActionKind.COMMIT)
    copy: BulkInsert | None = None

    @property
    def operation(self) -> str:
        return OperationType.BOOTSTRAP

    def schedule(self, context: ActionContext) -> Schedule:
        if any(instant.is_completed for instant in context.meta.timeline):
            raise TableError(f"{context.meta.storage.root}: only a table without commits can be bootstrapped.")
        check_keys(table_keygen(context, PROBE_TIME), self.schema)
        text = avro_from_arrow(self.schema, context.meta.config.table_name, with_meta=False)
        columns = _NO_COLUMNS if self.copy is None else self.copy.schedule(context).schema
        return Schedule(columns, text, time=SKELETON_TIME)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[_Plan]:
        keygen = table_keygen(context, instant.requested_time)
        spec = write_spec(replace(schedule, schema=_NO_COLUMNS), keygen, instant, context)
        copied = None if self.copy is None else self.copy.prepare(schedule, instant, context)
        cached = () if copied is None else copied.cached
        return PreparedWrite(instant, schedule, spec, None, None, _Plan(keygen, copied), cached)

    def execute(self, prepared: PreparedWrite[_Plan], context: ActionContext) -> tuple[WriteStatus, ...]:
        work = WriteSkeleton(prepared.spec, self.source, self.schema, prepared.plan.keygen, context.clock)
        rows = context.engine.fan_out(self.files, work, STATUS_SCHEMA)
        statuses = tuple(from_table(context.engine.collect(rows)))
        ids = {status.stat.file_id for status in statuses}
        files = [file for file in self.files if file.file_id in ids]
        write_index(context.meta.storage, self.folder, files, context.clock.now_ms())
        copied = prepared.plan.copied
        return statuses if self.copy is None or copied is None else (*statuses, *self.copy.execute(copied, context))

    def summarise(
        self, prepared: PreparedWrite[_Plan], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return commit_body(self.operation, prepared.schedule, statuses, context)


@dataclass(frozen=True, slots=True)
class WriteSkeleton:
    """The skeleton of one source file; a file without rows has none."""

    spec: WriteSpec
    source: Storage
    schema: pa.Schema
    keygen: KeyGenerator
    clock: Clock

    def __call__(self, context: TaskContext, file: SourceFile) -> Iterator[pa.RecordBatch]:
        statuses = create_files(
            self.spec, context, file.partition_path, self._keys(file), clock=self.clock, file_id=file.file_id
        )
        for status in statuses:
            yield to_batch([status])

    def _keys(self, file: SourceFile) -> Iterable[pa.RecordBatch]:
        names = self.keygen.input_columns or tuple(self.schema.names)
        columns = pa.schema([self.schema.field(name) for name in names])
        for batch in source_batches(self.source, file, names):
            keys = self.keygen.columns(project(batch, columns))
            elsewhere = pc.not_equal(keys.partition_path, file.partition_path)
            if pc.any(elsewhere).as_py():
                row = elsewhere.index(True).as_py()
                raise SchemaMismatch(
                    f"{self.source.full_path(file.path)}: a row's partition fields make the partition path "
                    f"{keys.partition_path[row].as_py()!r}, but its file is in the folder {file.partition_path!r}. "
                    "A bootstrap by metadata leaves rows in their folders: name the partition fields that the folders "
                    "stand for, or copy the rows with mode='FULL_RECORD'."
                )
            yield pa.RecordBatch.from_arrays([keys.record_key], names=[RECORD_KEY])
