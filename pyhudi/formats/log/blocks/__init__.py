"""Contents of log blocks, one file per layout. Change blocks (CDC_DATA) are laid out as `avro_data`.

A layout of data blocks is one row of `DATA_BLOCKS`: its number in files, its name in options, its module.
Source: docs/formats/log.md, "Block frame".
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DATA_BLOCKS", "BlockLayout", "BlockType", "DataBlock", "data_block_of"]


class BlockType(IntEnum):
    """Ordinals of block types on disk; a number is never reused."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2  # made by readers, never written
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class BlockLayout(Protocol):
    """The interface of a layout's module."""

    def decode(self, content: bytes, schema: str, columns: Collection[str] | None, where: str) -> pa.Table:
        """Decode the rows in order, only with `columns`. Raises CorruptFile for invalid bytes."""
        ...

    def encode(self, batch: pa.RecordBatch, schema: str) -> bytes:
        """Encode the content of a block with these rows."""
        ...


@dataclass(frozen=True, slots=True)
class DataBlock:
    """A layout of rows in a block. `module` is a text, so that the frame of a block needs no import of layouts."""

    block_type: BlockType
    module: str

    @property
    def layout(self) -> BlockLayout:
        return cast("BlockLayout", importlib.import_module(self.module))


DATA_BLOCKS: Mapping[str, DataBlock] = {
    "avro": DataBlock(BlockType.AVRO_DATA, "pyhudi.formats.log.blocks.avro_data"),
    "parquet": DataBlock(BlockType.PARQUET_DATA, "pyhudi.formats.log.blocks.parquet_data"),
    "hfile": DataBlock(BlockType.HFILE_DATA, "pyhudi.formats.log.blocks.hfile_data"),
}


def data_block_of(block_type: BlockType) -> DataBlock | None:
    """Return the layout of a type of block; None for a block without rows."""
    return next((block for block in DATA_BLOCKS.values() if block.block_type == block_type), None)
