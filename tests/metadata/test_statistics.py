"""Statistics of files, partitions and keys as the metadata table has them, against records that Apache Hudi wrote."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.filegroup.stats import bloom_filters_of_files, stats_of_file, stats_of_files
from pyhudi.formats.base import Footer
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.stored_ranges import stats_rows, stats_schema
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import (
    column_stats_definition,
    read_index_definitions,
    write_index_definitions,
)
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.partitions.bloom_filters import bloom_filter_deletions, bloom_filters_update
from pyhudi.metadata.partitions.stats_columns import columns_with_stats, indexed_columns
from pyhudi.metadata.partitions.stats_updates import (
    column_stats_deletions,
    column_stats_update,
    partition_stats_deletions,
    partition_stats_update,
)
from pyhudi.metadata.schema import MetadataKind, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.storage import open_storage
from pyhudi.view.file_system_view import FileSystemView
from tests.support.golden.folder import SHARED, Golden
from tests.support.golden.metadata_tables import places_with

STATS = "ColumnStatsMetadata"
VERSIONS = (6, 8, 9)


def _places(partition: str) -> list[Any]:
    tables = (SHARED / "golden").glob("*/*.zip"), (SHARED / "fixtures" / "hudi-tables").glob("*.zip")
    return places_with(f"{partition}/", chain(*tables))


def _open(place: Path, folder: Path, partition: str) -> MetadataTable:
    with zipfile.ZipFile(place) as archive:
        archive.extractall(folder)
    path = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    if table is None or partition not in table.partitions:
        pytest.skip("the table's properties don't list the partition")
    return replace(table, raises=False)  # of one table a log file is lost, which has nothing that others have not


def _records(table: MetadataTable, partition: str) -> dict[str, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {row["key"]: row for row in table.records(partition).to_pylist()}


def _paths(table: MetadataTable) -> Iterator[tuple[str, str, str]]:
    """Partition path, name and path of each file that is there."""
    for entry in table.data.storage.walk(""):
        partition, _, name = entry.path.rpartition("/")
        is_data = BaseFileName.parse(name) or LogFileName.parse(name)
        if is_data and not entry.path.startswith(".hoodie/"):
            yield partition, name, entry.path


def _columns(table: MetadataTable, records: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The indexed columns; below version 8 tables that named some don't say so."""
    data, options = table.data, MetadataOptions()
    there = {record[STATS]["columnName"] for record in records.values()}
    if data.config.table_version < 8 and "_hoodie_commit_seqno" not in there:
        options = MetadataOptions(column_stats_columns=tuple(sorted(there)))
    found = columns_with_stats(data, data.table_schema(), options)
    assert found is not None
    return found


def _value(wrapped: dict[str, Any] | None, kind: pa.DataType | None) -> Any:
    """A bound without its wrapper, if any of those that releases of Hudi take for the column's type."""
    if wrapped is None:
        return None
    ((member, value),) = ((name, holder["value"]) for name, holder in wrapped.items() if holder is not None)
    if kind is not None and pa.types.is_decimal(kind) and member == "member5":
        return int.from_bytes(value, "big", signed=True)
    if kind is not None and pa.types.is_decimal(kind) and member == "member8":
        return int(value.scaleb(15))
    if kind is not None and pa.types.is_date(kind):
        return value
    return member, value


def _comparable(record: dict[str, Any], schema: pa.Schema, version: int) -> dict[str, Any]:
    stats = dict(record[STATS])
    if version < 8:  # base files of 0.15 hold another branch of the union than its log files
        names = set(schema.names)
        kind = schema.field(stats["columnName"]).type if stats["columnName"] in names else None
        stats |= {name: _value(stats[name], kind) for name in ("minValue", "maxValue")}
    return {**record, STATS: stats}


def _hides_not_a_number(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Real Hudi's 0.0 and 0.0 for a column of floats with a not-a-number, where we say that nothing is known."""
    bounds = [theirs[STATS][name] for name in ("minValue", "maxValue")]
    if ours[STATS]["minValue"] is not None or None in bounds:
        return False
    values = [bound[1] if isinstance(bound, tuple) else _value(bound, None)[1] for bound in bounds]
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    return 0.0 in values and all(ours[STATS][name] == theirs[STATS][name] for name in counts)


@pytest.mark.thorough
@pytest.mark.parametrize("place", _places("column_stats"))
def test_statistics_of_files_are_the_records_that_hudi_wrote(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path, "column_stats")
    version, schema = table.data.config.table_version, table.data.table_schema()
    if place.stem.startswith("upgrade_"):
        pytest.skip("its records are of the version before")
    theirs = _records(table, "column_stats")
    columns = _columns(table, theirs)
    stats: dict[str, list[pa.Table]] = {}
    paths = {path: partition for partition, name, path in _paths(table)}
    for path, rows in stats_of_files(table.data.storage, paths, columns, version, schema):
        stats.setdefault(paths[path], []).append(rows)
    update = column_stats_update(version, stats)
    assert update.records.schema == record_fields(version, MetadataKind.COLUMN_STATS)
    assert not len(update.deleted)
    ours = {row["key"]: row for row in update.records.to_pylist()}
    there = {name for _, name, _ in _paths(table)}
    expected = {key: record for key, record in theirs.items() if record[STATS]["fileName"] in there}
    assert ours.keys() >= expected.keys()
    # Files that nobody completed, or that were replaced before there were statistics.
    others = {row[STATS]["fileName"] for key, row in ours.items() if key not in expected}
    assert not others & {record[STATS]["fileName"] for record in expected.values()}
    for key, record in expected.items():
        mine, hudis = (_comparable(one, schema, version) for one in (ours[key], record))
        assert mine == hudis or _hides_not_a_number(mine, hudis), record[STATS]["columnName"]


# After these, real Hudi has not made all statistics of partitions anew: compactions, rollbacks and overwritten file
# groups leave ranges that are too wide, and 1.0.2 forgets base files while a compaction is pending.
_KEEPS_OLD_RANGES = {
    "g2_compaction_executed", "g2_compaction_pending", "cow_operations",
    "sample_table__cow__v9_timebasedkeygen_epochmillis", "sample_table__cow__v9_timebasedkeygen_nonhivestyle",
    "sample_table__cow__v9_txns_complex_meta", "sample_table__cow__v9_txns_simple_meta",
    "sample_table__cow__v9_txns_simple_overwrite", "sample_table__mor__avro__v9_txns_simple_overwrite",
}  # fmt: skip


def _partition_stats(table: MetadataTable, columns: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    version, schema, storage = table.data.config.table_version, table.data.table_schema(), table.data.storage
    view = FileSystemView.load(table.data)
    partitions = {}
    for path in view.partitions():
        files = [file.path for s in view.slices(path) for file in (s.base_file, *s.log_files) if file is not None]
        if files:
            rows = pa.concat_tables([stats_of_file(storage, file, columns, version, schema) for file in files])
            partitions[path] = (rows, {file.rpartition("/")[2] for file in files})
    update = partition_stats_update(version, columns, partitions)
    assert update.records.schema == record_fields(version, MetadataKind.PARTITION_STATS)
    assert update.records.num_rows + len(update.deleted) == len(partitions) * len(columns)
    return {row["key"]: row for row in update.records.to_pylist()}


@pytest.mark.parametrize("place", [p for p in _places("partition_stats") if p.values[0].stem not in _KEEPS_OLD_RANGES])
def test_statistics_of_partitions_are_the_records_that_hudi_wrote(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path, "partition_stats")
    if place.stem.startswith("upgrade_"):
        pytest.skip("its records are of the version before")
    theirs = _records(table, "partition_stats")
    ours = _partition_stats(table, read_index_definitions(table.data.storage).by_name["column_stats"].source_fields)
    assert ours.keys() == theirs.keys()
    for key, record in theirs.items():
        assert ours[key] == record or _hides_not_a_number(ours[key], record), record[STATS]


@pytest.mark.parametrize("place", _places("bloom_filters"))
def test_bloom_filters_are_the_records_that_hudi_wrote(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path, "bloom_filters")
    theirs = _records(table, "bloom_filters")
    paths = {path: (partition, name) for partition, name, path in _paths(table) if BaseFileName.parse(name)}
    compared = 0
    for path, footer in bloom_filters_of_files(table.data.storage, paths):
        partition, name = paths[path]
        time = str(BaseFileName.parse(name).instant_time)  # type: ignore[union-attr]
        update = bloom_filters_update(table.data.config.table_version, time, {partition: {name: footer}})
        (record,) = update.records.to_pylist()
        if record["key"] in theirs:
            hudis = theirs[record["key"]]
            # A filter that was built from files that were there has the time of the building.
            hudis["BloomFilterMetadata"] |= {"timestamp": time}
            assert record == hudis
            compared += 1
    assert compared > 1


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_statistics_have_the_form_of_the_records(version: int) -> None:
    stored = record_fields(version, MetadataKind.COLUMN_STATS).field(STATS).type
    assert pa.struct(list(stats_schema(version))) == stored


@pytest.mark.parametrize("version", VERSIONS)
def test_deleted_files_take_their_records_away(version: int) -> None:
    rows = [stats_rows(version, f"f{n}", [ColumnRange(c, pa.int32(), 1, 2, 3, 0) for c in "ab"]) for n in range(2)]
    update = column_stats_update(version, {"": rows[:1], "p": rows[1:]})
    gone = column_stats_deletions(version, ("a", "b"), {"": ["f0"], "p": ["f1"]})
    assert set(gone.deleted.to_pylist() if version >= 8 else gone.records.column("key").to_pylist()) == set(
        update.records.column("key").to_pylist()
    )
    left = _after(update.records, gone.records, gone.deleted, MetadataKind.COLUMN_STATS)
    assert left.num_rows == 0
    one = column_stats_deletions(version, ("a", "b"), {"": ["f0"]})
    left = _after(update.records, one.records, one.deleted, MetadataKind.COLUMN_STATS)
    assert {row[STATS]["fileName"] for row in left.to_pylist()} == {"f1"}


@pytest.mark.parametrize("version", VERSIONS)
def test_deleted_base_files_take_their_bloom_filters_away(version: int) -> None:
    update = bloom_filters_update(version, "1", {"p": {"a": Footer(bloom_base64="AA=="), "b": Footer()}})
    (record,) = update.records.to_pylist()
    assert record["BloomFilterMetadata"] == {
        "type": "SIMPLE", "timestamp": "1", "bloomFilter": b"AA==", "isDeleted": False,
    }  # fmt: skip
    gone = bloom_filter_deletions(version, "2", {"p": ["a"]})
    assert _after(update.records, gone.records, gone.deleted, MetadataKind.BLOOM_FILTERS).num_rows == 0


def _after(records: pa.Table, more: pa.Table, deleted: pa.Array, kind: MetadataKind) -> pa.Table:
    """What is live after two updates."""
    first = _versions(records, 0, is_deleted=False)
    second = _versions(more, 1, is_deleted=False)
    third = _versions(pa.table({"key": deleted}), 2, is_deleted=True)
    return merged_records(pa.concat_tables([first, second, third], promote_options="permissive"), kind)


def _versions(records: pa.Table, sequence: int, *, is_deleted: bool) -> pa.Table:
    rows = records.num_rows
    return records.append_column("sequence", pa.array([sequence] * rows, pa.int32())).append_column(
        "deleted", pa.array([is_deleted] * rows, pa.bool_())
    )


def _of(name: str, *ranges: ColumnRange, version: int = 9) -> pa.Table:
    return stats_rows(version, name, ranges)


@pytest.mark.parametrize("version", [8, 9])
def test_a_column_that_not_all_files_have_alike_has_no_statistics_of_the_partition(version: int) -> None:
    kinds = {"int": pa.int32(), "long": pa.int64(), "day": pa.date32()}
    first = [ColumnRange(name, kind, 1, 5, 3, 0) for name, kind in kinds.items()]
    second = [ColumnRange("int", pa.int32(), -4, 2, 3, 1), ColumnRange("long", pa.int32(), 1, 2, 3, 0)]
    rows = pa.concat_tables([_of("a", *first, version=version), _of("b", *second, version=version)])
    update = partition_stats_update(version, ("int", "long", "day"), {"p": (rows, {"a", "b"})})
    (record,) = update.records.to_pylist()
    stats = record[STATS]
    assert (stats["fileName"], stats["columnName"], stats["valueCount"], stats["nullCount"]) == ("p", "int", 6, 1)
    assert (stats["minValue"]["member1"], stats["maxValue"]["member1"]) == ({"value": -4}, {"value": 5})
    assert stats["isTightBound"]
    assert len(update.deleted) == 2
    gone = partition_stats_deletions(version, ("int", "long", "day"), ["p"])
    assert {*update.deleted.to_pylist(), record["key"]} == set(gone.deleted.to_pylist())


@pytest.mark.parametrize(("low", "high"), [(None, None), (0.0, 0.0)])
def test_a_float_column_whose_bounds_one_file_does_not_tell_has_none_in_the_partition(low: Any, high: Any) -> None:
    known = ColumnRange("f", pa.float64(), -1.0, 7.5, 3, 0)
    rows = pa.concat_tables([_of("a", known), _of("b", ColumnRange("f", pa.float64(), low, high, 3, 0))])
    (record,) = partition_stats_update(9, ("f",), {"p": (rows, {"a", "b"})}).records.to_pylist()
    assert (record[STATS]["minValue"], record[STATS]["maxValue"], record[STATS]["valueCount"]) == (None, None, 6)
    (record,) = partition_stats_update(9, ("f",), {"p": (rows, {"a"})}).records.to_pylist()
    assert record[STATS]["maxValue"]["member4"] == {"value": 7.5}


def test_decimals_are_joined_by_their_value() -> None:
    kind = pa.decimal128(10, 2)
    ranges = [ColumnRange("d", kind, low, high, 1, 0) for low, high in ((-129, 255), (-1, 256), (-300, -2))]
    rows = pa.concat_tables([_of(str(number), one) for number, one in enumerate(ranges)])
    (record,) = partition_stats_update(9, ("d",), {"p": (rows, {"0", "1", "2"})}).records.to_pylist()
    found = [record[STATS][name]["member5"]["value"] for name in ("minValue", "maxValue")]
    assert [int.from_bytes(raw, "big", signed=True) for raw in found] == [-300, 256]
    assert record[STATS]["valueType"] == {"typeOrdinal": 10, "additionalInfo": "10,2"}


# ---- which columns ---------------------------------------------------------------------------------------------------

WIDE = pa.schema(
    [
        pa.field("a", pa.int32()),
        pa.field("items", pa.list_(pa.int32())),
        pa.field("s", pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.list_(pa.int32()))])),
        pa.field("fits", pa.decimal128(30, 15)),
        pa.field("wide", pa.decimal128(24, 6)),
        pa.field("b", pa.string()),
    ]
)
ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")


def test_the_first_columns_that_have_bounds_are_indexed() -> None:
    assert indexed_columns(WIDE, MetadataOptions(), 9) == (*ALWAYS, "a", "fits", "wide", "b")
    assert indexed_columns(WIDE, MetadataOptions(), 8) == (*ALWAYS, "a", "fits", "b")
    assert indexed_columns(WIDE, MetadataOptions(column_stats_columns_max=1), 8) == (*ALWAYS, "a")
    assert indexed_columns(WIDE, MetadataOptions(), 9, populate_meta_fields=False) == ("a", "fits", "wide", "b")


def test_named_columns_are_indexed_in_their_order_and_fields_of_structs_only_so() -> None:
    named = MetadataOptions(column_stats_columns=("b", "s.x", "s", "s.y", "none", "_hoodie_record_key", "a", "b"))
    assert indexed_columns(WIDE, named, 9) == (*ALWAYS, "b", "s.x", "a")
    assert indexed_columns(WIDE, named, 6) == named.column_stats_columns


def test_below_version_8_all_columns_are_indexed() -> None:
    every = indexed_columns(WIDE, MetadataOptions(), 6)
    assert every[:5] == tuple(f"_hoodie_{n}" for n in (
        "commit_time", "commit_seqno", "record_key", "partition_path", "file_name"
    ))  # fmt: skip
    assert every[5:] == tuple(WIDE.names)


@pytest.mark.parametrize("place", _places("column_stats"))
def test_the_columns_that_hudi_lists_are_kept(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path, "column_stats")
    listed = read_index_definitions(table.data.storage).by_name.get("column_stats")
    if listed is None:
        pytest.skip("version 6 has no index definitions")
    kept = columns_with_stats(table.data, table.data.table_schema(), MetadataOptions())
    assert kept == listed.source_fields
    if place.stem not in ("mdt_compacted_a", "upgrade_a_mor_4_v9", "upgrade_a_mor_6_v6"):  # made with named columns
        assert indexed_columns(table.data.table_schema(), MetadataOptions(), 9) == kept


def test_a_column_that_is_indexed_once_stays_it(golden: Golden) -> None:
    path, _ = golden("1.2.0", "skipping_a_cow")
    storage = open_storage(str(path))
    data = MetaClient.load(storage)
    schema = data.table_schema()
    columns = columns_with_stats(data, schema, MetadataOptions())
    assert columns is not None
    named = MetadataOptions(column_stats_columns=("v",))
    assert columns_with_stats(data, schema, named) == columns
    added = schema.append(pa.field("added", pa.int64()))
    assert columns_with_stats(data, added, MetadataOptions()) == (*columns, "added")
    few = (*ALWAYS, "v")
    write_index_definitions(storage, read_index_definitions(storage).merged([column_stats_definition(9, few)]))
    assert columns_with_stats(data, added, MetadataOptions()) == few
    assert columns_with_stats(data, added, MetadataOptions(column_stats_columns=("added", "nobody"))) == (*few, "added")
