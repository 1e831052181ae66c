"""Constraints added to a table and removed (`actions/constraints.py` describes them)."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.constraints import CONSTRAINT_PREFIX, BoundConstraint, broken_constraint, constraints_of
from pyhudi.errors import ConfigError
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.timeline.table_properties import update_table_config

__all__ = ["add_constraint", "drop_constraint"]

_NAME = re.compile(r"[A-Za-z_][\w-]{0,127}", re.ASCII)


def add_constraint(context: ActionContext, name: str, condition: str) -> None:
    """Add a constraint to the table, under its lock, if all rows satisfy it.

    Raises: ConfigError for a name in use or an invalid one, and for a condition that the columns can't answer;
        SchemaMismatch when rows of the table break it.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r:.200} is no name of a constraint: letters, digits, _ and - after a letter or _.")
    if not isinstance(condition, str):
        raise ConfigError(f"The condition of {name!r} is {condition!r:.200}; expected SQL text such as 'fare > 0'.")
    with context.locked():
        meta = context.meta.reload()
        if name in constraints_of(meta.config):
            raise ConfigError(
                f"{meta.storage.root}: there is a constraint {name!r} already, {constraints_of(meta.config)[name]!r}. "
                "Drop it first, or choose another name."
            )
        constraint = BoundConstraint.of(name, condition, meta.table_schema())
        if not constraint.schema.names:
            raise ConfigError(
                f"The constraint {name!r}, {condition!r:.200}, names no column, so it says nothing about rows. Name "
                "one, such as 'fare > 0'."
            )
        columns = tuple(meta.table_schema().names)
        options = context.options
        plan = plan_snapshot(meta, Query(columns=columns, merger_classes=options.merger_classes))
        count, example = 0, None
        for batch in read_batches(plan, meta.storage):
            rows = pa.Table.from_batches([batch])
            broken = constraint.broken_by(rows)
            if broken.any():
                count += int(np.count_nonzero(broken))
                example = rows.filter(pa.array(broken)).slice(0, 1) if example is None else example
        if example is not None:
            raise broken_constraint(constraint, count, example, adding=True)
        update_table_config(meta.storage, {CONSTRAINT_PREFIX + name: condition}, clock=context.clock)


def drop_constraint(context: ActionContext, name: str) -> None:
    """Drop a constraint of the table. Raises ConfigError if it does not exist."""
    with context.locked():
        meta = context.meta.reload()
        names = constraints_of(meta.config)
        if name not in names:
            raise ConfigError(
                f"{meta.storage.root}: there is no constraint {name!r:.200}; there are: {', '.join(names) or 'none'}."
            )
        update_table_config(meta.storage, remove=[CONSTRAINT_PREFIX + name], clock=context.clock)
