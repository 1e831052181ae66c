"""Every byte of a log file changed or cut: whole blocks are read, damaged ones are passed over or refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.log.blocks import avro_data, delete
from pyhudi.formats.log.envelope import BlockType, CorruptRange, HeaderKey, encode_block
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.log.writer import data_block
from pyhudi.formats.properties import parse_properties
from pyhudi.formats.timeline.instant_files import decode_avro_record, decode_commit
from pyhudi.model.keys import META_COLUMNS
from pyhudi.storage.memory import MemoryStorage
from tests.support.golden.folder import shared_folder
from tests.support.golden.timelines import load_golden
from tests.support.values.damage import assert_refused_or_read

INSTANT = "20240101000000000"
COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("tags", pa.list_(pa.string())), ("v", pa.float64())])
SCHEMA = avro_from_arrow(COLUMNS, "trips", with_meta=True)
HEADER = {HeaderKey.INSTANT_TIME: INSTANT}


def rows(count: int = 3) -> pa.RecordBatch:
    schema = arrow_from_avro(SCHEMA)
    data = [
        {**dict.fromkeys(META_COLUMNS, "m"), "_hoodie_record_key": f"k{n}", "id": f"k{n}", "ts": n, "tags": ["a", "b"]}
        for n in range(count)
    ]
    return pa.RecordBatch.from_pylist(data, schema)


def data_of(block_format: str) -> bytes:
    return data_block(rows(), SCHEMA, block_format, HEADER)


def deletes() -> bytes:
    keys = pa.RecordBatch.from_pylist([{"_hoodie_record_key": "k1", "_hoodie_partition_path": "p"}])
    return encode_block(BlockType.DELETE, {**HEADER, HeaderKey.SCHEMA: SCHEMA}, delete.encode(keys, [pa.array([5])]))


def command() -> bytes:
    header = {**HEADER, HeaderKey.TARGET_INSTANT_TIME: INSTANT, HeaderKey.COMMAND_BLOCK_TYPE: "0"}
    return encode_block(BlockType.COMMAND, header, b"")


def changes() -> bytes:
    header = {**HEADER, HeaderKey.SCHEMA: SCHEMA}
    return encode_block(BlockType.CDC_DATA, header, avro_data.encode(rows(), SCHEMA))


BLOCKS = {
    "avro": lambda: data_of("avro"),
    "parquet": lambda: data_of("parquet"),
    "hfile": lambda: data_of("hfile"),
    "delete": deletes,
    "command": command,
    "cdc": changes,
}


def read_log(data: bytes) -> int:
    """Read a log file in every way. Returns the number of complete blocks."""
    storage = MemoryStorage()
    storage.write("log", data)
    whole = 0
    for found in scan_log(storage, "log"):
        if isinstance(found, CorruptRange):
            continue
        whole += 1
        _ = found.instant_time, found.is_partial, found.compacted_instants, found.rollback_target
        if found.is_data:
            found.rows()
            found.rows(["ts"])
        elif found.is_delete:
            found.deletes()
    return whole


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_damaged_block_is_passed_over_or_refused(kind: str) -> None:
    data = BLOCKS[kind]()
    assert read_log(data) == 1
    # The trailer of an HFile is nearly empty, and a schema's text is long: a sample tells as much.
    step = {"hfile": 101, "avro": 37, "parquet": 19, "cdc": 37, "delete": 29}.get(kind, 1)
    assert_refused_or_read(data, read_log, step)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BLOCKS)
def test_every_byte_of_a_block(kind: str) -> None:
    assert_refused_or_read(BLOCKS[kind](), read_log, step=7 if kind == "hfile" else 1)


def test_a_block_cut_or_torn_hides_only_itself_and_never_the_blocks_before_or_behind_it() -> None:
    """As real Hudi: a range that is no whole block ends at the next magic; there is no checksum inside of blocks."""
    first, second, third = data_of("avro"), deletes(), data_of("parquet")
    storage = MemoryStorage()
    # Not at 0: a block without any byte is no damage; from its last byte on the next one's magic closes it.
    for cut in range(1, len(second) - 1, 5):
        storage.write("log", first + second[:cut] + third)
        found = list(scan_log(storage, "log"))
        kinds = [f.frame.block_type if isinstance(f, LogBlock) else None for f in found]
        # Hudi drops a sound block that garbage follows: no magic is where the next block should begin.
        if second[:cut].startswith(b"#HUDI#"):
            assert kinds == [BlockType.AVRO_DATA, None, BlockType.PARQUET_DATA], cut
        else:
            assert kinds == [None, BlockType.PARQUET_DATA], cut


def test_a_length_that_is_forged_takes_no_memory() -> None:
    for value in (2**31 - 1, 2**31, 2**40, 2**62, -1):
        for kind in ("avro", "delete"):
            data = bytearray(BLOCKS[kind]())
            data[6:14] = value.to_bytes(8, "big", signed=True)
            assert_refused_or_read(bytes(data), read_log, step=len(data))


@pytest.mark.parametrize(("version", "step"), [("0.15.0", 97), ("1.2.0", 97)])
def test_damaged_instant_files_are_refused(version: str, step: int) -> None:
    storage, _ = load_golden(shared_folder() / "golden" / version / "state_failed_writer.zip")
    folder = ".hoodie" if version == "0.15.0" else ".hoodie/timeline"
    files = [e for e in storage.list(folder) if e.name.endswith("commit") and e.size_bytes]
    assert files
    for entry in files[:1]:
        assert_refused_or_read(storage.read(entry.path), decode_commit, step)


def test_damaged_plans_are_refused() -> None:
    archive = shared_folder() / "golden" / "1.2.0" / "upgrade_a_mor_5_v8.zip"
    storage, _ = load_golden(Path(archive))
    for name in (".clean.requested", ".compaction.requested"):
        entry = next(e for e in storage.list(".hoodie/timeline") if e.name.endswith(name))
        assert_refused_or_read(storage.read(entry.path), decode_avro_record, 53)


def test_damaged_properties_are_refused() -> None:
    archive = shared_folder() / "golden" / "1.2.0" / "upgrade_a_mor_5_v8.zip"
    storage, _ = load_golden(Path(archive))
    data = storage.read(".hoodie/hoodie.properties")
    assert_refused_or_read(data, lambda variant: parse_properties(variant, "hoodie.properties"), 41)
