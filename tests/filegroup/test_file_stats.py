"""Statistics of files: they hold for all rows, whatever wrote the file, and tasks report those of the files they write.

What is compared with is computed from Python values, one by one.
"""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.filegroup.stats import stats_of_file, stats_of_files
from pyhudi.filegroup.write.append import LogOptions, append_log
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.formats.base import open_base_file
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.stored_ranges import ranges_from_bytes, rows_of_files
from pyhudi.metadata.partitions.stats_columns import bounds
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.keys import IS_DELETE, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.memory import MemoryStorage
from tests.support.sweeps import examples
from tests.support.tables.file_groups import FIRST, SECOND, TASK, Table, base_of

UTC = pa.timestamp("us", "UTC")
EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("flag", pa.bool_()),
        pa.field("int", pa.int32()),
        pa.field("long", pa.int64()),
        pa.field("float", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("fixed", pa.binary(3)),
        pa.field("money", pa.decimal128(12, 2)),
        pa.field("wide", pa.decimal128(38, 20)),
        pa.field("day", pa.date32()),
        pa.field("time", pa.time64("us")),
        pa.field("time_ms", pa.time32("ms")),
        pa.field("at", UTC),
        pa.field("at_ms", pa.timestamp("ms", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("s", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.string())])),
        pa.field("items", pa.list_(pa.int32())),
    ]
)
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_file_name")
COLUMNS = (*META, *(name for name in EVERY_TYPE.names if name not in ("s", "items")), "s.x", "s.y", "nobody")


def _days(number: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(number)


def _moment(number: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=number)


FLOATS = st.floats(width=32, allow_infinity=True, allow_nan=True)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS,
    "double": FLOATS,
    "text": st.text(st.characters(codec="utf-8"), max_size=8),
    "raw": st.binary(max_size=6),
    "fixed": st.binary(min_size=3, max_size=3),
    "money": st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    "wide": st.integers(-(10**28), 10**28).map(lambda n: decimal.Decimal(n).scaleb(-20)),
    "day": st.integers(-100_000, 100_000).map(_days),
    "time": st.integers(0, 86_399_999_999).map(lambda n: (_moment(n)).time()),
    "time_ms": st.integers(0, 86_399_999).map(lambda n: (_moment(n * 1000)).time()),
    "at": st.integers(-(2**50), 2**50).map(_moment),
    "at_ms": st.integers(-(2**40), 2**40).map(lambda n: _moment(n * 1000)),
    "local": st.integers(-(2**50), 2**50).map(lambda n: _moment(n).replace(tzinfo=None)),
    "s": st.fixed_dictionaries({"x": st.none() | FLOATS, "y": st.none() | st.text("ab", max_size=3)}),
    "items": st.lists(st.integers(0, 9), max_size=2),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=12)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    keyed = [{"id": f"k{number:02d}", **row} for number, row in enumerate(rows)]
    table = pa.Table.from_pylist(keyed, EVERY_TYPE)
    return table.append_column(RECORD_KEY, table.column("id"))


def _check(stats: pa.Table, rows: pa.Table, version: int) -> None:
    """Counts are right, and bounds are the least and the greatest value, or not told."""
    for record in range(len(stats)):
        one = stats.slice(record, 1).combine_chunks()
        name = one.column("columnName")[0].as_py()
        if name in META:
            continue
        top, _, field = name.partition(".")
        kind = EVERY_TYPE.field(top).type
        values = rows.column(top).to_pylist()
        if field:
            kind = kind.field(kind.get_field_index(field)).type
            values = [None if value is None else value[field] for value in values]
        there = [value for value in values if value is not None]
        assert one.column("valueCount")[0].as_py() == len(values), name
        assert one.column("nullCount")[0].as_py() == len(values) - len(there), name
        wrapped = [one.column(bound).combine_chunks() for bound in ("minValue", "maxValue")]
        ends = [bounds(bound, kind, version >= 9)[0].as_py() for bound in wrapped]
        not_told = any(isinstance(value, float) and math.isnan(value) for value in there) or not there
        if name == "wide" and version < 9:
            not_told = True  # its twenty digits behind the point have no place in the form of these versions
        assert ends == ([None, None] if not_told else [min(there), max(there)]), name


def _create(table: Table, rows: pa.Table, partition: str = "p") -> WriteStatus:
    (status,) = create_files(table.spec, TASK, partition, rows.to_batches(), clock=table.clock, file_id="g-0")
    return status


def _same(status: WriteStatus, table: Table) -> pa.Table:
    """The reported statistics, which are those of the file."""
    assert status.stat.path is not None
    assert status.column_stats is not None
    stored = stats_of_file(table.storage, status.stat.path, COLUMNS, table.spec.table_version, EVERY_TYPE)
    name, ranges = status.stat.path.rpartition("/")[2], ranges_from_bytes(status.column_stats)
    reported = rows_of_files(table.spec.table_version, [(name, ranges)])
    assert reported.equals(stored), (reported.to_pylist(), stored.to_pylist())
    return stored


@settings(max_examples=examples(40), deadline=None)
@given(rows=ROWS, version=st.sampled_from([6, 8, 9]), group_rows=st.sampled_from([3, 1000]))
def test_statistics_of_a_base_file_hold_for_all_its_rows(
    rows: list[dict[str, Any]], version: int, group_rows: int
) -> None:
    table = Table(EVERY_TYPE, stats_columns=COLUMNS, file={"bloom_enabled": False, "row_group_rows": group_rows})
    table.spec = table.at(FIRST, table_version=version)
    incoming = _table([*rows, {}])  # a base file without rows is not made by inserts
    stats = _same(_create(table, incoming), table)
    assert set(stats.column("columnName").to_pylist()) == set(COLUMNS) - {"nobody"}
    _check(stats, incoming, version)


@settings(max_examples=examples(20), deadline=None)
@given(rows=ROWS, version=st.sampled_from([6, 8, 9]))
def test_statistics_of_log_files_hold_for_all_their_rows(rows: list[dict[str, Any]], version: int) -> None:
    table = Table(EVERY_TYPE, stats_columns=COLUMNS)
    incoming = _table([*rows, {}]).append_column(PARTITION_PATH, pa.array(["p"] * (len(rows) + 1)))
    deleted = pa.array([number == 0 for number in range(len(incoming))])
    file_slice = FileSlice(FileGroupId("p", "g-0"), FIRST, None)
    for block_format in ("parquet", "avro"):
        spec = table.at(SECOND, table_version=version)
        options = LogOptions(block_format)
        for flags in (deleted, pa.array([True] * len(incoming))):
            changes = incoming.append_column(IS_DELETE, flags)
            (status,) = append_log(spec, TASK, file_slice, changes, table.clock, options=options)
            table.spec = spec
            stats = _same(status, table)
            assert set(stats.column("columnName").to_pylist()) == set(COLUMNS) - {"nobody"}
            written = incoming.filter(pa.array([not flag for flag in flags.to_pylist()]))
            _check(stats, written, version)
            if version >= 9 and not len(written):
                assert set(stats.column("valueType").combine_chunks().field("typeOrdinal").to_pylist()) == {1}


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC"])
def test_a_rewritten_file_reports_its_statistics(file_format: str) -> None:
    schema = pa.schema([f for f in EVERY_TYPE if file_format == "PARQUET" or f.name in ("id", "double", "text", "at")])
    table = Table(schema, stats_columns=COLUMNS, file={"format": file_format, "bloom_num_entries": 50})
    rows = [{"double": float(n), "text": f"t{n}", "at": _moment(n * 10**6)} for n in range(5)]
    incoming = _table(rows).select([*schema.names, RECORD_KEY])
    first = _create(table, incoming)
    _same(first, table)
    changes = incoming.slice(1, 2).append_column(IS_DELETE, pa.array([True, False]))
    changes = changes.set_column(
        changes.schema.get_field_index("double"), "double", pa.array([None, float("nan")], pa.float64())
    )
    second = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), changes, table.clock)
    stats = {row["columnName"]: row for row in _same(second, table).to_pylist()}
    assert (stats["double"]["valueCount"], stats["double"]["minValue"]) == (4, None)
    assert stats["text"]["minValue"]["member6"] == {"value": "t0"}
    gone = incoming.append_column(IS_DELETE, pa.array([True] * 5))
    third = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), gone, table.clock)
    empty = _same(third, table)
    assert set(empty.column("valueCount").to_pylist()) == {0}


def test_text_that_is_too_long_for_a_footer_is_reported_whole() -> None:
    table = Table(EVERY_TYPE, stats_columns=COLUMNS)
    low, high = "a" * 5000, "b" * 5000
    stats = _same(_create(table, _table([{"text": high}, {"text": low}])), table)
    (row,) = (row for row in stats.to_pylist() if row["columnName"] == "text")
    assert (row["minValue"]["member6"]["value"], row["maxValue"]["member6"]["value"]) == (low, high)
    assert row["totalUncompressedSize"] > 10_000


def _ranges(table: pa.Table, names: list[str], **options: Any) -> dict[str, ColumnRange]:
    """Of a Parquet file that somebody else has written."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    storage = MemoryStorage()
    storage.write("f.parquet", sink.getvalue().to_pybytes())
    with open_base_file(storage, "f.parquet") as reader:
        return {one.name: one for one in reader.ranges(names)}


@pytest.mark.parametrize("statistics", [True, False])
def test_what_a_foreign_footer_does_not_tell_is_read_from_the_rows(statistics: bool) -> None:
    rows = pa.table(
        {
            "nan": [1.0, float("nan"), 2.0],
            "n": pa.array([3, None, 1], pa.int64()),
            "seconds": pa.array([1, 2, 3], pa.timestamp("s")),
            "unsigned": pa.array([1, 2**32 - 1, 5], pa.uint32()),
            "half": pa.array([1.0, 2.0, 3.0], pa.float16()),
            "codes": pa.array(["b", "a", None]).dictionary_encode(),
        }
    )
    found = _ranges(rows, rows.column_names, write_statistics=statistics)
    assert {name: (one.least, one.greatest, one.values, one.nulls) for name, one in found.items()} == {
        "nan": (None, None, 3, 0),
        "n": (1, 3, 3, 1),
        "seconds": (1, 3, 3, 0) if found["seconds"].data_type.unit == "s" else (1000, 3000, 3, 0),
        "unsigned": (None, None, 3, 0),
        "half": (None, None, 3, 0),
        "codes": ("a", "b", 3, 1),
    }


def test_int96_is_read_from_the_rows() -> None:
    rows = pa.table({"at": pa.array([10**6, -(10**6)], pa.timestamp("us"))})
    (found,) = _ranges(rows, ["at"], use_deprecated_int96_timestamps=True).values()
    assert (found.least, found.greatest, found.data_type) == (-(10**6), 10**6, UTC)


@pytest.mark.thorough
def test_statistics_of_many_files_come_in_the_order_of_the_paths() -> None:
    table = Table(EVERY_TYPE, stats_columns=COLUMNS)
    for number in range(30):
        _create(table, _table([{"int": number}]), f"p{number}")
    paths = [entry.path for entry in table.storage.walk("") if entry.name.endswith(".parquet")]
    found = list(stats_of_files(table.storage, paths, ["int"], 9, EVERY_TYPE))
    assert [path for path, _ in found] == paths
    least = [stats.column("minValue")[0].as_py()["member1"]["value"] for _, stats in found]
    assert [f"p{number}" for number in least] == [path.partition("/")[0] for path in paths]
