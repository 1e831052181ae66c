"""ALTER TABLE: a commit without files that changes the table's columns.

Added columns and wider types need no more than a commit that carries the new schema: files match it by name. After a
rename or a drop they match by id, so such a change makes a schema history, or goes on with the one that there is.
Source: docs/formats/schema.md, "Schema of a table", "Schema history".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.instants import draw_completion_time
from pyhudi.actions.merging import ordering_fields
from pyhudi.actions.writes.preparation import commit_body, write_spec
from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.write_status import WriteStatus
from pyhudi.schema.changes import SchemaChange, changed_schema, needs_ids, with_ids
from pyhudi.schema.internal import HISTORY_FOLDER, InternalSchema, load_schema_history, newest_history_text
from pyhudi.schema.internal_json import history_json, schema_body, schema_json

__all__ = ["AlterSchema"]


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """`by_id`: True: keep a schema history in any case; False: there may be none; None: as the changes need it."""

    changes: tuple[SchemaChange, ...]
    by_id: bool | None = None
    kind: ActionKind = field(default=ActionKind.COMMIT)

    @property
    def operation(self) -> str:
        return OperationType.ALTER_SCHEMA

    def schedule(self, context: ActionContext) -> Schedule:
        """Raises ConfigError for changes that the table does not take, SchemaMismatch for types."""
        history = load_schema_history(context.meta.storage, context.meta.config, context.meta.timeline)
        if self.by_id is False and not history and self._needs_ids(context):
            raise ConfigError(
                f"{context.meta.storage.root}: this change makes a schema history, for older files are read rightly by "
                "ids of columns only, and hoodie.schema.on.read.enable=false says that there is to be none."
            )
        stored = _stored(self._changed(context, history), context)
        text = avro_from_arrow(stored, context.meta.config.table_name, with_meta=False)
        return Schedule(stored, text, history=history)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[None]:
        spec = write_spec(schedule, None, instant, context, MergeRules())
        return PreparedWrite(instant, schedule, spec, CommitMetadata({}, operation_type=self.operation), None, None)

    def execute(self, prepared: PreparedWrite[None], context: ActionContext) -> tuple[WriteStatus, ...]:
        return ()

    def summarise(
        self, prepared: PreparedWrite[None], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        history = prepared.schedule.history
        body = commit_body(self.operation, prepared.schedule, statuses, context)
        if not (history or self.by_id or self._needs_ids(context)):
            return body
        newest = replace(self._changed(context, history), version_id=int(prepared.instant.requested_time))
        self._write_history(newest, prepared.instant, context)
        return replace(body, extra_metadata={**body.extra_metadata, "latest_schema": schema_json(newest)})

    def _changed(self, context: ActionContext, history: Sequence[InternalSchema]) -> InternalSchema:
        config = context.meta.config
        before = history[0] if history else with_ids(context.meta.stored_schema())
        fields = tuple(name.partition(":")[0] for name in config.partition_fields)
        return changed_schema(
            before,
            self.changes,
            protected=(*config.record_key_fields, *fields),
            ordering_fields=ordering_fields(context),
        )

    def _needs_ids(self, context: ActionContext) -> bool:
        return needs_ids(self.changes, context.meta.stored_schema())

    def _write_history(self, newest: InternalSchema, instant: Instant, context: ActionContext) -> None:
        """The history file counts from the moment on that the commit is complete."""
        meta, time = context.meta, instant.requested_time
        text = newest_history_text(meta.storage, meta.timeline)
        older = (
            cast("list[object]", json.loads(text)["schemas"])
            if text is not None
            else [cast("object", schema_body(with_ids(meta.stored_schema())))]
        )
        for state in ("requested", "inflight"):
            meta.storage.write(f"{HISTORY_FOLDER}/{time}.schemacommit.{state}", b"")
        name = time if meta.config.table_version < 8 else f"{time}_{draw_completion_time(instant, context)}"
        path = f"{HISTORY_FOLDER}/{name}.schemacommit"
        meta.storage.write(path, history_json(newest, older).encode())
        meta.storage.sync([path])


def _stored(schema: InternalSchema, context: ActionContext) -> pa.Schema:
    dropped = context.meta.config.dropped_partition_fields
    columns = without_meta(schema.to_arrow())
    return pa.schema([column for column in columns if column.name not in dropped])
