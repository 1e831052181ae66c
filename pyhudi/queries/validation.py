"""Validation of the metadata table: its records are compared with the files and rows of the table.

`validate` compares each partition of the metadata table:

    files            with a listing of the table's folders: the visible files, with their sizes
    column_stats     with the rows of the visible base files: counts are equal, bounds hold
    partition_stats  with the rows: bounds hold
    bloom_filters    with the footers of the visible base files
    record_index     with the rows: exactly the live keys, in the file group that has them
    secondary_...    with the rows: exactly the pairs of value and key
    all of them      each record is in the file group that its key belongs to, where a look-up searches it

The checks of statistics and bloom filters are in `statistics_validation.py`, those of the indexes of rows here.

A sample consists of file groups. The metadata table must describe their files and rows correctly; its other records are
not checked. Real Hudi never checks: with a stale metadata table it loses rows silently.
Source: docs/formats/metadata-table.md, "Records", "Record index", "Secondary index"; docs/reading.md,
"The metadata table".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import ALL_PARTITIONS_KEY, group_numbers, groups_by_prefix, stored_partition
from pyhudi.metadata.locations import file_ids, partition_paths
from pyhudi.metadata.partitions.secondary_index import secondary_keys, why_no_secondary_index
from pyhudi.metadata.records import DELETED, KEY
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import LogFileName, data_path
from pyhudi.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.queries.statistics_validation import (
    KEYS_SHOWN,
    Compared,
    Difference,
    bloom_filters,
    column_stats,
    partition_stats,
)
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import files_being_cleaned

__all__ = ["Difference", "record_index", "secondary_index", "validate"]


_How: TypeAlias = Literal["full outer", "left outer"]
_PLACE = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
_BETWEEN = "\0"  # of a partition path and a key


# ---- record index ----------------------------------------------------------------------------------------------------


def record_index(compared: Compared, partition: str) -> Iterator[Difference]:
    """Keys without an entry, entries without a row, and entries that name a file group that does not have the row. An
    index of each partition of the table is compared partition by partition.
    """
    table = compared.table
    is_global = MetadataKind.RECORD_INDEX.value.file_ids in groups_by_prefix(
        file_slice.group.file_id for file_slice in table.slices(partition)
    )
    rows = _rows(compared, compared.plan(_PLACE), is_global=is_global)
    keys = rows.column("key")
    records = table.records(partition) if compared.is_whole else table.lookup(partition, _texts(keys.unique()))
    entries = _listed(records, is_global=is_global)
    how: _How = "full outer" if compared.is_whole else "left outer"
    wrong = _wrong(rows, entries, how)
    if not compared.is_whole and wrong.num_rows:  # a file group outside the sample may have another row of this key
        wrong_places = wrong.column("listed").drop_null().to_pylist()
        groups = {FileGroupId(*str(place).rsplit("/", 1)) for place in wrong_places}
        elsewhere = _rows(compared, compared.plan(_PLACE, groups), is_global=is_global)
        every = pa.concat_tables([rows, elsewhere])
        wrong = _wrong(every.filter(pc.is_in(every.column("id"), wrong.column("id").combine_chunks())), entries, how)
    for row in wrong.slice(0, KEYS_SHOWN).to_pylist():
        where = f"key {str(row['id']).rpartition(_BETWEEN)[2]!r}"
        yield Difference(partition, where, row["there"] or "no entry", row["listed"] or "no entry")
    if wrong.num_rows > KEYS_SHOWN:
        yield Difference(partition, f"{wrong.num_rows} keys in all", "one correct entry each", "others")


def _rows(compared: Compared, plan: ReadPlan, *, is_global: bool) -> pa.Table:
    """`id`, `key` and `there` (partition path and file id) of each row."""
    rows = pa.Table.from_batches(read_batches(plan, compared.table.data.storage), plan.schema)
    ids = pc.list_element(pc.split_pattern(rows.column(FILE_NAME), "_", max_splits=1), 0)
    keys, paths = rows.column(RECORD_KEY), rows.column(PARTITION_PATH)
    return pa.table({"id": _ids(paths, keys, is_global=is_global), "key": keys, "there": _places(paths, ids)})


def _listed(records: pa.Table, *, is_global: bool) -> pa.Table:
    """`id` and `listed` (partition path and file id) of each entry."""
    places = records.column(MetadataKind.RECORD_INDEX.payloads[0]).combine_chunks()
    paths, keys = partition_paths(places), records.column("key").combine_chunks()
    return pa.table({"id": _ids(paths, keys, is_global=is_global), "listed": _places(paths, file_ids(places))})


def _wrong(rows: pa.Table, entries: pa.Table, how: _How) -> pa.Table:
    """Keys without an entry for one of their rows. A key of several rows (inserted twice) has one entry for one of
    them.
    """
    both = rows.join(entries, "id", join_type=how)
    right = both.filter(pc.equal(both.column("there"), both.column("listed"))).column("id")
    return both.filter(pc.invert(pc.is_in(both.column("id"), right.combine_chunks())))


def _ids(
    paths: pa.Array | pa.ChunkedArray, keys: pa.Array | pa.ChunkedArray, *, is_global: bool
) -> pa.Array | pa.ChunkedArray:
    """The unique columns: the key, or the key within its partition."""
    return keys if is_global else pc.binary_join_element_wise(paths, keys, _BETWEEN)


def _places(paths: pa.Array | pa.ChunkedArray, ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.binary_join_element_wise(paths, ids, "/")


# ---- secondary indexes -----------------------------------------------------------------------------------------------


def secondary_index(compared: Compared, partition: str) -> Iterator[Difference]:
    """Pairs of value and key that rows have and the index does not, and the other way round."""
    table = compared.table
    if why_no_secondary_index(table.data, partition) is not None:
        return  # its correct content is unknown here
    (column,) = read_index_definitions(table.data.storage).by_name[partition].source_fields
    plan = compared.plan((RECORD_KEY, column))
    version = table.data.config.table_version
    of_rows = [
        secondary_keys(batch.column(column), batch.column(RECORD_KEY), version)
        for batch in read_batches(plan, table.data.storage)
    ]
    expected = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *of_rows]))
    records = table.records(partition) if compared.is_whole else table.lookup(partition, _texts(expected))
    stored_keys = records.column("key").combine_chunks()
    missing = expected.filter(pc.invert(pc.is_in(expected, stored_keys)))
    wrong = stored_keys.filter(pc.invert(pc.is_in(stored_keys, expected)))
    for keys, expected_text, actual in ((missing, "a record", "none"), (wrong, "none", "a record")):
        for key in keys.slice(0, KEYS_SHOWN).to_pylist():
            yield Difference(partition, f"value and key {key!r}", expected_text, actual)
        if len(keys) > KEYS_SHOWN:
            yield Difference(partition, f"{len(keys)} pairs in all", expected_text, actual)


def _texts(keys: pa.Array | pa.ChunkedArray) -> list[str]:
    return [str(key) for key in keys.to_pylist()]


_Check: TypeAlias = Callable[[Compared, str], Iterator[Difference]]


def validate(
    meta: MetaClient, *, sample: int | None = None, merger_classes: Sequence[str] = ()
) -> tuple[Difference, ...]:
    """The errors in the metadata table; () if its checkable partitions have none, and for a table without one.

    All rows are read if there is an index of rows or statistics of partitions, all base files if there are column
    statistics. `sample`: only this number of file groups is compared, a new random choice in each call.

    Args:   merger_classes: paths of the caller's mergers ("module:Class"), for tables with merge mode CUSTOM.
    Raises: ConfigError for a sample of none; UnsupportedTable when rows must be read and the table's merger is unknown;
            MetadataTableDamaged, CorruptFile.
    """
    if sample is not None and sample < 1:
        raise ConfigError(f"sample={sample}: give the number of file groups to compare, 1 or more; None: all.")
    table = MetadataTable.open(meta)
    if table is None:
        return ()
    table = replace(table, raises=False)  # to report the missing parts, not the first error
    view = FileSystemView.load(meta)
    slices = view.all_slices()
    is_whole = sample is None or sample >= len(slices)
    chosen = slices if is_whole or sample is None else random.sample(slices, sample)
    compared = Compared(table, view, chosen, is_whole, merger_classes)
    return tuple(
        difference for name in table.partitions for check in _checks(name) for difference in check(compared, name)
    )


def _checks(partition: str) -> Sequence[_Check]:
    check = _CHECKS.get(kind_of(partition))
    return (_misplaced,) if check is None else (check, _misplaced)


def _misplaced(compared: Compared, partition: str) -> Iterator[Difference]:
    """Records in another file group than the one to which their key belongs."""
    if not compared.is_whole:
        return
    table = compared.table
    slices = {file_slice.group.file_id: file_slice for file_slice in table.slices(partition)}
    for group_ids in groups_by_prefix(slices).values():
        for number, file_id in enumerate(group_ids if len(group_ids) > 1 else ()):
            for records in table.reader(slices[file_id]).runs():
                keys = records.column(KEY).filter(pc.invert(records.column(DELETED))).combine_chunks()
                right = group_numbers(partition, keys, len(group_ids), table.data.config.table_version)
                for row in np.flatnonzero(right != number).tolist()[:KEYS_SHOWN]:
                    yield Difference(partition, f"key {keys[row].as_py()!r}", group_ids[right[row]], file_id)


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(compared: Compared, partition: str) -> Iterator[Difference]:
    table, view = compared.table, compared.view
    cleaned = files_being_cleaned(table.data)
    records = {row["key"]: row["filesystemMetadata"] for row in table.records(partition).to_pylist()}
    listed_partitions = {name for name, entry in records.get(ALL_PARTITIONS_KEY) or () if not entry["isDeleted"]}
    for path in view.partitions():
        name = stored_partition(path)
        entries = {file: entry["size"] for file, entry in records.get(name) or () if not entry["isDeleted"]}
        visible = dict(_visible_files(view, path))
        if visible and name not in listed_partitions:
            yield Difference(partition, ALL_PARTITIONS_KEY, f"the partition {name!r}", "no entry")
        for file, size in visible.items():
            if entries.get(file) != size and not (
                file not in entries and _is_pending_log(table.data, data_path(path, file))
            ):
                yield Difference(partition, f"{name}/{file}", f"{size} bytes", f"{entries.get(file, 'no entry')}")
        stored = {entry.name for entry in table.data.storage.list(path)}
        for file in sorted(entries.keys() - stored):
            if data_path(path, file) in cleaned:
                continue  # its record is deleted when the clean is complete
            yield Difference(partition, f"{name}/{file}", "no entry", "an entry, but there is no such file")


def _visible_files(view: FileSystemView, partition_path: str) -> Iterator[tuple[str, int]]:
    for group in view.groups.get(partition_path, ()):
        for file_slice in group.slices:
            if file_slice.base_file is not None:
                yield file_slice.base_file.name, file_slice.base_file.size_bytes
            # An empty one was left by a dead writer, and no record may name a file without bytes.
            yield from ((log.name, log.size_bytes) for log in file_slice.log_files if log.size_bytes)


def _is_pending_log(meta: MetaClient, path: str) -> bool:
    """True if only pending writes have written a log file, so that the metadata table does not list it yet. Below table
    version 8 the blocks of a log file name its writers, not its file name.
    """
    if meta.config.format.has_own_log_files or LogFileName.parse(path.rpartition("/")[2]) is None:
        return False
    pending = {instant.requested_time for instant in meta.timeline.pending()}
    newest = max((instant.requested_time for instant in meta.timeline), default="")
    try:
        times = {block.instant_time for block in scan_log(meta.storage, path) if isinstance(block, LogBlock)}
    except CorruptFile:
        return False
    return all(time in pending or time > newest for time in times)


_CHECKS: Mapping[MetadataKind, _Check] = {
    MetadataKind.FILES: _files,
    MetadataKind.COLUMN_STATS: column_stats,
    MetadataKind.PARTITION_STATS: partition_stats,
    MetadataKind.BLOOM_FILTERS: bloom_filters,
    MetadataKind.RECORD_INDEX: record_index,
    MetadataKind.SECONDARY_INDEX: secondary_index,
}
