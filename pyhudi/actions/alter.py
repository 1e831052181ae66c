"""AlterSchema: a commit without files that changes the table's columns.

    new columns at the end, wider numbers, comments      only the commit's schema changes; files are matched by name
    everything else                                      the table gets a schema history; files are matched by id

A table that has a history keeps it. Source: docs/formats/schema.md, "Schema history", "Evolution on write".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.constraints import bound_constraints
from pyhudi.actions.rows import ordering_fields
from pyhudi.actions.writes.preparation import check_deciding, commit_body, write_spec
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.merge.rules import MergeRules
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.schema.changes import (
    AddColumn,
    ChangeType,
    DropNotNull,
    SchemaChange,
    SetComment,
    changed_schema,
    numbered_schema,
)
from pyhudi.schema.column_paths import check_twins
from pyhudi.schema.internal import InternalSchema, load_schema_history

__all__ = ["AlterSchema"]

_WIDER = {  # widenings that readers accept when they match columns by name
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """`changes`: one after the other, in one commit. `keeps_history`: None where the changes need one."""

    changes: tuple[SchemaChange, ...]
    keeps_history: bool | None = None
    kind: ActionKind = field(default=ActionKind.COMMIT)

    @property
    def operation(self) -> str:
        return OperationType.ALTER_SCHEMA

    def schedule(self, context: ActionContext) -> Schedule:
        meta = context.meta
        config = meta.config
        history = load_schema_history(meta.storage, config, meta.timeline)
        if not meta.table_schema().names:
            raise SchemaMismatch(f"{meta.storage.root}: the table has no columns yet. Write rows to it first.")
        before = history or (numbered_schema(meta.table_schema(), with_meta=config.populate_meta_fields),)
        deciding = {*config.record_key_fields, *config.partition_fields, *ordering_fields(context)}
        check_deciding({name.partition(".")[0] for name in deciding}, history, meta)
        ordering = _ordering_that_may_widen(self.changes, ordering_fields(context), meta)
        changed = changed_schema(before[0], self.changes, deciding - ordering)
        columns = without_meta(changed.to_arrow())
        check_twins(columns, meta.table_schema())
        stored = pa.schema([column for column in columns if column.name not in config.dropped_partition_fields])
        bound_constraints(config, columns)  # a constraint on a dropped column must be dropped first
        needs_ids = any(_needs_ids(change, before[0]) for change in self.changes)
        if needs_ids and not history and self.keeps_history is False:
            raise ConfigError(
                f"{meta.storage.root}: this change makes a schema history, for files of before are read rightly by ids "
                "of columns only, and hoodie.schema.on.read.enable=false says that there is to be none."
            )
        if not history and not needs_ids and not self.keeps_history:
            return Schedule(columns, avro_from_arrow(stored, config.table_name, with_meta=False))
        text = avro_from_arrow(stored, config.table_name, with_meta=config.populate_meta_fields)
        return Schedule(columns, text, history=before, new_schema=changed)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[None]:
        # No row is written, so keys and the table's merger, which may be unknown here, are not needed.
        spec = write_spec(schedule, None, instant, context, MergeRules())
        return PreparedWrite(instant, schedule, spec, None, None, None)

    def execute(self, prepared: PreparedWrite[None], context: ActionContext) -> tuple[WriteStatus, ...]:
        return ()

    def summarise(
        self, prepared: PreparedWrite[None], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return commit_body(self.operation, prepared.schedule, statuses, context)


def _needs_ids(change: SchemaChange, before: InternalSchema) -> bool:
    """True if readers that match columns by name would misread older files after this change."""
    if isinstance(change, AddColumn):
        return change.after is not None
    if isinstance(change, ChangeType):
        top = next((column.type for column in before.columns if column.name == change.path), None)
        return not isinstance(top, pa.DataType) or change.type not in _WIDER.get(top, ())
    return not isinstance(change, SetComment | DropNotNull)


def _ordering_that_may_widen(changes: Iterable[SchemaChange], names: Iterable[str], meta: MetaClient) -> set[str]:
    """Ordering columns whose only change is to wider numbers."""
    ordering, schema = set(names), meta.table_schema()
    wider = {
        change.path
        for change in changes
        if isinstance(change, ChangeType)
        and change.path in ordering
        and change.path in schema.names
        and change.type in _WIDER.get(schema.field(change.path).type, ())
    }
    others = {change.path for change in changes if not isinstance(change, ChangeType)}
    return wider - others
