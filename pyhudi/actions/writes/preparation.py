"""What every write needs: the incoming schema fitted to the table, how files are written, the body of its commit.

Source: docs/formats/schema.md, "Schema of a table", "Evolution on write"; docs/formats/timeline.md, "Extra metadata".
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, Schedule
from pyhudi.actions.concurrency import early_conflicts
from pyhudi.actions.merging import ordering_fields, table_rules
from pyhudi.actions.partitioner import Sizing, record_size_bytes
from pyhudi.actions.rows import delete_flag_columns, marked_rows, marker_columns
from pyhudi.actions.writes.schema_history import with_history
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.filegroup.write.append import LogOptions
from pyhudi.filegroup.write.spec import BaseFileOptions, WriteSpec
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.keygen import KeyGenerator
from pyhudi.merge.rules import MergeRules
from pyhudi.metadata.indexed_columns import kept_columns
from pyhudi.metadata.partitions import keeps_record_index
from pyhudi.model.change_logs import ChangeLogOptions
from pyhudi.model.commit import CommitMetadata, WriteStat, WriteStatus
from pyhudi.model.instant import Instant
from pyhudi.model.keys import CONTROL_COLUMNS, META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.schema.evolution import evolve
from pyhudi.schema.required import first_null, null_refused, required_columns

__all__ = [
    "check_keys",
    "commit_body",
    "data_columns",
    "log_options",
    "schedule_delete",
    "schedule_unchanged",
    "schedule_write",
    "sizing",
    "write_spec",
]


def data_columns(frame: Frame, context: ActionContext) -> Frame:
    """The frame without meta columns: rows that were read from a Hudi table bring old ones along."""
    names = context.engine.schema(frame).names
    kept = [name for name in names if name not in META_COLUMNS]
    return frame if len(kept) == len(names) else context.engine.select(frame, kept)


def schedule_write(frame: Frame, keygen: KeyGenerator, context: ActionContext) -> Schedule:
    """The table's schema after this write. Raises SchemaMismatch, KeyGenError; nothing is on disk yet."""
    config, options = context.meta.config, context.options
    incoming = without_meta(context.engine.schema(frame))
    reserved = [name for name in incoming.names if name in CONTROL_COLUMNS]
    if reserved:
        raise SchemaMismatch(f"Columns {', '.join(reserved)} are names that PyHudi uses itself; rename them.")
    dropped = frozenset(config.dropped_partition_fields)
    stored = evolve(
        context.meta.stored_schema(),
        pa.schema([column for column in incoming if column.name not in dropped]),
        null_for_missing=options.null_for_missing_columns,
        allow_drop=options.allow_column_drop,
        reconcile=options.reconcile_schema,
        allow_kind_change=options.allow_kind_change,
        protected=(*config.record_key_fields, *(name for name in config.partition_fields if name not in dropped)),
        ordering_fields=ordering_fields(context),
    )
    check_keys(keygen, incoming)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        _check_required(frame, stored, keygen, context)
    everything = pa.schema([*stored, *(column for column in incoming if column.name in dropped)])
    schedule = Schedule(everything, avro_from_arrow(stored, config.table_name, with_meta=False))
    return with_history(schedule, stored, context)


def _check_required(
    rows: pa.Table | pa.RecordBatch, schema: pa.Schema, keygen: KeyGenerator, context: ActionContext
) -> None:
    """Look at rows in memory before there is an instant; at all others when they are written, at merged ones then."""
    rules, required = table_rules(context), required_columns(schema)
    if rules.needs_pairs or not required.names:
        return  # a null may stand for the stored value
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        live = batch.filter(pc.invert(marked_rows(batch, rules))) if _marks_deletes(batch.schema, rules) else batch
        found = first_null(live, required)
        if found is not None:
            path, row = found
            raise null_refused(path, keygen.columns(live.slice(row, 1)).record_key[0].as_py())


def _marks_deletes(schema: pa.Schema, rules: MergeRules) -> bool:
    return bool(delete_flag_columns(schema) or marker_columns(schema, rules))


def schedule_delete(frame: Frame, keygen: KeyGenerator, context: ActionContext) -> Schedule:
    """A delete by key: the table's schema stays, and of the data only the key columns must be there."""
    check_keys(keygen, context.engine.schema(frame))
    return schedule_unchanged(context)


def schedule_unchanged(context: ActionContext) -> Schedule:
    """A write that leaves the table's schema as it is."""
    schema = context.meta.stored_schema()
    schedule = Schedule(schema, avro_from_arrow(schema, context.meta.config.table_name, with_meta=False))
    return with_history(schedule, schema, context)


def check_keys(keygen: KeyGenerator, incoming: pa.Schema) -> None:
    """Raises KeyGenError when the columns that keys are made of are missing or of a type without keys."""
    columns = keygen.input_columns or tuple(incoming.names)
    if not set(columns) <= set(incoming.names):
        columns = tuple(incoming.names)  # the generator says what is missing, and what there is
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
    """What tasks need to write files of this instant.

    Args:    keygen: not needed for tables with meta columns. rules: how rows merge, None: as the table says.
    Raises:  UnsupportedTable when nobody here knows the table's merger.
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
        ),
    )
    return replace(spec, stats_columns=kept_columns(context.meta, spec.stored_schema, options.metadata))


def sizing(context: ActionContext, *, inserts: bool = True) -> Sizing:
    """How large files should get, from the options and, when there are inserts, from what earlier commits wrote."""
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
    """How log files are written."""
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
