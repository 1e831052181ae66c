"""Contents of log blocks, one file per kind. The row of a kind says where its `decode` and `encode` are."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.formats.log.envelope import BlockType

__all__ = ["BLOCK_TYPES"]

BLOCK_TYPES: Mapping[BlockType, str] = {
    BlockType.COMMAND: "pyhudi.formats.log.blocks.command",
    BlockType.DELETE: "pyhudi.formats.log.blocks.delete",
    BlockType.AVRO_DATA: "pyhudi.formats.log.blocks.avro_data",
    BlockType.HFILE_DATA: "pyhudi.formats.log.blocks.hfile_data",
    BlockType.PARQUET_DATA: "pyhudi.formats.log.blocks.parquet_data",
    BlockType.CDC_DATA: "pyhudi.formats.log.blocks.cdc",
}
