"""What an instant writes into `column_stats` and `partition_stats`: pure functions of statistics that are read already.

Records of files that went away are deleted; below version 8, which has no delete blocks here, they say so themselves.
Source: docs/formats/metadata-table.md, "Keys", "Statistics", "Statistics of partitions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.column_stats import stats_rows, stats_schema
from pyhudi.metadata.found_records import concat_records
from pyhudi.metadata.joined_stats import PARTITION, filtered, joined_stats
from pyhudi.metadata.partitions import MetadataKind, RecordType
from pyhudi.metadata.record_keys import (
    bloom_filter_key,
    column_stats_prefix,
    partition_stats_key,
    stored_partition,
)
from pyhudi.metadata.schema import record_fields
from pyhudi.metadata.updates import PartitionUpdate, nothing_deleted
from pyhudi.model.new_table import DELETE_BLOCKS

__all__ = [
    "column_stats_deletions",
    "column_stats_keys",
    "column_stats_update",
    "partition_stats_deletions",
    "partition_stats_update",
]

StatsKey: TypeAlias = Callable[[str, str], str]  # column, partition path → key

_STATS = MetadataKind.COLUMN_STATS.payloads[0]
_ROWS_AT_ONCE = 50_000  # statistics that are worked on together: some tens of MB
_NOT_KNOWN = -1  # counts in a record that says that its file was deleted


def column_stats_update(table_version: int, stats: Mapping[str, Sequence[pa.Table]]) -> PartitionUpdate:
    """The records of new files.

    Args: stats: partition path → statistics of its files, as `WriteStatus.column_stats` and `stats_of_file` have them.
    """
    parts = [nothing_known(table_version)]
    for some in _together({path: pa.concat_tables(tables) for path, tables in stats.items() if tables}):
        rows = pa.concat_tables(some.values()).combine_chunks()
        owners = np.repeat(np.arange(len(some)), [table.num_rows for table in some.values()])
        keys = _keys(rows, owners, [stored_partition(path) for path in some])
        parts.append(_records(table_version, keys, RecordType.COLUMN_STATS, rows))
    return PartitionUpdate(pa.concat_tables(parts), nothing_deleted())


def column_stats_keys(columns: Sequence[str], files: Mapping[str, Collection[str]]) -> pa.Array:
    """Keys of the statistics of these columns in these files.

    Args: files: partition path → names of files, without folders.
    """
    named = [(path, name) for path, names in files.items() for name in sorted(names)]
    of_files = pa.array([bloom_filter_key(stored_partition(path), name) for path, name in named], pa.string())
    of_columns = pa.array([column_stats_prefix(column) for column in columns], pa.string())
    each_column = of_columns.take(pa.array(np.tile(np.arange(len(columns)), len(named))))
    each_file = of_files.take(pa.array(np.repeat(np.arange(len(named)), len(columns))))
    return pc.binary_join_element_wise(each_column, each_file, "")


def column_stats_deletions(
    table_version: int, columns: Sequence[str], files: Mapping[str, Collection[str]]
) -> PartitionUpdate:
    """What takes the records of deleted files away.

    Args: columns: the indexed ones; files: partition path → names of the deleted files, without folders.
    """
    keys = column_stats_keys(columns, files)
    if table_version >= DELETE_BLOCKS:
        return PartitionUpdate(nothing_known(table_version), keys)
    names = [name for found in files.values() for name in sorted(found) for _ in columns]
    nothing = stats_rows(table_version, "", ()).schema.empty_table()
    marks = {field.name: pa.nulls(len(names), field.type) for field in nothing.schema}
    marks["fileName"] = pa.array(names, pa.string())
    marks["columnName"] = pa.array(list(columns) * (len(names) // max(1, len(columns))), pa.string())
    for count in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize"):
        marks[count] = pa.repeat(pa.scalar(_NOT_KNOWN, pa.int64()), len(names))
    marks["isDeleted"] = pa.repeat(pa.scalar(True), len(names))
    rows = pa.Table.from_arrays(list(marks.values()), schema=nothing.schema)
    return PartitionUpdate(_records(table_version, keys, RecordType.COLUMN_STATS, rows), nothing_deleted())


def partition_stats_update(
    table_version: int,
    columns: Sequence[str],
    partitions: Mapping[str, tuple[pa.Table, Collection[str]]],
    key: StatsKey = partition_stats_key,
) -> PartitionUpdate:
    """The statistics of whole partitions, made anew.

    A column that one of the files does not tell all of has none afterwards: the file lacks it, or its type has changed.

    Args:
        columns: the indexed ones.
        partitions: path of each touched partition → statistics of its files (others are passed over), and names of all
            files of its newest slices, without folders.
        key: the key of a column's statistics in a partition.
    """
    parts, keys = [nothing_known(table_version, MetadataKind.PARTITION_STATS)], []
    for some in _together({path: found for path, (found, _) in partitions.items()}):
        live = _live(partitions, list(some))
        rows = joined_stats(table_version, live, {path: len(partitions[path][1]) for path in some})
        rows = rows.filter(pc.is_in(rows.column("columnName"), pa.array(columns, pa.string()))).combine_chunks()
        owners = zip(rows.column("fileName").to_pylist(), rows.column("columnName").to_pylist(), strict=True)
        own = {(str(path), str(name)): key(str(name), str(path)) for path, name in owners}
        texts = pa.array(own.values(), pa.string())
        parts.append(_records(table_version, texts, RecordType.PARTITION_STATS, rows))
        keys += [key(name, path) for path in some for name in columns if (path, name) not in own]
    return PartitionUpdate(pa.concat_tables(parts), pa.array(keys, pa.string()))


def _together(stats: Mapping[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """Partitions that are worked on at once: it takes as long for the statistics of a few files as for those of
    hundreds."""
    held, rows = dict[str, pa.Table](), 0
    for path, table in stats.items():
        held[path] = table
        rows += table.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield held
            held, rows = {}, 0
    if held:
        yield held


def _live(partitions: Mapping[str, tuple[pa.Table, Collection[str]]], paths: Sequence[str]) -> pa.Table:
    """The statistics of files that these partitions have, with the number of its partition in each row."""
    own = [partitions[path][0] for path in paths]
    numbers = pa.array(np.repeat(np.arange(len(paths)), [stats.num_rows for stats in own]))
    stats = concat_records(own).append_column(PARTITION, numbers)
    texts = pa.array([str(number) for number in range(len(paths))], pa.string()).take(numbers)
    named = pc.binary_join_element_wise(texts, stats.column("fileName").combine_chunks(), "/")
    wanted = [f"{number}/{name}" for number, path in enumerate(paths) for name in partitions[path][1]]
    return filtered(stats, pa.chunked_array([pc.is_in(named, pa.array(wanted, pa.string()))]))


def partition_stats_deletions(
    table_version: int,
    columns: Sequence[str],
    partition_paths: Collection[str],
    key: StatsKey = partition_stats_key,
) -> PartitionUpdate:
    """What takes the statistics of deleted partitions away."""
    keys = [key(name, path) for path in sorted(partition_paths) for name in columns]
    return PartitionUpdate(nothing_known(table_version, MetadataKind.PARTITION_STATS), pa.array(keys, pa.string()))


@lru_cache
def nothing_known(table_version: int, kind: MetadataKind = MetadataKind.COLUMN_STATS) -> pa.Table:
    """No records of this kind."""
    return record_fields(table_version, kind).empty_table()


def _keys(rows: pa.Table, owners: npt.NDArray[np.int64], partitions: Sequence[str]) -> pa.Array:
    """A key for each row. `owners`: the number of its partition in `partitions`."""
    columns, files = (_encoded(rows.column(name)) for name in ("columnName", "fileName"))
    prefixes = pa.array([column_stats_prefix(str(text)) for text in columns.dictionary.to_pylist()], pa.string())
    names = files.dictionary.to_pylist()
    found, numbers = np.unique(owners * max(1, len(names)) + files.indices.to_numpy(), return_inverse=True)
    pairs = [divmod(code, len(names)) for code in found.tolist()]
    of_files = [bloom_filter_key(partitions[owner], str(names[number])) for owner, number in pairs]
    hashed = pa.array(of_files, pa.string()).take(pa.array(numbers))
    return pc.binary_join_element_wise(prefixes.take(columns.indices), hashed, "")


def _encoded(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    coded = texts.combine_chunks().dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    return coded


def _records(table_version: int, keys: pa.Array, record_type: RecordType, rows: pa.Table) -> pa.Table:
    schema = stats_schema(table_version)
    columns = [rows.column(name).combine_chunks() for name in schema.names]
    payload = pa.StructArray.from_arrays(columns, fields=list(schema))
    types = pa.repeat(pa.scalar(record_type.value, pa.int32()), len(keys))
    return pa.Table.from_arrays([keys, types, payload], schema=record_fields(table_version, MetadataKind.COLUMN_STATS))
