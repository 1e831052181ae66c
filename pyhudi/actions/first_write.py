"""A table is removed again when the write that created it fails.

A table's key, partitions and type are chosen by its first write. Were the table to outlive a first write that fails,
the next one, with the mistake mended, would be told that the table was made otherwise, and readers would find a table
without columns. A process that dies leaves such a table all the same; the next first write may recreate it. All this
is for tables in which no write was ever completed, and which were not made with columns (`HudiTable.create`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create import new_table
from pyhudi.actions.opening import ready
from pyhudi.actions.overwrite import delete_meta_folder
from pyhudi.engine.base import as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, add_note
from pyhudi.interrupts import uninterrupted
from pyhudi.locks import hold
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import (
    META_FOLDER,
    PARTITION_METADATA_NAMES,
    PROPERTIES_BACKUP_PATH,
    PROPERTIES_PATH,
    BaseFileName,
    LogFileName,
)
from pyhudi.model.instant import ActionKind
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.paths import parent
from pyhudi.storage.place import delete_if_empty
from pyhudi.timeline.table_properties import table_exists

__all__ = ["is_unfinished", "is_written", "options_for", "table_removed_on_error"]


@contextmanager
def table_removed_on_error(context: ActionContext) -> Iterator[None]:
    """Around the write that created the table: when it fails, the table is removed, unless another writer has begun."""
    try:
        yield
    except BaseException as error:
        with uninterrupted():
            try:
                stays = "another write is at work in it" if not _take_back(context) else ""
            except Exception as second:
                stays = str(second)
        if stays:
            add_note(
                error,
                f"The table that this write made at {context.meta.storage.root} could not be removed ({stays}). "
                "As long as no write to it is complete, the next first write may choose its key and type again.",
            )
        raise


def is_unfinished(meta: MetaClient) -> bool:
    """Whether no write to the table was ever completed; what a dead or running first write left may be there."""
    return (
        meta.config.create_schema is None
        and all(instant.action is ActionKind.ROLLBACK for instant in meta.timeline.completed())
        and next(iter(meta.storage.walk(meta.config.history_path)), None) is None
    )


def is_written(storage: Storage) -> bool:
    """Whether there is a table that a save mode has to respect: not one that a dead first write left."""
    if not table_exists(storage):
        return False
    try:
        return not is_unfinished(MetaClient.load(storage))
    except HudiError:
        return True  # what can't be read is somebody's table


def options_for(
    storage: Storage,
    given: Mapping[str, object],
    session: Mapping[str, str],
    config: TableConfig,
    new: Mapping[str, object] | None = None,
) -> tuple[WriteOptions, bool]:
    """The options of a write to the table that is there, and whether they are those of a new table in its place.

    An unfinished table that was made otherwise than the options say is removed, when they are enough for a new one.

    Args:    new: the options to make a new table with, when they are not `given`.
    Raises:  ConfigError.
    """
    try:
        return WriteOptions.parse(given, session, config), False
    except ConfigError:
        try:
            options = WriteOptions.parse(given if new is None else new, session, None)
            new_table_properties(new_table(options))
        except ConfigError:
            options = None
        if options is None or not _cleared(storage, options):
            raise
        return options, True


def _cleared(storage: Storage, options: WriteOptions) -> bool:
    """Undo the dead writers of an unfinished table and remove it; False when there is more to it, and it stays."""
    clock = SystemClock()
    meta = MetaClient.load(storage, clock)
    if not is_unfinished(meta):
        return False
    context, _ = ready(meta, as_engine(LocalEngine()), options, clock)
    return _take_back(context)


def _take_back(context: ActionContext) -> bool:
    """Remove a table without writes and data; False when it has some. What else lies in its folder stays.

    Writers put their instants on the timeline under the lock, and look whether the table is still there.
    """
    with hold(context.lock, context.options.lock.wait_timeout_s):
        now = context.reloaded().meta
        partitions = _empty_partitions(now.storage)
        if partitions is None or now.timeline.pending() or not is_unfinished(now):
            return False
        for folder in sorted(partitions, key=len, reverse=True):
            _remove_partition(now.storage, folder)
        for path in (PROPERTIES_PATH, PROPERTIES_BACKUP_PATH):
            now.storage.delete(path)  # from here on there is no table
        delete_meta_folder(now.storage)
    delete_if_empty(context.meta.storage, META_FOLDER)
    return True


def _empty_partitions(storage: Storage) -> set[str] | None:
    """Folders that are partitions; None when there is a data file."""
    found = set()
    for entry in storage.walk(""):
        if entry.path.startswith(f"{META_FOLDER}/"):
            continue
        if BaseFileName.parse(entry.name) is not None or LogFileName.parse(entry.name) is not None:
            return None
        if entry.name in PARTITION_METADATA_NAMES:
            found.add(parent(entry.path))
    return found


def _remove_partition(storage: Storage, folder: str) -> None:
    """The mark of a partition, and the folders that hold nothing else."""
    for entry in storage.list(folder):
        if entry.name in PARTITION_METADATA_NAMES:
            storage.delete(entry.path)
    while folder and not storage.list(folder):
        storage.delete_tree(folder)
        folder = parent(folder)
