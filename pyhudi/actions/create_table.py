"""Creating a table by its first write, checking that this release can write to it, and removing it on failure.

The first write chooses a table's key, partitions and type. If that write fails, `table_removed_on_error` removes the
table. Otherwise the next write, with the mistake corrected, would fail because the table has other options, and readers
would find a table without columns. A process that dies still leaves such a table; the next first write may recreate it.
This applies only to tables without a completed write that were not made with columns (`HudiTable.create`).

Source: docs/formats/table-config.md, "New tables"; docs/formats/keys.md, "Which generator"; docs/formats/merging.md,
"Mode of a table".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import prepare
from pyhudi.actions.save_modes import delete_meta_folder
from pyhudi.engine.base import as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, TableExists, TableNotFound, UnsupportedTable, add_note
from pyhudi.formats.base import BASE_FORMATS
from pyhudi.formats.bootstrap import BASE_PATH_KEY
from pyhudi.index.chosen import chosen_buckets
from pyhudi.interrupts import uninterrupted
from pyhudi.keygen import KEY_GENERATORS, generator_name
from pyhudi.locks import hold, open_lock
from pyhudi.merge.rules import merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.partitions.registry import partitions_of_options
from pyhudi.model.filenames import (
    META_FOLDER,
    PARTITION_METADATA_NAMES,
    PROPERTIES_BACKUP_PATH,
    PROPERTIES_PATH,
    REPLACEMENT_PATH,
    BaseFileName,
    LogFileName,
)
from pyhudi.model.instant import ActionKind
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.declare import key_of
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import METADATA_TO_BUILD, TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.paths import parent
from pyhudi.storage.place import delete_if_empty
from pyhudi.timeline.table_properties import create_table, load_table_config, table_exists
from pyhudi.warnings import warn_caller

__all__ = [
    "check_fields",
    "check_files_writable",
    "check_writable",
    "cleared",
    "create_from_options",
    "is_unfinished",
    "is_written",
    "new_table",
    "open_or_create",
    "options_for",
    "table_removed_on_error",
]


def open_or_create(
    storage: Storage, options: WriteOptions, clock: Clock, check_new: Callable[[MetaClient], None]
) -> tuple[MetaClient, bool]:
    """The table at this path, and whether this call created it, with the options' properties.

    Args:   check_new: is given the table that is about to be created, and raises if it must not be.
    """
    is_ours = False
    if not table_exists(storage):
        check_new(_planned_table(storage, options, clock))
        # Another writer may be faster: then this write uses its table, if that agrees with our options.
        with suppress(TableExists):
            create_from_options(storage, options, clock)
            is_ours = True
    meta = MetaClient.load(storage, clock)
    check_writable(meta.config, options)
    return meta, is_ours


def _planned_table(storage: Storage, options: WriteOptions, clock: Clock) -> MetaClient:
    """The table that these options make. Nothing is written."""
    config = TableConfig(new_table_properties(new_table(options)))
    check_writable(config, options)
    return MetaClient(storage, config, Timeline(), clock)


def create_from_options(
    storage: Storage,
    options: WriteOptions,
    clock: Clock,
    create_schema: str | None = None,
    more: Mapping[str, str] | None = None,
) -> TableConfig:
    """Make the table. Its properties say which partitions of a metadata table the first write builds.

    Args:   more: properties that the options don't have.
    Raises: ConfigError, TableExists.
    """
    if table_exists(storage):
        load_table_config(storage, clock)
        raise TableExists(f"There is a Hudi table at {storage.root} already; open it, or choose another path.")
    _warn_of_others(storage)
    properties = {**new_table_properties(new_table(options, create_schema)), **(more or {})}
    config = TableConfig(properties)
    check_writable(config, options)
    to_build = _metadata_partitions(config, options)
    marked = {METADATA_TO_BUILD: ",".join(to_build)} if to_build else {}
    # Under the lock: a failed first write deletes its table under it, too, as an overwrite does the old table.
    with hold(open_lock(options.lock, storage, clock), options.lock.wait_timeout_s):
        return create_table(storage, {**properties, **marked}, clock)


def _warn_of_others(storage: Storage) -> None:
    """Warn when the folder of a new table holds other files."""
    others = sorted(entry.name for entry in storage.list("") if not entry.name.startswith((".", "_")))
    if others:
        warn_caller(
            f"{storage.root}: the new table lies among other files, such as {', '.join(others[:3])}. Queries don't "
            "read them, but drop() and mode='replace' delete the whole folder. A separate folder is safer."
        )


def _metadata_partitions(config: TableConfig, options: WriteOptions) -> tuple[str, ...]:
    """Partitions of a new table's metadata table, unless the options switch it off.

    Below version 8 column statistics are left out unless the options name them, as in the releases that write such
    tables.
    """
    metadata = options.metadata
    if metadata.enable is False:
        return ()
    is_named = metadata.enable or key_of(MetadataOptions, "column_stats") in options.explicit
    if not config.format.has_partition_stats and not is_named:
        metadata = replace(metadata, column_stats=False)
    return partitions_of_options(config, metadata)


def new_table(options: WriteOptions, create_schema: str | None = None) -> NewTable:
    """The new table that the options describe. Raises ConfigError when they are incomplete."""
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
    properties = {
        "hoodie.datasource.write.recordkey.field": ",".join(options.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(options.partition_fields),
    }
    if options.key_generator:
        properties["hoodie.datasource.write.keygenerator.class"] = KEY_GENERATORS.canonical(options.key_generator)
    return generator_name(properties)


def check_fields(options: WriteOptions, columns: Sequence[str]) -> None:
    """Raise ConfigError when the options of a new table name fields that its first rows lack.

    A user's key generator may use its fields freely; deletes need no ordering value.
    """
    if not columns:
        raise ConfigError(
            "The schema has no columns; a table needs one at least. Give rows, or make an empty table by "
            "HudiTable.create(path, schema)."
        )
    own_generator = ":" in (options.key_generator or "")
    fields_of_key = {
        ("record_key", "hoodie.datasource.write.recordkey.field"): () if own_generator else options.record_key_fields,
        ("partition_by", "hoodie.datasource.write.partitionpath.field"): ()
        if own_generator
        else tuple(field.partition(":")[0] for field in options.partition_fields),
        ("ordering", "hoodie.table.ordering.fields"): () if options.operation == "delete" else options.ordering_fields,
    }
    missing = [
        f"{name}={field!r} ({key})"
        for (name, key), fields in fields_of_key.items()
        for field in fields
        if field not in columns and field.partition(".")[0] not in columns
    ]
    if missing:
        raise ConfigError(
            f"The new table has no column for {', '.join(missing)}. Columns: {', '.join(columns)}. Names are "
            "case-sensitive; nothing was written."
        )


def check_files_writable(config: TableConfig) -> None:
    """Raise UnsupportedTable for tables whose files this release can't write, with any rows."""
    config.check_writable()
    if config.base_file_format not in BASE_FORMATS.entries:
        raise UnsupportedTable(
            f"The table {config.table_name!r} keeps its base files as {config.base_file_format}; this release writes "
            f"{' and '.join(BASE_FORMATS.entries)}."
        )
    if config.cdc_enabled:
        _ = config.logging_mode  # raises when it is unknown


def check_writable(config: TableConfig, options: WriteOptions) -> None:
    """Raise UnsupportedTable for tables that this release must not write to: it would lose or distort data."""
    check_files_writable(config)
    merge_rules(config, options.merger_classes)  # raises when the table's merge rules are unknown


@contextmanager
def table_removed_on_error(context: ActionContext) -> Iterator[None]:
    """Around the write that created the table: remove the table if the write fails, unless another writer has begun."""
    try:
        yield
    except BaseException as error:
        with uninterrupted():
            try:
                reason = "another write is at work in it" if not _take_back(context) else ""
            except Exception as second:
                reason = str(second)
        if reason:
            add_note(
                error,
                f"The table that this write made at {context.meta.storage.root} could not be removed ({reason}). "
                "As long as no write to it is complete, the next first write may choose its key and type again.",
            )
        raise


def is_unfinished(meta: MetaClient) -> bool:
    """True if the table has no completed write. Files of a dead or running first write may exist."""
    return (
        meta.config.create_schema is None
        and all(instant.action is ActionKind.ROLLBACK for instant in meta.timeline.completed())
        and next(iter(meta.storage.walk(meta.config.history_path)), None) is None
    )


def is_written(storage: Storage) -> bool:
    """True if a save mode must respect the existing table. The table of a dead first write does not count."""
    try:
        return not is_unfinished(MetaClient.load(storage))
    except TableNotFound:
        return False
    except HudiError:
        return True  # an unreadable table may still be in use


def options_for(
    storage: Storage,
    call_options: Mapping[str, object],
    session: Mapping[str, str],
    config: TableConfig,
    new: Mapping[str, object] | None = None,
) -> tuple[WriteOptions, bool]:
    """The options of a write to the existing table, and True if they are those of a new table that replaces it.

    An unfinished table that disagrees with the options, or that a dead bootstrap left, is removed if they suffice for a
    new one.

    Args:    call_options: the options of the call; new: the options for a new table, if they differ.
    Raises:  ConfigError.
    """
    try:
        options = WriteOptions.parse(call_options, session, config)
    except ConfigError:
        for_new = _options_for_new(call_options if new is None else new, session)
        if for_new is None or not cleared(storage, for_new):
            raise
        return for_new, True
    if BASE_PATH_KEY in config.properties and is_unfinished(MetaClient.load(storage)):
        for_new = _options_for_new(call_options if new is None else new, session)
        if for_new is not None and cleared(storage, for_new):
            return for_new, True
    return options, False


def _options_for_new(call_options: Mapping[str, object], session: Mapping[str, str]) -> WriteOptions | None:
    """The options of a new table; None when they don't suffice for one."""
    try:
        options = WriteOptions.parse(call_options, session, None)
        new_table_properties(new_table(options))
    except ConfigError:
        return None
    return options


def cleared(storage: Storage, options: WriteOptions) -> bool:
    """Undo the dead writers of an unfinished table and remove it; False if it holds more, and is kept."""
    clock = SystemClock()
    meta = MetaClient.load(storage, clock)
    if not is_unfinished(meta):
        return False
    context, _ = prepare(meta, as_engine(LocalEngine()), options, clock)
    return _take_back(context)


def _take_back(context: ActionContext) -> bool:
    """Remove a table without writes and data; False if it has some. Other files in its folder are kept.

    Writers put their instants on the timeline under the lock, and check that the table still exists.
    """
    with context.locked():
        now = context.reloaded().meta
        partitions = _empty_partitions(now.storage)
        if partitions is None or now.timeline.pending() or not is_unfinished(now):
            return False
        for folder in sorted(partitions, key=len, reverse=True):
            _remove_partition(now.storage, folder)
        for path in (REPLACEMENT_PATH, PROPERTIES_PATH, PROPERTIES_BACKUP_PATH):
            now.storage.delete(path)  # from now on there is no table
        delete_meta_folder(now.storage)
    delete_if_empty(context.meta.storage, META_FOLDER)
    return True


def _empty_partitions(storage: Storage) -> set[str] | None:
    """Folders that are partitions; None when there is a data file."""
    folders = set()
    for entry in storage.walk(""):
        if entry.path.startswith(f"{META_FOLDER}/"):
            continue
        if BaseFileName.parse(entry.name) is not None or LogFileName.parse(entry.name) is not None:
            return None
        if entry.name in PARTITION_METADATA_NAMES:
            folders.add(parent(entry.path))
    return folders


def _remove_partition(storage: Storage, folder: str) -> None:
    """Delete the metadata file of a partition, and the folders that hold nothing else."""
    for entry in storage.list(folder):
        if entry.name in PARTITION_METADATA_NAMES:
            storage.delete(entry.path)
    while folder and not storage.list(folder):
        storage.delete_tree(folder)
        folder = parent(folder)
