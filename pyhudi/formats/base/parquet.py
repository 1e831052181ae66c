"""Parquet base files: the entry points of the format.

Source: docs/formats/base-files.md, "Parquet layouts", "Footer".
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyhudi.formats.base.base import BaseFileOptions
from pyhudi.formats.base.parquet_reader import AVRO_SCHEMA_KEY, ParquetReader
from pyhudi.formats.base.parquet_writer import ParquetWriter
from pyhudi.storage.base import Storage

__all__ = ["AVRO_SCHEMA_KEY", "ParquetFormat", "ParquetReader", "ParquetWriter"]


class ParquetFormat:
    """The entry points of the format."""

    @staticmethod
    def open(storage: Storage, path: str) -> ParquetReader:
        return ParquetReader(storage, path)

    @staticmethod
    def create(
        storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> ParquetWriter:
        return ParquetWriter(storage, path, schema, options, watched)


_FOOTER_COPIES = 3
_CHUNK_BYTES = 1000
