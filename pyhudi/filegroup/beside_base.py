"""A slice with log files in two parts: the rows that leave its base file, and the rows that come from its log files.

    the slice's rows = base rows but those at `leaving_rows` + `coming_rows`

Whoever reads base files faster than rows can be handed over (Spark's own scan) takes the parts; everybody else takes
`read_file_slice`. Of the base file only keys and ordering values are read, unless rows merge column by column.
Source: spec, files and records 5.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.filegroup.read import SliceMerge, SliceSpec
from pyhudi.formats.base import BATCH_ROWS, open_base_file
from pyhudi.merge.rules import MergeRules
from pyhudi.model.file_group import FileSlice

__all__ = ["coming_rows", "leaving_rows"]

# Columns of keys only: the hash table of the log's keys is built once for so many rows.
_KEYS_AT_ONCE = 1 << 20


def leaving_rows(spec: SliceSpec, file_slice: FileSlice) -> Iterator[npt.NDArray[np.int64]]:
    """Numbers of the base file's rows, from 0, that a log record deletes, replaces or is merged with.

    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    # Where versions merge in pairs every match leaves; which row comes of it is the other part's business.
    judging = replace(spec, merge=MergeRules()) if spec.merge.needs_pairs else spec
    merge = SliceMerge.of(judging, file_slice, judging.needed(()))
    if file_slice.base_file is None or not len(merge.records.keys):
        return
    deciding = pa.schema([column for column in spec.schema if column.name in judging.deciding])
    first = 0
    with open_base_file(spec.storage, file_slice.base_file.path) as base:
        for stored in merge.stored_rows(base, deciding, _KEYS_AT_ONCE):
            yield merge.leaving(stored) + first
            first += len(stored)


def coming_rows(
    spec: SliceSpec, file_slice: FileSlice, columns: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Live rows of the log files, merged with their base rows where there are any, with `columns` in that order.

    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    needed = spec.needed(columns)
    merge = SliceMerge.of(spec, file_slice, needed)
    with ExitStack() as stack:
        for rows in _coming(spec, merge, file_slice, needed, batch_rows, stack):
            if len(rows):
                yield from rows.select(list(columns)).combine_chunks().to_batches()


def _coming(
    spec: SliceSpec, merge: SliceMerge, file_slice: FileSlice, needed: pa.Schema, batch_rows: int, stack: ExitStack
) -> Iterator[pa.Table]:
    if file_slice.base_file is not None and merge.asks_base and len(merge.records.keys):
        base = stack.enter_context(open_base_file(spec.storage, file_slice.base_file.path))
        deciding = pa.schema([column for column in needed if column.name in spec.deciding])
        wanted, at_once = (needed, batch_rows) if merge.in_pairs else (deciding, _KEYS_AT_ONCE)
        for stored in merge.stored_rows(base, wanted, at_once):
            yield merge.meet(stored)[1]
    yield from merge.log_rows(batch_rows)
