"""How rows of a write are merged: by the rules of the table, and what the call itself says where the table stores none.

Source: docs/formats/merging.md, "What properties say", "Mode of a table", "Two versions of a key".
"""

from __future__ import annotations

from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError
from pyhudi.merge.rules import MergeRules, merge_rules
from pyhudi.model.merge_mode import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING

__all__ = ["input_rules", "ordering_fields", "table_rules"]

_LATEST = MergeRules(COMMIT_TIME_ORDERING)


def ordering_fields(context: ActionContext) -> tuple[str, ...]:
    """What rows are ordered by: the table's fields, else the call's own, which then only combine its batch."""
    return context.meta.config.ordering_fields or context.options.ordering_fields


def table_rules(context: ActionContext) -> MergeRules:
    """How a written row and the stored one become one.

    A copy-on-write table below version 8 stores nothing about it; there each write says it (as in Hudi 0.x), by default
    the later row wins. Raises UnsupportedTable when nobody here knows the table's merger, ConfigError when the call
    marks deletes otherwise than the table.
    """
    config, options = context.meta.config, context.options
    if config.table_version < 8 and config.payload_class is None and config.merge_strategy_id is None:
        given = {
            "hoodie.compaction.payload.class": options.payload_class,
            "hoodie.record.merge.mode": None if options.payload_class else options.merge_mode,
        }
        config = config.with_changes({key: text for key, text in given.items() if text})
    rules = merge_rules(config, options.merger_classes)
    if options.delete_field is None:
        return rules
    marker = (options.delete_field, options.delete_marker)
    if rules.delete_field is not None and (rules.delete_field, rules.delete_marker) != marker:
        raise ConfigError(
            f"hoodie.payload.delete.field and .marker are {marker}, but the table {config.table_name!r} marks deletes "
            f"by {(rules.delete_field, rules.delete_marker)}. A write can't change this; leave the options out."
        )
    return replace(rules, delete_field=options.delete_field, delete_marker=options.delete_marker)


def input_rules(context: ActionContext) -> MergeRules:
    """How rows of one key in a batch become one, before they meet the table."""
    rules = table_rules(context).for_input
    if rules.needs_pairs:
        return rules
    # Hudi 0.x keeps the row with the greater ordering value within a batch, whatever the payload does later.
    fields = rules.ordering_fields if rules.by_ordering else ordering_fields(context)
    by_value = rules.mode == EVENT_TIME_ORDERING or context.meta.config.table_version < 8
    return MergeRules(EVENT_TIME_ORDERING, fields) if by_value and fields else _LATEST
