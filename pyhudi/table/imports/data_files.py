"""The files of a folder that hold rows, for calls that take a folder of files: `add_files`, `bootstrap`.

Names are hidden as in Spark: files and folders that begin with a dot or an underscore hold no rows, except partition
folders (`_day=1`). Folders of a table format are refused: its log decides which files and rows count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.model.filenames import META_FOLDER
from pyhudi.storage import open_storage
from pyhudi.storage.base import FileInfo, Storage

__all__ = ["check_folder_value", "check_in_no_table", "data_files", "folder_value"]

_DELTA_LOG = "_delta_log"
_ICEBERG_FOLDER, _ICEBERG_METADATA = "metadata", ".metadata.json"
_COPYING = "._COPYING_"  # Hadoop's, while it copies a file


def data_files(folder: Storage, endings: Sequence[str]) -> list[FileInfo]:
    """The files with these endings, in any case, in order of their paths. Raises ConfigError for tables."""
    files = []
    for info in folder.walk(""):
        parts = info.path.split("/")
        kind = _kind_of_table(parts)
        if kind:
            raise _of_table(folder.root, kind)
        if info.name.lower().endswith(tuple(endings)) and not any(map(_is_hidden, parts)):
            files.append(info)
    return sorted(files, key=lambda info: info.path)


def check_in_no_table(folders: set[str], options: Mapping[str, object]) -> None:
    """Raise ConfigError for folders of data inside a table of Delta or Iceberg: its partitions, its `data`."""
    for root in sorted({root for folder in folders for root in _roots_above(folder)}):
        place = open_storage(root or "/", options)
        if place.list(_DELTA_LOG):
            raise _of_table(root, "a Delta table")
        if any(entry.name.endswith(_ICEBERG_METADATA) for entry in place.list(_ICEBERG_FOLDER)):
            raise _of_table(root, "an Iceberg table")


def folder_value(folder: str, field: pa.Field) -> pa.Scalar:
    """The value that hive-style names in a folder's path (`day=7`) give a column. A time without a zone is in UTC.

    Raises: SchemaMismatch for a text that the column can't hold.
    """
    texts = ds.partitioning(pa.schema([(field.name, pa.string())]), flavor="hive")
    text = pa.scalar(ds.get_partition_keys(texts.parse(f"{folder}/")).get(field.name), pa.string())
    try:
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            with suppress(pa.ArrowInvalid):  # a text with a zone
                return text.cast(pa.timestamp(field.type.unit)).cast(pa.int64()).cast(field.type)
        return text.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"the folder's {field.name}={text} is no value of the column, which is {field.type}: {error}."
        ) from error


def check_folder_value(file: object, name: str, column: pa.Array, value: pa.Scalar) -> None:
    """Raise SchemaMismatch if rows of a file have another value in a column than their folder's name."""
    same = pc.equal(column, value.cast(column.type)) if value.is_valid else pc.is_null(column)
    differs = column.filter(pc.invert(pc.fill_null(same, False)))
    if len(differs):
        raise SchemaMismatch(
            f"{file} has rows whose {name} is {differs[0].as_py()!r}, and lies in a folder that says "
            f"{value.as_py()!r}. Nothing was written; move the file, or correct its rows."
        )


def _roots_above(folder: str) -> Iterator[str]:
    """The possible roots of a table with this folder: above its partitions, and above Iceberg's `data`."""
    root, _, name = folder.rstrip("/").rpartition("/")
    while "=" in name and root:
        folder = root
        root, _, name = root.rpartition("/")
    yield folder
    if name == "data" and root and not root.endswith((":", ":/")):  # the folder is no bucket
        yield root


def _kind_of_table(parts: Sequence[str]) -> str:
    if META_FOLDER in parts:
        return "a Hudi table"
    if _DELTA_LOG in parts:
        return "a Delta table"
    if parts[-1].endswith(_ICEBERG_METADATA) and parts[-2:-1] == [_ICEBERG_FOLDER]:
        return "an Iceberg table"
    return ""


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(_COPYING)


def _of_table(root: str, kind: str) -> ConfigError:
    call = "table.bulk_insert(HudiTable.open(path).scan(columns))" if "Hudi" in kind else "pyhudi.import_table"
    return ConfigError(
        f"{root} is, or holds, {kind}, and its files have rows that don't count: replaced and deleted ones. Read that "
        f"table, and write its rows ({call})."
    )
