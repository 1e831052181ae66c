"""Does the metadata table say what is true? Its records against the files and rows of the table.

    files            against a listing of the table's folders: the visible files, with their sizes
    column_stats     against the rows of the visible base files: counts are equal, bounds hold
    partition_stats  against the rows: bounds hold
    bloom_filters    against the footers of the visible base files
    record_index     against the rows: exactly the live keys, in the file group that has them
    secondary_...    against the rows: exactly the pairs of value and key
    all of them      each record is in the file group that its key belongs to, where a look-up searches it

A sample is of file groups: their files and rows must be told rightly; what the metadata table says beyond them is not
looked at. Real Hudi never looks: with a stale metadata table it loses rows silently.
Source: docs/formats/metadata-table.md, "Records"; docs/reading.md, "The metadata table".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.found_records import DELETED, KEY
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.placement import group_numbers, groups_by_prefix
from pyhudi.metadata.record_keys import ALL_PARTITIONS_KEY, stored_partition
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.metadata_difference import KEYS_SHOWN, Compared, Difference
from pyhudi.queries.row_validation import record_index, secondary_index
from pyhudi.queries.statistics_validation import bloom_filters, column_stats, partition_stats
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["Difference", "validate"]

_Check: TypeAlias = Callable[[Compared, str], Iterator[Difference]]


def validate(meta: MetaClient, *, sample: int | None = None) -> tuple[Difference, ...]:
    """What the metadata table says wrongly; () when all of its partitions that can be checked are right, and when the
    table has none. Reads all rows when there is an index of rows or statistics of partitions, and all base files when
    there are column statistics; of a sample of file groups where `sample` says how many, chosen anew each time.

    Raises: ConfigError for a sample of none; MetadataTableDamaged, CorruptFile.
    """
    if sample is not None and sample < 1:
        raise ConfigError(f"sample={sample}: give how many file groups are compared, 1 or more; None: all.")
    table = MetadataTable.open(meta)
    if table is None:
        return ()
    table = replace(table, raises=False)  # to say what is missing, not that something is
    view = FileSystemView.load(meta)
    slices = view.all_slices()
    is_whole = sample is None or sample >= len(slices)
    chosen = slices if is_whole or sample is None else random.sample(slices, sample)
    compared = Compared(table, view, chosen, is_whole)
    return tuple(found for name in table.partitions for check in _checks(name) for found in check(compared, name))


def _checks(partition: str) -> Sequence[_Check]:
    own = _CHECKS.get(kind_of(partition))
    return (_misplaced,) if own is None else (own, _misplaced)


def _misplaced(compared: Compared, partition: str) -> Iterator[Difference]:
    """Records in another file group than the one that their key belongs to."""
    if not compared.is_whole:
        return
    table = compared.table
    slices = {found.group.file_id: found for found in table.slices(partition)}
    for group_ids in groups_by_prefix(slices).values():
        for number, file_id in enumerate(group_ids if len(group_ids) > 1 else ()):
            for records in table.reader(slices[file_id]).runs():
                keys = records.column(KEY).filter(pc.invert(records.column(DELETED))).combine_chunks()
                right = group_numbers(partition, keys, len(file_ids), table.data.config.table_version)
                for row in np.flatnonzero(right != number).tolist()[:KEYS_SHOWN]:
                    yield Difference(partition, f"key {keys[row].as_py()!r}", file_ids[right[row]], file_id)


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(compared: Compared, partition: str) -> Iterator[Difference]:
    table, view = compared.table, compared.view
    records = {row["key"]: row["filesystemMetadata"] for row in table.records(partition).to_pylist()}
    listed_partitions = {name for name, entry in records.get(ALL_PARTITIONS_KEY) or () if not entry["isDeleted"]}
    for path in view.partitions():
        name = stored_partition(path)
        listed = {file: entry["size"] for file, entry in records.get(name) or () if not entry["isDeleted"]}
        there = dict(_visible_files(view, path))
        if there and name not in listed_partitions:
            yield Difference(partition, ALL_PARTITIONS_KEY, f"the partition {name!r}", "no entry")
        for file, size in there.items():
            if listed.get(file) != size:
                yield Difference(partition, f"{name}/{file}", f"{size} bytes", f"{listed.get(file, 'no entry')}")
        stored = {entry.name for entry in table.data.storage.list(path)}
        for file in sorted(listed.keys() - stored):
            yield Difference(partition, f"{name}/{file}", "no entry", "an entry, but there is no such file")


def _visible_files(view: FileSystemView, partition_path: str) -> Iterator[tuple[str, int]]:
    for group in view.groups.get(partition_path, ()):
        for file_slice in group.slices:
            if file_slice.base_file is not None:
                yield file_slice.base_file.name, file_slice.base_file.size_bytes
            # An empty one is left of a dead writer: it holds nothing, and no record may name a file without bytes.
            yield from ((log.name, log.size_bytes) for log in file_slice.log_files if log.size_bytes)


_CHECKS: Mapping[MetadataKind, _Check] = {
    MetadataKind.FILES: _files,
    MetadataKind.COLUMN_STATS: column_stats,
    MetadataKind.PARTITION_STATS: partition_stats,
    MetadataKind.BLOOM_FILTERS: bloom_filters,
    MetadataKind.RECORD_INDEX: record_index,
    MetadataKind.SECONDARY_INDEX: secondary_index,
}
