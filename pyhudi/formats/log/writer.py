"""Writing one log file: one block after the other, each complete before the next begins.

A log file is written once and never appended to later (object stores can't append, and a cut file must not be
extended).
Source: docs/formats/log.md, "Block frame", "Corrupt blocks".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.formats.log.blocks import DATA_BLOCKS, BlockType, parquet_data
from pyhudi.formats.log.envelope import HeaderKey, encode_block
from pyhudi.storage.base import Storage, as_storage_error

__all__ = ["LogFileWriter", "data_block"]


def data_block(
    batch: pa.RecordBatch,
    schema_json: str,
    block_format: str,
    header: Mapping[HeaderKey, str],
    *,
    page_checksums: bool = True,
) -> bytes:
    """Return a complete data block.

    Args:    batch: rows with the columns of `schema_json` (Avro JSON with meta columns), in its order; block_format:
             "avro", "parquet" or "hfile"; header: entries besides the schema, INSTANT_TIME among them;
             page_checksums: pages of Parquet get a checksum.
    """
    block = DATA_BLOCKS.get(block_format.lower())
    if block is None:
        raise ConfigError(f"Log block format {block_format!r}: expected one of {', '.join(DATA_BLOCKS)}.")
    if block.block_type is BlockType.PARQUET_DATA:
        content = parquet_data.encode(batch, schema_json, page_checksums=page_checksums)
    else:
        content = block.layout.encode(batch, schema_json)
    return encode_block(block.block_type, {**header, HeaderKey.SCHEMA: schema_json}, content)


class LogFileWriter:
    """One log file being written. Readers ignore its path until the instant completes."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        self._where = storage.full_path(path)
        self._sink = storage.open_output(path)

    def append(self, block: bytes) -> None:
        """Write a complete block. Raises StorageError."""
        with as_storage_error(self._where):
            self._sink.write(block)
        self.size_bytes += len(block)

    def close(self) -> int:
        """Finish the file; return its size in bytes."""
        with as_storage_error(self._where):
            self._sink.close()
        return self.size_bytes
