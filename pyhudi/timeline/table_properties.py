"""`hoodie.properties`: load it, create it, and change it so that no reader ever sees an incomplete file.

Source: docs/formats/timeline.md, "Folders"; docs/formats/table-config.md, "Text form", "Changing the file".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from pyhudi.errors import CorruptFile, PathExists, PathNotFound, StorageError, TableExists, TableNotFound, WriteConflict
from pyhudi.formats.properties import (
    PROPERTIES_BYTES_MAX,
    date_comment,
    ends_with_line,
    parse_properties,
    print_properties,
)
from pyhudi.model.filenames import (
    AUXILIARY_FOLDER,
    META_FOLDER,
    PARTITION_METADATA_NAMES,
    PROPERTIES_BACKUP_PATH,
    PROPERTIES_PATH,
    SCHEMA_FOLDER,
    TEMPORARY_FOLDER,
)
from pyhudi.model.new_table import CHECKSUM_KEY, has_valid_checksum, table_checksum
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.file_cache import get_or_load
from pyhudi.storage.staged_table import replacement_name, staged_table

__all__ = [
    "create_table",
    "has_properties",
    "load_table_config",
    "make_folders",
    "settle_properties",
    "table_exists",
    "update_table_config",
]

# Another writer may be between two steps of its update; it needs milliseconds, a slow store perhaps a second.
_READ_ATTEMPTS = 5
_RETRY_DELAY_S = 0.2
_FOLDERS_SEARCHED = 20  # when searching for tables below a folder that is not a table
_SYSTEM_CLOCK = SystemClock()
_ENTRY_BYTES = 200  # about the size of a property in memory, without its text
_VERSIONS_WITHOUT_CHECKSUM = frozenset("0123")


def table_exists(storage: Storage) -> bool:
    """True when a table exists: its properties, during an update their backup, or the new table that replaces it."""
    return has_properties(storage) or staged_table(storage) is not None


def has_properties(storage: Storage) -> bool:
    """True when the properties, or during an update their backup, are in their place."""
    return storage.stat(PROPERTIES_PATH) is not None or storage.stat(PROPERTIES_BACKUP_PATH) is not None


def load_table_config(storage: Storage, clock: Clock = _SYSTEM_CLOCK) -> TableConfig:
    """Load the table's config, from `hoodie.properties` or, while that is being replaced, from its backup.

    Raises TableNotFound, and CorruptFile when neither file is complete.
    """
    for attempt in range(_READ_ATTEMPTS):
        try:
            properties = _read_valid(storage, PROPERTIES_PATH)
        except StorageError as error:
            if isinstance(error.__cause__, NotADirectoryError):
                raise TableNotFound(f"No Hudi table at {storage.root}. {error}") from error
            raise
        properties = properties or _read_valid(storage, PROPERTIES_BACKUP_PATH)
        if properties is not None:
            return TableConfig(properties)
        # If the folder exists, check once more: an update may have moved the backup into place in between.
        if not has_properties(storage) and (
            attempt > 0 or not storage.list(META_FOLDER) or replacement_name(storage) is not None
        ):
            raise TableNotFound(
                f"No Hudi table at {storage.root}: expected {PROPERTIES_PATH} in it. {_what_is_there(storage)}"
            )
        if attempt + 1 < _READ_ATTEMPTS:
            clock.sleep_s(_RETRY_DELAY_S)
    raise _unreadable(storage)


def _what_is_there(storage: Storage) -> str:
    """Describe the content of a path without a table, with advice."""
    try:
        entries = {entry.name: entry for entry in storage.list("")}
        tables = [
            name
            for name in [name for name, entry in entries.items() if entry.is_dir][:_FOLDERS_SEARCHED]
            if storage.stat(f"{name}/{PROPERTIES_PATH}") is not None
        ]
    except StorageError:
        entries, tables = {}, []
    if f"/{META_FOLDER}" in storage.root:
        return "It lies in the folder of a table's own files: give the folder above it."
    if tables:
        return f"There are tables in it, such as {storage.root.rstrip('/')}/{min(tables)}: give the path of one."
    if not entries.keys().isdisjoint(PARTITION_METADATA_NAMES):
        return "It is a partition of a table: give the folder of the table, and where= for the partition."
    if "_delta_log" in entries:
        return "It holds a Delta table. Read it with deltalake, and write its rows to a new path."
    if "metadata" in entries and any(e.name.endswith(".metadata.json") for e in storage.list("metadata")):
        return "It looks like an Iceberg table. Read it with PyIceberg, and write its rows to a new path."
    if any(name.endswith((".parquet", ".orc")) for name in entries):
        return (
            "It holds files without a table. Read them with pyarrow.dataset or Spark, and write their rows to a new "
            "path (write_hudi), or make a table of them without copying (pyhudi.bootstrap)."
        )
    return "Check the path, or create the table (HudiTable.create, or a first write)."


def create_table(storage: Storage, properties: Mapping[str, str], clock: Clock = _SYSTEM_CLOCK) -> TableConfig:
    """Make the folders of a table and its `hoodie.properties` (see `model.table_config.new_table_properties`).

    The properties come last: before them there is no table. Raises TableExists, also for one of two simultaneous
    creators.
    """
    config = TableConfig(properties).check_writable()
    if table_exists(storage):
        raise _table_exists(storage)
    make_folders(storage, config)
    try:
        storage.create_synced(PROPERTIES_PATH, _print(properties, "Properties saved on", clock))
    except PathExists as error:
        raise _table_exists(storage) from error
    storage.sync([config.timeline_path, config.history_path, ""])
    return config


def make_folders(storage: Storage, config: TableConfig) -> None:
    """Make the folders that every table has, where the store has folders."""
    folders = [SCHEMA_FOLDER, TEMPORARY_FOLDER, f"{AUXILIARY_FOLDER}/.bootstrap/.partitions"]
    folders += [f"{AUXILIARY_FOLDER}/.bootstrap/.fileids", config.timeline_path, config.history_path]
    for folder in folders:
        storage.make_folder(folder)


def update_table_config(
    storage: Storage,
    set: Mapping[str, str] | None = None,
    remove: Iterable[str] = (),
    clock: Clock = _SYSTEM_CLOCK,
) -> TableConfig:
    """Set and remove keys of `hoodie.properties`; hold the table's lock.

    At every moment, and after a power cut, one of the two files is complete and holds the old or the new properties;
    the next update repairs a crashed one. A file is deleted only while the other is complete.
    Raises: WriteConflict when another process changes the properties without the lock; TableNotFound and CorruptFile as
        `load_table_config` does.
    """
    settle_properties(storage)
    before = load_table_config(storage, clock)
    after = before.with_changes(set, remove)
    if after == before:
        return before
    properties = {**after.properties, CHECKSUM_KEY: table_checksum(after.properties)}
    try:
        storage.create_new(PROPERTIES_BACKUP_PATH, _print(before.properties, "Updated at", clock))
    except PathExists as error:
        raise _changed_by_another(storage) from error
    # Hudi deletes the file before it writes the new one. Replacing the file leaves no gap on stores that replace
    # atomically; elsewhere readers find an incomplete file, reject it and use the backup, as they would without it.
    storage.write(PROPERTIES_PATH, _print(properties, "Updated at", clock))
    read_back = _read_valid(storage, PROPERTIES_PATH)
    if read_back is None and storage.stat(PROPERTIES_PATH) is not None:
        storage.write(PROPERTIES_PATH, _print(before.properties, "Updated at", clock))
        raise CorruptFile(
            f"{storage.full_path(PROPERTIES_PATH)} does not read back as it was written. The old properties count, and "
            f"are in {PROPERTIES_BACKUP_PATH}, too; check the disk and try again."
        )
    if read_back != properties:
        raise _changed_by_another(storage)
    storage.delete(PROPERTIES_BACKUP_PATH)
    storage.sync([PROPERTIES_PATH])  # the new properties are in effect: files of the old ones may be deleted
    return TableConfig(properties)


def _changed_by_another(storage: Storage) -> WriteConflict:
    return WriteConflict(
        f"{storage.full_path(PROPERTIES_PATH)}: another process changes the table's properties at this moment, without "
        f"the lock that this one holds. Let all writers of the table use one hoodie.write.lock.provider "
        f"(docs/locks.md), then try again."
    )


def settle_properties(storage: Storage) -> None:
    """Repair a crashed update: restore an incomplete file from its backup, and delete the backup."""
    backup = _read(storage, PROPERTIES_BACKUP_PATH)
    if backup is None:
        return
    if _read_valid(storage, PROPERTIES_PATH) is None:
        if _valid(backup, PROPERTIES_BACKUP_PATH) is None:
            raise _unreadable(storage)
        storage.write(PROPERTIES_PATH, backup)
        storage.sync([PROPERTIES_PATH])
    storage.delete(PROPERTIES_BACKUP_PATH)


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path, PROPERTIES_BYTES_MAX)
    except PathNotFound:
        return None
    except CorruptFile:  # too large for properties: incomplete, like an empty file
        return b""


def _read_valid(storage: Storage, path: str) -> dict[str, str] | None:
    def read() -> dict[str, str] | None:
        data = _read(storage, path)
        return None if data is None else _valid(data, path)

    properties = get_or_load(storage, path, "properties", read, _size_of)
    return None if properties is None else dict(properties)


def _size_of(properties: dict[str, str] | None) -> int:
    return sum(_ENTRY_BYTES + len(key) + len(value) for key, value in (properties or {}).items())


def _valid(data: bytes, path: str) -> dict[str, str] | None:
    """Return the properties if the file is complete: parseable, with a final line end and a correct checksum.

    The checksum hashes only the table's name, but its absence reveals a cut-off file; tables below version 4 have none.
    A missing line end reveals a cut in the last line.
    """
    try:
        properties = parse_properties(data, path)
    except CorruptFile:
        return None
    if not ends_with_line(data):
        return None
    if CHECKSUM_KEY in properties:
        return properties if has_valid_checksum(properties) else None
    return properties if properties.get("hoodie.table.version") in _VERSIONS_WITHOUT_CHECKSUM else None


def _unreadable(storage: Storage) -> CorruptFile:
    """Return the error for unreadable files: their faults, and advice."""
    where = storage.full_path(PROPERTIES_PATH)
    try:
        data = storage.read(PROPERTIES_PATH, PROPERTIES_BYTES_MAX)
    except PathNotFound:
        data = None
    except CorruptFile as error:
        return error
    if data is None:
        problem = "no such file, and no whole backup"
    elif not ends_with_line(data):
        problem = f"{len(data)} bytes that end within a line: the file is cut off"
    else:
        try:
            properties = parse_properties(data, PROPERTIES_PATH)
            checksum = table_checksum(properties)
            problem = f"{CHECKSUM_KEY}={properties.get(CHECKSUM_KEY)}, where the table's name gives {checksum}"
        except CorruptFile as error:
            problem = str(error)
    return CorruptFile(
        f"{where}: expected properties with a right {CHECKSUM_KEY}, found {problem}. {PROPERTIES_BACKUP_PATH} is "
        "missing or damaged too. Restore the file from another copy of the table; if it was edited by hand and is "
        f"whole, set {CHECKSUM_KEY} right and end the last line."
    )


def _table_exists(storage: Storage) -> TableExists:
    return TableExists(
        f"There is a Hudi table at {storage.root} already. Open it, write to it with mode append, or choose another "
        f"path."
    )


def _print(properties: Mapping[str, str], title: str, clock: Clock) -> bytes:
    now_ms = clock.now_ms()
    moment = datetime.fromtimestamp(now_ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return print_properties(properties, (f"{title} {moment}.{now_ms % 1000:03d}Z", date_comment(now_ms)))
