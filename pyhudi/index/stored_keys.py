"""Stored keys with their locations, which tasks read from base files and from merged slices.

A row has RECORD_KEY, the file's partition path, LOCATION (its file id), BASE_ROW if needed, then the stored row's
ordering values (STORED_ORDERING + number) if they decide about a partition move.
Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.errors import CorruptFile
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.formats.base import BaseFileReader, open_base_file
from pyhudi.formats.base.ranges import RangeTest
from pyhudi.formats.damage import as_corrupt
from pyhudi.index.base import STORED_ORDERING, Lookup
from pyhudi.keygen.base import KeyGenerator, read_field
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from pyhudi.model.keys import BASE_ROW, LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.base import Storage

__all__ = ["Candidate", "StoredKeyBatch", "StoredKeys", "candidates", "in_shares"]

_READ_ROWS = 1 << 16  # with larger batches, decoded texts leave the processor's cache before they are compared


@dataclass(frozen=True, slots=True)
class Candidate:
    """A base file that may hold keys of the batch. `merging`: its slice, if log files decide which keys are live; it
    has no base file if the file group begins with log files.
    """

    file: BaseFile | None
    merging: FileSlice | None = None

    @property
    def group(self) -> FileGroupId:
        if self.merging is not None:
            return self.merging.group
        assert self.file is not None
        return self.file.group

    @property
    def size_bytes(self) -> int:
        if self.merging is not None:
            return self.merging.size_bytes
        assert self.file is not None
        return self.file.size_bytes


def candidates(lookup: Lookup, *, everywhere: bool, live: bool) -> tuple[Candidate, ...]:
    """The files that may have keys of the batch. `live`: keys that log files delete don't count.

    Raises UnsupportedTable if `live` is set and a slice has only log files, except for a lookup that only asks which
    keys are live.
    """
    slices = lookup.slices_with_logs(everywhere=everywhere) if live and lookup.merged is not None else ()
    by_path = {s.base_file.path: s for s in slices if s.base_file is not None}
    return (
        *(Candidate(file, by_path.get(file.path)) for file in lookup.candidates(everywhere=everywhere)),
        *(Candidate(None, s) for s in slices if s.base_file is None),
    )


def in_shares(to_search: Sequence[Candidate], shares_max: int) -> list[tuple[Candidate, ...]]:
    """Distribute candidates over tasks: the largest first, each to the task with the fewest bytes."""
    shares: list[list[Candidate]] = [[] for _ in range(min(len(to_search), max(1, shares_max)))]
    sizes = [0] * len(shares)
    for candidate in sorted(to_search, key=lambda c: (-c.size_bytes, c.group)):
        lightest = sizes.index(min(sizes))
        shares[lightest].append(candidate)
        sizes[lightest] += candidate.size_bytes + (1 << 16)  # opening a file costs time, too
    return [tuple(share) for share in shares]


@dataclass(frozen=True, slots=True)
class StoredKeyBatch:
    """A batch of stored rows. `numbers`: their row numbers in the base file; null if log files were merged."""

    keys: pa.Array
    rows: pa.RecordBatch
    numbers: pa.Array

    def filter(self, mask: pa.Array) -> StoredKeyBatch:
        return StoredKeyBatch(self.keys.filter(mask), self.rows.filter(mask), self.numbers.filter(mask))


@dataclass(frozen=True)
class StoredKeys:
    """Fan-out work: every stored key of its candidates.

    `keygen`: set when files hold no keys. `ordering`: fields to include. `merged`: how slices with log files are read,
    for a merge-on-read table. `partition_column`: name of the column of partition paths. `base_rows`: with BASE_ROW,
    null for keys of merged slices.
    """

    storage: Storage
    keygen: KeyGenerator | None
    ordering: pa.Schema
    merged: SliceSpec | None
    partition_column: str = PARTITION_PATH
    base_rows: bool = False

    @classmethod
    def of(cls, lookup: Lookup, partition_column: str = PARTITION_PATH) -> StoredKeys:
        return cls(lookup.storage, lookup.keygen, lookup.ordering, lookup.merged, partition_column, lookup.base_rows)

    @property
    def schema(self) -> pa.Schema:
        texts = [pa.field(name, pa.string()) for name in (RECORD_KEY, self.partition_column, LOCATION)]
        rows = [pa.field(BASE_ROW, pa.int64())] if self.base_rows else []
        ordering = [pa.field(f"{STORED_ORDERING}{i}", f.type) for i, f in enumerate(self.ordering)]
        return pa.schema([*texts, *rows, *ordering])

    def __call__(self, context: TaskContext, share: Sequence[Candidate]) -> Iterator[pa.RecordBatch]:
        for candidate in share:
            yield from self.every_key(candidate)

    def every_key(self, candidate: Candidate) -> Iterator[pa.RecordBatch]:
        """All keys of the base file, or of its merged slice."""
        if candidate.merging is not None:
            for batch_of_keys in self.of_slice(candidate.merging):
                yield self.placed(candidate, batch_of_keys)
            return
        assert candidate.file is not None
        reader = open_base_file(self.storage, candidate.file.path)
        try:
            for batch_of_keys in self.of_base(reader):
                yield self.placed(candidate, batch_of_keys)
        finally:
            reader.close()

    def of_base(self, reader: BaseFileReader, may_match: RangeTest | None = None) -> Iterator[StoredKeyBatch]:
        """Keys of a base file, with their row numbers."""
        if self.keygen is None:
            columns = [RECORD_KEY]
            if RECORD_KEY not in reader.schema.names:
                raise CorruptFile(
                    f"{reader.where}: expected record keys in the column {RECORD_KEY}, found none. Restore the file "
                    f"from a copy of the table, or roll the write back that made it."
                )
        else:
            columns = list(self.keygen.input_columns or reader.schema.names)
            reader.columns_of(columns)  # raises for a damaged name
            may_match = None  # ranges of stored keys don't exist here
        names = list(dict.fromkeys([*columns, *self._ordering_columns]))
        for first, batch in reader.numbered_batches(names, _READ_ROWS, may_match):
            keys = batch.column(RECORD_KEY) if self.keygen is None else self.keygen.columns(batch).record_key
            with as_corrupt(reader.where, f"the record keys, of type {keys.type},"):
                keys = keys.cast(pa.string())
            yield StoredKeyBatch(keys, batch, pa.array(np.arange(first, first + len(batch))))

    def of_slice(self, file_slice: FileSlice) -> Iterator[StoredKeyBatch]:
        """Keys of the merged slice, which has record keys even if the files hold none."""
        assert self.merged is not None
        columns = list(dict.fromkeys([RECORD_KEY, *self._ordering_columns]))
        for batch in read_file_slice(self.merged, file_slice, columns, _READ_ROWS):
            yield StoredKeyBatch(batch.column(RECORD_KEY), batch, pa.nulls(len(batch), pa.int64()))

    def placed(self, candidate: Candidate, batch_of_keys: StoredKeyBatch) -> pa.RecordBatch:
        """Convert these keys to rows of `schema`."""
        rows, group = len(batch_of_keys.keys), candidate.group
        constants = [pa.repeat(pa.scalar(text, pa.string()), rows) for text in (group.partition_path, group.file_id)]
        numbers = [batch_of_keys.numbers] if self.base_rows else []
        with as_corrupt(candidate.file.path if candidate.file else group.file_id, "the ordering values"):
            ordering = [_stored_ordering(batch_of_keys.rows, field) for field in self.ordering]
        return pa.RecordBatch.from_arrays([batch_of_keys.keys, *constants, *numbers, *ordering], schema=self.schema)

    @property
    def _ordering_columns(self) -> list[str]:
        return [name.partition(".")[0] for name in self.ordering.names]


def _stored_ordering(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    column = read_field(rows, field.name)
    # A file that is older than the column has no values of it.
    return pa.nulls(len(rows), field.type) if column is None else column.cast(field.type)
