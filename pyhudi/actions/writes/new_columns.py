"""The columns of a table after a write: the former ones plus those of the data, or only the data's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.constraints import bound_constraints
from pyhudi.actions.rows import ordering_fields
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.schema import MetadataKind
from pyhudi.model.instant import Instant
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.operation import SCHEMA_MODE
from pyhudi.schema.column_paths import check_twins, column_paths
from pyhudi.schema.evolution import evolve, misfit, misspelt
from pyhudi.schema.former_names import FormerName, former_names
from pyhudi.schema.internal import load_schema_history
from pyhudi.schema.near_names import near_name
from pyhudi.timeline.commits import has_table_schema

__all__ = ["Missing", "check_source_names", "stored_columns"]


# How columns that the data lacks are treated where no option decides. null: for rows that replace none; kept: stored
# rows keep their values; refused: they would lose them.
Missing: TypeAlias = Literal["null", "kept", "refused"]
_FOR_MISSING = (
    "hoodie.write.set.null.for.missing.columns",
    "hoodie.datasource.write.reconcile.schema",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
)


def stored_columns(columns: pa.Schema, context: ActionContext, missing: Missing) -> pa.Schema:
    """The columns that files of the write have.

    Args:    columns: of the data, without those that files leave out. missing: for columns that the data lacks.

    Raises: SchemaMismatch for columns that don't fit the table's; ConfigError where they can't be replaced.
    """
    options = context.options
    table = pa.schema([]) if _replaces_schema(columns, context) else context.meta.stored_schema()
    check_twins(columns, context.meta.stored_schema())
    overwrites = options.operation.lower() == "insert_overwrite_table"  # nulls may be meant, or other columns
    is_said = overwrites or not options.explicit.isdisjoint(_FOR_MISSING)
    try:
        return _evolved(table, columns, "refused" if is_said else missing, context)
    except SchemaMismatch as error:
        if not overwrites:
            raise
        raise SchemaMismatch(f"{error}\nschema_mode='overwrite' gives the table the columns of the data.") from error


def _evolved(table: pa.Schema, columns: pa.Schema, missing: Missing, context: ActionContext) -> pa.Schema:
    config, options = context.meta.config, context.options
    dropped = config.dropped_partition_fields
    return evolve(
        table,
        columns,
        null_for_missing=options.null_for_missing_columns,
        allow_drop=options.allow_column_drop,
        reconcile=options.reconcile_schema,
        allow_kind_change=options.allow_kind_change,
        protected=(*config.record_key_fields, *(name for name in config.partition_fields if name not in dropped)),
        ordering_fields=ordering_fields(context),
        former=_former(table, columns, context),
        missing=missing,
        schema_mode=options.schema_mode if SCHEMA_MODE in options.explicit else None,
    )


def check_source_names(source: pa.Schema, context: ActionContext) -> None:
    """Check the columns of a merge that takes all of them: those that the table lacks are left out.

    Raises: SchemaMismatch for former names of the table's columns, and for names that are close to those of missing
        columns.
    """
    table = context.meta.stored_schema()
    former = _former(table, source, context)
    problems = [f"column {path!r}: {former[path].refusal(path)}" for path in column_paths(source) if path in former]
    if SCHEMA_MODE not in context.options.explicit:
        missing = [name for name in table.names if name not in source.names]
        unknown = [name for name in source.names if name not in table.names and name not in former]
        similar = {name: near_name(name, missing) for name in unknown}
        problems += [misspelt(name, other) for name, other in similar.items() if other is not None]
    if problems:
        raise misfit(problems)


def _former(table: pa.Schema, columns: pa.Schema, context: ActionContext) -> Mapping[str, FormerName]:
    """By path, the former columns of the table that the data may have."""
    new = column_paths(columns).keys() - column_paths(table).keys()
    if not table.names or not new:
        return {}
    meta = context.meta
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    if history or context.options.allow_column_drop:
        return former_names(history)
    return _dropped(new, meta)


def _dropped(paths: Collection[str], meta: MetaClient) -> dict[str, FormerName]:
    """Like `_former`, for a table without a history: a write dropped the columns. Its older files still have their
    values.
    """
    names: dict[str, FormerName] = {}
    newer: Instant | None = None
    for instant in reversed(meta.timeline.commits().instants):
        body = meta.commits.totals(instant)
        if not has_table_schema(body) or body.schema_json is None:
            continue
        older = column_paths(arrow_from_avro(body.schema_json))
        for path in older.keys() & paths if newer is not None else ():
            names.setdefault(path, FormerName(None, "" if newer is None else newer.requested_time))
        newer = instant
    return names


def _replaces_schema(columns: pa.Schema, context: ActionContext) -> bool:
    """True if the table gets just these columns. Raises ConfigError if it can't."""
    meta, options = context.meta, context.options
    if options.schema_mode != "overwrite":
        return False
    root = meta.storage.root
    if options.operation.lower() != "insert_overwrite_table":
        raise ConfigError(
            f"{root}: schema_mode='overwrite' (hoodie.pyhudi.schema.mode) goes with an overwrite of the whole table; "
            f"rows that stay have the old columns. Found the operation {options.operation.lower()}."
        )
    if load_schema_history(meta.storage, meta.config, meta.timeline):
        raise ConfigError(
            f"{root}: the table has a schema history, in which columns have ids, so they can't be replaced by others "
            "of the same names. Use table.alter(...), or write_hudi(mode='replace'), which makes a new table."
        )
    missing = [name for name in ordering_fields(context) if name.partition(".")[0] not in columns.names]
    if missing:
        raise SchemaMismatch(f"{root}: the new columns lack {', '.join(missing)}, by which rows are ordered.")
    indexed = sorted(_indexed_columns(context) - {*columns.names, *meta.config.dropped_partition_fields})
    if indexed:
        raise ConfigError(
            f"{root}: the new columns lack {', '.join(indexed)}, which has an index. Drop the index first."
        )
    bound_constraints(meta.config, columns)
    return True


def _indexed_columns(context: ActionContext) -> set[str]:
    """Columns of secondary and expression indexes."""
    definitions = read_index_definitions(context.meta.storage).by_name.values()
    statistics = MetadataKind.COLUMN_STATS.value.prefix  # they cover any columns
    fields = [column for one in definitions if one.name != statistics for column in one.source_fields]
    return {column.partition(".")[0] for column in fields if column not in META_COLUMNS}
