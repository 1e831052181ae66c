"""Imports of rows: `add_files` of Parquet files, `pyhudi.import_table` of an Iceberg or Delta table.

The libraries of these formats read the current snapshot, so rows that were deleted there are not imported. The
libraries are loaded on use. Their batches are streamed into a bulk insert, and only some are in memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import cast

import pyarrow as pa

from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError, CorruptFile, SchemaMismatch, StorageError, TableExists
from pyhudi.formats.base.parquet_reader import ParquetReader
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER, BaseFileName
from pyhudi.model.keys import META_COLUMNS, PLAIN_GENERATORS
from pyhudi.model.options import OptionScope, check_names, merged_options
from pyhudi.schema.projection import project
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.calls import Options, PathLike, TableHandle, open_place, session_options
from pyhudi.table.imports.data_files import check_folder_value, check_in_no_table, data_files, folder_value
from pyhudi.table.save import write, write_rows
from pyhudi.table.wrong_names import checked_call
from pyhudi.timeline.table_properties import table_exists

__all__ = ["KINDS", "add_files", "import_table"]

KINDS = ("iceberg", "delta")

_VERSION_HINT = "metadata/version-hint.text"

_METADATA = ".metadata.json"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The rows of another format's table, to be read once, and the columns by whose values it is partitioned."""

    rows: pa.RecordBatchReader
    partition_columns: tuple[str, ...]


@checked_call
def import_table(
    source: PathLike,
    path: PathLike | Storage,
    kind: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    source_options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult:
    """Copy the current snapshot of an Iceberg or Delta table into a new Hudi table, in one commit.

    Args:
        source: the folder of the other table; for Iceberg also a `*.metadata.json`.
        kind: iceberg or delta; None: detected from the folder.
        record_key: the key fields; None: Hudi's generated keys.
        partition_by: the partition fields; None: the columns by whose values the source is partitioned.
        source_options: options of the other library for the source's store.
        options: Hudi's own keys.
    Returns: the result of the bulk insert.
    Raises:  ConfigError for an unknown kind and a missing library (`pip install 'pyhudi[iceberg]'`, `'pyhudi[delta]'`),
             TableExists, StorageError when the library can't read the source.
    """
    storage = open_place(path, storage_options, None)
    place = open_storage(source)
    kind = (kind or _kind_of(place)).lower()
    if kind not in KINDS:
        raise ConfigError(f"import_table takes tables of the kinds {', '.join(KINDS)}; found {kind!r:.100}.")
    if table_exists(storage):
        raise TableExists(f"There is a Hudi table at {storage.root} already. Import into another path.")
    snapshot = (_iceberg if kind == "iceberg" else _delta)(place, dict(source_options or {}))
    columns = {"record_key": record_key, "ordering": ordering, "operation": "bulk_insert"}
    columns["partition_by"] = partition_by if partition_by is not None else list(snapshot.partition_columns) or None
    merged = merged_options(options, {**columns, "table_name": table_name, "table_type": table_type})
    check_names(merged, OptionScope.WRITE, lambda: session_options(None))
    result = write(storage, snapshot.rows, merged, "error", None)
    assert result is not None
    return result


def _kind_of(place: Storage) -> str:
    if place.root.endswith(_METADATA) or any(entry.name.endswith(_METADATA) for entry in place.list("metadata")):
        return "iceberg"
    if place.list("_delta_log"):
        return "delta"
    raise ConfigError(
        f"{place.root} looks neither like an Iceberg table (metadata/*{_METADATA}) nor like a Delta table "
        "(_delta_log). Give its folder."
    )


def _library(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"Reading this table needs {name.partition('.')[0]}: pip install 'pyhudi[{extra}]' ({error})."
        ) from error


def _iceberg(place: Storage, options: dict[str, str]) -> _Snapshot:
    tables = _library("pyiceberg.table", "iceberg")
    try:
        table = tables.StaticTable.from_metadata(_newest_metadata(place), options)
        rows = table.scan().to_arrow_batch_reader()
        spec, schema = table.spec(), table.schema()
    except Exception as error:  # errors of the library and of its file systems
        raise _unreadable(place, "pyiceberg", error) from error
    names = [schema.find_column_name(field.source_id) for field in spec.fields if str(field.transform) == "identity"]
    return _Snapshot(_readable(rows, place, "pyiceberg"), tuple(name for name in names if name))


def _newest_metadata(place: Storage) -> str:
    """The newest metadata file: that of the version hint of a table without a catalog, else the last version."""
    if place.root.endswith(_METADATA):
        return place.root
    if place.stat(_VERSION_HINT) is not None:
        return place.root
    files = [entry for entry in place.list("metadata") if entry.name.endswith(_METADATA)]
    if not files:
        raise ConfigError(f"{place.root} has no metadata/*{_METADATA}: give the folder of an Iceberg table.")
    newest = max(files, key=lambda entry: (_version(entry.name), entry.modified_ms))
    return f"{place.root.rstrip('/')}/{newest.path}"


def _version(name: str) -> int:
    """The leading number of `v3.metadata.json` and `00003-<uuid>.metadata.json`."""
    digits = name.removeprefix("v").partition(".")[0].partition("-")[0]
    return int(digits) if digits.isdecimal() else -1


def _delta(place: Storage, options: dict[str, str]) -> _Snapshot:
    deltalake = _library("deltalake", "delta")
    try:
        table = deltalake.DeltaTable(place.root, storage_options=options or None)
        partition_columns = tuple(table.metadata().partition_columns)
        batches = deltalake.QueryBuilder().register("source", table).execute("SELECT * FROM source")
        rows = pa.RecordBatchReader.from_stream(batches)
        schema = pa.schema([field.with_type(_stored(field.type)) for field in rows.schema])
        rows = rows.cast(schema)
    except Exception as error:
        raise _unreadable(place, "deltalake", error) from error
    return _Snapshot(_readable(rows, place, "deltalake"), partition_columns)


def _readable(rows: pa.RecordBatchReader, place: Storage, library: str) -> pa.RecordBatchReader:
    """The rows, whose files are read later. Raises StorageError then."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except Exception as error:  # errors of the library and of its file systems
            raise _unreadable(place, library, error) from error

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type without views, which files can't store."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), kind.item_field.with_type(_stored(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([child.with_type(_stored(child.type)) for child in kind])
    return kind


def _unreadable(place: Storage, library: str, error: Exception) -> StorageError:
    return StorageError(
        f"{place.root}: {library} can't read it ({type(error).__name__}: {error}). Nothing was written."
    )


_OPERATIONS = ("bulk_insert", "insert", "upsert")

_BATCH_ROWS = 65_536
_FOOTERS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _ParquetFile:
    """A file to add. `path`: in its storage."""

    storage: Storage
    path: str

    def __str__(self) -> str:
        return f"{self.storage.root.rstrip('/')}/{self.path}"

    @property
    def folder(self) -> str:
        return str(self).rpartition("/")[0]

    @contextmanager
    def opened(self) -> Iterator[ParquetReader]:
        """The open file. Raises SchemaMismatch, StorageError."""
        try:
            with ParquetReader(self.storage, self.path) as reader:
                yield reader
        except CorruptFile as error:
            raise SchemaMismatch(
                f"add_files: {self} can't be read as Parquet: {error.__cause__ or error} Nothing was added."
            ) from error
        except OSError as error:
            raise StorageError(f"add_files: {self} can't be read: {error}. Nothing was added.") from error

    def schema(self) -> pa.Schema:
        """Its columns, from the footer."""
        with self.opened() as reader:
            return reader.schema


def add_files(
    handle: TableHandle,
    paths: object,
    operation: str,
    storage_options: Mapping[str, object] | None,
    options: Options | None,
) -> WriteResult:
    """`Maintenance.add_files`."""
    if operation not in _OPERATIONS:
        raise ConfigError(f"add_files adds rows by {', '.join(_OPERATIONS)}; found operation={operation!r}.")
    meta = handle.fresh()
    return write_rows(handle, _rows_of(_files(paths, storage_options or {}), meta, operation), operation, options)


def _files(paths: object, options: Mapping[str, object]) -> list[_ParquetFile]:
    """All Parquet files, those of folders in order.

    Raises: ConfigError if there are none, for one that several paths name, and for files of tables.
    """
    one = isinstance(paths, str | os.PathLike)
    path_list = [paths] if one else list(paths) if isinstance(paths, Iterable) else []
    files = [file for path in path_list for file in _files_at(cast("PathLike", path), options)]
    files = [file for file in files if META_FOLDER not in str(file).split("/")]
    if not files:
        raise ConfigError("add_files: no Parquet files are named; give files, or folders with *.parquet in them.")
    twice = next((name for name, count in Counter(map(str, files)).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"add_files: {twice} is named by several paths, and its rows would be added twice.")
    hudis = next((str(file) for file in files if BaseFileName.parse(file.path.rpartition("/")[2])), None)
    if hudis is not None:
        raise ConfigError(
            f"add_files: {hudis!r} is a base file of a Hudi table, with rows that later ones have replaced. Read "
            "that table instead: table.bulk_insert(HudiTable.open(path).scan(columns))."
        )
    check_in_no_table({file.storage.root for file in files}, options)
    return files


def _files_at(path: PathLike, options: Mapping[str, object]) -> list[_ParquetFile]:
    """The file of this path, or the Parquet files below it."""
    folder = open_storage(path, options)
    above, _, name = folder.root.rstrip("/").rpartition("/")
    entry = None
    if not above.endswith((":", ":/")):  # the place is no bucket
        storage = open_storage(above or "/", options)
        entry = storage.stat(name)
        if entry is not None and not entry.is_dir:
            return [_ParquetFile(storage, name)]
    files = [file.path for file in data_files(folder, [".parquet"])]
    if entry is None and not files:
        raise ConfigError(f"add_files: there is no file or folder {os.fspath(path)!r}.")
    return [_ParquetFile(folder, file) for file in files]


def _rows_of(files: Sequence[_ParquetFile], meta: MetaClient, operation: str) -> Callable[[], pa.RecordBatchReader]:
    """A function that opens the rows of the files as a stream. Raises SchemaMismatch for incompatible files."""
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="hudi-footers") as pool:
        inside = list(pool.map(_ParquetFile.schema, files))
    sources = [_Source.of(file, schema, meta) for file, schema in zip(files, inside, strict=True)]
    try:
        schemas = list(dict.fromkeys(source.schema for source in sources))
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"add_files: the files can't be read as one table: {error}.") from error
    config = meta.config
    needed = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields}
    for source in sources:
        source.check(schema, needed, replaces=operation == "upsert")
    return lambda: pa.RecordBatchReader.from_batches(schema, _batches(sources, schema))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, and its columns. `folders`: values of the table's columns in the names of its folders, which the file
    lacks; `repeated`: those of partition columns that it has, too.
    """

    file: _ParquetFile
    schema: pa.Schema
    folders: Mapping[str, pa.Scalar]
    repeated: Mapping[str, pa.Scalar]

    @classmethod
    def of(cls, file: _ParquetFile, inside: pa.Schema, meta: MetaClient) -> _Source:
        """Raises SchemaMismatch for a folder's value that its column can't hold."""
        inside = pa.schema([field for field in inside if field.name not in META_COLUMNS])
        named = {part.partition("=")[0] for part in file.folder.split("/") if "=" in part}
        fields = [field for field in meta.table_schema() if field.name in named and not pa.types.is_nested(field.type)]
        is_plain = (meta.config.key_generator or "").upper() in PLAIN_GENERATORS
        folders, repeated = dict[str, pa.Scalar](), dict[str, pa.Scalar]()
        for field in fields:
            try:
                value = folder_value(file.folder, field)
            except SchemaMismatch as error:
                if field.name in inside.names:
                    continue
                raise SchemaMismatch(f"add_files: {file}: {error} Nothing was added.") from error
            if field.name not in inside.names:
                folders[field.name] = value
            elif is_plain and field.name in meta.config.partition_fields:
                repeated[field.name] = value
        added = [field for field in fields if field.name in folders]
        return cls(file, pa.schema([*inside, *added]), folders, repeated)

    def check(self, schema: pa.Schema, needed: Iterable[str], *, replaces: bool) -> None:
        """Raise SchemaMismatch for a column that other files have and this one must have, too: rows would get null.

        Args:
            schema: of all files.
            needed: key, partition and ordering columns.
            replaces: rows replace stored ones, whose values would be lost.
        """
        for field in schema:
            place = field.name
            if field.name in self.schema.names:
                inner = _missing_field(self.schema.field(field.name).type, field.type) if replaces else None
                if inner is None:
                    continue
                place = f"{place}.{inner}"
            elif not replaces and field.name not in needed:
                continue
            raise SchemaMismatch(
                f"add_files: {self.file} lacks the column {place}, which other files have; its rows would get null "
                f"{'in place of stored values' if replaces else 'as key, partition or ordering value'}. Add files with "
                "different columns by calls of their own. Nothing was added."
            )

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Its rows with the columns of all files. Raises SchemaMismatch for values that don't fit."""
        with self.file.opened() as reader:
            for batch in reader.batches([name for name in reader.schema.names if name in schema.names], _BATCH_ROWS):
                for name, value in self.folders.items():
                    batch = batch.append_column(self.schema.field(name), pa.repeat(value, len(batch)))
                rows = project(batch, schema, exact=True)
                for name, value in self.repeated.items():
                    check_folder_value(self.file, name, rows.column(name), value)
                yield rows


def _missing_field(inside: pa.DataType, whole: pa.DataType) -> str | None:
    """The path of a field of structs, at any depth, that the first type lacks."""
    if pa.types.is_struct(inside) and pa.types.is_struct(whole):
        for field in whole.fields:
            at = inside.get_field_index(field.name)
            inner = "" if at < 0 else _missing_field(inside.field(at).type, field.type)
            if inner is not None:
                return f"{field.name}.{inner}" if inner else field.name
        return None
    if not pa.types.is_nested(inside) or inside.num_fields != whole.num_fields:
        return None
    pairs = ((inside.field(at), whole.field(at)) for at in range(whole.num_fields))
    inners = ((mine.name, _missing_field(mine.type, other.type)) for mine, other in pairs)
    return next((f"{name}.{inner}" for name, inner in inners if inner is not None), None)


def _batches(sources: Iterable[_Source], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one file after the other; only one row group, or some pages of a large one, is in memory."""
    for source in sources:
        yield from source.batches(schema)
