"""Which index a write uses, and the lookup that the index gets.

Source: docs/architecture.md, "How an upsert flows"; docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.merging import table_rules
from pyhudi.filegroup.appended_keys import AppendedKeys
from pyhudi.filegroup.log_blocks import BlockRules
from pyhudi.filegroup.read import SliceSpec
from pyhudi.filegroup.spec import WriteSpec
from pyhudi.index.base import Index, Lookup, PartitionRows
from pyhudi.index.chosen import chosen_index, index_class
from pyhudi.keygen import KeyGenerator
from pyhudi.metadata.record_lookup import RecordLookup, open_record_lookup
from pyhudi.model.keys import META_COLUMNS
from pyhudi.view.file_system_view import FileSystemView, load_replaced_groups

__all__ = ["appended_keys", "lookup_of", "stored_slices", "table_index"]


def table_index(context: ActionContext) -> Index:
    """The index that the options name. Raises ConfigError for one that there is not, or that is not for the table."""
    index = chosen_index(context.options, context.meta.config.record_key_fields)
    index.check_table(context.meta.config, context.meta.storage.root)
    return index


def lookup_of(
    index: Index,
    batch: Mapping[str, PartitionRows],
    view: FileSystemView,
    keygen: KeyGenerator,
    context: ActionContext,
    *,
    ordering_fields: Sequence[str],
    only_live: bool,
) -> Lookup:
    """The lookup for the index. `ordering_fields`: those by which it decides about moved keys."""
    meta = context.meta
    records = open_record_lookup(meta) if index.reads_records else None
    stored = ordering_fields if view.all_slices() else ()  # a table whose only write was undone has no columns
    return Lookup(
        context.engine,
        meta.storage,
        view,
        batch,
        None if meta.config.populate_meta_fields else keygen,
        pa.schema([pa.field(name, _type_of(meta.table_schema(), name)) for name in stored]),
        stored_slices(keygen, context) if meta.config.is_merge_on_read else None,
        only_live=only_live,
        completed=frozenset(instant.requested_time for instant in meta.timeline.commits()),
        replaced=load_replaced_groups(meta, meta.timeline.completed()) if index.lists_file_groups else frozenset(),
        base_rows=not index.is_global and _names_base_rows(context),
        table_version=meta.config.table_version,
        records=records if isinstance(records, RecordLookup) else None,
        no_records=records if isinstance(records, str) else "",
    )


def _names_base_rows(context: ActionContext) -> bool:
    """Shall rows for log files know where their base file has their key?"""
    config, options = context.meta.config, context.options
    if not config.is_merge_on_read or config.table_version < 8 or not config.populate_meta_fields:
        return False
    return options.record_positions is not False and not table_rules(context).needs_pairs


def stored_slices(keygen: KeyGenerator | None, context: ActionContext) -> SliceSpec:
    """How merged slices of the table are read. `keygen`: not needed for tables with meta columns."""
    meta = context.meta
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *meta.stored_schema()])
    rules = BlockRules(meta.config.table_version, meta.timeline.is_visible)
    stored_keys = meta.config.populate_meta_fields
    memory = context.options.memory
    return SliceSpec(
        meta.storage, schema, rules, table_rules(context), None if stored_keys else keygen, memory.merge_bytes,
        memory.spill_folder,
    )  # fmt: skip


def appended_keys(spec: WriteSpec, context: ActionContext) -> AppendedKeys | None:
    """How tasks of a merge-on-read table report what becomes of the keys of an append; None: they need not."""
    if not spec.reports_keys or not context.meta.config.is_merge_on_read:
        return None
    reading = stored_slices(spec.key_generator, context)
    return AppendedKeys(reading, places_known=not index_class(context.options).places_inserts)


def _type_of(schema: pa.Schema, path: str) -> pa.DataType:
    top, *rest = path.split(".") if path not in schema.names else [path]
    kind: pa.DataType = schema.field(top).type
    for name in rest:
        kind = cast("pa.StructType", kind).field(name).type
    return kind
