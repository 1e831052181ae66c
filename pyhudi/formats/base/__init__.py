"""Base files: the columnar files of a table, by format.

`open_base_file` and `new_base_file` are the entry points; a format is one file in this package and one row of
`BASE_FORMATS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.formats.base.base import (
    BATCH_ROWS,
    BaseFileOptions,
    BaseFileReader,
    BaseFileWriter,
    BaseFormat,
    Footer,
    file_schema,
)
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage

__all__ = [
    "BASE_FORMATS",
    "BATCH_ROWS",
    "BaseFileOptions",
    "BaseFileReader",
    "BaseFileWriter",
    "Footer",
    "extension_of",
    "file_schema",
    "new_base_file",
    "open_base_file",
]

BASE_FORMATS: Registry[type[BaseFormat]] = Registry(
    kind="base file format",
    entries={
        "PARQUET": "pyhudi.formats.base.parquet:ParquetFormat",
        "ORC": "pyhudi.formats.base.orc:OrcFormat",
    },
)
_FORMAT_OF_EXTENSION = {".parquet": "PARQUET", ".orc": "ORC"}


def extension_of(format_name: str) -> str:
    """The file name extension of a format, with the dot. Raises ConfigError for a format that we can't write."""
    name = BASE_FORMATS.canonical(format_name)
    return next(extension for extension, format_name in _FORMAT_OF_EXTENSION.items() if format_name == name)


def open_base_file(storage: Storage, path: str) -> BaseFileReader:
    """Open a base file for reading; the extension of `path` says its format.

    Raises PathNotFound, CorruptFile, and UnsupportedTable for the formats of other tables (hfile, lance).
    """
    extension = "." + path.rpartition("/")[2].rpartition(".")[2].lower()
    name = _FORMAT_OF_EXTENSION.get(extension)
    if name is None:
        raise UnsupportedTable(
            f"{path}: base files of type {extension!r} can't be read; known: {', '.join(_FORMAT_OF_EXTENSION)}."
        )
    return BASE_FORMATS.load(name).open(storage, path)


def new_base_file(
    storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
) -> BaseFileWriter:
    """Start a base file at `path` with the columns of `schema` (meta columns included).

    Args:    watched: columns whose ranges are available when the file is closed.
    """
    if not path.endswith(extension_of(options.format)):
        raise ConfigError(f"{path}: a {options.format} base file ends with {extension_of(options.format)!r}.")
    return BASE_FORMATS.load(options.format).create(storage, path, file_schema(schema), options, watched)
