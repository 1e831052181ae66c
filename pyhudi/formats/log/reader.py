"""Blocks of one log file, and their rows and deletes. One block's content is in memory at a time.

Source: docs/formats/log.md, "Block frame", "Header".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.log.blocks import DATA_BLOCKS, command, data_block_of, delete
from pyhudi.formats.log.envelope import BlockFrame, BlockType, CorruptRange, HeaderKey, scan_frames
from pyhudi.formats.log.positions import POSITION_NOTES, positions_of
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import FileState, get_or_load_in_state, settled_state

__all__ = ["LogBlock", "scan_log"]

_WHOLE_BYTES = 1 << 20  # a delete block up to this size is decoded at once
_FRAME_BYTES = 500  # about the size of a frame in memory
_COLUMN_BYTES = 200  # and a column, without its values

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One complete block of a log file; its content is read on access.

    `state`: the file's state when the block was found, None if decoded content must not be cached.
    """

    storage: Storage
    path: str
    frame: BlockFrame
    state: FileState | None = field(default=None, compare=False)

    @property
    def where(self) -> str:
        return f"{self.path} at byte {self.frame.offset}"

    @property
    def instant_time(self) -> str:
        """The instant that wrote the block; "" when its header names none."""
        return self.frame.instant_time

    @property
    def is_data(self) -> bool:
        return data_block_of(self.frame.block_type) is not None

    @property
    def is_changes(self) -> bool:
        """True for a block of a change log; `rows` are its records."""
        return self.frame.block_type is BlockType.CDC_DATA

    @property
    def is_delete(self) -> bool:
        return self.frame.block_type is BlockType.DELETE

    @property
    def is_partial(self) -> bool:
        """True if the block holds only changed columns."""
        return self.frame.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """Instants whose blocks a log compaction merged into this one; () for other blocks."""
        text = self.frame.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return tuple(time.strip() for time in text.split(",") if time.strip())

    @property
    def rollback_target(self) -> str | None:
        """The instant that a command block rolls back."""
        if self.frame.block_type is not BlockType.COMMAND:
            return None
        return command.rollback_target(self.frame.header, self.where)

    @property
    def schema_json(self) -> str:
        """Avro JSON of the block's rows, meta columns included. Raises CorruptFile when the header has none."""
        schema = self.frame.header.get(HeaderKey.SCHEMA)
        if not schema:
            raise CorruptFile(f"{self.where}: a data block without a schema in its header.")
        return schema

    def positions(self, base_instant: str, records: pa.Table | pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """Return the row numbers of the records' keys in the base file of this instant, in their order.

        Args:    records: the result of `rows` or `deletes`.
        Returns: None when the block has no positions, or those of another base file.
        Raises:  CorruptFile.
        """
        return self._positions(base_instant, len(records), self.placed(records))

    def delete_positions(self, base_instant: str, count: int) -> npt.NDArray[np.int64] | None:
        """Like `positions`, for a delete block of `count` keys."""
        header = self.frame.header
        instant, text = (header.get(key, "") for key in reversed(POSITION_NOTES))
        return self._positions(base_instant, count, (instant, text))

    def _positions(self, base_instant: str, count: int, placed: tuple[str, str]) -> npt.NDArray[np.int64] | None:
        of_base, text = placed
        return positions_of(count, text, self.where) if text and of_base == base_instant else None

    def placed(self, records: pa.Table | pa.RecordBatch) -> tuple[str, str]:
        """Return the instant of a base file, and the encoded positions there; ("", "") when the block has none."""
        header, notes = self.frame.header, records.schema.metadata or {}
        instant, text = (
            header.get(key) or notes.get(note, b"").decode("latin-1") for key, note in reversed(POSITION_NOTES.items())
        )
        return instant, text

    def rows(self, columns: Collection[str] | None = None, *, keep: bool = False) -> pa.Table:
        """Return rows of a data block, or records of a change log, in order; only `columns` when given.

        Their schema has a Parquet file's metadata. `keep`: they stay in the cache for later calls.
        """
        names = None if columns is None else frozenset(columns)

        def decoded() -> pa.Table:
            block = DATA_BLOCKS["avro"] if self.is_changes else data_block_of(self.frame.block_type)
            assert block is not None  # callers check `is_data` first
            return block.layout.decode(self._content(), self.schema_json, names, self.where)

        return self._cached(("rows", self.frame.offset, names), decoded, _table_bytes) if keep else decoded()

    def deletes(self) -> delete.DeleteRecords:
        """Return the keys of a delete block."""

        def decoded() -> delete.DeleteRecords:
            return delete.decode(self._content(), self.where)

        return self._cached(("deletes", self.frame.offset), decoded, _delete_bytes)

    def delete_parts(self) -> Iterator[delete.DeleteRecords]:
        """Yield the keys of `deletes`, in order; those of a large block some thousand at a time."""
        if self.frame.content_size <= _WHOLE_BYTES:
            yield self.deletes()
            return
        with self.storage.open_input(self.path) as source:
            source.seek(self.frame.content_offset)
            yield from delete.decoded_parts(cast("BinaryIO", source), self.frame.content_size, self.where)

    def _cached(self, part: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        return make() if self.state is None else get_or_load_in_state(self.state, self.path, part, make, size_of)

    def _content(self) -> bytes:
        with self.storage.open_input(self.path) as source:
            source.seek(self.frame.content_offset)
            content = source.read(self.frame.content_size)
        if len(content) != self.frame.content_size:
            raise CorruptFile(f"{self.where}: {self.frame.content_size} bytes expected, {len(content)} found.")
        return bytes(content)


def scan_log(storage: Storage, path: str) -> Iterator[LogBlock | CorruptRange]:
    """Yield the blocks and corrupt ranges of a log file, in their order. Contents are not read."""
    state = settled_state(storage, path)
    if state is None:
        frames = _frames(storage, path)
    else:
        frames = get_or_load_in_state(state, path, "log frames", lambda: _frames(storage, path), _size_of)
    for part in frames:
        yield LogBlock(storage, path, part, state) if isinstance(part, BlockFrame) else part


def _frames(storage: Storage, path: str) -> tuple[BlockFrame | CorruptRange, ...]:
    with storage.open_input(path) as source:
        return tuple(scan_frames(source, path))


def _size_of(frames: tuple[BlockFrame | CorruptRange, ...]) -> int:
    texts = (text for frame in frames if isinstance(frame, BlockFrame) for text in frame.header.values())
    return _FRAME_BYTES * len(frames) + sum(map(len, texts))


def _table_bytes(rows: pa.Table) -> int:
    return rows.nbytes + _COLUMN_BYTES * rows.num_columns


def _delete_bytes(deletes: delete.DeleteRecords) -> int:
    return deletes.keys.nbytes + sum(values.nbytes for values in deletes.ordering)
