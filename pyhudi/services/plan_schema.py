"""The schema that the files of a plan are written in, and its commit metadata.

Ordinarily that is the table's schema when the plan runs. Where the table has a schema history it is the one that held
when the plan was made, however late it runs: readers take the columns of its files for those of the plan's instant.
Source: docs/formats/schema.md, "Schema history"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rows import table_rules
from pyhudi.filegroup.read.log_blocks import REWRITING, BlockRules
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.base_file import stored_columns
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.internal import InternalSchema, load_schema_history, schema_json_as_of
from pyhudi.view.committed_logs import damage_rules

__all__ = ["PlanSchema", "plan_schema", "schema_metadata", "slice_reading"]

_SCHEMA, _INTERNAL_SCHEMA = "schema", "latest_schema"


@dataclass(frozen=True, slots=True)
class PlanSchema:
    """`columns`: data columns of the new files. `history`: what columns of older files are matched by, newest first;
    () where they match by name.
    """

    columns: pa.Schema
    history: tuple[InternalSchema, ...] = ()


def plan_schema(instant_time: str, meta: MetaClient) -> PlanSchema:
    """The schema for the files of a plan. Raises CorruptFile."""
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    known = tuple(schema for schema in history if schema.version_id <= int(instant_time))
    if not known:
        return PlanSchema(meta.stored_schema())
    text = meta.commits.schema_json_as_of(meta.timeline, instant_time)
    columns = known[0].to_arrow() if text is None else arrow_from_avro(text)
    return PlanSchema(without_meta(columns), known)


def slice_reading(spec: WriteSpec, schema: PlanSchema, context: ActionContext) -> SliceSpec:
    """How the slices of a plan are read: with all columns that `spec` stores."""
    meta, memory = context.meta, context.options.memory
    return SliceSpec(
        meta.storage,
        pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *stored_columns(spec)]),
        BlockRules(meta.config.table_version, meta.timeline.is_visible),
        table_rules(context),
        spec.key_generator,
        memory.compaction_bytes,
        memory.spill_folder,
        schema.history,
        damage=None if context.options.damage.rewrite else damage_rules(meta, raises=True, advice=REWRITING),
    )


def schema_metadata(instant_time: str, schema: PlanSchema, meta: MetaClient) -> dict[str, str]:
    """What the commit of a plan says of the schema. `meta`: the table when it completes. Raises CorruptFile."""
    commits, timeline = meta.commits, meta.timeline
    text = commits.schema_json_as_of(timeline, instant_time) if schema.history else commits.latest_schema_json(timeline)
    entries = {_SCHEMA: text or avro_from_arrow(schema.columns, meta.config.table_name, with_meta=False)}
    internal = schema_json_as_of(meta.storage, meta.timeline, instant_time) if schema.history else None
    return entries if internal is None else {**entries, _INTERNAL_SCHEMA: internal}
