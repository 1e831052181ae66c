"""Preparation of a write: the incoming schema fitted to the table, options for its files, the body of its commit.

In a table with a schema history, files have the columns and names of the newest schema. Rows with new columns or wider
types add a schema to the history, and its version is the instant of their write. Readers choose the schema of a file by
the file's instant. A schema change during a write is therefore a conflict. A write that changes the schema also
conflicts with a write that began after it and completed before it.

Every commit and clean copies the rolling metadata, so that the newest one has it (`with_rolling_metadata`). It consists
of the keys in `hoodie.write.rolling.metadata.keys`. An instant without its own value for a key takes the newest one
among the last commits and cleans. The look-up happens under the table's lock, right before the instant completes.

Source: docs/formats/schema.md, "Schema of a table", "Evolution on write", "Schema history"; docs/formats/timeline.md,
"Extra metadata"; Hudi's documentation of rolling extra metadata (1.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, Schedule
from pyhudi.actions.concurrency import early_conflicts
from pyhudi.actions.constraints import CheckRows, check_rows, constraints_on
from pyhudi.actions.partitioner import Sizing, record_size_bytes
from pyhudi.actions.rows import delete_flag_columns, marked_rows, marker_columns, table_rules
from pyhudi.actions.writes.digits import check_digits
from pyhudi.actions.writes.new_columns import Missing, stored_columns
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTable, WriteConflict
from pyhudi.filegroup.write.append import LogOptions
from pyhudi.filegroup.write.markers import WhilePending
from pyhudi.filegroup.write.spec import BaseFileOptions, WriteSpec
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.keygen import KeyGenerator
from pyhudi.merge.rules import MergeRules
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.partitions.stats_columns import columns_with_stats
from pyhudi.metadata.schema import keeps_record_index
from pyhudi.model.change_logs import ChangeLogOptions
from pyhudi.model.commit import CommitMetadata, WriteStat, WriteStatus
from pyhudi.model.instant import ActionKind, Instant, format_instant_time
from pyhudi.model.keys import CONTROL_COLUMNS, META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.operation import CommitOptions
from pyhudi.schema.changes import renumbered
from pyhudi.schema.internal import InternalSchema, load_schema_history, schema_json_as_of
from pyhudi.schema.required import first_null, null_refused, required_columns
from pyhudi.timeline.schema_history_files import save_history

__all__ = [
    "check_deciding",
    "check_keys",
    "check_same_history",
    "commit_body",
    "constrained",
    "data_columns",
    "log_options",
    "save_new_schema",
    "schedule_delete",
    "schedule_more_columns",
    "schedule_unchanged",
    "schedule_write",
    "sizing",
    "with_history",
    "with_rolling_metadata",
    "with_rolling_values",
    "write_spec",
]


def with_history(schedule: Schedule, stored: pa.Schema, context: ActionContext) -> Schedule:
    """The schedule of a write, with the table's schema history, if any, for its files and its commit.

    Args:    stored: the columns of the write's files.
    Raises:  UnsupportedTable where the history and the last commit disagree, and where a column of keys, partitions or
             ordering was formerly another one.
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
    """Raise WriteConflict when the table's schema was changed since a write began: its files lack the new one."""
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
    schema = renumbered(newest, stored)
    dropped_columns = tuple(column for column in newest.columns if column.name in dropped)
    return replace(schema, columns=(*schema.columns, *dropped_columns))


def _check_nothing_after(schedule: Schedule, now: MetaClient) -> None:
    """Raise WriteConflict for instants that began after a change of the schema without knowing it."""
    assert schedule.new_schema is not None
    time = str(schedule.new_schema.version_id)
    later = [i for i in now.timeline if i.requested_time > time and (i.action.is_commit or i.action.is_table_service)]
    others = [i for i in later if i.is_completed or i.action.is_table_service or i.action.is_replacing]
    if others:
        raise WriteConflict(
            f"{now.storage.root}: {others[0].requested_time} began after this change of the schema and has files "
            "without it. Nothing of the change is visible; repeat it."
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
    """Raise UnsupportedTable when one of these columns of keys, partitions or ordering formerly had another name or id:
    stored keys and ordering values are found by name, in files of any schema.
    """
    for name in sorted(names):
        ids = {column.id for schema in history for column in schema.columns if column.name == name}
        column_names = {column.name for schema in history for column in schema.columns if column.id in ids}
        if len(ids) > 1 or len(column_names) > 1:
            raise UnsupportedTable(
                f"{meta.storage.root}: {name!r}, a column of keys, partitions or ordering, was renamed or "
                "dropped in the table's schema history; such tables are read, not written. Write to it with Apache "
                "Hudi."
            )


def data_columns(frame: Frame, context: ActionContext) -> Frame:
    """The frame without meta columns: rows read from a Hudi table have old ones."""
    names = context.engine.schema(frame).names
    columns = [name for name in names if name not in META_COLUMNS]
    return frame if len(columns) == len(names) else context.engine.select(frame, columns)


def schedule_write(
    frame: Frame, keygen: KeyGenerator, context: ActionContext, *, keeps_stored: bool = False
) -> Schedule:
    """The table's schema after this write. Raises SchemaMismatch, KeyGenError; nothing is on disk yet.

    Args:    keeps_stored: rows may replace stored ones, whose values in missing columns would be lost.
    """
    config = context.meta.config
    incoming = without_meta(context.engine.schema(frame))
    check_keys(keygen, incoming)
    schedule = _schedule_columns(incoming, context, "refused" if keeps_stored else "null")
    if isinstance(frame, pa.Table | pa.RecordBatch):
        dropped = config.dropped_partition_fields
        stored = pa.schema([column for column in schedule.schema if column.name not in dropped])
        _check_required(frame, stored, keygen, context)
        check_rows(constraints_on(incoming, context.meta), frame, table_rules(context))
    check_digits(frame if isinstance(frame, pa.Table | pa.RecordBatch) else None, incoming, schedule.schema)
    return schedule


def schedule_more_columns(columns: pa.Schema, context: ActionContext) -> Schedule:
    """The table's columns and the new ones of the data, which may lack others. Raises SchemaMismatch."""
    return _schedule_columns(without_meta(columns), context, "kept")


def _schedule_columns(columns: pa.Schema, context: ActionContext, missing: Missing) -> Schedule:
    """The table's schema after rows with these columns. Raises SchemaMismatch for columns that it can't have."""
    config = context.meta.config
    reserved = [name for name in columns.names if name in CONTROL_COLUMNS]
    if reserved:
        raise SchemaMismatch(f"Columns {', '.join(reserved)} are names that PyHudi uses itself; rename them.")
    dropped = frozenset(config.dropped_partition_fields)
    in_files = pa.schema([column for column in columns if column.name not in dropped])
    stored = stored_columns(in_files, context, missing)
    everything = pa.schema([*stored, *(column for column in columns if column.name in dropped)])
    schedule = Schedule(everything, avro_from_arrow(stored, config.table_name, with_meta=False))
    return with_history(schedule, stored, context)


def constrained(frame: Frame, context: ActionContext) -> Frame:
    """Rows that are checked against the table's constraints as they are read; those in memory were when scheduled."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame
    schema = context.engine.schema(frame)
    constraints = constraints_on(schema, context.meta)
    if not constraints:
        return frame
    return context.engine.map(frame, CheckRows(constraints, table_rules(context)), schema)


def _check_required(
    rows: pa.Table | pa.RecordBatch, schema: pa.Schema, keygen: KeyGenerator, context: ActionContext
) -> None:
    """Check rows in memory before an instant exists; all others, and merged ones, are checked when they are written."""
    rules, required = table_rules(context), required_columns(schema)
    if rules.needs_pairs or not required.names:
        return  # a null may mean the stored value
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        live = batch.filter(pc.invert(marked_rows(batch, rules))) if _marks_deletes(batch.schema, rules) else batch
        null = first_null(live, required)
        if null is not None:
            path, row = null
            raise null_refused(path, keygen.columns(live.slice(row, 1)).record_key[0].as_py())


def _marks_deletes(schema: pa.Schema, rules: MergeRules) -> bool:
    return bool(delete_flag_columns(schema) or marker_columns(schema, rules))


def schedule_delete(frame: Frame, keygen: KeyGenerator, context: ActionContext) -> Schedule:
    """The schedule of a delete by key: the table's schema is kept, and the data needs only the key columns."""
    check_keys(keygen, context.engine.schema(frame))
    return schedule_unchanged(context)


def schedule_unchanged(context: ActionContext) -> Schedule:
    """The schedule of a write that leaves the table's schema as it is."""
    schema = context.meta.stored_schema()
    schedule = Schedule(schema, avro_from_arrow(schema, context.meta.config.table_name, with_meta=False))
    return with_history(schedule, schema, context)


def check_keys(keygen: KeyGenerator, incoming: pa.Schema) -> None:
    """Raise KeyGenError when key columns are missing or of a type without keys."""
    columns = keygen.input_columns or tuple(incoming.names)
    if not set(columns) <= set(incoming.names):
        columns = tuple(incoming.names)  # the generator reports missing and present columns
    present = pa.schema([incoming.field(name) for name in columns])
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in present], schema=present)
    keygen.columns(empty)


def write_spec(
    schedule: Schedule,
    keygen: KeyGenerator | None,
    instant: Instant,
    context: ActionContext,
    rules: MergeRules | None = None,
) -> WriteSpec:
    """The specification with which tasks write files of this instant.

    Args:    keygen: not needed for tables with meta columns. rules: how rows merge, None: by the table's rules.
    Raises:  UnsupportedTable when the table's merger is unknown.
    """
    config, options = context.meta.config, context.options
    rules = table_rules(context) if rules is None else rules
    if config.base_file_format == "ORC" and "hoodie.pyhudi.compression.level" in options.explicit:
        raise ConfigError("hoodie.pyhudi.compression.level: ORC's codecs have no levels to choose; leave it out.")
    spec = WriteSpec(
        storage=context.meta.storage,
        instant_time=instant.requested_time,
        table_name=config.table_name,
        table_version=config.table_version,
        schema=schedule.schema,
        populate_meta_fields=config.populate_meta_fields,
        partition_columns_dropped=config.dropped_partition_fields,
        ordering_fields=config.ordering_fields,
        merge_mode=rules.mode,
        rules=rules,
        key_generator=None if config.populate_meta_fields else keygen,
        history=schedule.history,
        change_log=ChangeLogOptions(config.logging_mode, options.log_block_max_bytes) if config.cdc_enabled else None,
        early=early_conflicts(instant, context),
        while_pending=_while_pending(context),
        reports_keys=keeps_record_index(config),
        texts_are_checked=getattr(context.engine, "shares_memory", False),  # its rows come through this process
        file=BaseFileOptions(
            format=config.base_file_format,
            codec=options.codec,
            compression_level=options.compression_level,
            max_file_size_bytes=options.max_file_size_bytes,
            bloom_enabled=options.bloom_enabled and config.populate_meta_fields,
            bloom_num_entries=options.bloom_num_entries,
            bloom_fpp=options.bloom_fpp,
            bloom_kind=options.bloom_kind,
            bloom_max_entries=options.bloom_max_entries,
            page_checksums=options.damage.page_checksums,
        ),
    )
    return replace(spec, stats_columns=columns_with_stats(context.meta, spec.stored_schema, options.metadata))


def _while_pending(context: ActionContext) -> WhilePending | None:
    config = context.meta.config
    return WhilePending(config.timeline_path, config.layout_version) if context.tasks_may_outlive_it else None


def sizing(context: ActionContext, *, inserts: bool = True) -> Sizing:
    """Target sizes of files, from the options and, for inserts, from earlier commits."""
    options, meta = context.options, context.meta
    earlier = reversed(meta.timeline.commits().instants) if inserts else ()
    newest_first = (meta.commits.metadata(instant) for instant in earlier)
    return Sizing(
        small_file_limit_bytes=options.small_file_limit_bytes,
        max_file_size_bytes=options.max_file_size_bytes,
        record_size_bytes=record_size_bytes(
            newest_first, options.small_file_limit_bytes, options.record_size_estimate_bytes
        ),
        auto_split=options.insert_auto_split,
        split_rows=options.insert_split_rows,
    )


def log_options(options: WriteOptions) -> LogOptions:
    """The options for writing log files."""
    return LogOptions(
        options.log_block_format, options.log_file_max_bytes, options.log_block_max_bytes, options.record_positions
    )


def commit_body(
    operation: str, schedule: Schedule, statuses: tuple[WriteStatus, ...], context: ActionContext
) -> CommitMetadata:
    """Commit metadata of a write (docs/formats/timeline.md, "Commit metadata", "Extra metadata")."""
    stats: dict[str, list[WriteStat]] = {}
    for status in statuses:
        stats.setdefault(status.stat.partition_path or "", []).append(status.stat)
    ordered = {path: tuple(sorted(stats[path], key=lambda stat: stat.file_id)) for path in sorted(stats)}
    entries = {**context.options.extra_metadata, "schema": schedule.schema_json}
    if schedule.internal_schema is not None:
        entries["latest_schema"] = schedule.internal_schema
    return CommitMetadata(ordered, entries, operation)


def with_rolling_metadata(body: CommitMetadata, meta: MetaClient, options: CommitOptions) -> CommitMetadata:
    """The body of a commit with its rolling metadata. `meta`: the table as it is now."""
    if not options.rolling_keys:
        return body
    return replace(body, extra_metadata=with_rolling_values(body.extra_metadata, meta, options))


def with_rolling_values(extra: Mapping[str, str], meta: MetaClient, options: CommitOptions) -> dict[str, str]:
    """Extra metadata with the rolling values; an empty text counts as no value."""
    values = dict(extra)
    missing = {key for key in options.rolling_keys if not values.get(key)}
    newest_first = (i for i in reversed(meta.timeline.completed().instants) if _has_metadata(i))
    for instant in islice(newest_first, options.lookback if missing else 0):
        earlier = _extra_metadata(instant, meta)
        values |= {key: earlier[key] for key in missing if earlier.get(key)}
        missing -= values.keys()
        if not missing:
            break
    return values


def _has_metadata(instant: Instant) -> bool:
    return instant.action is ActionKind.CLEAN or instant.action.is_write


def _extra_metadata(instant: Instant, meta: MetaClient) -> Mapping[str, str]:
    if instant.action is not ActionKind.CLEAN:
        return meta.commits.metadata(instant).extra_metadata
    return meta.reader.clean_metadata(instant).extra_metadata
