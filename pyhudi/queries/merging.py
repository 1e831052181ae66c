"""How a query merges slices with log files: the table's merge rules, its keys, and which log blocks count.

Source: docs/formats/log.md, "Which blocks count"; docs/formats/merging.md, "Modes and ids", "Two versions of a key".
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.filegroup.read.log_blocks import READING, BlockRules
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.keygen import from_options
from pyhudi.merge.rules import MergeRules, merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import RECORD_KEY
from pyhudi.queries.query import Query
from pyhudi.queries.read_schema import columns_from_path
from pyhudi.schema.internal import InternalSchema
from pyhudi.view.committed_logs import damage_rules

__all__ = ["slice_spec"]


def slice_spec(
    meta: MetaClient,
    schema: pa.Schema,
    query: Query,
    *,
    as_of: str | None = None,
    history: tuple[InternalSchema, ...] = (),
    rules: MergeRules | None = None,
) -> SliceSpec:
    """What is needed to merge slices of the table.

    Args:    schema: the table's columns as a query sees them; as_of: instant time, later log blocks do not count;
             history: schemas of the table up to then, newest first, () where columns match by name; rules: how rows
             merge, None: as the table says.
    Raises:  UnsupportedTable when the table's merger is a class that nobody here knows.
    """
    config = meta.config
    from_path = frozenset(columns_from_path(config))
    stored = [column for column in schema if column.name not in from_path]
    if RECORD_KEY not in schema.names:
        stored = [pa.field(RECORD_KEY, pa.string()), *stored]
    keygen = None
    if not config.populate_meta_fields:
        keygen = from_options(config.properties, schema=schema, table_version=config.table_version)
    return SliceSpec(
        meta.storage,
        pa.schema(stored),
        BlockRules(config.table_version, meta.timeline.is_visible, as_of),
        merge_rules(config, query.merger_classes) if rules is None else rules,
        keygen,
        query.memory.merge_bytes,
        query.memory.spill_folder,
        history,
        damage_rules(meta, raises=query.damage.on_read == "fail", advice=READING),
    )
