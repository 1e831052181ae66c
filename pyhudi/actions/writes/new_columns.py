"""The columns of a table after a write: the former ones plus those of the data, or only the data's."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.constraints import bound_constraints
from pyhudi.actions.rows import ordering_fields
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.schema import MetadataKind
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.evolution import evolve
from pyhudi.schema.internal import load_schema_history

__all__ = ["stored_columns"]


def stored_columns(columns: pa.Schema, context: ActionContext) -> pa.Schema:
    """The columns that files of the write have. `columns`: of the data, without those that files leave out.

    Raises: SchemaMismatch for columns that don't fit the table's; ConfigError where they can't be replaced.
    """
    config, options = context.meta.config, context.options
    dropped = config.dropped_partition_fields
    return evolve(
        pa.schema([]) if _replaces_schema(columns, context) else context.meta.stored_schema(),
        columns,
        null_for_missing=options.null_for_missing_columns,
        allow_drop=options.allow_column_drop,
        reconcile=options.reconcile_schema,
        allow_kind_change=options.allow_kind_change,
        protected=(*config.record_key_fields, *(name for name in config.partition_fields if name not in dropped)),
        ordering_fields=ordering_fields(context),
    )


def _replaces_schema(columns: pa.Schema, context: ActionContext) -> bool:
    """Does the table get just these columns? Raises ConfigError where it can't."""
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
        raise ConfigError(f"{root}: the new columns lack {', '.join(indexed)}, which an index is of. Drop it first.")
    bound_constraints(meta.config, columns)
    return True


def _indexed_columns(context: ActionContext) -> set[str]:
    """Columns of secondary and expression indexes."""
    definitions = read_index_definitions(context.meta.storage).by_name.values()
    statistics = MetadataKind.COLUMN_STATS.value.prefix  # of whatever columns there are
    fields = [column for one in definitions if one.name != statistics for column in one.source_fields]
    return {column.partition(".")[0] for column in fields if column not in META_COLUMNS}
