"""Base files: the columnar files of a table, by format. `base.py` has the protocols and the registry."""

from pyhudi.formats.base.base import (
    BASE_FORMATS,
    BATCH_ROWS,
    BaseFileOptions,
    BaseFileReader,
    BaseFileWriter,
    Footer,
    extension_of,
    file_schema,
    new_base_file,
    open_base_file,
)

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
