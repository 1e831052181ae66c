"""Procedures on the metadata table: building and deleting it, its contents, and a comparison with the stored files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.partitions.stats_columns import bounds
from pyhudi.metadata.table import MetadataTable
from pyhudi.sql.procedures.procedure import TABLE, ProcedureCall, Row, Rows, procedure
from pyhudi.view.file_system_view import FileSystemView

_TABLE = f"{TABLE}, filter string="
_COLUMNS = f"{TABLE}, partition string, targetColumns string, filter string="
_STATS = "column_stats"
_PERCENTILES = (50, 75, 95, 99)


@procedure("table string!", "result string")
def create_metadata_table(call: ProcedureCall) -> Rows:
    """Create the metadata table."""
    if call.meta.config.metadata_partitions:
        raise call.error(f"{call.table.path} has a metadata table. Call init_metadata_table.")
    result = call.table.metadata.rebuild(options={**call.options, "hoodie.metadata.enable": "true"})
    return [(f"Created Metadata Table in {_folder(call)} ({', '.join(result.partitions)})",)]


@procedure("table string!, read_only boolean=false", "result string")
def init_metadata_table(call: ProcedureCall) -> Rows:
    """Rebuild the metadata table; with read_only only check whether there is one."""
    if not call.meta.config.metadata_partitions:
        raise call.error(f"{call.table.path} has no metadata table. Call create_metadata_table.")
    if call.flag("read_only"):
        return [(f"Opened Metadata Table in {_folder(call)}",)]
    call.table.metadata.rebuild(options=call.options)
    return [(f"Initialized Metadata Table in {_folder(call)}",)]


@procedure("table string!", "result string")
def delete_metadata_table(call: ProcedureCall) -> Rows:
    """Delete the metadata table."""
    call.table.metadata.drop(options=call.options)
    return [(f"Removed Metadata Table from {_folder(call)}",)]


def _folder(call: ProcedureCall) -> str:
    return call.storage.full_path(".hoodie/metadata")


def _open(call: ProcedureCall) -> MetadataTable:
    table = MetadataTable.open(call.meta)
    if table is None:
        raise call.error(f"{call.table.path} has no metadata table. Call create_metadata_table.")
    return table


# ---- its contents


@procedure(_TABLE, "partition string")
def show_metadata_table_partitions(call: ProcedureCall) -> Rows:
    """The table's partitions, as the metadata table lists them."""
    return [(path,) for path in sorted(listed_files(_open(call)))]


@procedure(f"{TABLE}, partition string=, limit integer=100, filter string=", "file_path string")
def show_metadata_table_files(call: ProcedureCall) -> Rows:
    """The files of a partition, or of all partitions, as the metadata table lists them."""
    path = call.text("partition")
    files = listed_files(_open(call), None if call.meta.config.partition_fields and not path else [path])
    return ((file.name,) for names in files.values() for file in names)


@procedure(_TABLE, "stat_key string, stat_value string")
def show_metadata_table_stats(call: ProcedureCall) -> Rows:
    """Files and bytes of the metadata table's own partitions."""
    for one in call.table.metadata.stats():
        yield f"{one.partition}.totalBaseFileSizeInBytes", str(one.base_bytes)
        yield f"{one.partition}.totalLogFileSizeInBytes", str(one.log_bytes)
        yield f"{one.partition}.baseFileCount", str(one.base_files)
        yield f"{one.partition}.logFileCount", str(one.log_files)


@procedure(
    "table string!, verbose boolean=false",
    "partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, fs_size long, "
    "metadata_size long",
)
def validate_metadata_table_files(call: ProcedureCall) -> Rows:
    """The files that the metadata table lists wrongly; with verbose all files."""
    listed = listed_files(_open(call))
    view = FileSystemView.load(call.meta)
    for path in sorted({*view.partitions(), *listed}):
        visible_files = dict(_visible(view, path))
        metadata_files = {file.name: file.size_bytes for file in listed.get(path, ())}
        is_all_visible = metadata_files.keys() <= visible_files.keys()
        stored_files = {} if is_all_visible else {e.name: e.size_bytes for e in call.storage.list(path)}
        for name in sorted({*visible_files, *metadata_files}):
            size = visible_files.get(name, stored_files.get(name, 0))
            present = name in visible_files or name in stored_files
            if call.flag("verbose") or not (present and name in metadata_files and size == metadata_files[name]):
                yield path, name, present, name in metadata_files, size, metadata_files.get(name, 0)


def _visible(view: FileSystemView, path: str) -> Iterator[tuple[str, int]]:
    for file_slice in (file_slice for group in view.groups.get(path, ()) for file_slice in group.slices):
        if file_slice.base_file is not None:
            yield file_slice.base_file.name, file_slice.base_file.size_bytes
        yield from ((log.name, log.size_bytes) for log in file_slice.log_files if log.size_bytes)


# ---- column statistics


def _column_stats(call: ProcedureCall) -> Iterator[tuple[str, str, str, pa.Scalar, pa.Scalar, int | None]]:
    """The partition path, file, column, smallest value, greatest value and nulls, for files of the newest slices."""
    table = _open(call)
    if _STATS not in table.partitions:
        raise call.error(
            f"the metadata table of {call.table.path} has no column statistics. CREATE INDEX {_STATS} ON … USING "
            f"{_STATS}."
        )
    prefixes, columns = call.texts("partition"), call.texts("targetColumns")
    types = {field.name: field.type for field in call.table.schema()}
    places = {
        file_slice.base_file.name: file_slice.group.partition_path
        for file_slice in FileSystemView.load(call.meta).all_slices()
        if file_slice.base_file is not None
        and (not prefixes or file_slice.group.partition_path.startswith(tuple(prefixes)))
    }
    stats = table.records(_STATS).column("ColumnStatsMetadata").combine_chunks()
    for at in range(len(stats)):
        record = stats[at].as_py()
        name, column = record["fileName"], record["columnName"]
        if name in places and column in types and (not columns or column in columns):
            one = stats.slice(at, 1)
            least, greatest = (
                bounds(pc.struct_field(one, bound), types[column], record.get("valueType") is not None)[0]
                for bound in ("minValue", "maxValue")
            )
            yield places[name], name, column, least, greatest, record["nullCount"]


@procedure(_COLUMNS, "file_name string, column_name string, min_value string, max_value string, null_number long")
def show_metadata_table_column_stats(call: ProcedureCall) -> Rows:
    """Column statistics of the newest base files; partitions are chosen by prefixes of their paths."""
    for _, name, column, least, greatest, nulls in _column_stats(call):
        yield name, column, _text(least), _text(greatest), nulls


def _text(value: pa.Scalar) -> str | None:
    return str(value.as_py()) if value.is_valid else None


@procedure(
    _COLUMNS,
    "Partition path string, Field name string, Average overlap double, Maximum file overlap integer, "
    "Total file number integer, 50% overlap integer, 75% overlap integer, 95% overlap integer, "
    "99% overlap integer, Total value number integer",
)
def show_metadata_column_stats_overlap(call: ProcedureCall) -> Rows:
    """The number of files whose ranges of a column overlap, which shows how well data skipping works."""
    counts = Counter(one.group.partition_path for one in FileSystemView.load(call.meta).all_slices())
    ordered = sorted(_column_stats(call), key=lambda one: (one[2], one[0]))
    rows: list[Row] = []
    for (column, path), group in groupby(ordered, key=lambda one: (one[2], one[0])):
        ranges = [(one[3].as_py(), one[4].as_py()) for one in group if one[3].is_valid and one[4].is_valid]
        if ranges:
            depths = _depths(ranges)
            average = sum(depths) / len(depths)
            shares = [depths[int(share / 100 * (len(depths) - 1))] for share in _PERCENTILES]
            rows.append((path, column, average, _deepest(ranges), counts[path], *shares, len(depths)))
    return sorted(rows, key=lambda row: (row[1], row[2]))


def _points(ranges: Sequence[tuple[object, object]]) -> list[tuple[object, int]]:
    """The ends of ranges in order; at the same value, starts precede ends."""
    ends: list[tuple[object, int]] = [point for low, high in ranges for point in ((low, 0), (high, 1))]
    return sorted(ends, key=lambda end: (end[0], end[1]))  # type: ignore[return-value,arg-type]


def _depths(ranges: Sequence[tuple[object, object]]) -> list[int]:
    """The number of ranges around each end of a range, sorted."""
    depth, depths = 0, dict[object, int]()
    for value, is_end in _points(ranges):
        if is_end:
            depths.setdefault(value, depth)
            depth -= 1
        else:
            depth += 1
            depths[value] = depth
    return sorted(depths.values())


def _deepest(ranges: Sequence[tuple[object, object]]) -> int:
    depth = most = 0
    for _, is_end in _points(ranges):
        depth += -1 if is_end else 1
        most = max(most, depth)
    return most
