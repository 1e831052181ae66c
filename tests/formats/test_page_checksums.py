"""Checksums of Parquet pages: every bit of a page counts, in base files and in log blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiError
from pyhudi.errors import CorruptFile
from pyhudi.formats.base import BaseFileOptions, Footer, new_base_file, open_base_file
from pyhudi.formats.log.blocks import parquet_data
from pyhudi.storage.memory import MemoryStorage
from tests.support.golden.folder import Golden
from tests.support.sweeps import stride

ROWS = pa.table(
    {
        "id": [f"key-{n}" for n in range(20)],
        "n": pa.array([n * n - 7 for n in range(20)], pa.int64()),
        "x": [n / 7 for n in range(20)],
        "few": ["a", "b", None, "a"] * 5,
        "tags": pa.array([[n, None] for n in range(20)], pa.list_(pa.int32())),
    }
)


def flipped(content: bytes) -> Iterator[bytes]:
    """The Parquet file with each bit of its pages flipped, headers included; in `make test` of every third byte."""
    metadata = pq.read_metadata(pa.BufferReader(content))
    chunks = [metadata.row_group(0).column(index) for index in range(metadata.num_columns)]
    for place in range(4, 4 + sum(chunk.total_compressed_size for chunk in chunks), stride()):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            yield bytes(damaged)


def base_file(codec: str) -> bytes:
    storage = MemoryStorage()
    writer = new_base_file(storage, "f.parquet", ROWS.schema, BaseFileOptions(codec=codec))
    writer.write(ROWS)
    writer.close(Footer())
    return storage.read("f.parquet")


@pytest.mark.parametrize("codec", ["zstd", "uncompressed"])
def test_no_bit_of_a_base_files_pages_changes_a_row(codec: str) -> None:
    count = errors = unharmed = 0
    for damaged in flipped(base_file(codec)):
        count += 1
        storage = MemoryStorage()
        storage.write("f.parquet", damaged)
        try:
            with open_base_file(storage, "f.parquet") as reader:
                rows = pa.Table.from_batches(list(reader.batches()))
        except HudiError as error:
            errors += "f.parquet" in str(error)
        else:
            assert rows.to_pylist() == ROWS.to_pylist()
            unharmed += 1

    assert errors + unharmed == count, "errors name the file"
    assert errors > unharmed


def test_no_bit_of_a_log_blocks_pages_changes_a_row() -> None:
    (batch,) = ROWS.to_batches()
    count = errors = unharmed = 0
    for damaged in flipped(parquet_data.encode(batch, "")):
        count += 1
        try:
            rows = parquet_data.decode(damaged, "", where="f.log")
        except HudiError as error:
            errors += "f.log" in str(error)
        else:
            assert rows.to_pylist() == ROWS.to_pylist()
            unharmed += 1

    assert errors + unharmed == count, "errors name the file"
    assert errors > unharmed


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_hudis_files_have_checksums(golden: Golden, version: str) -> None:
    folder, _ = golden(version, "cow_operations")
    source = next(path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts)
    content = bytearray(source.read_bytes())
    chunk = pq.read_metadata(source).row_group(0).column(2)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    content[first + chunk.total_compressed_size - 1] ^= 1
    storage = MemoryStorage()
    storage.write("f.parquet", bytes(content))

    with open_base_file(storage, "f.parquet") as reader, pytest.raises(CorruptFile, match=r"f\.parquet.*CRC"):
        list(reader.batches())
