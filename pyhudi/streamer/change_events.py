"""A pipeline whose rows are change events, which are applied to the table as `pyhudi.apply_changes` does it.

A batch of a stream may lack columns that another one has. They are null in it.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.predicates import columns_of
from pyhudi.expressions.where import parse_where
from pyhudi.model.options.streamer.changes import ApplyOptions
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table.change_events.flow import ChangeFlow

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
    if "Debezium" in settings.options.source:
        raise ConfigError(
            f"{place}: {settings.options.source} has its own merging, which fills values that its events leave out. "
            f"Leave {_PREFIX}… out, or read flat events by JsonKafkaSource or AvroKafkaSource."
        )
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


def with_all_columns(rows: pa.Table, flow: ChangeFlow, table: pa.Schema) -> tuple[pa.Table, ChangeFlow]:
    """Events with the columns that the flow names, as far as their types are known. `table`: the columns of the table.

    A column that the batch lacks is null. A condition on one such column is true for no event.
    """
    names = set(rows.schema.names)
    compared = {column.path[0] for column in columns_of(parse_where(flow.deletes))}
    if len(compared) == 1 and not compared & names:
        flow = replace(flow, deletes=None)
        compared = set()
    named = (*flow.columns, *flow.except_columns, *flow.tracked, *flow.untracked, *sorted(compared))
    for name in dict.fromkeys(named):
        if name not in names and (name in table.names or name in (*flow.except_columns, *compared)):
            kind = table.field(name).type if name in table.names else pa.string()
            rows = rows.append_column(name, pa.nulls(len(rows), kind))
    return rows, flow
