"""The record keys of a slice as it is now: from its base file, or from base file and log files merged.

Source: docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.errors import CorruptFile
from pyhudi.filegroup.read.record_buffer import with_record_keys
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.formats.damage import as_corrupt
from pyhudi.merge.combine import single_array
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import RECORD_KEY

__all__ = ["SliceKeys", "slice_keys"]

_READ_ROWS = 1 << 17
_SLICE = "slice"


def slice_keys(spec: SliceSpec, file_slice: FileSlice) -> Iterator[pa.Array]:
    """The record key of every row, text without nulls, in pieces. Only key columns of base files are read.

    Raises: CorruptFile, UnsupportedTable.
    """
    base = file_slice.base_file
    if file_slice.needs_merge or base is None:
        for batch in read_file_slice(spec, file_slice, [RECORD_KEY], _READ_ROWS):
            yield _checked(batch.column(RECORD_KEY), f"{spec.storage.root}: {file_slice.group.file_id}")
        return
    generator = spec.key_generator
    with spec.open_base(base.path) as reader:
        columns = [RECORD_KEY] if generator is None else list(generator.input_columns or reader.schema.names)
        for batch in reader.batches(reader.columns_of(columns), _READ_ROWS):
            rows = with_record_keys(generator, pa.Table.from_batches([batch]))
            if RECORD_KEY not in rows.column_names:
                raise CorruptFile(
                    f"{reader.where}: expected record keys in the column {RECORD_KEY}, found none. Restore the file "
                    f"from a copy of the table, or roll the write back that made it."
                )
            yield _checked(single_array(rows.column(RECORD_KEY)), reader.where)


def _checked(keys: pa.Array, where: str) -> pa.Array:
    with as_corrupt(where, f"the record keys, of type {keys.type},"):
        keys = keys.cast(pa.string())
    if keys.null_count:
        raise CorruptFile(f"{where}: {keys.null_count} rows have no record key. Their file was written by no Hudi.")
    return keys


@dataclass(frozen=True)
class SliceKeys:
    """Fan-out work: a task is a list of slices with their numbers; the result has a row for each key, with the slice's
    number.
    """

    spec: SliceSpec

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(RECORD_KEY, pa.string()), pa.field(_SLICE, pa.int32())])

    def __call__(self, context: TaskContext, task: Sequence[tuple[int, FileSlice]]) -> Iterator[pa.RecordBatch]:
        for number, file_slice in task:
            for keys in slice_keys(self.spec, file_slice):
                numbers = pa.repeat(pa.scalar(number, pa.int32()), len(keys))
                yield pa.RecordBatch.from_arrays([keys, numbers], schema=self.schema)
