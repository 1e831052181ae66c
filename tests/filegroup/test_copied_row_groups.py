"""Row groups without changes go into the next version of a file as they are stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write import merge
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.formats.base import BaseFileOptions, new_base_file, open_base_file
from pyhudi.formats.parquet.chunks import ChunkSource, groups_of
from pyhudi.formats.parquet.footer import read_footer
from pyhudi.formats.parquet.thrift import CompactReader
from pyhudi.formats.stored_ranges import ranges_from_bytes
from pyhudi.model.commit import WriteStatus
from pyhudi.model.keys import CHANGE, FILE_NAME, IS_DELETE, PARTITION_PATH, RECORD_KEY
from tests.support.sweeps import SAMPLED
from tests.support.tables.file_groups import FIRST, SECOND, TASK, Table, base_of

GROUP = 100
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("few", pa.string()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("tags", pa.list_(pa.int32())),
        pa.field("place", pa.struct([pa.field("lat", pa.float32()), pa.field("name", pa.string())])),
        pa.field("notes", pa.map_(pa.string(), pa.int64())),
    ]
)


def rows(numbers: range, ts: int = 1, *, deletes: bool = False) -> pa.Table:
    """Rows as a write carries them."""
    made = pa.Table.from_pylist(
        [
            {
                "id": f"k{n:05d}",
                "ts": ts,
                "x": math.nan if n == 250 else n * ts / 7,
                "few": ["a", "b", None][n % 3],
                "price": n * 100,
                "at": n * 10**9,
                "tags": None if n % 5 == 0 else [n, ts, None],
                "place": {"lat": n / 2, "name": f"p{n % 4}"},
                "notes": [("a", n)],
            }
            for n in numbers
        ],
        SCHEMA.set(4, pa.field("price", pa.int64())).set(5, pa.field("at", pa.int64())),
    )
    made = made.set_column(
        4, "price", pc.cast(made["price"], pa.decimal128(21, 2)).cast(pa.decimal128(12, 2), safe=False)
    )
    made = made.set_column(5, "at", pc.cast(made["at"], pa.timestamp("us", "UTC")))
    made = made.append_column(RECORD_KEY, made["id"]).append_column(PARTITION_PATH, pa.array(["p"] * len(made)))
    return made.append_column(IS_DELETE, pa.array([deletes] * len(made)))


def new_table(**file: Any) -> tuple[Table, WriteStatus]:
    """A file of five row groups."""
    options = {"bloom_num_entries": 600, "row_group_rows": GROUP, **file}
    table = Table(SCHEMA, file=options, stats_columns=("id", "ts", "x", "few", "price", "at", "place.lat"))
    stored = rows(range(5 * GROUP)).drop_columns([IS_DELETE])
    (status,) = create_files(table.spec, TASK, "p", stored.to_batches(GROUP), clock=table.clock)
    assert table.file(str(status.stat.path)).metadata.num_row_groups == 5
    return table, status


def changed(table: Table, base: WriteStatus, incoming: pa.Table, at: str = SECOND, **how: Any) -> WriteStatus:
    return merge_file(table.at(at), TASK, base_of(base, FIRST), incoming, table.clock, **how)


def listed(keys: pa.Array | None) -> list[str] | None:
    return None if keys is None else keys.to_pylist()


def chunks(table: Table, status: WriteStatus) -> list[list[bytes]]:
    """The bytes of each column chunk but the file name's, by row group."""
    content = table.storage.read(str(status.stat.path))
    groups = groups_of(read_footer(pa.BufferReader(content)).thrift)
    return [
        [content[c.start : c.start + c.size_bytes] for c in group.chunks if c.path != FILE_NAME] for group in groups
    ]


BATCHES: Mapping[str, pa.Table] = {
    "updates in one row group": rows(range(150, 160), 2),
    "late rows that lose": rows(range(150, 160), 0),
    "deletes in one row group": rows(range(150, 160), 2, deletes=True),
    "a whole row group leaves": rows(range(100, 200), 2, deletes=True),
    "the least key leaves": rows(range(1), 2, deletes=True),
    "inserts only": rows(range(9000, 9040)),
    "all at once": pa.concat_tables(
        [rows(range(420, 440), 2), rows(range(5, 9), 3, deletes=True), rows(range(9000, 9250))]
    ),
    "everywhere": rows(range(0, 500, 90), 2),
}


@pytest.mark.thorough
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("reports_keys", [False, True])
def test_a_file_with_copied_row_groups_is_the_one_that_a_rewrite_makes(
    monkeypatch: pytest.MonkeyPatch, batch: str, reports_keys: bool
) -> None:
    results = []
    for copied_from in (0.5, math.inf):
        table, base = new_table()
        monkeypatch.setattr(merge, "COPIED_FROM", copied_from)
        table.spec = replace(table.spec, reports_keys=reports_keys)
        status = changed(table, base, BATCHES[batch])
        path = str(status.stat.path)
        file = table.file(path)
        with open_base_file(table.storage, path) as reader:
            footer, ranges = reader.footer, reader.ranges(table.spec.stats_columns or ())
        stat = replace(status.stat, file_id="", path="", prev_base_file="", total_write_bytes=0, file_size_in_bytes=0)
        results.append(
            (
                [{**row, FILE_NAME: row[FILE_NAME] == path.split("/")[1]} for row in file.read().to_pylist()],
                footer,
                [replace(each, stored_bytes=0, plain_bytes=0) for each in ranges],
                stat,
                listed(status.new_keys),
                listed(status.removed_keys),
            )
        )
        assert status.column_stats is not None
        assert file.metadata.num_rows == file.read().num_rows == status.stat.num_writes

    assert repr(results[0]) == repr(results[1])  # NaN is not equal to itself


def test_chunks_are_copied_byte_by_byte_and_the_file_name_is_new() -> None:
    table, base = new_table()

    status = changed(table, base, BATCHES["updates in one row group"])

    old, new = chunks(table, base), chunks(table, status)
    assert [group == other for group, other in zip(old, new, strict=True)] == [True, False, True, True, True]
    (name,) = set(table.file(str(status.stat.path)).read([FILE_NAME]).column(0).to_pylist())
    assert str(status.stat.path).endswith(name)
    assert pq.ParquetFile(
        pa.BufferReader(table.storage.read(str(status.stat.path))), page_checksum_verification=True
    ).read()


KEPT = frozenset({"few", "price", "at", "tags", "place", "notes"})


def updates(numbers: range, *, x: float | None = None, ts: int = 2) -> pa.Table:
    """Rows of an update of `ts` and `x`: the other columns are null here, and stay what they are in the file."""
    rows_ = rows(numbers, ts)
    for name in KEPT:
        rows_ = rows_.set_column(
            rows_.schema.get_field_index(name), name, pa.nulls(len(rows_), SCHEMA.field(name).type)
        )
    if x is not None:
        rows_ = rows_.set_column(rows_.schema.get_field_index("x"), "x", pa.array([x] * len(rows_)))
    return rows_.append_column(CHANGE, pa.array([0] * len(rows_), pa.int32()))


UPDATES: Mapping[str, pa.Table] = {
    "a few rows": updates(range(150, 160)),
    "rows of all row groups": updates(range(0, 500, 45)),
    "a NaN comes": updates(range(150, 160), x=math.nan),
    "the NaN goes": updates(range(200, 300), x=1.0),
    "another NaN comes for it": pa.concat_tables(
        [updates(range(150, 160), x=math.nan), updates(range(200, 300), x=1.0)]
    ),
    "some lose": pa.concat_tables([updates(range(150, 160), ts=0), updates(range(170, 180))]),
    "beside a delete": pa.concat_tables(
        [
            updates(range(150, 160)),
            rows(range(310, 320), 2, deletes=True).append_column(CHANGE, pa.nulls(10, pa.int32())),
        ]
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_that_copies_other_columns_makes_the_rows_of_a_rewrite(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    results = []
    for copied_from in (0.5, math.inf):
        table, base = new_table()
        monkeypatch.setattr(merge, "COPIED_FROM", copied_from)
        status = changed(table, base, UPDATES[name], unchanged={0: KEPT})
        path = str(status.stat.path)
        with open_base_file(table.storage, path) as reader:
            footer, ranges = reader.footer, reader.ranges(table.spec.stats_columns or ())
        stat = replace(status.stat, file_id="", path="", prev_base_file="", total_write_bytes=0, file_size_in_bytes=0)
        stored = table.file(path).read().sort_by("id")  # an updated row stays in its place, or is its row group's last
        listed_rows = [{**row, FILE_NAME: row[FILE_NAME] == path.split("/")[1]} for row in stored.to_pylist()]
        ranges = [replace(each, stored_bytes=0, plain_bytes=0) for each in ranges]
        reported = [
            each._replace(stored_bytes=0, plain_bytes=0) for each in ranges_from_bytes(status.column_stats or b"")
        ]
        results.append((listed_rows, footer, ranges, reported, stat, status.rows_read, status.skipped))

    assert repr(results[0]) == repr(results[1])


def test_chunks_of_columns_that_an_update_does_not_change_are_copied() -> None:
    table, base = new_table(codec="zstd")
    table.spec = replace(table.spec, file=replace(table.spec.file, codec="uncompressed"))

    status = changed(table, base, UPDATES["a few rows"], unchanged={0: KEPT})

    content = table.storage.read(str(base.stat.path))
    leaves = [chunk.path for chunk in groups_of(read_footer(pa.BufferReader(content)).thrift)[0].chunks]
    names = [leaf.partition(".")[0] for leaf in leaves if leaf != FILE_NAME]
    old, new = chunks(table, base), chunks(table, status)
    assert [group == other for group, other in zip(old, new, strict=True)] == [True, False, True, True, True]
    assert {name for name, a, b in zip(names, old[1], new[1], strict=True) if a == b} == KEPT | {RECORD_KEY}
    keys = table.file(str(status.stat.path)).read(["id"]).column(0).to_pylist()
    assert keys == sorted(keys), "each row is where it was"


@pytest.mark.thorough
def test_small_row_groups_are_merged_so_that_they_do_not_become_many() -> None:
    table, base = new_table()
    for n in range(8):
        batch = rows(range(9000 + 10 * n, 9010 + 10 * n))
        status = merge_file(
            table.at(f"2024010200000000{n}"), TASK, base_of(base, FIRST), batch, table.clock, match_keys=n % 2 == 0
        )
        base = status

    groups = table.file(str(base.stat.path)).metadata
    sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
    assert sum(sizes) == 580
    assert min(sizes[:-1]) >= GROUP / 2


def test_other_readers_read_copied_row_groups(tmp_path: Path) -> None:
    table, base = new_table()
    status = changed(table, base, BATCHES["all at once"])
    file = tmp_path / "f.parquet"
    file.write_bytes(table.storage.read(str(status.stat.path)))
    expected = pq.read_table(file)

    read = duckdb.sql(f"select * from '{file}'").to_arrow_table()

    assert (
        read.select(["id", "ts", "few", "price"]).to_pylist()
        == expected.select(["id", "ts", "few", "price"]).to_pylist()
    )
    assert duckdb.sql(f"select count(*) from '{file}' where id = 'k00333' and ts = 1").fetchall() == [(1,)]
    assert pq.read_table(file, filters=[("id", "=", "k00333")]).num_rows == 1


def test_a_file_that_ends_early_is_reported_and_not_copied(tmp_path: Path) -> None:
    table, base = new_table()
    content = table.storage.read(str(base.stat.path))
    groups = groups_of(read_footer(pa.BufferReader(content)).thrift)
    assert all(chunk.is_within(len(content)) for group in groups for chunk in group.chunks)
    chunk = groups[4].chunks[-1]
    assert not chunk.is_within(chunk.start + chunk.size_bytes - 1)
    source = ChunkSource(pa.BufferReader(content[:1000]), "f.parquet", groups)
    with pytest.raises(CorruptFile, match=r"f\.parquet at byte"):
        source.read(900, 200)


def with_page_index(table: Table, base: WriteStatus) -> None:
    """The file as Java writes it: with a page index, many pages, and Parquet's bloom filters where pyarrow has them."""
    path = str(base.stat.path)
    old = table.file(path)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, old.schema_arrow, write_page_index=True, data_page_size=200, write_batch_size=10, store_schema=False
    ) as writer:
        for group in range(old.num_row_groups):
            writer.write_table(old.read_row_group(group))
        writer.add_key_value_metadata(old.metadata.metadata)
    table.storage.delete(path)
    table.storage.write(path, bytes(sink.getvalue()))


def test_page_indexes_move_with_their_pages() -> None:
    table, base = new_table()
    with_page_index(table, base)

    status = changed(table, base, BATCHES["updates in one row group"])

    content = table.storage.read(str(status.stat.path))
    groups = groups_of(read_footer(pa.BufferReader(content)).thrift)
    indexed = [
        all(chunk.entry.keys() >= {4, 5, 6, 7} for chunk in group.chunks if chunk.path != FILE_NAME) for group in groups
    ]
    assert indexed == [True, False, True, True, True]
    for group in (groups[0], *groups[2:]):
        for chunk in group.chunks:
            if chunk.path == FILE_NAME:
                continue
            at, size = chunk.area((4, 5)) or (0, 0)
            starts = page_starts(content[at : at + size])
            assert starts[0] == number(chunk.about, 9)
            assert [page_type(content, start) for start in starts] == [0] * len(starts)
    assert any(len(page_starts(content[slice(a, a + n)])) > 1 for a, n in [groups[0].chunks[2].area((4, 5)) or (0, 0)])


def page_starts(offset_index: bytes) -> list[int]:
    index = CompactReader(offset_index)
    starts = []
    for _ in index.fields_of(1):
        for _ in index.elements():
            for _ in index.fields_of(1):
                starts.append(index.integer())
    return starts


def page_type(content: bytes, at: int) -> int:
    """0 of a data page; another number where there is none."""
    header = CompactReader(content[at : at + 200])
    return next(header.integer() for _ in header.fields_of(1))


def number(fields: dict[int, tuple[int, bytes]], field: int) -> int:
    return CompactReader(fields[field][1]).integer()


@pytest.mark.parametrize(
    "change", [{"ts": pa.int32()}, {"x": pa.float32()}, {"few": pa.binary()}, {"price": pa.decimal128(10, 2)}]
)
def test_other_types_in_the_stored_file_are_rewritten(change: dict[str, pa.DataType]) -> None:
    (name, kind) = next(iter(change.items()))
    table, base = new_table()
    path = str(base.stat.path)
    stored = table.file(path)
    rows_there = stored.read()
    at = rows_there.schema.get_field_index(name)
    column = rows_there.column(at).combine_chunks().cast(kind, safe=False)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows_there.schema.set(at, pa.field(name, kind)), store_schema=False) as writer:
        writer.write_table(rows_there.set_column(at, name, column), row_group_size=GROUP)
    with open_base_file(table.storage, path) as before:
        assert before.part_rows == (GROUP,) * 5
    table.storage.delete(path)
    table.storage.write(path, bytes(sink.getvalue()))
    writer_of = new_base_file(table.storage, "w.parquet", stored.schema_arrow.remove_metadata(), BaseFileOptions())
    with open_base_file(table.storage, path) as reader:
        assert writer_of.copyable(reader) == frozenset()
    writer_of.abandon()


@pytest.mark.thorough
def test_a_damaged_footer_is_an_error_of_its_readers_and_ends_in_bounded_time() -> None:
    table, base = new_table()
    thrift = read_footer(pa.BufferReader(table.storage.read(str(base.stat.path)))).thrift
    assert len(groups_of(thrift)) == 5
    damaged = 0
    places = range(0, len(thrift), 211 if SAMPLED else 53)
    for at in places:
        for content in (thrift[:at], thrift[:at] + bytes([thrift[at] ^ 0x55]) + thrift[at + 1 :]):
            try:
                for group in groups_of(content):
                    assert all(chunk.is_within(1 << 20) in (True, False) for chunk in group.chunks)
            except (LookupError, ValueError, RecursionError):
                damaged += 1
    assert damaged > len(places) // 2
