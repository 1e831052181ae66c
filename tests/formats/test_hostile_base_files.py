"""Base files with hostile footers."""

from __future__ import annotations

import ast
import io
import struct
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.expressions.predicates import Column
from pyhudi.expressions.statistics.ranges import may_match
from pyhudi.expressions.where import parse_where
from pyhudi.formats.base import open_base_file
from pyhudi.formats.base.base import MAX_ROWS, check_outline
from pyhudi.formats.base.ranges import Ranges, row_groups_that_may_match
from pyhudi.formats.parquet.footer import _Chunk, read_footer
from pyhudi.formats.parquet.thrift import CompactReader
from pyhudi.storage.memory import MemoryStorage
from tests.support.values.limits import output_within

NAME = "f-0_0-1-2_20240101000000000.parquet"


def stored(columns: pa.Table) -> MemoryStorage:
    storage, sink = MemoryStorage(), io.BytesIO()
    pq.write_table(columns, sink)
    storage.write(f"p/{NAME}", sink.getvalue())
    return storage


def test_a_column_that_is_there_twice_is_refused_when_the_file_is_opened() -> None:
    storage = stored(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(CorruptFile, match=rf"{NAME}: columns occur twice: a\."):
        open_base_file(storage, f"p/{NAME}")


@pytest.mark.parametrize("rows", [-1, MAX_ROWS + 1, 1 << 60])
def test_more_rows_than_a_file_has_are_not_counted_to(rows: int) -> None:
    check_outline("x", MAX_ROWS, ["a", "b"])
    with pytest.raises(CorruptFile, match=f"x: expected 0 to {MAX_ROWS} rows, found {rows}"):
        check_outline("x", rows, ["a"])


# One change to the bytes of a footer with the columns `a` (int32) and `t`.
CHANGES = {
    "bounds of three bytes": (b"\x04\x57\x04\x00\x00", b"\x03\x57\x04\x00"),
    "another type": (b"\x1c\x15\x02", b"\x1c\x15\x00"),
    "no metadata": (b"\x26\x00\x1c\x15\x02", b"\x26\x00\x4c\x15\x02"),
    "an encrypted column": (b"\x26\x00\x1c\x15\x02", b"\x26\x00\x6c\x15\x02"),
    "too many levels": (b"\x25\x02\x18\x01a", b"\x25\x00\x18\x01a"),
}


def damaged(change: str) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({"a": pa.array([1111, 1111], pa.int32()), "t": ["x", "y"]})
    pq.write_table(rows, sink, store_schema=False, use_dictionary=False)
    data = sink.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    sound, wrong = CHANGES[change]
    footer = data[-8 - size : -8].replace(sound, wrong)
    assert footer != data[-8 - size : -8]
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def read_all_of(change: str) -> str:
    """Read such a file in every way, in a process that dies where pyarrow does."""
    storage = MemoryStorage()
    storage.write(f"p/{NAME}", damaged(change))
    predicate = parse_where("a = 5")
    with open_base_file(storage, f"p/{NAME}") as reader:
        reader.low_cardinality_columns()
        reader.plain_columns()
        asked = []

        def test(ranges: Ranges) -> bool:
            asked.append((ranges(Column(("a",))), ranges(Column(("t",)))))
            return may_match(predicate, ranges)

        try:
            rows = sum(len(batch) for batch in reader.batches(["a"], may_match=test))
        except CorruptFile as error:
            return f"{asked[0][0]} {asked[0][1] is not None} {NAME in str(error)}"
        return f"{asked[0][0]} {asked[0][1] is not None} {rows}"


def test_a_column_that_pyarrow_dies_of_has_no_ranges_and_the_others_have_theirs() -> None:
    work = "print([read_all_of(change) for change in CHANGES])"

    output = output_within("from tests.formats.test_hostile_base_files import *", work, memory_mb=500, cpu_s=10)

    assert ast.literal_eval(output) == ["None True True"] * len(CHANGES)


def test_ranges_of_a_sound_file_prune_its_row_groups() -> None:
    storage = stored(pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "x": [1.5, None, 2.5, 3.5]}))
    with storage.open_input(f"p/{NAME}") as source:
        footer = read_footer(source)

    assert footer.unreadable_chunks == frozenset()
    assert row_groups_that_may_match(footer, lambda ranges: may_match(parse_where("a > 9"), ranges)) == []
    assert row_groups_that_may_match(footer, lambda ranges: may_match(parse_where("a > 3"), ranges)) == [0]


@pytest.mark.parametrize("bound", [1111.5, 2222.5])
def test_bounds_that_are_not_a_number_skip_no_row_group(bound: float) -> None:
    """Old writers of Parquet have such bounds where the first value is NaN."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1111.5, 2222.5]}), sink, use_dictionary=False)
    data = sink.getvalue()
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[at:].replace(struct.pack("<d", bound), struct.pack("<d", float("nan")))
    assert footer != data[at:]

    footer_of_nan = read_footer(pa.BufferReader(data[:at] + footer))
    for where in ("x = 1111.5", "x < 2000", "x IN (1111.5, 7)"):
        assert row_groups_that_may_match(footer_of_nan, partial(may_match, parse_where(where))) == [0], where


def test_a_footer_larger_than_the_first_read_is_read_whole() -> None:
    storage = stored(pa.table({f"column_{number}": [number] for number in range(1500)}))
    with storage.open_input(f"p/{NAME}") as source:
        footer = read_footer(source)

    assert len(footer.thrift) > 64 << 10
    assert footer.metadata.num_columns == 1500
    assert footer.unreadable_chunks == frozenset()


VALUES = {
    "true": (1, b""), "false": (2, b""), "byte": (3, b"\x07"), "short": (4, b"\x07"), "long": (6, b"\xff\x01"),
    "double": (7, bytes(8)), "text": (8, b"\x02ab"), "set of bytes": (10, b"\x23\x01\x02"),
    "list of truths": (9, b"\x21\x01\x02"), "long list": (9, b"\xf5\x10" + b"\x07" * 16),
    "map": (11, b"\x02\x83\x01a\x07\x01b\x08"), "map of truths": (11, b"\x01\x11\x01\x02"), "empty map": (11, b"\0"),
    "struct": (12, b"\x15\x07\x18\x01a\0"), "list of structs": (9, b"\x2c\x15\x07\0\0"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_value_of_thrift_is_passed_over_to_its_end(name: str) -> None:
    kind, data = VALUES[name]
    cursor = CompactReader(data + b"behind it")

    cursor.skip(kind)

    assert cursor.at == len(data)


@pytest.mark.parametrize(
    ("chunk", "fits"),
    [
        (_Chunk(1), True),
        (_Chunk(1, [4, 4]), True),
        (_Chunk(1, [9, 4]), True),
        (_Chunk(1, [3, 4]), False),
        (_Chunk(1, [4, 3]), False),
        (_Chunk(2, [8, 8]), False),
        (_Chunk(None), False),
        (_Chunk(1, is_encrypted=True), False),
        (_Chunk(1, counts_text=True), False),
        (_Chunk(1, levels=[1, 2]), True),
        (_Chunk(1, levels=[0, 2]), True),
        (_Chunk(1, levels=[1, 0]), True),
        (_Chunk(1, levels=[2, 2]), False),
        (_Chunk(1, levels=[1, 1]), False),
    ],
)
def test_a_chunk_is_asked_only_when_what_it_says_fits_its_column(chunk: _Chunk, fits: bool) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), sink)

    assert chunk.fits(pq.read_metadata(sink).schema.column(0)) is fits
