"""Log blocks that real Hudi wrote: every one is read, and written again to the same bytes."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.formats.log.blocks import avro_data, command, delete
from pyhudi.formats.log.envelope import (
    MAGIC,
    SEARCH_WINDOW_BYTES,
    BlockFrame,
    BlockType,
    CorruptRange,
    HeaderKey,
    encode_block,
    scan_frames,
)


def _log_files(shared: Path) -> Iterator[tuple[str, bytes]]:
    archives = [*(shared / "golden").glob("*/*.zip"), *(shared / "fixtures" / "hudi-tables").glob("*.zip")]
    for archive in sorted(archives):
        with zipfile.ZipFile(archive) as files:
            for name in files.namelist():
                base = name.rpartition("/")[2]
                if name.startswith("__MACOSX") or base.endswith(".crc") or "/archived/" in name:
                    continue
                if base.startswith(".") and ".log." in base:
                    yield name, files.read(name)


def test_blocks_of_real_hudi_are_written_again_to_the_same_bytes(shared: Path) -> None:
    counts: Counter[str] = Counter()
    for name, data in _log_files(shared):
        for frame in scan_frames(pa.BufferReader(data), name):
            if isinstance(frame, CorruptRange):
                counts["corrupt"] += 1
                continue
            content = data[frame.content_offset : frame.content_offset + frame.content_size]
            again = content
            if frame.block_type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                schema = frame.header[HeaderKey.SCHEMA]
                batches = avro_data.decode(content, schema, where=name).combine_chunks().to_batches()
                again = avro_data.encode(batches[0], schema) if batches else content
            elif frame.block_type is BlockType.DELETE and "/.hoodie/metadata/" not in name:
                deletes = delete.decode(content, name)
                again = delete.encode(deletes.keys, deletes.ordering)
            assert encode_block(frame.block_type, frame.header, again) == data[frame.offset : frame.end], name
            counts[frame.block_type.name] += 1

    assert counts["AVRO_DATA"] > 500
    assert counts["DELETE"] > 600
    assert counts["COMMAND"] > 20
    assert counts["corrupt"] > 30  # the damaged logs among them


def test_the_rollback_block_has_the_bytes_that_hudi_writes() -> None:
    block = command.rollback_block("20250126040936578", "20250126040826878")

    (frame,) = scan_frames(pa.BufferReader(block), "log")

    assert len(block) == 105
    assert isinstance(frame, BlockFrame)
    assert command.rollback_target(frame.header) == "20250126040826878"


def test_a_sound_block_followed_by_garbage_is_dropped_with_the_garbage_and_the_next_is_read() -> None:
    block = command.rollback_block("002", "001")

    frames = list(scan_frames(pa.BufferReader(block + b"garbage" + block), "log"))

    assert [type(frame) for frame in frames] == [CorruptRange, BlockFrame]
    assert frames[1].offset == len(block) + len(b"garbage")


@pytest.mark.parametrize("windows", [1, 2])
@pytest.mark.parametrize("of_the_magic", range(len(MAGIC) + 1))
def test_the_block_after_a_damaged_range_is_found_wherever_its_magic_lies(windows: int, of_the_magic: int) -> None:
    """Damaged bytes are searched window by window; `of_the_magic` bytes of the next magic lie in an earlier one."""
    damaged = MAGIC + bytes(windows * SEARCH_WINDOW_BYTES - of_the_magic)
    block = command.rollback_block("002", "001")

    frames = list(scan_frames(pa.BufferReader(damaged + block + block), "log"))

    assert [(type(frame), frame.offset) for frame in frames] == [
        (CorruptRange, 0),
        (BlockFrame, len(damaged)),
        (BlockFrame, len(damaged) + len(block)),
    ]


def test_a_file_that_does_not_start_with_the_magic_is_no_log_file() -> None:
    with pytest.raises(CorruptFile, match="at byte 0: expected the log magic"):
        list(scan_frames(pa.BufferReader(b"PAR1" + bytes(40)), "x.log.1"))


def test_a_delete_with_one_null_of_two_ordering_values_keeps_the_other() -> None:
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a", "b"], "_hoodie_partition_path": ["p", "p"]})
    ordering = [pa.array([5, None], pa.int64()), pa.array([None, None], pa.int64())]

    block = delete.encode(keys, ordering)

    # Branch 12 of the union is a list, here of a long and a null; without any value it is branch 2, the int 0.
    first = bytes.fromhex("02 02 61 02 02 70 18 02 04 06 0a 00 00")
    second = bytes.fromhex("02 02 62 02 02 70 04 00")
    assert block[8:] == b"\x04" + first + second + b"\x00"
    found = delete.decode(block)
    assert found.commit_time.to_pylist() == [False, True]
    assert [column.to_pylist() for column in found.ordering] == [[5, None], [None, None]]


@pytest.mark.parametrize(
    ("kind", "number", "written"),
    [(pa.timestamp("us", "UTC"), 5, "06 0a"), (pa.timestamp("ms"), 5, "06 0a"), (pa.date32(), 5, "04 0a")],
    ids=str,
)
def test_a_delete_has_the_numbers_of_times_and_days_as_real_hudi_compares_them(
    kind: pa.DataType, number: int, written: str
) -> None:
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["p"]})
    value = pa.array([number], pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)

    block = delete.encode(keys, [value])

    assert block[8:] == b"\x02" + bytes.fromhex("02 02 61 02 02 70" + written) + b"\x00"
    assert delete.decode(block).ordering[0].cast(kind).equals(value)


@pytest.mark.parametrize("valued", [False, True])
def test_deletes_are_few_python_objects_at_once_however_many_a_block_has(valued: bool) -> None:
    count = 50_000
    names = [f"key-{number:08d}" for number in range(count)]
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": names, "_hoodie_partition_path": ["p"] * count})
    block = delete.encode(keys, [pa.array(range(count), pa.int64())] if valued else [])

    tracemalloc.start()
    found = delete.decode(block)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found.keys.equals(keys)
    assert [column.to_pylist() for column in found.ordering] == ([list(range(count))] if valued else [])
    assert peak_bytes < count * 250, f"{peak_bytes / count:.0f} bytes for each delete"


@pytest.mark.parametrize(
    "columns",
    [
        [pa.array([None, 1, None, 2] * 9000, pa.int64())],
        [pa.array(["a", None, "b", "c"] * 9000), pa.array([None, None, 2.5, 1.5] * 9000)],
    ],
    ids=["one", "two"],
)
def test_ordering_values_of_many_deletes_are_read_as_written(columns: list[pa.Array]) -> None:
    count = len(columns[0])
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["k"] * count, "_hoodie_partition_path": ["p"] * count})

    found = delete.decode(delete.encode(keys, columns))

    assert list(found.ordering) == columns
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    assert found.commit_time.to_pylist() == [all(value is None for value in row) for row in rows]


_DELETED_AT = [
    pa.array([True, False, None]), pa.array([1, -5, None], pa.int32()), pa.array([2**62, -(2**62), 0], pa.int64()),
    pa.array([1.5, None, -0.0], pa.float32()), pa.array([1.5, None, float("inf")]), pa.array([b"", b"\xff", None]),
    pa.array(["", "é" * 5000, None]), pa.array([None, Decimal("-1.5"), Decimal(10**14)], pa.decimal128(30, 15)),
    pa.array([0, None, 86_399_999_999], pa.time64("us")),
]  # fmt: skip


@pytest.mark.parametrize("values", _DELETED_AT, ids=lambda values: str(values.type))
def test_deletes_are_decoded_as_fastavro_decodes_them(values: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long texts, nulls and every kind of value; in one piece, and in parts whose ends are anywhere in a record."""
    names = ["k", "long" * 40, "long" * 5000] * 40
    paths = ["p", None, "a/long/path" * 20] * 40
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": names, "_hoodie_partition_path": paths})
    block = delete.encode(keys, [pa.concat_arrays([values] * 40)])
    (rows,) = fastavro.schemaless_reader(io.BytesIO(block[8:]), delete._PARSED, None, return_record_name=True).values()

    monkeypatch.setattr(delete, "_READ_BYTES", 997)
    whole, parts = delete.decode(block), list(delete.decoded_parts(io.BytesIO(block), len(block)))

    assert whole.keys.equals(keys)
    assert whole.keys.column(0).to_pylist() == [row["recordKey"] for row in rows]
    assert whole.keys.column(1).to_pylist() == [row["partitionPath"] for row in rows]
    given = [None if row["orderingVal"] == delete._NO_ORDERING else row["orderingVal"][1]["value"] for row in rows]
    assert whole.ordering[0].to_pylist() == given
    assert pa.Table.from_batches([part.keys for part in parts]).combine_chunks().to_batches() == [keys]
    none = pa.nulls(1, whole.ordering[0].type)
    alone = [part.ordering[0] if part.ordering else pa.concat_arrays([none] * len(part.keys)) for part in parts]
    assert pa.concat_arrays(alone).equals(whole.ordering[0])
    assert pa.concat_arrays([part.commit_time for part in parts]).equals(whole.commit_time)


def test_every_byte_of_a_log_may_be_flipped_or_cut_without_another_error_than_ours() -> None:
    keys = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a", "b"], "_hoodie_partition_path": ["p", "p"]})
    deletes = delete.encode(keys, [pa.array([5, None], pa.int64())])
    log = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "001"}, deletes)
    log += command.rollback_block("002", "001")
    refused = 0

    def read(data: bytes) -> None:
        for frame in scan_frames(pa.BufferReader(data), "log"):
            if isinstance(frame, BlockFrame) and frame.block_type is BlockType.DELETE:
                delete.decode(data[frame.content_offset : frame.content_offset + frame.content_size])

    for position in range(len(log)):
        for damaged in (log[:position], log[:position] + bytes([log[position] ^ 0xFF]) + log[position + 1 :]):
            try:
                read(damaged)
            except HudiError:
                refused += 1

    assert refused > 0
