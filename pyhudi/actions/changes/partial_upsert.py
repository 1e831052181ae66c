"""An upsert whose rows lack columns of the table: stored rows keep the values of these columns, new rows have null.

The upsert becomes a merge by key: matched rows get the columns that are there. Rows of one key in the data are combined
first, as in any upsert. Source: docs/updating.md, "Rows without all columns".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import Clause, When
from pyhudi.actions.rows import delete_flag_columns, marker_columns, table_rules
from pyhudi.actions.table_keys import is_automatic
from pyhudi.engine.base import Frame
from pyhudi.formats.avro.schema import without_meta
from pyhudi.model.instant import ActionKind
from pyhudi.schema.column_paths import column_paths

__all__ = ["partial_upsert"]

_FOR_MISSING = (
    "hoodie.write.set.null.for.missing.columns",
    "hoodie.datasource.write.reconcile.schema",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
)


def partial_upsert(frame: Frame, context: ActionContext) -> ChangeRows | None:
    """The change that these rows make; None for rows with all columns, and where another rule covers missing ones.

    Such a rule is an option about missing columns, a merger that joins versions itself, or rows that are marked as
    deletes: such an upsert takes the usual path. Columns that the table lacks are added to it.
    """
    meta, rules = context.meta, table_rules(context)
    config, options = meta.config, context.options
    table, rows = meta.table_schema(), without_meta(context.engine.schema(frame))
    given_names = set(rows.names)
    missing = [name for name in table.names if name not in given_names]
    if not table.names or not missing:
        return None
    fixed = {name.partition(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    if is_automatic(config) or not fixed <= given_names or not options.explicit.isdisjoint(_FOR_MISSING):
        return None
    if options.schema_mode == "overwrite" or options.null_for_missing_columns:
        return None
    if options.reconcile_schema or options.allow_column_drop:
        return None
    if rules.needs_pairs or delete_flag_columns(rows) or marker_columns(rows, rules):
        return None
    clauses = (Clause(When.MATCHED, "update"), Clause(When.NOT_MATCHED, "insert"))
    kind = ActionKind.DELTACOMMIT if config.is_merge_on_read else ActionKind.COMMIT
    evolves = bool(column_paths(rows).keys() - column_paths(table).keys())
    combines = options.combine_before_upsert
    return ChangeRows(clauses, source=frame, kind=kind, combines=combines, evolves=evolves, refuses_moves=True)
