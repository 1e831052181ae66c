"""A flipped bit in a page is an error that names its file, never another row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile, HudiError, HudiTable, write_hudi
from tests.support.sweeps import examples

ROWS = 300
BY_ORDERING = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
CHECKSUMS = "hoodie.pyhudi.page.checksums"


def rows(count: int = ROWS, version: int = 1) -> pa.Table:
    numbers = np.random.default_rng(version)
    return pa.table(
        {
            "id": [f"key-{n:05d}" for n in range(count)],
            "ts": pa.array([version] * count, pa.int64()),
            "n": pa.array(numbers.integers(0, 1 << 40, count)),
            "x": pa.array(numbers.random(count)),
            "few": pa.array(["a", "b", None] * (count // 3)),
            "at": pa.array(numbers.integers(0, 1 << 50, count)).cast(pa.timestamp("us", "UTC")),
            "list": pa.array([[n, n + 1] for n in range(count)], pa.list_(pa.int32())),
            "place": pa.array([{"zip": str(n)} for n in range(count)], pa.struct([("zip", pa.string())])),
        }
    )


def table(folder: Path, codec: str, table_type: str = "COPY_ON_WRITE", **options: object) -> HudiTable:
    made = HudiTable.create(folder, rows().schema, record_key="id", ordering="ts", table_type=table_type)
    made.insert(rows(), options={"hoodie.parquet.compression.codec": codec, **options})
    return made


def the_file(folder: Path, ending: str) -> Path:
    (file,) = (path for path in folder.rglob(f"*{ending}*") if ".hoodie" not in path.parts)
    return file


def page_ranges(content: bytes) -> Iterator[range]:
    """The bytes of each column's pages, headers included. `content` begins as a Parquet file does."""
    metadata = pq.read_metadata(pa.BufferReader(content[: content.rindex(b"PAR1") + 4]))
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            yield range(first, first + chunk.total_compressed_size)


def flips(content: bytes, at: int = 0, count: int = 400) -> Iterator[tuple[int, bytes]]:
    """The content with one bit of a page flipped, many times. `at`: where the Parquet file begins."""
    places = [place for pages in page_ranges(content[at:]) for place in pages]
    # Headers have no checksum, and are at the beginning of each column.
    headers = [place for pages in page_ranges(content[at:]) for place in pages[:20]]
    numbers = np.random.default_rng(len(content))
    for place in numbers.choice([*headers, *numbers.choice(places, len(headers))], examples(count)).tolist():
        damaged = bytearray(content)
        damaged[at + place] ^= 1 << int(numbers.integers(8))
        yield place, bytes(damaged)


def damage(file: Path) -> None:
    """Flip a bit of the last number in the column `n`."""
    content = bytearray(file.read_bytes())
    chunk = pq.read_metadata(file).row_group(0).column(7)
    content[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 4
    file.write_bytes(content)


def same_or_error(file: Path, content: Iterator[tuple[int, bytes]], read: Callable[[], pa.Table]) -> tuple[int, int]:
    """How many of the damaged contents were errors, and how many read as the right rows."""
    whole, expected = file.read_bytes(), read()
    errors = unharmed = 0
    for place, damaged in content:
        file.write_bytes(damaged)
        try:
            assert read().equals(expected), f"other rows with a flipped bit at byte {place}"
            unharmed += 1
        except HudiError as error:
            errors += 1 if file.name in str(error) else pytest.fail(f"{error} does not name the file")
    file.write_bytes(whole)
    return errors, unharmed


@pytest.mark.parametrize("codec", ["zstd", "snappy", "uncompressed"])
def test_a_flipped_bit_in_a_base_file_never_reads_as_another_row(tmp_path: Path, codec: str) -> None:
    table(tmp_path / "t", codec)
    file = the_file(tmp_path / "t", ".parquet")

    def read() -> pa.Table:
        return HudiTable(tmp_path / "t").scan().to_arrow()

    errors, unharmed = same_or_error(file, flips(file.read_bytes()), read)

    assert errors > unharmed


@pytest.mark.thorough
@pytest.mark.parametrize("codec", ["snappy", "uncompressed"])
def test_a_flipped_bit_in_a_log_block_never_reads_as_another_row(tmp_path: Path, codec: str) -> None:
    made = table(tmp_path / "t", codec, "MERGE_ON_READ")
    made.upsert(rows(version=2))
    file = the_file(tmp_path / "t", ".log.")
    content = file.read_bytes()

    def read() -> pa.Table:
        return HudiTable(tmp_path / "t").scan().to_arrow()

    errors, unharmed = same_or_error(file, flips(content, content.index(b"PAR1")), read)

    assert errors > unharmed


def renamed(content: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """The content with one bit of a column's name flipped, eight times for each place in the footer of its file."""
    at = content.rindex(b"PAR1") - 4
    start = at - int.from_bytes(content[at : at + 4], "little")
    mark = bytes([len(name)]) + name.encode()
    while (start := content.find(mark, start, at)) >= 0:
        for bit in range(8):
            damaged = bytearray(content)
            damaged[start + 1 + bit * 5 % len(name)] ^= 1 << bit
            yield start, bytes(damaged)
        start += 1


@pytest.mark.parametrize("name", ["few", "_hoodie_record_key", "ts", "zip"])
def test_a_flipped_bit_in_the_name_of_a_column_never_makes_it_null(tmp_path: Path, name: str) -> None:
    table(tmp_path / "t", "zstd")
    file = the_file(tmp_path / "t", ".parquet")

    def read() -> pa.Table:
        return HudiTable(tmp_path / "t").scan().to_arrow()

    errors, _ = same_or_error(file, renamed(file.read_bytes(), name), read)

    assert errors >= 7, "nearly each bit of the name in the schema"


@pytest.mark.parametrize("name", ["few", "_hoodie_record_key", "ts", "zip"])
def test_a_flipped_bit_in_the_name_of_a_column_of_a_log_block_adds_no_row(tmp_path: Path, name: str) -> None:
    made = table(tmp_path / "t", "zstd", "MERGE_ON_READ")
    made.upsert(rows(version=2))
    file = the_file(tmp_path / "t", ".log.")

    def read() -> pa.Table:
        return HudiTable(tmp_path / "t").scan().to_arrow()

    errors, _ = same_or_error(file, renamed(file.read_bytes(), name), read)

    assert errors >= 7, "nearly each bit of the name in the schema"


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("name", ["few", "_hoodie_record_key", "ts"])
def test_a_flipped_bit_in_the_name_of_a_column_of_an_avro_block_adds_no_row(
    tmp_path: Path, name: str, version: int
) -> None:
    write_hudi(tmp_path / "t", rows(), record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=BY_ORDERING,
               table_version=version)  # fmt: skip
    later = rows(version=2).append_column("more", pa.array([1] * ROWS))  # which the base file rightly lacks
    write_hudi(tmp_path / "t", later, options={"hoodie.logfile.data.block.format": "avro", **BY_ORDERING})
    file = the_file(tmp_path / "t", ".log.")
    content = file.read_bytes()
    at = content.index(f'"name":"{name}"'.encode()) + 8

    def flipped() -> Iterator[tuple[int, bytes]]:
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at + bit * 5 % len(name)] ^= 1 << bit
            yield at, bytes(damaged)

    errors, _ = same_or_error(file, flipped(), lambda: HudiTable(tmp_path / "t").scan().to_arrow())

    assert errors == 8


@pytest.mark.parametrize("verb", ["count", "upsert", "delete", "update", "overwrite", "compact", "cluster", "changes"])
def test_a_column_with_a_damaged_name_is_neither_read_nor_rewritten_as_null(tmp_path: Path, verb: str) -> None:
    made = table(tmp_path / "t", "zstd", "MERGE_ON_READ" if verb == "compact" else "COPY_ON_WRITE")
    if verb == "compact":
        made.upsert(rows(30, version=2))
    file = the_file(tmp_path / "t", ".parquet")
    _, damaged = next(renamed(file.read_bytes(), "few"))
    file.write_bytes(damaged)
    made = HudiTable(tmp_path / "t")
    calls = {
        "count": lambda: made.count(where="few = 'a'"),
        "upsert": lambda: made.upsert(rows(30, version=2)),
        "delete": lambda: made.delete(rows(30)),
        "update": lambda: made.update("n > 5", values={"x": 1.0}),
        "overwrite": lambda: made.overwrite(rows(30).slice(0, 1), where="few = 'a'"),
        "compact": lambda: made.compact(),
        "cluster": lambda: made.cluster(),
        "changes": lambda: made.changes("earliest").to_arrow(),
    }

    with pytest.raises(CorruptFile, match=rf"{file.name}.*'few'.*damaged"):
        calls[verb]()


@pytest.mark.parametrize("verb", ["upsert", "delete", "update", "compact", "cluster"])
def test_damage_is_not_rewritten(tmp_path: Path, verb: str) -> None:
    made = table(tmp_path / "t", "uncompressed", "MERGE_ON_READ" if verb == "compact" else "COPY_ON_WRITE")
    if verb == "compact":
        made.upsert(rows(30, version=2))
    file = the_file(tmp_path / "t", ".parquet")
    damage(file)
    calls = {
        "upsert": lambda: made.upsert(rows(30, version=2)),
        "delete": lambda: made.delete(rows(30)),
        "update": lambda: made.update("n > 5", values={"few": "z"}),
        "compact": lambda: made.compact(),
        "cluster": lambda: made.cluster(),
    }

    with pytest.raises(HudiError, match=file.name):
        calls[verb]()

    made = HudiTable(tmp_path / "t")
    with pytest.raises(HudiError, match=file.name):
        made.scan().to_arrow()


def test_point_reads_by_pages_notice_damage(tmp_path: Path) -> None:
    table(tmp_path / "t", "uncompressed")
    file = the_file(tmp_path / "t", ".parquet")
    damage(file)

    with pytest.raises(HudiError, match=file.name):
        HudiTable(tmp_path / "t").scan(["n"], where="id = 'key-00299'").to_arrow()


def test_without_checksums_damage_reads_as_other_rows(tmp_path: Path) -> None:
    """What the option is for: it saves the rows of a damaged file, and is what files without checksums allow."""
    made = table(tmp_path / "t", "uncompressed")
    file = the_file(tmp_path / "t", ".parquet")
    damage(file)
    expected = rows()

    read = HudiTable(tmp_path / "t").scan(["id", "n"], options={CHECKSUMS: False}).to_arrow().sort_by("id")

    differ = [a != b for a, b in zip(read["n"].to_pylist(), expected["n"].to_pylist(), strict=True)]
    assert sum(differ) == 1
    made.upsert(rows(30, version=2), options={CHECKSUMS: False})
    assert HudiTable(tmp_path / "t").scan().count() == ROWS


def test_checksums_are_written_unless_an_option_turns_them_off(tmp_path: Path) -> None:
    sizes = {}
    for wanted in (True, False):
        table(tmp_path / str(wanted), "uncompressed", "MERGE_ON_READ", **{CHECKSUMS: wanted}).upsert(
            rows(30, version=2), options={CHECKSUMS: wanted}
        )
        folder = tmp_path / str(wanted)
        for ending in (".parquet", ".log."):
            sizes[ending, wanted] = has_checksum(the_file(folder, ending).read_bytes())

    assert sizes == {(ending, wanted): wanted for ending in (".parquet", ".log.") for wanted in (True, False)}


def has_checksum(content: bytes) -> bool:
    """Does the first page's last bit count?"""
    at = content.index(b"PAR1")
    content = content[at : content.rindex(b"PAR1") + 4]
    pages = next(page_ranges(content))
    damaged = bytearray(content)
    damaged[pages[-1]] ^= 1
    try:
        pq.ParquetFile(pa.BufferReader(bytes(damaged)), page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        return "checksum" in str(error) or "CRC" in str(error)
    return False
