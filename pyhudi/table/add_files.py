"""Adding the rows of Parquet files to a table: `HudiTable.add_files`.

Base files of Hudi have meta columns and a name of their own, so the rows are written anew, batch by batch; the files
themselves stay as they are, and where they are. Partition columns that folders name (`city=rome/a.parquet`) are taken
from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER, BaseFileName
from pyhudi.model.keys import META_COLUMNS
from pyhudi.table.calls import Options, TableHandle
from pyhudi.table.write import write_rows

__all__ = ["add_files"]

_OPERATIONS = ("bulk_insert", "insert", "upsert")
_BATCH_ROWS = 65_536
_FILES_AHEAD = 1  # files and batches that are read before their turn: memory stays small


def add_files(
    handle: TableHandle, paths: object, operation: str, options: Options | None, more: Options
) -> WriteResult:
    """`HudiTable.add_files`."""
    if operation not in _OPERATIONS:
        raise ConfigError(f"add_files adds rows by {', '.join(_OPERATIONS)}; found operation={operation!r}.")
    meta = handle.fresh()
    scanner = _rows_of(_files(paths, meta), meta)
    return write_rows(handle, scanner, operation, options, more)


def _files(paths: object, meta: MetaClient) -> list[str]:
    """All Parquet files, those of folders in order. Raises ConfigError for none, and for files of a Hudi table."""
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths) if isinstance(paths, Iterable) else []
    files: list[str] = []
    for path in listed:
        text = os.fspath(path)
        if "://" in text and not text.startswith("file://"):
            raise ConfigError(
                f"add_files reads files of this machine, found {text!r}. Rows elsewhere go by a pyarrow dataset: "
                "table.bulk_insert(pyarrow.dataset.dataset(uri, partitioning='hive'))."
            )
        place = Path(text.removeprefix("file://"))
        if not place.exists():
            raise ConfigError(f"add_files: there is no file or folder {text!r}.")
        files += [str(place)] if place.is_file() else [str(file) for file in sorted(place.rglob("*.parquet"))]
    files = [file for file in files if META_FOLDER not in Path(file).parts]
    if not files:
        raise ConfigError("add_files: no Parquet files are named; give files, or folders with *.parquet in them.")
    hudis = next((file for file in files if _is_hudis(file)), None)
    if hudis is not None:
        raise ConfigError(
            f"add_files: {hudis!r} is a base file of a Hudi table, which has rows that later ones have replaced. Read "
            "that table instead: table.bulk_insert(HudiTable.open(path).scan(columns))."
        )
    return files


def _is_hudis(file: str) -> bool:
    return BaseFileName.parse(os.path.basename(file)) is not None


def _rows_of(files: Sequence[str], meta: MetaClient) -> ds.Scanner:
    """The rows of the files as a stream. Raises SchemaMismatch for files that don't go together."""
    try:
        schemas = [ds.dataset(file, format="parquet").schema for file in files]
        inside = pa.unify_schemas(schemas, promote_options="permissive")
        named = pa.schema([meta.table_schema().field(name) for name in _in_folders(files, inside, meta)])
        dataset = ds.dataset(
            list(files),
            schema=pa.schema([*inside, *named]),
            format="parquet",
            partitioning=ds.partitioning(named, flavor="hive") if named.names else None,
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise SchemaMismatch(f"add_files: the files can't be read as one table: {error}.") from error
    names = [name for name in dataset.schema.names if name not in META_COLUMNS]
    return dataset.scanner(
        columns=names, batch_size=_BATCH_ROWS, batch_readahead=_FILES_AHEAD, fragment_readahead=_FILES_AHEAD
    )


def _in_folders(files: Sequence[str], inside: pa.Schema, meta: MetaClient) -> list[str]:
    """Partition columns that the folder of every file names, and that no file has."""
    fields = [name for name in meta.config.partition_fields if name in meta.table_schema().names]
    folders = [{part.partition("=")[0] for part in Path(file).parts[:-1] if "=" in part} for file in files]
    return [name for name in fields if name not in inside.names and all(name in folder for folder in folders)]
