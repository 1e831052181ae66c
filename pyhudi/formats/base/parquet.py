"""Parquet base files: the entry points of the format.

Source: docs/formats/base-files.md, "Parquet layouts", "Footer".
"""

from __future__ import annotations

from pyhudi.formats.base.parquet_reader import AVRO_SCHEMA_KEY, ParquetReader
from pyhudi.formats.base.parquet_writer import ParquetWriter

__all__ = ["AVRO_SCHEMA_KEY", "ParquetFormat", "ParquetReader", "ParquetWriter"]


class ParquetFormat:
    """The entry points of the format."""

    open = ParquetReader
    create = ParquetWriter
