"""The index of a write, and the lookup that the index gets.

Source: docs/architecture.md, "How a table changes"; docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rows import table_rules
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.errors import ConfigError, HudiError, UnsupportedTable
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.appended_keys import AppendedKeys
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.index.base import Index, Lookup, PartitionRows
from pyhudi.index.bucket import bucket_engine, bucket_sample, newest_groups
from pyhudi.index.chosen import chosen_buckets, chosen_index, index_class, index_name
from pyhudi.keygen import KeyGenerator
from pyhudi.metadata.locations import RecordLookup, open_record_lookup
from pyhudi.model.buckets import BUCKET_KEYS, ENGINE, HASH_FIELDS, INDEX_TYPE, NUMBER, TableBuckets
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import PARTITION_BUCKETS_FOLDER
from pyhudi.model.keys import META_COLUMNS
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.view.archived_times import CompletedWrites
from pyhudi.view.committed_logs import block_rules
from pyhudi.view.file_system_view import FileSystemView, load_replaced_groups
from pyhudi.warnings import warn_caller

__all__ = ["appended_keys", "lookup_of", "stored_slices", "table_index", "with_table_index"]


def table_index(context: ActionContext) -> Index:
    """The index that the options name. Raises ConfigError for an unknown one, or one that does not suit the table."""
    index = chosen_index(context.options, context.meta.config.record_key_fields)
    index.check_table(context.meta.config, context.meta.storage.root)
    return index


def with_table_index(context: ActionContext) -> ActionContext:
    """The context with the table's bucket index, if its file groups are buckets, so that a key has one location.

    The table's properties decide; for tables of Hudi, their file groups do. Raises ConfigError for options that
    disagree, and where the number of buckets is unknown; UnsupportedTable for partitions with different numbers.
    """
    buckets = context.meta.config.buckets or _stored_buckets(context)
    if buckets is None:
        return context
    options = context.options
    if buckets.is_consistent and index_class(options).lists_file_groups:
        return context  # the number applies to new partitions
    return replace(
        context,
        options=replace(
            options,
            index_type="BUCKET",
            bucket_num=buckets.number,
            bucket_hash_fields=buckets.hash_fields or options.bucket_hash_fields,
            buckets=replace(options.buckets, consistent=buckets.is_consistent),
        ),
    )


def _stored_buckets(context: ActionContext) -> TableBuckets | None:
    """The buckets according to the file groups and their keys, None without buckets."""
    meta, options = context.meta, context.options
    chosen, groups = chosen_buckets(options), newest_groups(meta)
    if not groups:
        return None
    engine = bucket_engine(meta, groups, is_expected=chosen is not None)
    if engine is None and (chosen is None or chosen.is_consistent):
        return None  # a ring recognises its own nodes
    if engine is None or (INDEX_TYPE in options.explicit if chosen is None else chosen.engine != engine):
        stored = "no buckets" if engine is None else f"buckets of the engine {engine}"
        raise ConfigError(
            f"{meta.storage.root}: the options name the index {index_name(options)}, but the table's file groups are "
            f"{stored}, such as {groups[0].file_id} in partition {groups[0].partition_path!r}. Rows would be stored "
            f"twice. Leave {INDEX_TYPE} and {ENGINE} out, or rewrite the table by insert_overwrite_table. Nothing "
            "was written."
        )
    if engine == "CONSISTENT_HASHING":
        return chosen or TableBuckets(options.bucket_num, is_consistent=True)
    return TableBuckets(_stored_number(chosen is not None, groups, context), hash_fields=options.bucket_hash_fields)


def _stored_number(is_given: bool, groups: Sequence[FileGroupId], context: ActionContext) -> int:
    """The number of buckets of each partition, derived from the keys in them."""
    meta, options, root = context.meta, context.options, context.meta.storage.root
    if meta.storage.list(PARTITION_BUCKETS_FOLDER):
        raise UnsupportedTable(
            f"{root}: its partitions have their own numbers of buckets ({PARTITION_BUCKETS_FOLDER}), which this "
            "release does not write. Nothing was written."
        )
    keygen = None if meta.config.populate_meta_fields else table_keygen(context, PROBE_TIME)
    fields = options.bucket_hash_fields or meta.config.record_key_fields
    sample = bucket_sample(meta, groups, stored_slices(keygen, context), fields)
    number = options.bucket_num if is_given or NUMBER in options.explicit else sample.number()
    if number is None:
        raise ConfigError(
            f"{root}: the table's file groups are buckets, and nothing says how many a partition has. Give {NUMBER} as "
            "it was when they were written. Nothing was written."
        )
    if not sample.fits(number):
        stored = sample.number()
        count = "another number of them" if stored is None else f"{stored} of them"
        raise ConfigError(
            f"{root}: {NUMBER}={number}, but the stored keys are in buckets as with {count}. Keys would be stored "
            f"twice. Write with the number (and {HASH_FIELDS}) that the table was made with, or rewrite the table "
            "by insert_overwrite_table. Nothing was written."
        )
    return number


@contextmanager
def buckets_changed(context: ActionContext) -> Iterator[None]:
    """Around a block that replaces all file groups: save how the new ones are buckets.

    The old entry is removed before and the new one written after: in between, and after a crash, the file groups
    decide.
    """
    meta, buckets = context.meta, chosen_buckets(context.options)
    if buckets == meta.config.buckets:
        yield
        return
    if meta.config.buckets is not None:
        with context.locked():
            update_table_config(meta.storage, {}, BUCKET_KEYS, context.clock)
    yield
    if buckets is None:
        return
    try:
        with context.locked():
            update_table_config(meta.storage, buckets.properties(), (), context.clock)
    except HudiError as error:  # the write is complete, and the file groups decide
        warn_caller(f"{meta.storage.root}: the number of buckets could not be stored with the table: {error}")


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
    """The lookup for the index. `ordering_fields`: the fields that decide about moved keys."""
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
        completed=CompletedWrites(meta),
        replaced=load_replaced_groups(meta, meta.timeline.completed()) if index.lists_file_groups else frozenset(),
        base_rows=not index.is_global and _names_base_rows(context),
        table_version=meta.config.table_version,
        records=records if isinstance(records, RecordLookup) else None,
        no_records=records if isinstance(records, str) else "",
    )


def _names_base_rows(context: ActionContext) -> bool:
    """True if rows for log files need the position of their key in the base file."""
    config, options = context.meta.config, context.options
    if not config.is_merge_on_read or not config.format.has_record_positions or not config.populate_meta_fields:
        return False
    return options.record_positions is not False and not table_rules(context).needs_pairs


def stored_slices(keygen: KeyGenerator | None, context: ActionContext) -> SliceSpec:
    """The rules for reading merged slices of the table. `keygen`: not needed for tables with meta columns."""
    meta = context.meta
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *meta.stored_schema()])
    rules = block_rules(meta)
    stored_keys = meta.config.populate_meta_fields
    memory = context.options.memory
    return SliceSpec(
        meta.storage, schema, rules, table_rules(context), None if stored_keys else keygen, memory.merge_bytes,
        memory.spill_folder, check_pages=context.options.damage.page_checksums,
    )  # fmt: skip


def appended_keys(spec: WriteSpec, context: ActionContext) -> AppendedKeys | None:
    """The report of inserted and deleted keys by tasks that append to log files; None if it is not needed."""
    if not spec.reports_keys or not context.meta.config.is_merge_on_read:
        return None
    reading = stored_slices(spec.key_generator, context)
    return AppendedKeys(reading, places_known=not index_class(context.options).places_inserts)


def _type_of(schema: pa.Schema, path: str) -> pa.DataType:
    top, *nested_names = path.split(".") if path not in schema.names else [path]
    kind: pa.DataType = schema.field(top).type
    for name in nested_names:
        kind = cast("pa.StructType", kind).field(name).type
    return kind
