"""The reader of one file group of the metadata table: its records in the order in which they were written.

Base file and blocks of log files are HFiles, so single keys and prefixes are looked up in each by its index. The
records keep their order by `sequence`: 0 in the base file, then one number per block.
Source: docs/formats/metadata-table.md, "Reading a file group", "Records".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_of, scan_slice
from pyhudi.formats.hfile import Entries, HFileReader, open_hfile
from pyhudi.formats.hfile.keys import KeyColumn, Places, key_column, ranges_of, rows_in, sorted_keys
from pyhudi.formats.log.reader import LogBlock
from pyhudi.lazy_property import lazy_property
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.records import (
    DELETED,
    KEY,
    SEQUENCE,
    TYPE,
    RecordBatchBuilder,
    Take,
    decoded_records,
    deletes_of,
    no_records,
    numbered,
)
from pyhudi.metadata.sorted_runs import sorted_runs
from pyhudi.model.file_group import FileSlice
from pyhudi.storage.file_cache import get_or_load_in_state, peek_in_state
from pyhudi.view.committed_logs import damage_rules

__all__ = ["GroupReader", "with_keys"]

_SMALL_BYTES = 1 << 20  # of a slice whose records are read at once: compressed; in memory some ten times as much
_KEPT_BLOCK_BYTES = 128 << 10  # of log files' blocks whose records stay in memory, as a write of some 10,000 rows makes
_ADVICE = "What the metadata table knows is incomplete without it."


@dataclass(frozen=True)
class GroupReader:
    """Reads a slice of the metadata table.

    Args: meta: of the metadata table; payloads: the records' fields to read; counts: if blocks of an instant count;
              raises: a log file that lost blocks is an error, else a warning, and its other blocks are read.
    """

    meta: MetaClient
    file_slice: FileSlice
    payloads: tuple[str, ...]
    counts: Callable[[str], bool]
    raises: bool = True

    def all(self, without: str | None = None) -> pa.Table:
        """All records: `key`, `type`, the payloads, `sequence`, and `deleted` for keys of delete blocks.

        Args:   without: a key whose records are left out, and not decoded.
        """
        builder = RecordBatchBuilder(self.payloads)
        self._find(builder, lambda reader: (_others(entries, without) for entries in reader.scan()), None)
        return builder.table()

    def runs(self) -> Iterator[pa.Table]:
        """Like `all`, in pieces that ascend by key; a piece has all versions of its keys. Reading keeps files open."""
        if self.file_slice.size_bytes <= _SMALL_BYTES:
            rows = self.all()
            if rows.num_rows:
                yield rows
            return
        with ExitStack() as stack:
            files = []
            base = self.file_slice.base_file
            if base is not None:
                source = stack.enter_context(self.meta.storage.open_input(base.path))
                files.append(self._pieces(HFileReader(source, base.path), base.path, 0))
            for number, block in enumerate(self.blocks, 1):
                if block.is_delete:
                    deletes = deletes_of(block, number, None)
                    files.append(iter([deletes.sort_by(KEY)]))
                    continue
                source = stack.enter_context(self.meta.storage.open_input(block.path))
                reader = HFileReader(source, block.where, block.frame.content_offset, block.frame.content_size)
                files.append(self._pieces(reader, block.where, number))
            for piece in sorted_runs(files, self.file_slice.group.file_id):
                if TYPE in piece.column_names:  # else only deletes, of keys without records here
                    yield piece

    def with_keys(self, keys: pa.Array) -> pa.Table:
        """The records with these keys (text, no nulls)."""
        return with_keys([(self, keys)]) if len(keys) else no_records(self.payloads)

    def with_prefixes(self, prefixes: Sequence[str]) -> pa.Table:
        """The records whose keys begin with one of the prefixes; deletes may have other keys, too."""
        builder = RecordBatchBuilder(self.payloads)
        ranges = ranges_of(prefix.encode() for prefix in prefixes)
        firsts = [keys.first for keys in ranges]
        small = self._from_memory(builder, lambda keys: rows_in(keys, ranges))
        self._find(builder, lambda reader: reader.prefix_columns(firsts), None, small)
        return builder.table()

    def find_keys(self, builder: RecordBatchBuilder, keys: pa.Array) -> None:
        """Add the records with these keys to the builder."""
        ordered = sorted_keys(keys)
        small = self._from_memory(builder, lambda keys: keys.rows_of(ordered))
        self._find(builder, lambda reader: reader.lookup_columns(ordered), keys, small)

    def _from_memory(
        self, builder: RecordBatchBuilder, rows_of: Callable[[KeyColumn], Places]
    ) -> Callable[[LogBlock, int], bool]:
        """Return a function that adds a small block's cached records to the builder; it returns False for others."""

        def small(block: LogBlock, number: int) -> bool:
            records = self._kept_rows(block)
            if records is None:
                return False
            rows = rows_of(key_column(records.column(KEY).combine_chunks()))
            if len(rows):  # taking rows of nested columns is expensive, and most blocks have none or all of them
                is_whole = np.array_equal(rows, np.arange(records.num_rows))
                builder.add_rows(records if is_whole else records.take(rows), number)
            return True

        return small

    def _find(
        self,
        builder: RecordBatchBuilder,
        take: Take,
        keys: pa.Array | None,
        without_opening: Callable[[LogBlock, int], bool] = lambda _block, _number: False,
    ) -> None:
        storage, base = self.meta.storage, self.file_slice.base_file
        if base is not None:
            with open_hfile(storage, base.path, base.path) as reader:
                builder.add(reader, base.path, 0, take)
        for number, block in enumerate(self.blocks, 1):
            if block.is_delete:
                builder.add_deletes(block, number, keys)
            elif not without_opening(block, number):
                place = block.frame.content_offset, block.frame.content_size
                with open_hfile(storage, block.path, block.where, *place, state=block.state) as reader:
                    builder.add(reader, block.where, number, take)

    def _kept_rows(self, block: LogBlock) -> pa.Table | None:
        """The records of a small block, which are cached; None if they can't be."""
        if block.state is None or not _is_small(block):
            return None

        def decoded() -> pa.Table:
            return _small_rows([(self, block)])[0]

        return get_or_load_in_state(block.state, block.path, self._part(block), decoded, _size_bytes)

    def _part(self, block: LogBlock) -> Hashable:
        return "records", block.frame.offset, self.payloads

    def has_fresh_rows(self, block: LogBlock) -> bool:
        """True if the records of a block can be cached and are not cached yet."""
        if block.state is None or not _is_small(block):
            return False
        return peek_in_state(block.state, block.path, self._part(block), pa.Table) is None

    def keep_rows(self, block: LogBlock, rows: pa.Table) -> None:
        """Cache the records of a block that `has_fresh_rows`."""
        if block.state is not None:
            get_or_load_in_state(block.state, block.path, self._part(block), lambda: rows, _size_bytes)

    @lazy_property
    def blocks(self) -> tuple[LogBlock, ...]:
        """The blocks of the log files that count, in their order."""
        rules = BlockRules(self.meta.config.table_version, self.counts)
        damage = damage_rules(self.meta, raises=self.raises, advice=_ADVICE)
        blocks = blocks_of(scan_slice(self.meta.storage, self.file_slice, damage), rules)
        return tuple(block for block in blocks if self.counts(block.instant_time))

    def _pieces(self, reader: HFileReader, where: str, number: int) -> Iterator[pa.Table]:
        for rows in decoded_records(reader, where, self.payloads):
            yield numbered(rows, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))


def with_keys(keys_of_groups: Sequence[tuple[GroupReader, pa.Array]]) -> pa.Table:
    """The records of several file groups with these keys. No key is in two file groups.

    They are decoded together: decoding a few records takes as long as decoding hundreds.
    """
    builder = RecordBatchBuilder(keys_of_groups[0][0].payloads)
    filled = [(reader, keys) for reader, keys in keys_of_groups if len(keys)]
    _keep_fresh([reader for reader, _ in filled])
    for reader, keys in filled:
        reader.find_keys(builder, keys)
    return builder.table()


def _size_bytes(rows: pa.Table) -> int:
    return int(rows.nbytes)


def _is_small(block: LogBlock) -> bool:
    return not block.is_delete and block.frame.content_size <= _KEPT_BLOCK_BYTES


def _keep_fresh(readers: Sequence[GroupReader]) -> None:
    """Cache the records of small blocks that are not cached yet, mostly those of the last write."""
    fresh, fresh_bytes = list[tuple[GroupReader, LogBlock]](), 0
    for reader in readers:
        for block in filter(reader.has_fresh_rows, reader.blocks):
            fresh_bytes += block.frame.content_size
            if fresh_bytes <= _SMALL_BYTES:  # larger ones are decoded one by one when they are read
                fresh.append((reader, block))
    if len(fresh) > 1:
        for (reader, block), rows in zip(fresh, _small_rows(fresh), strict=True):
            reader.keep_rows(block, rows)


def _small_rows(blocks: Sequence[tuple[GroupReader, LogBlock]]) -> list[pa.Table]:
    """The records of small blocks, decoded together. All readers belong to one partition."""
    first = blocks[0][0]
    builder = RecordBatchBuilder(first.payloads)
    for number, (_, block) in enumerate(blocks):
        place = block.frame.content_offset, block.frame.content_size
        with open_hfile(first.meta.storage, block.path, block.where, *place, state=block.state) as reader:
            builder.add(reader, block.where, number, lambda reader: reader.scan())
    rows = builder.table()
    numbers = rows.column(SEQUENCE)
    rows = rows.drop_columns([SEQUENCE, DELETED])
    return [rows.filter(pc.equal(numbers, number)).combine_chunks() for number in range(len(blocks))]


def _others(entries: Entries, key: str | None) -> Entries:
    """The entries of all keys but this one."""
    row = None if key is None else entries.find(key.encode())
    return entries if row is None else entries.select(np.delete(np.arange(len(entries)), row))
