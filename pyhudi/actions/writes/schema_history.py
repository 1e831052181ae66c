"""Writes to tables with a schema history: files have the columns of the newest schema, under its names.

A write changes no schema of such a table: new columns and other types would need ids. Readers take the columns of a
file for those of its instant, so a schema that changes while a write runs is a conflict.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.actions.action import ActionContext, Schedule
from pyhudi.errors import SchemaMismatch, UnsupportedTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.internal import InternalSchema, load_schema_history, schema_json_as_of

__all__ = ["check_same_history", "with_history"]


def with_history(schedule: Schedule, stored: pa.Schema, context: ActionContext) -> Schedule:
    """The schedule of a write, with what its files and its commit must say of the table's schema history, if any.

    Args:    stored: the columns that files of the write have.
    Raises:  SchemaMismatch for rows that would change the schema; UnsupportedTable where the history and the last
             commit disagree, and where a column that keys, partitions or ordering are made of was another one once.
    """
    meta = context.meta
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    if not history:
        return schedule
    _check_unchanged(stored, meta)
    _check_newest(history[0], stored, meta)
    config = meta.config
    fields = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    _check_deciding({field.partition(".")[0] for field in fields}, history, meta)
    return replace(
        schedule,
        schema_json=meta.commits.latest_schema_json(meta.timeline) or schedule.schema_json,
        history=history,
        internal_schema=schema_json_as_of(meta.storage, meta.timeline, str(history[0].version_id)),
    )


def check_same_history(schedule: Schedule, began: MetaClient, now: MetaClient) -> None:
    """Raises WriteConflict when the table's schema was changed since a write began: its files lack the new one."""
    if now.timeline.commits() == began.timeline.commits():
        return
    history = load_schema_history(now.storage, now.config, now.timeline)
    if _version(history) != _version(schedule.history):
        raise WriteConflict(
            f"{now.storage.root}: the table's schema was changed (ALTER TABLE) while the write was running. Nothing of "
            "it is visible; write again with the columns of the new schema."
        )


def _version(history: Sequence[InternalSchema]) -> int | None:
    return history[0].version_id if history else None


def _check_unchanged(stored: pa.Schema, meta: MetaClient) -> None:
    table = meta.stored_schema()
    if not stored.equals(table):
        other = sorted({f"{c.name}: {c.type}" for c in stored} ^ {f"{c.name}: {c.type}" for c in table})
        raise SchemaMismatch(
            f"{meta.storage.root}: these rows would change the schema of a table with a schema history "
            f"({', '.join(other[:4])}), which this release does not. Change it with ALTER TABLE in Apache Hudi first."
        )


def _check_newest(newest: InternalSchema, stored: pa.Schema, meta: MetaClient) -> None:
    dropped = meta.config.dropped_partition_fields
    names = [column.name for column in newest.columns if column.name not in (*META_COLUMNS, *dropped)]
    if sorted(names) != sorted(stored.names):
        raise UnsupportedTable(
            f"{meta.storage.root}: the newest schema of the history ({newest.version_id}) has the columns "
            f"{', '.join(names)}, the table's last commit {', '.join(stored.names)}. Write to it with Apache Hudi."
        )


def _check_deciding(names: Iterable[str], history: Sequence[InternalSchema], meta: MetaClient) -> None:
    """Keys of stored rows and their ordering values are found by name, in files of any schema."""
    for name in sorted(names):
        ids = {column.id for schema in history for column in schema.columns if column.name == name}
        called = {column.name for schema in history for column in schema.columns if column.id in ids}
        if len(ids) > 1 or len(called) > 1:
            raise UnsupportedTable(
                f"{meta.storage.root}: {name!r}, of which keys, partitions or ordering are made, was renamed or "
                "dropped in the table's schema history; such tables are read, not written. Write to it with Apache "
                "Hudi."
            )
