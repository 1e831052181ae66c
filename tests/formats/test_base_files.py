"""Base files: what real Hudi wrote is read, what we write is plain Parquet and ORC with Hudi's footer entries."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, CorruptFile, PathNotFound, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.base import BASE_FORMATS, BaseFileOptions, Footer, file_schema, new_base_file, open_base_file
from pyhudi.model.keys import META_COLUMNS
from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.sweeps import examples

Golden = Callable[[str, str], tuple[Path, dict[str, Any]]]
UTC = dt.timezone.utc

ALL_TYPES = pa.schema(
    [
        pa.field("b", pa.bool_()),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("dec", pa.decimal128(20, 4)),
        pa.field("s", pa.string()),
        pa.field("bin", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("ms", pa.timestamp("ms", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("list", pa.list_(pa.field("element", pa.int64()))),
        pa.field("deep", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.string()))))),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field("st", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.timestamp("us", "UTC"))]))])),
    ]
)
ROWS: list[dict[str, Any]] = [
    dict.fromkeys(ALL_TYPES.names),
    {
        "b": True, "i": -(2**31), "l": 2**63 - 1, "f": 0.5, "d": -1.25e300, "dec": Decimal("-1234567890123456.7891"),
        "s": "é😀", "bin": b"\x00\xff", "day": dt.date(1905, 2, 28),
        "ts": dt.datetime(1931, 5, 6, 7, 8, 9, 123456, UTC),
        "ms": dt.datetime(2020, 1, 1, 0, 0, 0, 7000, UTC), "local": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        "list": [1, None, 3], "deep": [["a"], [], None, [None]], "map": [("k", 1.0), ("n", None)],
        "st": {"x": 1, "y": {"z": dt.datetime(2024, 2, 29, tzinfo=UTC)}},
    },
    {"list": [], "deep": [], "map": [], "st": {"x": None, "y": None}, "s": "", "bin": b""},
]  # fmt: skip

ORC_ROW = ROWS[1] | {"ts": ROWS[1]["ts"].replace(microsecond=0), "local": dt.datetime(1969, 12, 31, 23, 59, 59)}


def write(storage: Storage, path: str, table: pa.Table, **options: Any) -> int:
    kind = "ORC" if path.endswith(".orc") else "PARQUET"
    writer = new_base_file(storage, path, table.schema, BaseFileOptions(format=kind, **options))
    if len(table):
        writer.write(table)
    schema = avro_from_arrow(table.schema, "t", with_meta=True)
    return writer.close(Footer("a", "z", "AAAA", "DYNAMIC_V0", schema))


def read(storage: Storage, path: str, **how: Any) -> pa.Table:
    with open_base_file(storage, path) as reader:
        return pa.Table.from_batches(list(reader.batches(**how)), None if how else reader.schema)


@pytest.mark.parametrize("path", ["f.parquet", "f.orc"])
def test_all_types_come_back_from_a_base_file(path: str) -> None:
    rows = [ORC_ROW if path.endswith(".orc") and row is ROWS[1] else row for row in ROWS]
    table = pa.Table.from_pylist(rows, ALL_TYPES)
    storage = MemoryStorage()
    size = write(storage, path, table)

    assert size == len(storage.read(path))
    back = read(storage, path)
    assert [field.type for field in back.schema] == [field.type for field in ALL_TYPES]
    assert back.to_pylist() == table.to_pylist()
    with open_base_file(storage, path) as reader:
        assert reader.num_rows == 3
        footer = reader.footer
    assert (footer.min_key, footer.max_key, footer.bloom_base64, footer.bloom_type) == ("a", "z", "AAAA", "DYNAMIC_V0")
    assert footer.avro_schema == avro_from_arrow(ALL_TYPES, "t", with_meta=True)


def test_the_parquet_that_we_write_has_the_layout_that_java_reads() -> None:
    storage = MemoryStorage()
    write(storage, "f.parquet", pa.Table.from_pylist(ROWS, ALL_TYPES))
    file = pq.ParquetFile(pa.BufferReader(storage.read("f.parquet")))

    leaves = {file.schema.column(index).path: file.schema.column(index) for index in range(len(file.schema.names))}
    assert {"list.list.element", "deep.list.element.list.element", "map.key_value.key", "st.y.z"} <= set(leaves)
    assert leaves["dec"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert leaves["ts"].logical_type.to_json() == leaves["st.y.z"].logical_type.to_json()
    assert '"timeUnit":"microseconds"' in leaves["ts"].logical_type.to_json()
    assert '"isAdjustedToUTC":true' in leaves["ts"].logical_type.to_json()
    assert '"isAdjustedToUTC":false' in leaves["local"].logical_type.to_json()
    assert b"ARROW:schema" not in file.metadata.metadata
    chunk = file.metadata.row_group(0).column(0)
    assert chunk.compression == "ZSTD"
    assert chunk.is_stats_set


def test_a_column_that_may_not_be_null_is_stored_as_one_that_may() -> None:
    schema = pa.schema([pa.field("a", pa.struct([pa.field("x", pa.int8(), nullable=False)]), nullable=False)])
    storage = MemoryStorage()
    write(storage, "f.parquet", pa.table([pa.array([{"x": 1}], schema.field("a").type)], schema=schema))

    column = pq.ParquetFile(pa.BufferReader(storage.read("f.parquet"))).schema.column(0)
    assert (column.max_definition_level, column.physical_type) == (2, "INT32")


def test_dictionaries_are_kept_for_few_values_only() -> None:
    rows = 20_000
    table = pa.table(
        {
            "few": [f"w{n % 50}" for n in range(rows)],
            "many": [f"w{n}" for n in range(rows)],
            "sorted": [f"w{n // 8:07d}" for n in range(rows)],
            "number": [n % 7 for n in range(rows)],
            "list": [[f"x{n % 3}", f"y{n}"][n % 2 : n % 2 + 1] for n in range(rows)],
        }
    )
    storage = MemoryStorage()
    write(storage, "f.parquet", table)
    group = pq.ParquetFile(pa.BufferReader(storage.read("f.parquet"))).metadata.row_group(0)

    coded = {group.column(n).path_in_schema: group.column(n).has_dictionary_page for n in range(group.num_columns)}
    assert coded == {"few": True, "many": False, "sorted": True, "number": True, "list.list.element": False}
    with open_base_file(storage, "f.parquet") as reader:
        assert "few" in reader.low_cardinality_columns()
        assert "many" not in reader.low_cardinality_columns()
        (batch,) = reader.batches(["many", "few"], dictionaries=["few"])
    assert batch.schema.types[0] == pa.string()
    assert pa.types.is_dictionary(batch.schema.types[1])
    assert batch.column(1).to_pylist() == table.column("few").to_pylist()


@pytest.mark.parametrize("path", ["f.parquet", "f.orc"])
@pytest.mark.parametrize("codec", ["zstd", "gzip", "snappy", "none", "uncompressed", "lz4", "ZSTD"])
def test_every_codec_is_read_back(path: str, codec: str) -> None:
    storage = MemoryStorage()
    table = pa.table({"a": list(range(5000)), "b": ["x"] * 5000})
    write(storage, path, table, codec=codec)

    assert read(storage, path).equals(table)


def test_gzip_is_asked_for_its_fastest_level_by_default() -> None:
    table = pa.table({"a": [f"{n * 2654435761 % 2**32:x}-{n % 97}" for n in range(30_000)]})
    fast, level_1, small = (
        write(MemoryStorage(), "f.parquet", table, codec="gzip", compression_level=level) for level in (None, 1, 9)
    )

    assert fast == level_1 != small


def test_an_unknown_codec_is_refused_by_name() -> None:
    for path in ("f.parquet", "f.orc"):
        with pytest.raises(ConfigError, match="'lzo'"):
            write(MemoryStorage(), path, pa.table({"a": [1]}), codec="lzo")


@pytest.mark.parametrize("path", ["f.parquet", "f.orc"])
def test_a_file_without_rows_has_its_columns_and_footer(path: str) -> None:
    storage = MemoryStorage()
    write(storage, path, ALL_TYPES.empty_table())

    assert read(storage, path).equals(ALL_TYPES.empty_table())
    with open_base_file(storage, path) as reader:
        assert reader.footer.bloom_base64 == "AAAA"
        assert len(reader.column("s")) == 0


@pytest.mark.parametrize("path", ["f.parquet", "f.orc"])
def test_columns_come_in_the_wanted_order_and_unknown_ones_are_left_out(path: str) -> None:
    storage = MemoryStorage()
    write(storage, path, pa.table({"a": [1, 2], "b": ["x", "y"], "c": [True, False]}))

    assert read(storage, path, columns=["c", "nowhere", "a"]).to_pydict() == {"c": [True, False], "a": [1, 2]}
    with open_base_file(storage, path) as reader:
        assert [len(batch) for batch in reader.batches([])] == [2]
        assert [len(batch) for batch in reader.batches(batch_rows=1)] == [1, 1]
        assert reader.column("b").to_pylist() == ["x", "y"]


def test_int96_reads_as_utc_at_every_depth() -> None:
    moment = dt.datetime(1999, 12, 31, 23, 59, 59, 123456)
    table = pa.table(
        {
            "plain": pa.array([moment], pa.timestamp("us")),
            "in_list": pa.array([[moment]], pa.list_(pa.timestamp("us"))),
            "in_struct": pa.array([{"a": 1, "t": moment}], pa.struct([("a", pa.int32()), ("t", pa.timestamp("us"))])),
            "in_map": pa.array([[("k", moment)]], pa.map_(pa.string(), pa.timestamp("us"))),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, use_deprecated_int96_timestamps=True, store_schema=False)
    storage = MemoryStorage()
    storage.write("f.parquet", out.getvalue())

    back = read(storage, "f.parquet")
    aware = moment.replace(tzinfo=UTC)
    assert back.to_pylist() == [
        {"plain": aware, "in_list": [aware], "in_struct": {"a": 1, "t": aware}, "in_map": [("k", aware)]}
    ]
    with open_base_file(storage, "f.parquet") as reader:
        assert reader.schema == back.schema


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
@pytest.mark.parametrize("name", ["types_insert", "types_bulk_insert"])
def test_files_of_both_of_hudis_writers_are_read_in_any_batch_size(golden: Golden, version: str, name: str) -> None:
    folder, description = golden(version, name)
    storage = LocalStorage(str(folder))
    paths = [info.path for info in storage.walk("") if info.path.endswith(".parquet") and ".hoodie" not in info.path]
    assert paths
    rows = {}
    for path in paths:
        whole = read(storage, path)
        assert whole.schema.names[:5] == list(META_COLUMNS)
        assert str(read(storage, path, batch_rows=1).to_pylist()) == str(whole.to_pylist())
        for row in whole.to_pylist():
            known = rows.get(row["_hoodie_record_key"], row)
            rows[row["_hoodie_record_key"]] = max(known, row, key=lambda one: one["_hoodie_commit_time"])
    for wanted in description["expected"]["snapshot"]:
        found = rows[wanted["_hoodie_record_key"]]
        for column, value in wanted.items():
            if isinstance(value, bool | int | list) and all(not isinstance(item, list | dict) for item in [value]):
                assert _plain(found[column]) == _plain(value), column


def _plain(value: Any) -> Any:
    """Lists of numbers and texts as they are; other lists by their length, for their values' text forms differ."""
    if isinstance(value, list) and not all(isinstance(item, int | str | None) for item in value):
        return len(value)
    return value


def test_bytes_that_are_no_file_are_a_corrupt_file_with_its_name() -> None:
    storage = MemoryStorage()
    good = MemoryStorage()
    write(good, "f.parquet", pa.table({"a": list(range(3000))}))
    data = good.read("f.parquet")
    for name, content in {"empty": b"", "short": b"PAR1", "noise": b"x" * 200, "cut": data[:-20]}.items():
        for extension in (".parquet", ".orc"):
            storage.write(name + extension, content)
            with pytest.raises(CorruptFile, match=name):
                open_base_file(storage, name + extension)


# Parquet only: pyarrow's ORC reader itself may crash on damaged bytes, which no Python code can catch.
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_a_damaged_file_gives_rows_or_an_error_of_the_family(position: int, flip: int) -> None:
    storage = MemoryStorage()
    write(storage, "f.parquet", pa.table({"a": list(range(300)), "b": [str(n) for n in range(300)]}))
    data = bytearray(storage.read("f.parquet"))
    data[position % len(data)] ^= flip
    storage.write("f.parquet", bytes(data))
    try:
        with open_base_file(storage, "f.parquet") as reader:
            for _ in reader.batches():
                pass
    except (CorruptFile, SchemaMismatch):
        pass


def test_an_orc_file_whose_schema_entry_is_damaged_is_read_by_its_columns() -> None:
    storage = MemoryStorage()
    table = pa.table({"a": [1, 2]})
    writer = new_base_file(storage, "f.orc", table.schema, BaseFileOptions(format="ORC"))
    writer.write(table)
    writer.close(
        Footer(avro_schema='{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["oull", "int"]}]}')
    )

    assert read(storage, "f.orc").equals(table)


@pytest.mark.parametrize("column", ["ts", "local"])
def test_moments_that_java_could_not_read_from_orc_are_refused(column: str) -> None:
    row = ORC_ROW | {column: ROWS[1][column]}
    with pytest.raises(SchemaMismatch, match=column):
        write(MemoryStorage(), "f.orc", pa.Table.from_pylist([row], ALL_TYPES))
    nested = pa.table({"deep": pa.array([[{"t": -1}]], pa.list_(pa.struct([("t", pa.timestamp("us"))])))})
    with pytest.raises(SchemaMismatch, match=r"deep\.element\.t"):
        write(MemoryStorage(), "f.orc", nested)


def test_a_missing_file_and_a_foreign_format_say_so() -> None:
    with pytest.raises(PathNotFound):
        open_base_file(MemoryStorage(), "f.parquet")
    with pytest.raises(UnsupportedTable, match=r"\.hfile"):
        open_base_file(MemoryStorage(), "f.hfile")
    with pytest.raises(ConfigError, match=r"\.orc"):
        new_base_file(MemoryStorage(), "f.parquet", pa.schema([("a", pa.int32())]), BaseFileOptions(format="ORC"))


def test_columns_that_no_file_can_hold_are_all_named() -> None:
    with pytest.raises(SchemaMismatch, match=r"(?s)'a'.*'b'"):
        file_schema(pa.schema([pa.field("a", pa.duration("us")), pa.field("b", pa.null())]))


@pytest.mark.parametrize("name", list(BASE_FORMATS.entries))
def test_every_format_streams_row_groups_of_any_count(name: str) -> None:
    storage = MemoryStorage()
    path = f"f.{name.lower()}"
    writer = new_base_file(storage, path, pa.schema([("a", pa.int64())]), BaseFileOptions(format=name))
    for first in range(0, 100, 7):
        writer.write(pa.table({"a": list(range(first, min(first + 7, 100)))}))
    writer.close(Footer())

    assert read(storage, path).column("a").to_pylist() == list(range(100))
    with open_base_file(storage, path) as reader:
        assert reader.footer == Footer()


@pytest.mark.parametrize("name", ["x.parquet", "x.orc"])
def test_a_damaged_or_missing_file_is_named_with_what_to_do(name: str) -> None:
    storage = MemoryStorage("damaged")
    with pytest.raises(PathNotFound, match=rf"damaged/{name} does not exist.*load the table again"):
        open_base_file(storage, name)
    storage.write(name, b"PAR1 or not")
    with pytest.raises(CorruptFile, match=rf"damaged/{name}: not a readable .* file.*Restore the file"):
        open_base_file(storage, name)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed"])
def test_every_codec_takes_the_level_that_goes_with_another_one(codec: str) -> None:
    storage = MemoryStorage("codecs")
    rows = pa.table({"a": pa.array(range(1000), pa.int64())})
    writer = new_base_file(storage, "x.parquet", rows.schema, BaseFileOptions(codec=codec, compression_level=1))
    writer.write(rows)
    writer.close(Footer())

    file = pq.ParquetFile(pa.BufferReader(storage.read("x.parquet")))
    stored = file.metadata.row_group(0).column(0).compression
    assert stored.lower() == {"lz4_raw": "lz4"}.get(codec, codec)
    assert file.read().equals(rows)


@pytest.mark.parametrize("path", ["f.parquet", "f.orc"])
def test_rows_are_read_by_their_numbers(path: str) -> None:
    storage = MemoryStorage()
    table = pa.table({"a": pa.array(range(100), pa.int64()), "b": [f"t{number}" for number in range(100)]})
    if path == "f.orc":
        write(storage, path, table)
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=30)
        storage.write(path, sink.getvalue().to_pybytes())
    for numbers in ([], [0], [99], [29, 30, 31], [5, 95], list(range(100))):
        with open_base_file(storage, path) as reader:
            batches = list(reader.rows_at(["b", "none"], np.array(numbers, np.int64)))
        found = [text for batch in batches for text in batch.column(0).to_pylist()]
        assert found == [f"t{number}" for number in numbers]
        assert all(batch.schema.names == ["b"] for batch in batches)
    if path == "f.parquet":
        with open_base_file(storage, path) as reader:
            assert len(list(reader.rows_at(["a"], np.array([31, 32], np.int64)))) == 1  # of one row group


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_row_groups_of_hudis_files_are_copied_with_their_page_index(golden: Golden, version: str) -> None:
    folder, _ = golden(version, "cow_operations")
    for source in (path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts):
        storage = MemoryStorage()
        storage.write("old.parquet", source.read_bytes())
        with open_base_file(storage, "old.parquet") as old:
            writer = new_base_file(storage, "f.parquet", old.schema, BaseFileOptions())
            assert writer.copyable(old) == frozenset(range(len(old.part_rows)))
            writer.start_copying(old)
            for part, count in enumerate(old.part_rows):
                writer.copy(part, pa.table({"_hoodie_file_name": ["f.parquet"] * count}))
            writer.close(old.footer)
            expected = pa.Table.from_batches(list(old.batches()))
        with open_base_file(storage, "f.parquet") as new:
            assert new.footer == old.footer
            rows = pa.Table.from_batches(list(new.batches()))
        at = rows.schema.get_field_index("_hoodie_file_name")
        assert rows.remove_column(at).equals(expected.remove_column(at))
        assert (
            pq.ParquetFile(pa.BufferReader(storage.read("f.parquet"))).metadata.row_group(0).column(0).has_offset_index
        )
