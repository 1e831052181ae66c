"""Writes to tables with a schema history: files have the columns of the newest schema, under its names.

Rows with new columns or wider types add a schema to the history, whose version is the instant of their write. Readers
take the columns of a file for those of its instant, so a schema that changes while a write runs is a conflict, and so
is a write that was begun after, and is complete before, one that changes the schema.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

import pyarrow as pa

from pyhudi.actions.action import ActionContext, Schedule
from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, format_instant_time
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.changes import renumbered
from pyhudi.schema.internal import InternalSchema, load_schema_history, schema_json_as_of
from pyhudi.timeline.schema_history_files import save_history

__all__ = ["check_deciding", "check_same_history", "save_new_schema", "with_history"]


def with_history(schedule: Schedule, stored: pa.Schema, context: ActionContext) -> Schedule:
    """The schedule of a write, with what its files and its commit must say of the table's schema history, if any.

    Args:    stored: the columns that files of the write have.
    Raises:  UnsupportedTable where the history and the last commit disagree, and where a column that keys, partitions
             or ordering are made of was another one once.
    """
    meta = context.meta
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    if not history:
        return schedule
    config, table = meta.config, meta.stored_schema()
    _check_newest(history[0], table, meta)
    fields = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    check_deciding({field.partition(".")[0] for field in fields}, history, meta)
    if not stored.equals(table):
        return replace(
            schedule,
            schema_json=avro_from_arrow(stored, config.table_name, with_meta=True),
            history=history,
            new_schema=_renumbered(history[0], stored, config.dropped_partition_fields),
        )
    return replace(
        schedule,
        schema_json=meta.commits.latest_schema_json(meta.timeline) or schedule.schema_json,
        history=history,
        internal_schema=schema_json_as_of(meta.storage, meta.timeline, str(history[0].version_id)),
    )


def check_same_history(schedule: Schedule, began: MetaClient, now: MetaClient) -> None:
    """Raises WriteConflict when the table's schema was changed since a write began: its files lack the new one."""
    if now.timeline.commits() == began.timeline.commits() and schedule.new_schema is None:
        return
    history = load_schema_history(now.storage, now.config, now.timeline)
    expected = schedule.history if schedule.new_schema is None else schedule.history[1:]
    if _version(history) != _version(expected) and (history or schedule.new_schema is None):
        raise WriteConflict(
            f"{now.storage.root}: the table's schema was changed (ALTER TABLE) while the write was running. Nothing of "
            "it is visible; write again with the columns of the new schema."
        )
    if schedule.new_schema is not None:
        _check_nothing_after(schedule, now)


def save_new_schema(schedule: Schedule, instant: Instant, context: ActionContext) -> None:
    """Write the history with the schema that this action adds, if any; it counts once the instant is complete."""
    if schedule.new_schema is None:
        return
    meta, time = context.meta, instant.requested_time
    now = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    completed = max(time, format_instant_time(now, meta.config.timeline_zone))
    save_history((time, completed), schedule.history, meta.storage, meta.config, meta.timeline)


def _version(history: Sequence[InternalSchema]) -> int | None:
    return history[0].version_id if history else None


def _renumbered(newest: InternalSchema, stored: pa.Schema, dropped: Iterable[str]) -> InternalSchema:
    """The schema with the columns of rows; partition columns that files leave out stay in it."""
    made = renumbered(newest, stored)
    left = tuple(column for column in newest.columns if column.name in dropped)
    return replace(made, columns=(*made.columns, *left))


def _check_nothing_after(schedule: Schedule, now: MetaClient) -> None:
    """Raises WriteConflict for what began after a change of the schema and knows nothing of it."""
    assert schedule.new_schema is not None
    time = str(schedule.new_schema.version_id)
    later = [i for i in now.timeline if i.requested_time > time and (i.action.is_commit or i.action.is_table_service)]
    others = [i for i in later if i.is_completed or i.action.is_table_service or i.action.is_replacing]
    if others:
        raise WriteConflict(
            f"{now.storage.root}: {others[0].requested_time} was begun after this change of the schema and has files "
            "without it. Nothing of the change is visible; make it again."
        )


def _check_newest(newest: InternalSchema, stored: pa.Schema, meta: MetaClient) -> None:
    dropped = meta.config.dropped_partition_fields
    names = [column.name for column in newest.columns if column.name not in (*META_COLUMNS, *dropped)]
    if sorted(names) != sorted(stored.names):
        raise UnsupportedTable(
            f"{meta.storage.root}: the newest schema of the history ({newest.version_id}) has the columns "
            f"{', '.join(names)}, the table's last commit {', '.join(stored.names)}. Write to it with Apache Hudi."
        )


def check_deciding(names: Iterable[str], history: Sequence[InternalSchema], meta: MetaClient) -> None:
    """Raises UnsupportedTable when one of these columns, of which keys, partitions and ordering are made, had another
    name or id once: stored keys and ordering values are found by name, in files of any schema.
    """
    for name in sorted(names):
        ids = {column.id for schema in history for column in schema.columns if column.name == name}
        called = {column.name for schema in history for column in schema.columns if column.id in ids}
        if len(ids) > 1 or len(called) > 1:
            raise UnsupportedTable(
                f"{meta.storage.root}: {name!r}, of which keys, partitions or ordering are made, was renamed or "
                "dropped in the table's schema history; such tables are read, not written. Write to it with Apache "
                "Hudi."
            )
