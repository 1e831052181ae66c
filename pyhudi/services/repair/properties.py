"""Recreates a missing or damaged `hoodie.properties` from its remains and from the table's files.

    1  a whole backup                                       hoodie.properties.backup
    2  readable lines of damaged files                      except a line that is cut off
    3  the table's files                                    name, type, version, key and partition columns, file format
    4  properties from the caller                           they override all others

Files do not show ordering columns or a merge mode, so the caller has to name them. Where files leave a
doubt, the repair says which key it needs. Source: docs/repairs.md, "Properties";
docs/formats/table-config.md, "New tables".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, CorruptFile, HudiError, PathNotFound, TableNotFound
from pyhudi.formats.base import open_base_file
from pyhudi.formats.properties import (
    PROPERTIES_BYTES_MAX,
    date_comment,
    ends_with_line,
    parse_properties,
    print_properties,
    readable_properties,
)
from pyhudi.formats.timeline.instant_files import decode_commit
from pyhudi.model.filenames import (
    META_FOLDER,
    METADATA_TABLE_FOLDER,
    PROPERTIES_BACKUP_PATH,
    PROPERTIES_PATH,
    BaseFileName,
    InstantFileName,
    LogFileName,
)
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.keys import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.model.merge_mode import EVENT_TIME_ORDERING
from pyhudi.model.new_table import CHECKSUM_KEY, NewTable, has_valid_checksum, new_table_properties, table_checksum
from pyhudi.model.table_config import METADATA_PARTITIONS
from pyhudi.model.table_format import TableFormat
from pyhudi.redaction import is_secret
from pyhudi.services.repair.orphans import data_files
from pyhudi.services.repair.result import PropertyItem, RepairResult
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["repair_properties"]

_LAYOUT_2_FOLDER = f"{META_FOLDER}/timeline"
_METADATA_PROPERTIES = f"{METADATA_TABLE_FOLDER}/{PROPERTIES_PATH}"
_HIDDEN = "***"
_NAME, _TYPE, _VERSION = "hoodie.table.name", "hoodie.table.type", "hoodie.table.version"
_MERGE_MODE = "hoodie.record.merge.mode"
_ORDERING_KEYS = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")  # the second below version 9
_FROM_FILES = "from the table's files"


def repair_properties(
    storage: Storage,
    clock: Clock,
    lock: AbstractContextManager[None],
    overrides: Mapping[str, str] | None = None,
    *,
    dry_run: bool = True,
) -> RepairResult:
    """Recreate the properties of a table if they are missing or damaged.

    Args:    lock: holds the table's lock. overrides: properties that override all others. dry_run: only return the
             difference, without the lock.
    Raises:  TableNotFound where there is no `.hoodie` folder; ConfigError for a table whose files don't show enough;
             LockTimeout.
    """
    if not storage.list(META_FOLDER):
        raise TableNotFound(f"No Hudi table at {storage.root}: there is no folder {META_FOLDER} in it.")
    with nullcontext() if dry_run else lock:
        return _repaired(storage, clock, overrides, dry_run)


def _repaired(storage: Storage, clock: Clock, overrides: Mapping[str, str] | None, dry_run: bool) -> RepairResult:
    run = f"pyhudi.repair_properties({storage.root!r}, dry_run=False)"
    damaged, is_whole = _read(storage, PROPERTIES_PATH)
    if is_whole and not overrides:
        return RepairResult(storage.root, "properties", run=run)
    backup, backup_is_whole = _read(storage, PROPERTIES_BACKUP_PATH)
    sources: list[tuple[Mapping[str, str], str]] = [(overrides or {}, "given")]
    if is_whole:
        sources.append((damaged, ""))
    elif backup_is_whole:
        sources.append((backup, "from the backup"))
    else:
        lines = {**_plausible(backup), **_plausible(damaged)}
        shown = _shown_by_files(storage, {**lines, **(overrides or {})})
        sources += [(lines, "from lines that can be read"), (shown, _FROM_FILES)]
    after: dict[str, str] = {}
    why: dict[str, str] = {}
    for properties, source in sources:
        for key, value in properties.items():
            if key not in after and key != CHECKSUM_KEY:
                after[key], why[key] = value, source
    if not (is_whole or backup_is_whole):
        _check_has_ordering(storage, after)
    after[CHECKSUM_KEY], why[CHECKSUM_KEY] = table_checksum(after), "computed"
    items = tuple(_difference(damaged, after, why))
    if dry_run or not items:
        return RepairResult(storage.root, "properties", items, run=run)
    text = print_properties(after, ("Updated at", date_comment(clock.now_ms())))
    if not backup_is_whole:
        storage.delete(PROPERTIES_BACKUP_PATH)  # readers would treat a damaged one as an update in progress
    storage.write(PROPERTIES_PATH, text)
    storage.sync([PROPERTIES_PATH])
    storage.delete(PROPERTIES_BACKUP_PATH)
    return RepairResult(storage.root, "properties", items, True, run=run)


def _check_has_ordering(storage: Storage, properties: Mapping[str, str]) -> None:
    """Refuse an order of rows by columns whose names are lost: files don't show them."""
    by_event_time = properties.get(_MERGE_MODE) == EVENT_TIME_ORDERING
    if by_event_time and not any(properties.get(key) for key in _ORDERING_KEYS):
        key = _ORDERING_KEYS[properties.get(_VERSION, "9") < "9"]
        raise ConfigError(
            f"{storage.root}: {_MERGE_MODE} is {EVENT_TIME_ORDERING}, and the names of the ordering "
            f"columns are lost. Give them: properties={{{key!r}: ...}}."
        )


def _difference(before: Mapping[str, str], after: Mapping[str, str], why: Mapping[str, str]) -> Iterable[PropertyItem]:
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        old, new = _shown(key, old), _shown(key, new)
        problem = "missing" if old is None else f"is {old!r}"
        action = "drop" if new is None else f"set {new!r} ({why[key]})"
        yield PropertyItem(key, problem, action, before=old, after=new)


def _shown(key: str, value: str | None) -> str | None:
    return _HIDDEN if value is not None and is_secret(key) else value


def _read(storage: Storage, path: str) -> tuple[dict[str, str], bool]:
    """The readable properties in a file, and True if the file is whole."""
    try:
        data = storage.read(path, PROPERTIES_BYTES_MAX)
    except (PathNotFound, CorruptFile):
        return {}, False
    try:
        properties = parse_properties(data, path)
    except CorruptFile:
        return readable_properties(data, path), False
    if ends_with_line(data):
        return properties, has_valid_checksum(properties)
    return readable_properties(data, path), False


def _plausible(properties: Mapping[str, str]) -> dict[str, str]:
    """Hudi's keys with values: a cut line has no value, or half a key."""
    return {key: value for key, value in properties.items() if key.startswith("hoodie.") and value}


# ---- what files show


def _shown_by_files(storage: Storage, known_properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that the files of a table show, completed as for a new table. Raises ConfigError."""
    version = known_properties.get(_VERSION) or _version(storage)
    schema_name, writes_logs = _commits(storage, int(version))
    files = list(data_files(storage))
    has_logs = writes_logs or any(LogFileName.parse(entry.name) is not None for entry in files)
    name = known_properties.get(_NAME) or schema_name
    if not name:
        raise ConfigError(
            f"{storage.root}: neither a commit nor a file shows the table's name. Give it: "
            f"properties={{{_NAME!r}: ...}}."
        )
    bases = [entry.path for entry in files if BaseFileName.parse(entry.name) is not None]
    keys, partitions, hive_style, has_meta = _columns(storage, bases) if bases else ((), (), False, True)
    recordkey = known_properties.get("hoodie.table.recordkey.fields", "")
    keys = tuple(filter(None, recordkey.split(","))) or keys
    extension = bases[0].rpartition(".")[2].upper() if bases else "PARQUET"
    fields = known_properties.get("hoodie.table.partition.fields")
    partitions = tuple(filter(None, fields.split(","))) if fields is not None else partitions
    generator = "NON_PARTITION" if not partitions else "SIMPLE" if len(keys) == len(partitions) == 1 else "COMPLEX"
    new = NewTable(
        name.removesuffix("_record"),
        known_properties.get(_TYPE) or ("MERGE_ON_READ" if has_logs else "COPY_ON_WRITE"),
        int(version),
        keys,
        partitions,
        key_generator=generator,
        hive_style=hive_style,
        populate_meta_fields=has_meta,
        base_file_format=extension,
    )
    shown = new_table_properties(new)
    metadata, _ = _read(storage, _METADATA_PROPERTIES)
    if metadata:
        folders = sorted(e.name for e in storage.list(METADATA_TABLE_FOLDER) if e.is_dir and not e.name.startswith("."))
        shown[METADATA_PARTITIONS] = ",".join(folders)
    return shown


def _version(storage: Storage) -> str:
    """The table's version: that of its metadata table, else the newest with its timeline's layout."""
    metadata, _ = _read(storage, _METADATA_PROPERTIES)
    if metadata.get(_VERSION, "").isdigit():
        return metadata[_VERSION]
    return "9" if storage.list(_LAYOUT_2_FOLDER) else "6"


def _commits(storage: Storage, version: int) -> tuple[str, bool]:
    """The table's name in the newest schema of a commit, and True if there are delta commits."""
    layout = TableFormat(version).layout
    folder = _LAYOUT_2_FOLDER if layout.has_own_folder else META_FOLDER
    has_delta, schema_name = False, ""
    for entry in storage.list(folder):
        name = None if entry.is_dir else InstantFileName.parse(entry.name, layout.version)
        if name is None or name.state is not State.COMPLETED or not name.action.is_commit:
            continue
        has_delta = has_delta or name.action is ActionKind.DELTACOMMIT
        try:
            schema = decode_commit(storage.read(entry.path)).schema_json
            schema_name = str(json.loads(schema)["name"]) if schema else schema_name
        except (HudiError, ValueError, KeyError, TypeError):
            continue
    return schema_name, has_delta


def _columns(storage: Storage, paths: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...], bool, bool]:
    """Record key and partition columns, hive style, and True for meta columns, from the newest base file."""
    path = max(paths, key=lambda one: str(getattr(BaseFileName.parse(one.rpartition("/")[2]), "instant_time", "")))
    with open_base_file(storage, path) as reader:
        batch = next(iter(reader.batches(reader.schema.names)), None)
    if batch is None or RECORD_KEY not in batch.schema.names:
        return (), (), False, batch is None
    data = [name for name in batch.schema.names if name not in META_COLUMNS]
    key, partition = batch.column(RECORD_KEY), batch.column(PARTITION_PATH)
    partition_path = str(partition[0].as_py() or "")
    return _key_fields(batch, key, data), *_partition_fields(batch, partition_path, data), True


def _key_fields(batch: pa.RecordBatch, key: pa.Array, data: list[str]) -> tuple[str, ...]:
    first = str(key[0].as_py())
    fields_in_key = tuple(part.partition(":")[0] for part in first.split(",")) if ":" in first else ()
    if fields_in_key and all(name in data for name in fields_in_key):
        return fields_in_key
    return next(((name,) for name in data if _is_text_of(batch.column(name), key)), ())


def _is_text_of(column: pa.Array, key: pa.Array) -> bool:
    try:
        return bool(pc.all(pc.equal(pc.cast(column, pa.string()), key)).as_py()) and not column.null_count
    except pa.ArrowException:
        return False


def _partition_fields(batch: pa.RecordBatch, path: str, data: list[str]) -> tuple[tuple[str, ...], bool]:
    """The partition columns and hive style: names in the path, else for each of its parts the column with its value."""
    if not path:
        return (), False
    parts = path.split("/")
    names = [part.partition("=")[0] for part in parts]
    if all("=" in part for part in parts) and all(name in data for name in names):
        return tuple(names), True
    fields = []
    for part in parts:
        texts = {name: pa.repeat(pa.scalar(part), batch.num_rows) for name in data if name not in fields}
        name = next((name for name, text in texts.items() if _is_text_of(batch.column(name), text)), None)
        if name is None:
            raise ConfigError(
                f"No column has the value {part!r} of the partition {path!r} in its rows. Give the partition columns: "
                "properties={'hoodie.table.partition.fields': ...}."
            )
        fields.append(name)
    return tuple(fields), False
