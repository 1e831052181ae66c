"""Create a table from the options of its first write, and check whether this release can write to a table.

Source: docs/formats/table-config.md, "New tables"; docs/formats/keys.md, "Which generator"; docs/formats/merging.md,
"Mode of a table".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pyhudi.errors import ConfigError, TableExists, UnsupportedTable
from pyhudi.index.chosen import chosen_buckets
from pyhudi.keygen import KEY_GENERATORS, generator_name
from pyhudi.locks import hold, open_lock
from pyhudi.merge.rules import merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.maintenance import wanted_partitions
from pyhudi.model.new_table import LATER_KINDS, NewTable, new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.declare import key_of
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import METADATA_TO_BUILD, TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.timeline.table_properties import create_table, load_table_config, table_exists

__all__ = [
    "check_fields",
    "check_files_writable",
    "check_writable",
    "create_from_options",
    "new_table",
    "open_or_create",
    "planned_table",
]

_BASE_FORMATS = ("PARQUET", "ORC")


def planned_table(storage: Storage, options: WriteOptions, clock: Clock) -> MetaClient | None:
    """The table that `open_or_create` would make, None when there is one. Nothing is on disk: for checks beforehand."""
    if table_exists(storage):
        return None
    config = TableConfig(new_table_properties(new_table(options)))
    check_writable(config, options)
    return MetaClient(storage, config, Timeline(), clock)


def open_or_create(storage: Storage, options: WriteOptions, clock: Clock) -> tuple[MetaClient, bool]:
    """The table at this place, and whether this call made it with the options' properties, because there was none."""
    is_ours = False
    if not table_exists(storage):
        # Another writer may be faster: then its table is written, if it is what our options say.
        with suppress(TableExists):
            create_from_options(storage, options, clock)
            is_ours = True
    meta = MetaClient.load(storage, clock)
    check_writable(meta.config, options)
    return meta, is_ours


def create_from_options(
    storage: Storage, options: WriteOptions, clock: Clock, create_schema: str | None = None
) -> TableConfig:
    """Make the table. Its properties say which partitions of a metadata table its first write is to build.

    Raises: ConfigError, TableExists.
    """
    if table_exists(storage):
        load_table_config(storage, clock)
        raise TableExists(f"There is a Hudi table at {storage.root} already; open it, or choose another path.")
    properties = new_table_properties(new_table(options, create_schema))
    config = TableConfig(properties)
    check_writable(config, options)
    to_build = _metadata_partitions(config, options)
    marked = {METADATA_TO_BUILD: ",".join(to_build)} if to_build else {}
    # Under the lock, since a first write that failed deletes its table, and an overwrite the old one, under it, too.
    with hold(open_lock(options.lock, storage, clock), options.lock.wait_timeout_s):
        return create_table(storage, {**properties, **marked}, clock)


def _metadata_partitions(config: TableConfig, options: WriteOptions) -> tuple[str, ...]:
    """Partitions of the metadata table that a new table gets, unless the options say that it shall have none.

    Below version 8 those without column statistics, as in the releases that write such tables, unless the options name
    either.
    """
    wanted = options.metadata
    if wanted.enable is False:
        return ()
    is_named = wanted.enable or key_of(MetadataOptions, "column_stats") in options.explicit
    if config.table_version < LATER_KINDS and not is_named:
        wanted = replace(wanted, column_stats=False)
    return wanted_partitions(config, wanted)


def new_table(options: WriteOptions, create_schema: str | None = None) -> NewTable:
    """What the options say a new table shall be. Raises ConfigError when they don't say enough."""
    if not options.table_name:
        raise ConfigError("A new table needs a name: give hoodie.table.name.")
    return NewTable(
        table_name=options.table_name,
        table_type=options.table_type,
        table_version=options.table_version,
        record_key_fields=options.record_key_fields,
        partition_fields=options.partition_fields,
        ordering_fields=options.ordering_fields,
        key_generator=_key_generator(options),
        hive_style=options.hive_style_partitioning,
        url_encode=options.url_encode_partitioning,
        slash_dates=options.slash_separated_dates,
        drop_partition_columns=options.drop_partition_columns,
        populate_meta_fields=options.populate_meta_fields,
        base_file_format=options.base_file_format,
        database_name=options.database_name,
        timezone=options.timezone,
        keygen_properties=options.keygen_options,
        consistent_timestamps=options.consistent_logical_timestamp,
        record_merge_mode=options.merge_mode,
        payload_class=options.payload_class,
        merge_strategy_id=options.merge_strategy_id,
        delete_field=options.delete_field,
        delete_marker=options.delete_marker,
        create_schema=create_schema,
        cdc_enabled=options.cdc_enabled,
        cdc_logging_mode=options.cdc_logging_mode,
        buckets=chosen_buckets(options),
    )


def _key_generator(options: WriteOptions) -> str:
    given = {
        "hoodie.datasource.write.recordkey.field": ",".join(options.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(options.partition_fields),
    }
    if options.key_generator:
        given["hoodie.datasource.write.keygenerator.class"] = KEY_GENERATORS.canonical(options.key_generator)
    return generator_name(given)


def check_fields(options: WriteOptions, columns: Sequence[str]) -> None:
    """Raises ConfigError when the options of a new table name fields that its first rows don't have.

    A generator of the user's own may make what it wants of its fields; deletes need no ordering value.
    """
    own_generator = ":" in (options.key_generator or "")
    named = {
        ("record_key", "hoodie.datasource.write.recordkey.field"): () if own_generator else options.record_key_fields,
        ("partition_by", "hoodie.datasource.write.partitionpath.field"): ()
        if own_generator
        else tuple(field.partition(":")[0] for field in options.partition_fields),
        ("ordering", "hoodie.table.ordering.fields"): () if options.operation == "delete" else options.ordering_fields,
    }
    missing = [
        f"{name}={field!r} ({key})"
        for (name, key), fields in named.items()
        for field in fields
        if field not in columns and field.partition(".")[0] not in columns
    ]
    if missing:
        raise ConfigError(
            f"The new table has no column for {', '.join(missing)}. Columns: {', '.join(columns)}. Names are "
            "case-sensitive; nothing was written."
        )


def check_files_writable(config: TableConfig) -> None:
    """Raises UnsupportedTable for tables whose files this release can't write, whatever rows go into them."""
    config.check_writable()
    if config.base_file_format not in _BASE_FORMATS:
        raise UnsupportedTable(
            f"The table {config.table_name!r} keeps its base files as {config.base_file_format}; this release writes "
            f"{' and '.join(_BASE_FORMATS)}."
        )
    if config.cdc_enabled:
        _ = config.logging_mode  # raises when nobody here knows it


def check_writable(config: TableConfig, options: WriteOptions) -> None:
    """Raises UnsupportedTable for tables that this release must not write to: it would lose or distort something."""
    check_files_writable(config)
    merge_rules(config, options.merger_classes)  # raises when nobody here knows how the table's rows merge
