"""Which blocks of a slice's log files count, by what command blocks say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_to_merge
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.blocks.command import rollback_block
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.model.file_group import LogFile
from pyhudi.storage.memory import MemoryStorage

KEYS = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["p"]})
ALL_ARCHIVED = BlockRules(6, lambda instant_time: True)


def block(instant_time: str) -> bytes:
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant_time}, delete.encode(KEYS, []))


def undone(target: str) -> bytes:
    return rollback_block("900", target)


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ([block("001") + block("002") + block("002") + block("002"), undone("002")], ["001"]),
        ([block("002"), block("001") + block("002"), block("003") + undone("002")], ["001", "003"]),
        ([block("001"), undone("002"), block("002") + block("002")], ["001", "002", "002"]),
        ([block("001") + block("001"), block("002"), undone("001") + undone("002")], []),
    ],
    ids=["in one file", "among those of others", "before them", "of every instant"],
)
def test_a_command_takes_back_all_earlier_blocks_of_its_target_and_no_others(
    files: list[bytes], kept: list[str]
) -> None:
    storage, logs = MemoryStorage(), []
    for version, data in enumerate(files, 1):
        path = f"p/.f-0_000.log.{version}_0-0-0"
        storage.write(path, data)
        logs.append(LogFile(path, "p", "f-0", "000", version, "0-0-0", len(data)))

    found = blocks_to_merge(storage, logs, ALL_ARCHIVED)

    assert [merged.instant_time for merged in found] == kept
