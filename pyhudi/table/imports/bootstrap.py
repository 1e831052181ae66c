"""Bootstrap: a table from a folder of Parquet or ORC files (`pyhudi.bootstrap`).

Two modes can be mixed by partition: METADATA_ONLY writes a skeleton with the meta columns for each file, and the rows
remain in the source; FULL_RECORD writes the rows into the table by a bulk insert. A mixed bootstrap is one commit.
Source: docs/bootstrap.md; docs/formats/bootstrap.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create_table import (
    check_fields,
    cleared,
    create_from_options,
    is_written,
    table_removed_on_error,
)
from pyhudi.actions.open_table import prepare, table_lock
from pyhudi.actions.result import WriteResult
from pyhudi.actions.runner import run
from pyhudi.actions.writes.bootstrap import Bootstrap
from pyhudi.actions.writes.bulk_insert import BulkInsert
from pyhudi.engine.base import Frame, as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.local_frame import ReopenedRows
from pyhudi.errors import ConfigError, SchemaMismatch, TableExists
from pyhudi.formats.avro.schema import without_meta
from pyhudi.formats.base import file_schema
from pyhudi.formats.base.base import open_file
from pyhudi.formats.base.joined import folder_columns, source_batches
from pyhudi.formats.bootstrap import BASE_PATH_KEY, SourceFile
from pyhudi.formats.damage import text_checked
from pyhudi.index.chosen import index_class
from pyhudi.listeners import check_listeners
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import new_file_id
from pyhudi.model.instant import ActionKind
from pyhudi.model.keys import PLAIN_GENERATORS
from pyhudi.model.options import WriteOptions, canonical_keys, merged_options
from pyhudi.model.table_format import TableFormat
from pyhudi.schema.column_paths import check_twins
from pyhudi.schema.projection import project
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.table.calls import Options, PathLike, calling, open_place
from pyhudi.table.imports.data_files import check_folder_value, check_in_no_table, data_files, folder_value
from pyhudi.table.save import write
from pyhudi.table.write import replace_table
from pyhudi.table.wrong_names import checked_call
from pyhudi.timeline.table_properties import table_exists

__all__ = ["FULL_RECORD", "METADATA_ONLY", "bootstrap", "bootstrap_by_options", "is_bootstrap"]

METADATA_ONLY, FULL_RECORD = "METADATA_ONLY", "FULL_RECORD"
_MODES = (METADATA_ONLY, FULL_RECORD)
_SELECTORS = {
    "MetadataOnlyBootstrapModeSelector": METADATA_ONLY,
    "FullRecordBootstrapModeSelector": FULL_RECORD,
    "BootstrapRegexModeSelector": None,
}
_SELECTOR, _REGEX = "hoodie.bootstrap.mode.selector", "hoodie.bootstrap.mode.selector.regex"
_REGEX_MODE = "hoodie.bootstrap.mode.selector.regex.mode"
_NAME, _TYPE = "hoodie.table.name", "hoodie.datasource.write.table.type"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_FORMAT = "hoodie.table.base.file.format"
_INDEX = {"hoodie.bootstrap.index.enable": "true"}
_INDEX_CLASS = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_FORMATS = {"parquet": "PARQUET", "orc": "ORC"}
_OPERATION = "hoodie.datasource.write.operation"
_LOCK = "hoodie.write.lock.provider"


@dataclass(frozen=True, slots=True)
class _Source:
    """The files of a folder, with their columns; columns from folder names come last.

    `repeated`: partition fields whose values folders and rows must agree on, if both have them.
    """

    root: str
    storage: Storage
    files: tuple[SourceFile, ...]
    format: str
    schema: pa.Schema
    folder_fields: tuple[str, ...]
    differing: str = ""  # the first column whose type differs between files
    nanoseconds: str = ""  # the first column of Parquet files with them
    repeated: tuple[str, ...] = ()


@checked_call
def bootstrap(
    source: PathLike,
    path: PathLike | Storage,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    mode: str | None = None,
    regex: str | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult:
    """Create a table from a folder of Parquet or ORC files; by default without copying them.

    Args:
        source: the folder; it must not change as long as the table has skeletons of its files.
        path: the path of the new table, outside the source folder.
        record_key: the key fields, which METADATA_ONLY needs.
        partition_by: the partition fields; None: those of hive-style folder names (`city=rome`).
        mode: METADATA_ONLY (the default) leaves rows in the source; FULL_RECORD copies them by a bulk insert.
        regex: `mode` applies to partitions whose whole path matches, the other mode to all others.
        overwrite: replace a table at `path` when the new one is complete; otherwise TableExists is raised. The remains
            of a dead bootstrap are always removed.
        options: Hudi's own keys, including `hoodie.bootstrap.mode.selector`.
    Raises:  ConfigError, SchemaMismatch, TableExists, and other HudiErrors.
    """
    columns = {"record_key": record_key, "partition_by": partition_by, "ordering": ordering}
    table = {"table_name": table_name, "table_type": table_type}
    merged = merged_options(options, {**columns, **table})
    storage = path if isinstance(path, Storage) else open_place(path, storage_options, None)
    folder = open_storage(source, storage_options or dict(getattr(storage, "_options", ())))
    return _bootstrap(folder, storage, _modes(merged, mode, regex), overwrite, merged)


def is_bootstrap(options: Options) -> bool:
    """True if the options of a write ask for a bootstrap."""
    return any(canonical_keys([key]) == {_OPERATION} and options[key] == "bootstrap" for key in options)


def bootstrap_by_options(storage: Storage, options: Options, *, overwrite: bool) -> WriteResult:
    """Bootstrap from the folder in `hoodie.bootstrap.base.path`: the write operation `bootstrap`."""
    base = options.get(BASE_PATH_KEY)
    if not base:
        raise ConfigError(f"Operation bootstrap needs {BASE_PATH_KEY}: the folder of the files for the table.")
    folder = open_storage(str(base), dict(getattr(storage, "_options", ())))
    return _bootstrap(folder, storage, _modes(options, None, None), overwrite, options)


@dataclass(frozen=True, slots=True)
class _Modes:
    """`mode` applies to partitions that match `regex` (None: all), the other mode to all others."""

    mode: str
    regex: re.Pattern[str] | None = None

    def of(self, partition_path: str) -> str:
        if self.regex is None or self.regex.fullmatch(partition_path):
            return self.mode
        return FULL_RECORD if self.mode == METADATA_ONLY else METADATA_ONLY


def _modes(options: Options, mode: str | None, regex: str | None) -> _Modes:
    selector = str(options.get(_SELECTOR) or "").rpartition(".")[2]
    if selector and selector not in _SELECTORS:
        raise ConfigError(f"{_SELECTOR}={options[_SELECTOR]}: expected one of {', '.join(_SELECTORS)}.")
    by_regex = regex is not None or (selector and _SELECTORS[selector] is None)
    if by_regex and regex is None:
        regex = str(options.get(_REGEX) or ".*")
    if mode is None:
        mode = str(options.get(_REGEX_MODE) or METADATA_ONLY) if by_regex else _SELECTORS.get(selector)
    mode = (mode or METADATA_ONLY).upper()
    if mode not in _MODES:
        raise ConfigError(f"The mode of a bootstrap is {' or '.join(_MODES)}; found {mode!r:.100}.")
    try:
        return _Modes(mode, None if regex is None else re.compile(regex))
    except re.error as error:
        raise ConfigError(f"The regex {regex!r:.200} of the bootstrap's partitions can't be read: {error}.") from error


def _bootstrap(folder: Storage, storage: Storage, modes: _Modes, overwrite: bool, call_options: Options) -> WriteResult:
    source = _read_source(folder)
    _check_apart(folder, storage)
    exists = table_exists(storage)
    if exists and not overwrite and is_written(storage):
        raise _table_exists(storage)
    options = _options(call_options, source, storage)
    metadata_only = tuple(file for file in source.files if modes.of(file.partition_path) == METADATA_ONLY)
    copied = tuple(file for file in source.files if modes.of(file.partition_path) == FULL_RECORD)
    parsed = WriteOptions.parse(options, {}, None)
    check_fields(parsed, source.schema.names)
    check_listeners(parsed)
    if (parsed.key_generator or "SIMPLE").upper() in PLAIN_GENERATORS:
        source = replace(source, repeated=tuple(parsed.partition_fields))
    if metadata_only:
        _check_stays(source, parsed)
    replaces = overwrite and exists
    if exists and not replaces and not cleared(with_sync(storage, parsed.storage_sync), parsed):
        raise _table_exists(storage)  # another process is writing it
    with calling("bootstrap", storage, parsed) as work:
        if replaces:
            engine = as_engine(LocalEngine())
            build = partial(_build, source, metadata_only, copied, options)
            work.result = result = replace_table(storage, parsed, engine, build)
        else:
            work.result = result = _build(source, metadata_only, copied, options, storage, parsed)
    return result


def _build(
    source: _Source,
    metadata_only: tuple[SourceFile, ...],
    copied: tuple[SourceFile, ...],
    call_options: Mapping[str, object],
    storage: Storage,
    options: WriteOptions,
) -> WriteResult:
    """Create the table. `call_options`: the options before they were parsed."""
    if metadata_only:
        return _write_skeletons(replace(source, files=metadata_only), copied, storage, options, SystemClock())
    return _copy(
        source, storage, {**call_options, _LOCK: options.lock.provider} if options.lock.provider else call_options
    )


def _table_exists(storage: Storage) -> TableExists:
    return TableExists(
        f"There is a Hudi table at {storage.root} already. Bootstrap into another path, or remove it (overwrite=True)."
    )


def _read_source(folder: Storage) -> _Source:
    """The files of the folder in order of their paths. Raises ConfigError if there are none, and for other tables."""
    clock = SystemClock()
    files, formats = list[SourceFile](), set[str]()
    check_in_no_table({folder.root}, dict(getattr(folder, "_options", ())))
    for info in data_files(folder, [f".{ending}" for ending in _FORMATS]):
        formats.add(_FORMATS[info.name.rpartition(".")[2].lower()])
        place = info.path.rpartition("/")[0]
        file_id = new_file_id(clock.new_uuid(), 0)
        files.append(SourceFile(place, file_id, place, info.path, info.size_bytes, info.modified_ms))
    if not files:
        raise ConfigError(f"{folder.root} has no Parquet or ORC files. Give the folder that holds them.")
    if len(formats) > 1:
        raise ConfigError(f"{folder.root} has Parquet and ORC files; a table has one format. Move one kind elsewhere.")
    return _with_schema(_Source(folder.root, folder, tuple(files), formats.pop(), pa.schema([]), ()))


def _with_schema(source: _Source) -> _Source:
    inside: dict[str, pa.DataType] = {}
    folders: dict[str, list[pa.DataType]] = {}
    differing, nanoseconds, in_every = "", "", set[str]()
    for number, file in enumerate(source.files):
        with open_file(source.storage, file.path) as reader:
            columns = file_schema(without_meta(reader.schema))
            if source.format == "PARQUET":  # ORC has no other unit
                nanoseconds = nanoseconds or next((one.name for one in reader.schema if "[ns" in str(one.type)), "")
        for column in columns:
            known_type = inside.setdefault(column.name, column.type)
            if known_type != column.type:
                differing = differing or f"{column.name!r} ({known_type}, and {column.type} in {file.path})"
                inside[column.name] = _wider(known_type, column.type, column.name, source)
        from_folders = folder_columns(file.source_partition)
        in_every = set(from_folders) if not number else in_every & set(from_folders)
        for name, value in from_folders.items():
            folders.setdefault(name, []).append(value.type if value.is_valid else pa.null())
    added = [pa.field(name, _type_of(folders[name])) for name in folders if name in in_every and name not in inside]
    schema = pa.schema([*(pa.field(name, kind) for name, kind in inside.items()), *added])
    fields = tuple(name for name in folders if name in in_every)
    return replace(source, schema=schema, folder_fields=fields, differing=differing, nanoseconds=nanoseconds)


def _wider(one: pa.DataType, other: pa.DataType, name: str, source: _Source) -> pa.DataType:
    try:
        both = [pa.schema([pa.field(name, kind)]) for kind in (one, other)]
        unified: pa.DataType = pa.unify_schemas(both, promote_options="permissive").field(name).type
        return unified
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(
            f"{source.root}: the files can't be one table: column {name!r} is {one} and {other}."
        ) from error


def _type_of(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Infer a folder column's type: its values' common type, the wider integer type, or string."""
    different = set(kinds) - {pa.null()}
    if len(different) == 1:
        return different.pop()
    return pa.int64() if different == {pa.int32(), pa.int64()} else pa.string()


def _check_apart(folder: Storage, storage: Storage) -> None:
    one, other = folder.full_path("").rstrip("/") + "/", storage.full_path("").rstrip("/") + "/"
    if one.startswith(other) or other.startswith(one):
        raise ConfigError(
            f"The table's path {storage.root} and the source folder {folder.root} contain one another; files of one "
            "would count as those of the other. Create the table outside the source."
        )


def _options(call_options: Options, source: _Source, storage: Storage) -> dict[str, object]:
    """Options of the table, completed from the folders where the call leaves them open."""
    options = {key: value for key, value in call_options.items() if not key.startswith("hoodie.bootstrap.")}
    options = {key: value for key, value in options.items() if canonical_keys([key]) != {_OPERATION}}
    options.setdefault(_NAME, storage.root.rstrip("/").rpartition("/")[2])
    options.setdefault(_FORMAT, source.format)
    if not options.get(_PARTITION_FIELDS) and source.folder_fields:
        options[_PARTITION_FIELDS] = ",".join(source.folder_fields)
    fields = [text.partition(":")[0].strip() for text in str(options.get(_PARTITION_FIELDS) or "").split(",")]
    if fields == list(source.folder_fields):
        options.setdefault(_HIVE_STYLE, "true")
    return options


def _check_stays(source: _Source, options: WriteOptions) -> None:
    if not options.record_key_fields:
        raise ConfigError("A bootstrap by metadata needs the key fields of the rows: give record_key=.")
    if not options.populate_meta_fields:
        raise ConfigError(
            "hoodie.populate.meta.fields=false: a bootstrap by metadata writes only meta columns. Leave the "
            "option out, or copy the rows with mode='FULL_RECORD'."
        )
    if index_class(options).places_inserts:
        raise ConfigError(
            "hoodie.index.type is an index of buckets: a key's bucket is its file group, and a bootstrap by metadata "
            "makes a file group of each file. Choose another index, or copy all rows with mode='FULL_RECORD'."
        )
    if options.drop_partition_columns:
        raise ConfigError("A bootstrap by metadata leaves files as they are, so it can't drop columns from them.")
    check_twins(source.schema, pa.schema([]))
    if source.nanoseconds:
        raise SchemaMismatch(
            f"{source.root}: the column {source.nanoseconds!r} has nanoseconds, which neither Hudi nor Spark reads. A "
            "bootstrap by metadata leaves files as they are; copy the rows with mode='FULL_RECORD'."
        )
    if source.differing:
        raise SchemaMismatch(
            f"{source.root}: the files have different types for the column {source.differing}. A bootstrap by metadata "
            "leaves them as they are; copy the rows with mode='FULL_RECORD'."
        )
    if source.format != options.base_file_format.upper():
        raise ConfigError(f"{source.root} has {source.format} files; give {_FORMAT}={source.format}, or leave it out.")


def _write_skeletons(
    source: _Source, copied: tuple[SourceFile, ...], storage: Storage, options: WriteOptions, clock: Clock
) -> WriteResult:
    """Write the skeletons of a source, and in the same commit the rows of the files `copied`."""
    storage = with_sync(storage, options.storage_sync)
    # As in Hudi: the columns with statistics are in files that are not the table's own.
    options = replace(options, metadata=replace(options.metadata, column_stats=False, partition_stats=False))
    has_index_type = TableFormat(options.table_version).names_bootstrap_index_type
    index = (
        {"hoodie.bootstrap.index.type": "HFILE"} if has_index_type else {"hoodie.bootstrap.index.class": _INDEX_CLASS}
    )
    properties = {BASE_PATH_KEY: source.root, **_INDEX, **index}
    engine = as_engine(LocalEngine())
    create_from_options(storage, options, clock, more=properties)
    meta = MetaClient.load(storage, clock)
    lock = table_lock(options, storage, clock)
    with table_removed_on_error(ActionContext(meta, options, lock, clock, engine)):
        context, undone = prepare(meta, engine, options, clock)
        kind = ActionKind.DELTACOMMIT if meta.config.is_merge_on_read else ActionKind.COMMIT
        copy = BulkInsert(_frame(replace(source, files=copied)), kind) if copied else None
        action = Bootstrap(source.root, source.storage, source.files, source.schema, kind, copy)
        return run(action, context, undone)


def _copy(source: _Source, storage: Storage, options: Mapping[str, object]) -> WriteResult:
    rows = _open_rows(source)
    result = write(storage, rows, {**options, _OPERATION: "bulk_insert"}, "append", None)
    assert result is not None
    return result


def _frame(source: _Source) -> Frame:
    return Frame(ReopenedRows(source.schema, lambda: text_checked(_open_rows(source))))


def _open_rows(source: _Source) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(source.schema, _rows(source))


def _rows(source: _Source) -> Iterator[pa.RecordBatch]:
    for file in source.files:
        values = {}
        for name in source.repeated:
            if name in folder_columns(file.source_partition):
                with suppress(SchemaMismatch):  # of a folder in another form, which says nothing about the rows
                    values[name] = folder_value(file.source_partition, source.schema.field(name))
        for batch in source_batches(source.storage, file, source.schema.names):
            rows = project(batch, source.schema, exact=True)
            for name, value in values.items():
                check_folder_value(source.storage.full_path(file.path), name, rows.column(name), value)
            yield rows
