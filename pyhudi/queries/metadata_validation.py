"""Does the metadata table say what is true? Its records against the files and rows of the table.

    files          against a listing of the table's folders: the visible files, with their sizes
    column_stats   against the rows of the visible base files: counts are equal, bounds hold
    record_index   against the rows: exactly the live keys, in the file group that has them
    secondary_...  against the rows: exactly the pairs of value and key

Real Hudi never looks: with a stale metadata table it loses rows silently. Source: docs/formats/metadata-table.md,
"Records".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.column_stats import bounds
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.record_keys import ALL_PARTITIONS_KEY, stored_partition
from pyhudi.metadata.record_places import file_ids, partition_paths
from pyhudi.metadata.secondary_index_partition import why_no_secondary_index
from pyhudi.metadata.secondary_keys import secondary_keys
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.snapshot import read_batches
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["Difference", "validate"]

_KEYS_SHOWN = 5  # in one difference; how many there are is said, too


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the metadata table says and that is not so. `partition`: of the metadata table."""

    partition: str
    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.where}: expected {self.expected}, found {self.found}"


def validate(meta: MetaClient) -> tuple[Difference, ...]:
    """What the metadata table says wrongly; () when all of its partitions that can be checked are right, and when the
    table has none. Reads all rows when there is a record index, and all base files when there are column statistics.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    table = MetadataTable.open(meta)
    if table is None:
        return ()
    table = replace(table, raises=False)  # to say what is missing, not that something is
    view = FileSystemView.load(meta)
    checks = {
        MetadataKind.FILES: lambda: _files(table, view),
        MetadataKind.COLUMN_STATS: lambda: _column_stats(table, view),
        MetadataKind.RECORD_INDEX: lambda: _record_index(table),
    }
    found: list[Difference] = []
    for partition in table.partitions:
        check = checks.get(kind_of(partition))
        if check is not None:
            found.extend(check())
        if kind_of(partition) is MetadataKind.SECONDARY_INDEX:
            found.extend(_secondary_index(table, partition))
    return tuple(found)


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(table: MetadataTable, view: FileSystemView) -> Iterator[Difference]:
    records = {row["key"]: row["filesystemMetadata"] for row in table.records("files").to_pylist()}
    listed_partitions = {name for name, entry in records.get(ALL_PARTITIONS_KEY) or () if not entry["isDeleted"]}
    for path in view.partitions():
        name = stored_partition(path)
        listed = {file: entry["size"] for file, entry in records.get(name) or () if not entry["isDeleted"]}
        there = dict(_visible_files(view, path))
        if there and name not in listed_partitions:
            yield Difference("files", ALL_PARTITIONS_KEY, f"the partition {name!r}", "no entry")
        for file, size in there.items():
            if listed.get(file) != size:
                yield Difference("files", f"{name}/{file}", f"{size} bytes", f"{listed.get(file, 'no entry')}")
        stored = {entry.name for entry in table.data.storage.list(path)}
        for file in sorted(listed.keys() - stored):
            yield Difference("files", f"{name}/{file}", "no entry", "an entry, but there is no such file")


def _visible_files(view: FileSystemView, partition_path: str) -> Iterator[tuple[str, int]]:
    for group in view.groups.get(partition_path, ()):
        for file_slice in group.slices:
            if file_slice.base_file is not None:
                yield file_slice.base_file.name, file_slice.base_file.size_bytes
            # An empty one is left of a dead writer: it holds nothing, and no record may name a file without bytes.
            yield from ((log.name, log.size_bytes) for log in file_slice.log_files if log.size_bytes)


# ---- column statistics -----------------------------------------------------------------------------------------------


def _column_stats(table: MetadataTable, view: FileSystemView) -> Iterator[Difference]:
    stats = table.records("column_stats").column("ColumnStatsMetadata").combine_chunks()
    names = pc.struct_field(stats, "fileName")
    for base_file in view.all_base_files():
        own = stats.filter(pc.equal(names, base_file.name))
        if not len(own):
            yield Difference("column_stats", base_file.path, "statistics", "no record")
            continue
        with open_base_file(table.data.storage, base_file.path) as reader:
            columns = {field.name: field.type for field in reader.schema}
            for row in range(len(own)):
                name = own[row]["columnName"].as_py()
                if name in columns:
                    yield from _one_column(own.slice(row, 1), base_file, reader.column(name))


def _one_column(stats: pa.Array, base_file: BaseFile, values: pa.ChunkedArray) -> Iterator[Difference]:
    record = stats[0].as_py()
    where = f"{base_file.path}, column {record['columnName']!r}"
    for name, count in (("valueCount", len(values)), ("nullCount", values.null_count)):
        if record[name] != count:
            yield Difference("column_stats", where, f"{name} {count}", f"{record[name]}")
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return  # real Hudi writes 0.0 for both bounds then, and readers must not go by them
    has_type = record.get("valueType") is not None
    least, greatest = (bounds(pc.struct_field(stats, name), values.type, has_type)[0] for name in _BOUNDS)
    if least.is_valid and greatest.is_valid:
        inside = pc.and_(pc.greater_equal(values, least), pc.less_equal(values, greatest))
        if not pc.all(inside, min_count=0).as_py():
            extremes = pc.min_max(values)
            yield Difference("column_stats", where, f"bounds around {extremes}", f"{least} to {greatest}")


_BOUNDS = ("minValue", "maxValue")


# ---- record index ----------------------------------------------------------------------------------------------------


def _record_index(table: MetadataTable) -> Iterator[Difference]:
    records = table.records("record_index")
    places = records.column("recordIndexMetadata").combine_chunks()
    listed = pa.table({"key": records.column("key"), "listed": _places(partition_paths(places), file_ids(places))})
    plan = plan_snapshot(table.data, columns=(RECORD_KEY, PARTITION_PATH, FILE_NAME), use_metadata=False)
    rows = pa.Table.from_batches(read_batches(plan, table.data.storage), plan.schema)
    ids = pc.list_element(pc.split_pattern(rows.column(FILE_NAME), "_", max_splits=1), 0)
    there = pa.table({"key": rows.column(RECORD_KEY), "there": _places(rows.column(PARTITION_PATH), ids)})
    # A key of several rows (inserted twice) has one entry, of any of them.
    both = there.join(listed, "key", join_type="full outer")
    right = both.filter(pc.equal(both.column("there"), both.column("listed"))).column("key")
    wrong = both.filter(pc.invert(pc.is_in(both.column("key"), right.combine_chunks())))
    for start in range(min(wrong.num_rows, _KEYS_SHOWN)):
        row = wrong.slice(start, 1).to_pylist()[0]
        yield Difference("record_index", f"key {row['key']!r}", row["there"] or "no entry", row["listed"] or "no entry")
    if wrong.num_rows > _KEYS_SHOWN:
        yield Difference("record_index", f"{wrong.num_rows} keys in all", "one right entry each", "others")


# ---- secondary indexes -----------------------------------------------------------------------------------------------


def _secondary_index(table: MetadataTable, partition: str) -> Iterator[Difference]:
    if why_no_secondary_index(table.data, partition) is not None:
        return  # nobody here knows what it should have
    (column,) = read_index_definitions(table.data.storage).by_name[partition].source_fields
    plan = plan_snapshot(table.data, columns=(RECORD_KEY, column), use_metadata=False)
    version = table.data.config.table_version
    of_rows = [
        secondary_keys(batch.column(column), batch.column(RECORD_KEY), version)
        for batch in read_batches(plan, table.data.storage)
    ]
    expected = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *of_rows]))
    listed = table.records(partition).column("key").combine_chunks()
    missing = expected.filter(pc.invert(pc.is_in(expected, listed)))
    wrong = listed.filter(pc.invert(pc.is_in(listed, expected)))
    for keys, wanted, found in ((missing, "a record", "none"), (wrong, "none", "a record")):
        for key in keys.slice(0, _KEYS_SHOWN).to_pylist():
            yield Difference(partition, f"value and key {key!r}", wanted, found)
        if len(keys) > _KEYS_SHOWN:
            yield Difference(partition, f"{len(keys)} pairs in all", wanted, found)


def _places(paths: pa.Array | pa.ChunkedArray, ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.binary_join_element_wise(paths, ids, "/")
