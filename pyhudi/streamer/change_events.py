"""A pipeline whose rows are change events, which are applied to the table as `pyhudi.apply_changes` does it.

A batch of a stream may lack columns that another one has. They are null in it.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.predicates import columns_of
from pyhudi.expressions.where import parse_where
from pyhudi.model.options.streamer_changes import ApplyOptions
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table.change_flow import ChangeFlow

__all__ = ["flow_of", "with_all_columns"]

_PREFIX = "hoodie.pyhudi.streamer.apply.changes."


def flow_of(settings: PipelineSettings) -> ChangeFlow | None:
    """How the events of a pipeline are applied; None where rows are rows. Raises ConfigError."""
    apply, place = settings.options.apply, settings.place
    if not apply.keys:
        if apply != ApplyOptions():
            raise ConfigError(f"{place}: {_PREFIX}keys is missing: the columns that identify a row.")
        return None
    if apply.sequence_by is None:
        raise ConfigError(f"{place}: {_PREFIX}sequence.by is missing: the column that orders the events of a key.")
    if settings.options.filters_dupes:
        raise ConfigError(f"{place}: filter-dupes leaves rows out whose keys the table has; events change them.")
    try:
        flow = ChangeFlow(
            apply.keys, apply.sequence_by, int(apply.scd_type), apply.deletes,
            apply.columns, apply.except_columns, apply.tracked, apply.untracked,
        )  # fmt: skip
        flow.options(settings.write)
        parse_where(apply.deletes)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    return flow


def with_all_columns(rows: pa.Table, flow: ChangeFlow, table: pa.Schema | None) -> tuple[pa.Table, ChangeFlow]:
    """Events with all columns that the flow names. `table`: the columns of the table, None for a new one.

    A column that the batch lacks is null. A condition on one such column is true for no event.
    """
    condition = parse_where(flow.deletes)
    compared = {column.path[0] for column in columns_of(condition)}
    if len(compared) == 1 and not compared & set(rows.schema.names):
        flow = replace(flow, deletes=None)
        compared = set()
    named = (*flow.columns, *flow.except_columns, *flow.tracked, *flow.untracked, *sorted(compared))
    for name in dict.fromkeys(named):
        if name not in rows.schema.names:
            kind = pa.string() if table is None or name not in table.names else table.field(name).type
            rows = rows.append_column(name, pa.nulls(len(rows), kind))
    return rows, flow
