"""The merge of a slice in two parts: the base rows that log records replace, and the rows of the log files.

    the slice's rows = base rows not replaced + log rows that did not lose against their base row

Spark's scan, which reads base files faster than rows can be transferred, uses the parts; all other callers use
`read_file_slice`. Only the ordering values of the base file are read, once, and its keys if the logs lack positions. If
rows merge column by column, more columns are read.
Source: docs/formats/merging.md, "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.filegroup.read.slice import SliceMerge, SliceSpec
from pyhudi.formats.base import BATCH_ROWS
from pyhudi.merge.rules import MergeRules
from pyhudi.model.file_group import FileSlice

__all__ = ["LogRows", "ReplacedBaseRows", "SplitSlice", "merged_log_rows", "replaced_base_rows", "split_slice"]

# Rows of key columns for which the hash table of the log's keys is built once.
_KEYS_AT_ONCE = 1 << 20

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReplacedBaseRows:
    """The result for a batch of base rows. `rows`: numbers of replaced base rows, from 0; `lost`: losing versions."""

    rows: Positions
    lost: Positions


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows from log files.

    `versions`: their numbers, as in `ReplacedBaseRows.lost`; None if they are merged with their base rows.
    """

    rows: pa.Table
    versions: Positions | None


@dataclass(frozen=True, slots=True)
class SplitSlice:
    """Both parts of a slice. `replaced`: numbers of replaced base rows, from 0; `rows`: the rows of the log files."""

    replaced: Positions
    rows: pa.Table


def replaced_base_rows(spec: SliceSpec, file_slice: FileSlice) -> Iterator[ReplacedBaseRows]:
    """The base rows that log records delete, replace or merge with, and the log records that are no rows of the slice.

    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    # Where versions merge in pairs, every match is replaced; `merged_log_rows` makes the merged row.
    comparing = replace(spec, merge=MergeRules()) if spec.merge.needs_pairs else spec
    merge = SliceMerge.of(comparing, file_slice, comparing.read_schema(()), needs_keys=False)
    yield from _replaced(comparing, file_slice, merge)


def _replaced(spec: SliceSpec, file_slice: FileSlice, merge: SliceMerge) -> Iterator[ReplacedBaseRows]:
    if file_slice.base_file is None or not len(merge.records):
        return
    deciding = pa.schema([column for column in spec.schema if column.name in spec.deciding])
    first = 0
    with spec.open_base(file_slice.base_file.path) as base:
        replaced = merge.replaced_by_position(base)
        if replaced is not None:
            yield ReplacedBaseRows(replaced, replaced[:0])
            return
        for stored_rows in merge.stored_rows(base, deciding, _KEYS_AT_ONCE):
            rows, lost = merge.replaced_rows(stored_rows)
            yield ReplacedBaseRows(rows + first, lost)
            first += len(stored_rows)


def merged_log_rows(
    spec: SliceSpec, file_slice: FileSlice, columns: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[LogRows]:
    """The live rows of the log files with `columns` in that order, merged with base rows if versions merge in pairs.

    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    read_schema = spec.read_schema(columns)
    merge = SliceMerge.of(spec, file_slice, read_schema)
    if not merge.in_pairs or file_slice.base_file is None:
        for versions in merge.only_in_logs(batch_rows):
            yield LogRows(merge.records.take(versions).select(list(columns)), versions)
        return
    with spec.open_base(file_slice.base_file.path) as base:
        for stored_rows in merge.stored_rows(base, read_schema, batch_rows):
            yield LogRows(merge.merge_batch(stored_rows)[1].select(list(columns)), None)
    for rows in merge.log_rows(batch_rows):
        yield LogRows(rows.select(list(columns)), None)


def split_slice(
    spec: SliceSpec, file_slice: FileSlice, columns: Sequence[str], *, keeps_blocks: bool = False
) -> SplitSlice:
    """Both parts from reading the log files once. The rows have `columns` in that order and are all in memory.

    Args:    keeps_blocks: see `SliceMerge.of`.
    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    merge = SliceMerge.of(spec, file_slice, spec.read_schema(columns), needs_keys=False, keeps_blocks=keeps_blocks)
    if merge.in_pairs:  # log rows need all columns of their base rows, replaced rows need none
        replaced = list(replaced_base_rows(spec, file_slice))
        parts = [part.rows for part in merged_log_rows(spec, file_slice, columns)]
        return SplitSlice(_joined([part.rows for part in replaced]), pa.concat_tables(parts))
    replaced = list(_replaced(spec, file_slice, merge))
    is_live = ~merge.records.is_delete
    is_live[_joined([part.lost for part in replaced])] = False
    rows = merge.records.take(np.flatnonzero(is_live)).select(list(columns))
    return SplitSlice(_joined([part.rows for part in replaced]), rows)


def _joined(parts: Sequence[Positions]) -> Positions:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
