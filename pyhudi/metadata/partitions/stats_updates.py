"""An instant's records in `column_stats` and `partition_stats`: pure functions of statistics already read.

Records of deleted files are deleted. Below version 8, without delete blocks, such a record marks itself as deleted.

`joined_stats` makes the statistics of a whole partition from those of its files, column by column: it joins ranges and
adds counts and sizes. It leaves out everything that is uncertain:

- If one file lacks a column's bounds, the partition has no bounds for it.
- If one file's statistics lack the column, or have it in another form (its type was widened since), the partition has
  no row for it.

Source: docs/formats/metadata-table.md, "Keys", "Statistics", "Statistics of partitions".
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.stored_ranges import ranges_from_bytes, rows_of_files, stats_rows, stats_schema, unscaled_bytes
from pyhudi.metadata.keys import (
    bloom_filter_key,
    column_stats_prefix,
    partition_stats_key,
    stored_partition,
)
from pyhudi.metadata.partitions.base import PartitionUpdate, nothing_deleted
from pyhudi.metadata.records import concat_records
from pyhudi.metadata.schema import MetadataKind, RecordType, record_fields
from pyhudi.model.table_format import TableFormat

__all__ = [
    "PARTITION",
    "NewFileRanges",
    "column_stats_deletions",
    "column_stats_keys",
    "column_stats_of_files",
    "column_stats_update",
    "filtered",
    "joined_stats",
    "partition_stats_deletions",
    "partition_stats_update",
    "records_of",
    "rows_with_owners",
]


PARTITION = "partition"
_How: TypeAlias = Literal["min", "max", "sum", "count_distinct"]
_COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_BOUNDS = ("minValue", "maxValue")
_WRAPPERS = 12  # members of the union that hold one value; the thirteenth is an array
_FLOATS = (3, 4)
_BYTES = 5
_NUMBERS = 99  # decimals of version 9, as the whole numbers by which they are ordered
_NUMBER_TYPE = pa.decimal128(38, 0)
_DECIMAL, _NO_TYPE = 10, 1  # ordinals of value types


def joined_stats(table_version: int, stats: pa.Table, partitions: Mapping[str, int]) -> pa.Table:
    """A row for each partition and column with statistics in all its files, in the columns of `stats_schema`.

    Args: stats: a row for each file and column, with the number of its partition as `PARTITION`; partitions: paths, in
          order of their numbers → how many files each has.
    """
    schema = stats_schema(table_version)
    if TableFormat(table_version).has_value_types:
        # Statistics from before an upgrade have dates and decimals in other members.
        stats = filtered(stats, stats.column("valueType").is_valid())
    flat = _flat(stats)
    joined = flat.group_by([PARTITION, "columnName"], use_threads=False).aggregate(_aggregations(flat.column_names))
    is_one = pc.and_(_same(joined, "form"), pc.and_(_same(joined, "ordinal"), _same(joined, "info")))
    files = pa.array(partitions.values(), pa.int64()).take(joined.column(PARTITION))
    joined = joined.filter(pc.and_(pc.equal(joined.column("fileName_count_distinct"), files), is_one))
    joined = joined.sort_by([(PARTITION, "ascending"), ("columnName", "ascending")])
    rows = joined.num_rows
    is_known = pc.equal(joined.column("has_values_sum"), joined.column("is_known_sum")).combine_chunks()
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "fileName": pa.array(partitions, pa.string()).take(joined.column(PARTITION)),
        "columnName": joined.column("columnName"),
        **{name: _bound(joined, name, schema.field(name).type, is_known) for name in _BOUNDS},
        **{name: joined.column(f"{name}_sum") for name in _COUNTS},
        "isDeleted": pa.repeat(False, rows),
        "isTightBound": pa.repeat(True, rows),
    }
    if TableFormat(table_version).has_value_types:
        ordinals = pc.fill_null(joined.column("ordinal_max"), _NO_TYPE).combine_chunks()
        info = joined.column("info_max").combine_chunks()
        columns["valueType"] = pa.StructArray.from_arrays(
            [ordinals, info], fields=_fields(schema.field("valueType").type)
        )
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def filtered(stats: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows that the mask selects. Arrow filters structs chunk by chunk, and here each file may be a chunk."""
    return stats if pc.all(mask, min_count=0).as_py() else stats.combine_chunks().filter(mask.combine_chunks())


def _aggregations(names: list[str]) -> list[tuple[str, _How]]:
    aggregations: list[tuple[str, _How]] = [("fileName", "count_distinct"), ("has_values", "sum"), ("is_known", "sum")]
    for name in ("form", "ordinal", "info"):
        aggregations += [(name, "min"), (name, "max")]
    aggregations += [(name, "sum") for name in _COUNTS]
    aggregations += [(name, "min") for name in names if name.startswith(_BOUNDS[0])]
    aggregations += [(name, "max") for name in names if name.startswith(_BOUNDS[1])]
    return aggregations


def _same(joined: pa.Table, name: str) -> pa.ChunkedArray:
    """True if all values of a column that are not null are equal."""
    return pc.fill_null(pc.equal(joined.column(f"{name}_min"), joined.column(f"{name}_max")), True)


# ---- statistics with a column for each member of the union -----------------------------------------------------------


def _flat(stats: pa.Table) -> pa.Table:
    """The statistics as flat columns: names and counts; `form`: which member holds the bounds; `ordinal`, `info`: the
    value's type; `has_values`, `is_known`: 1 where there are values, and where the bounds hold all of them;
    `minValue5` and so on."""
    kinds = stats.column("valueType").combine_chunks() if "valueType" in stats.column_names else None
    ordinals: pa.Array = pa.nulls(len(stats), pa.int32()) if kinds is None else pc.struct_field(kinds, "typeOrdinal")
    is_said = pc.fill_null(pc.not_equal(ordinals, _NO_TYPE), False)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        name: stats.column(name) for name in (PARTITION, "fileName", "columnName", *_COUNTS)
    }
    columns["ordinal"] = pc.if_else(is_said, ordinals, pa.scalar(None, pa.int32()))
    info = pa.nulls(len(stats), pa.string()) if kinds is None else pc.struct_field(kinds, "additionalInfo")
    columns["info"] = info
    is_decimal = pc.fill_null(pc.equal(ordinals, _DECIMAL), False)
    bounds = {name: _members(stats.column(name).combine_chunks(), is_decimal) for name in _BOUNDS}
    for name, members in bounds.items():
        columns |= {f"{name}{member}": values for member, values in members.items()}
    form: pa.Array = pa.nulls(len(stats), pa.int32())
    zeros = pa.repeat(pa.scalar(False), len(stats))
    for member, least in bounds["minValue"].items():
        greatest = bounds["maxValue"].get(member)
        if greatest is None:
            continue
        both = pc.and_(least.is_valid(), greatest.is_valid())
        form = pc.if_else(both, pa.scalar(member, pa.int32()), form)
        if member in _FLOATS:  # Apache Hudi writes 0.0 and 0.0 for a column with NaN
            zeros = pc.or_(zeros, pc.fill_null(pc.and_(pc.equal(least, 0.0), pc.equal(greatest, 0.0)), False))
    has_values = pc.fill_null(pc.less(stats.column("nullCount"), stats.column("valueCount")), True).combine_chunks()
    is_known = pc.and_(has_values, pc.and_(form.is_valid(), pc.invert(zeros)))
    columns |= {"form": form, "has_values": has_values.cast(pa.int64()), "is_known": is_known.cast(pa.int64())}
    return pa.table(columns)


def _members(wrapped: pa.Array, is_decimal: pa.Array) -> dict[int, pa.Array]:
    """Number of a member → its values, for members with values; `_NUMBERS` for unscaled numbers."""
    members: dict[int, pa.Array] = {}
    for member in range(_WRAPPERS):
        if not pa.types.is_struct(wrapped.type) or wrapped.type.get_field_index(f"member{member}") < 0:
            continue
        values = pc.struct_field(wrapped, [f"member{member}", "value"])
        if values.null_count < len(values):
            members[member] = values
    if _BYTES in members and pc.any(is_decimal).as_py():
        values_of_bytes = members.pop(_BYTES)
        members[_NUMBERS] = _numbers(pc.if_else(is_decimal, values_of_bytes, pa.scalar(None, values_of_bytes.type)))
        not_decimal = pc.if_else(is_decimal, pa.scalar(None, values_of_bytes.type), values_of_bytes)
        members |= {_BYTES: not_decimal} if not_decimal.null_count < len(not_decimal) else {}
    return members


def _numbers(values: pa.Array) -> pa.Array:
    """The integers in bytes. This loops over values: Arrow can't convert bytes of varying length."""
    raw = cast("list[bytes | None]", values.to_pylist())
    numbers = [None if one is None else decimal.Decimal(int.from_bytes(one, "big", signed=True)) for one in raw]
    return pa.array(numbers, _NUMBER_TYPE)


def _bound(joined: pa.Table, name: str, union: pa.DataType, is_known: pa.Array) -> pa.Array:
    """The joined bounds in the form of the union; null where they are not known."""
    members = []
    is_there = pa.repeat(pa.scalar(False), joined.num_rows)
    for member in _fields(union):
        number = int(member.name.removeprefix("member"))
        values = _values(joined, name, number, member.type)
        if values is None:
            members.append(pa.nulls(joined.num_rows, member.type))
            continue
        is_bounded = pc.and_(values.is_valid(), is_known)
        filled = pc.if_else(is_bounded, values, pa.scalar(None, values.type))
        members.append(pa.StructArray.from_arrays([filled], fields=_fields(member.type), mask=pc.invert(is_bounded)))
        is_there = pc.or_(is_there, is_bounded)
    return pa.StructArray.from_arrays(members, fields=_fields(union), mask=pc.invert(is_there))


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _values(joined: pa.Table, name: str, number: int, member: pa.DataType) -> pa.Array | None:
    how = "min" if name == _BOUNDS[0] else "max"
    column_names = set(joined.column_names)
    members = [at for at in (number, _NUMBERS if number == _BYTES else -1) if f"{name}{at}_{how}" in column_names]
    if not members:
        return None
    arrays = [joined.column(f"{name}{at}_{how}").combine_chunks() for at in members]
    plain = [_unscaled_bytes(one) if at == _NUMBERS else one for at, one in zip(members, arrays, strict=True)]
    return pc.coalesce(*plain).cast(member.field(0).type)


def _unscaled_bytes(numbers: pa.Array) -> pa.Array:
    decimals = cast("list[decimal.Decimal | None]", numbers.to_pylist())
    return pa.array([None if one is None else unscaled_bytes(int(one)) for one in decimals], pa.binary())


StatsKey: TypeAlias = Callable[[str, str], str]  # column, partition path → key

_STATS = MetadataKind.COLUMN_STATS.payloads[0]
_FILES_AT_ONCE = 2_000  # whose ranges are decoded together
_ROWS_AT_ONCE = 50_000  # statistics processed together: some tens of MB
_NOT_KNOWN = -1  # counts in a record that marks its file as deleted


def column_stats_update(table_version: int, stats: Mapping[str, Sequence[pa.Table]]) -> PartitionUpdate:
    """The records of new files. `stats`: partition path → statistics of its files, as `stats_of_file` has them."""
    parts = [nothing_known(table_version)]
    for some in _together({path: pa.concat_tables(tables) for path, tables in stats.items() if tables}):
        rows = pa.concat_tables(some.values()).combine_chunks()
        owners = np.repeat(np.arange(len(some)), [table.num_rows for table in some.values()])
        keys = _keys(rows, owners, [stored_partition(path) for path in some])
        parts.append(records_of(table_version, keys, RecordType.COLUMN_STATS, rows))
    return PartitionUpdate(pa.concat_tables(parts), nothing_deleted())


@dataclass(frozen=True, slots=True)
class NewFileRanges:
    """The statistics of a new file. `name`: without folders; `encoded`: see `ranges_to_bytes`."""

    partition_path: str
    name: str
    encoded: bytes


def column_stats_of_files(table_version: int, files: Sequence[NewFileRanges]) -> PartitionUpdate:
    """The records of new files."""
    parts = [nothing_known(table_version)]
    for first in range(0, len(files), _FILES_AT_ONCE):
        some = files[first : first + _FILES_AT_ONCE]
        rows, paths, owners = rows_with_owners(table_version, some)
        keys = _keys(rows, owners, [stored_partition(path) for path in paths])
        parts.append(records_of(table_version, keys, RecordType.COLUMN_STATS, rows))
    return PartitionUpdate(pa.concat_tables(parts), nothing_deleted())


def rows_with_owners(
    table_version: int, files: Sequence[NewFileRanges]
) -> tuple[pa.Table, list[str], npt.NDArray[np.int64]]:
    """The rows of these files, the partition paths, and for each row the number of its path."""
    ranges = [(file.name, ranges_from_bytes(file.encoded)) for file in files]
    numbers: dict[str, int] = {}
    owners = [numbers.setdefault(file.partition_path, len(numbers)) for file in files]
    counts = [len(of_file) for _, of_file in ranges]
    return rows_of_files(table_version, ranges), list(numbers), np.repeat(np.array(owners, np.int64), counts)


def column_stats_keys(columns: Sequence[str], files: Mapping[str, Collection[str]]) -> pa.Array:
    """Keys of the statistics of these columns in these files.

    Args: files: partition path → names of files, without folders.
    """
    columns_files = [(path, name) for path, names in files.items() for name in sorted(names)]
    of_files = pa.array([bloom_filter_key(stored_partition(path), name) for path, name in columns_files], pa.string())
    of_columns = pa.array([column_stats_prefix(column) for column in columns], pa.string())
    each_column = of_columns.take(pa.array(np.tile(np.arange(len(columns)), len(columns_files))))
    each_file = of_files.take(pa.array(np.repeat(np.arange(len(columns_files)), len(columns))))
    return pc.binary_join_element_wise(each_column, each_file, "")


def column_stats_deletions(
    table_version: int, columns: Sequence[str], files: Mapping[str, Collection[str]]
) -> PartitionUpdate:
    """The deletes of the records of deleted files.

    Args: columns: the indexed columns; files: partition path → names of the deleted files, without folders.
    """
    keys = column_stats_keys(columns, files)
    if TableFormat(table_version).deletes_metadata_records:
        return PartitionUpdate(nothing_known(table_version), keys)
    names = [name for file_names in files.values() for name in sorted(file_names) for _ in columns]
    nothing = stats_rows(table_version, "", ()).schema.empty_table()
    marks = {field.name: pa.nulls(len(names), field.type) for field in nothing.schema}
    marks["fileName"] = pa.array(names, pa.string())
    marks["columnName"] = pa.array(list(columns) * (len(names) // max(1, len(columns))), pa.string())
    for count in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize"):
        marks[count] = pa.repeat(pa.scalar(_NOT_KNOWN, pa.int64()), len(names))
    marks["isDeleted"] = pa.repeat(pa.scalar(True), len(names))
    rows = pa.Table.from_arrays(list(marks.values()), schema=nothing.schema)
    return PartitionUpdate(records_of(table_version, keys, RecordType.COLUMN_STATS, rows), nothing_deleted())


def partition_stats_update(
    table_version: int,
    columns: Sequence[str],
    partitions: Mapping[str, tuple[pa.Table, Collection[str]]],
    key: StatsKey = partition_stats_key,
) -> PartitionUpdate:
    """The recomputed statistics of whole partitions.

    A column has none afterwards if one of the files lacks it, or has it with another type.

    Args:
        columns: the indexed columns.
        partitions: path of each touched partition → statistics of its files (those of other files are ignored), and
            names of all files of its newest slices, without folders.
        key: the key of a column's statistics in a partition.
    """
    parts, keys = [nothing_known(table_version, MetadataKind.PARTITION_STATS)], []
    for some in _together({path: stats for path, (stats, _) in partitions.items()}):
        live = _live(partitions, list(some))
        rows = joined_stats(table_version, live, {path: len(partitions[path][1]) for path in some})
        rows = rows.filter(pc.is_in(rows.column("columnName"), pa.array(columns, pa.string()))).combine_chunks()
        owners = zip(rows.column("fileName").to_pylist(), rows.column("columnName").to_pylist(), strict=True)
        owned_keys = {(str(path), str(name)): key(str(name), str(path)) for path, name in owners}
        texts = pa.array(owned_keys.values(), pa.string())
        parts.append(records_of(table_version, texts, RecordType.PARTITION_STATS, rows))
        keys += [key(name, path) for path in some for name in columns if (path, name) not in owned_keys]
    return PartitionUpdate(pa.concat_tables(parts), pa.array(keys, pa.string()))


def _together(stats: Mapping[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """Group partitions to process together: statistics of a few files take as long as those of hundreds."""
    group, rows = dict[str, pa.Table](), 0
    for path, table in stats.items():
        group[path] = table
        rows += table.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield group
            group, rows = {}, 0
    if group:
        yield group


def _live(partitions: Mapping[str, tuple[pa.Table, Collection[str]]], paths: Sequence[str]) -> pa.Table:
    """The statistics of these partitions' current files, with the number of its partition in each row."""
    tables = [partitions[path][0] for path in paths]
    numbers = pa.array(np.repeat(np.arange(len(paths)), [stats.num_rows for stats in tables]))
    stats = concat_records(tables).append_column(PARTITION, numbers)
    texts = pa.array([str(number) for number in range(len(paths))], pa.string()).take(numbers)
    full_names = pc.binary_join_element_wise(texts, stats.column("fileName").combine_chunks(), "/")
    live_names = [f"{number}/{name}" for number, path in enumerate(paths) for name in partitions[path][1]]
    return filtered(stats, pa.chunked_array([pc.is_in(full_names, pa.array(live_names, pa.string()))]))


def partition_stats_deletions(
    table_version: int,
    columns: Sequence[str],
    partition_paths: Collection[str],
    key: StatsKey = partition_stats_key,
) -> PartitionUpdate:
    """The deletes of the statistics of deleted partitions."""
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
    codes, numbers = np.unique(owners * max(1, len(names)) + files.indices.to_numpy(), return_inverse=True)
    pairs = [divmod(code, len(names)) for code in codes.tolist()]
    of_files = [bloom_filter_key(partitions[owner], str(names[number])) for owner, number in pairs]
    hashed = pa.array(of_files, pa.string()).take(pa.array(numbers))
    return pc.binary_join_element_wise(prefixes.take(columns.indices), hashed, "")


def _encoded(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    coded = texts.combine_chunks().dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    return coded


def records_of(table_version: int, keys: pa.Array, record_type: RecordType, rows: pa.Table) -> pa.Table:
    """Records with these keys; `rows`: the columns of `stats_schema`."""
    schema = stats_schema(table_version)
    columns = [rows.column(name).combine_chunks() for name in schema.names]
    payload = pa.StructArray.from_arrays(columns, fields=list(schema))
    types = pa.repeat(pa.scalar(record_type.value, pa.int32()), len(keys))
    return pa.Table.from_arrays([keys, types, payload], schema=record_fields(table_version, MetadataKind.COLUMN_STATS))
