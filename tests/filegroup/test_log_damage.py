"""What a log file lacks of what completed writes put into it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.engine.base import as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import DamagedLog
from pyhudi.filegroup.read.log_blocks import DamageRules, report_damage, scan_slice
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.model.file_group import CommittedBytes, FileGroupId, FileSlice, LogFile
from pyhudi.storage.memory import MemoryStorage

KEYS = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["p"]})
RULES = DamageRules(raises=True, advice="")


def block(instant_time: str) -> bytes:
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant_time}, delete.encode(KEYS, []))


SIZE = len(block("001"))


def slice_of(storage: MemoryStorage, data: bytes, **committed: int) -> FileSlice:
    """A slice of one log file; keywords: `t001` is what the instant 001 put into it."""
    path = "p/.f-0_000.log.1_0-0-0"
    storage.write(path, data)
    writes = tuple(CommittedBytes(time[1:], size) for time, size in committed.items())
    log = LogFile(path, "p", "f-0", "000", 1, "0-0-0", len(data), committed=writes)
    return FileSlice(FileGroupId("p", "f-0"), "000", None, (log,))


@pytest.mark.parametrize(
    "data",
    [
        block("001") + block("002"),
        block("001")[:50] + block("001") + block("002"),
        block("001") + block("009")[:50] + block("002"),
        block("001") + block("002") + block("009")[:50] + block("009"),
    ],
    ids=["whole", "a torn block before", "one of a failed write between", "one behind"],
)
def test_several_writes_that_put_blocks_into_one_file_lack_nothing_when_theirs_are_whole(data: bytes) -> None:
    storage = MemoryStorage()
    scan_slice(storage, slice_of(storage, data, t001=SIZE, t002=SIZE), RULES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (block("001") + block("002")[:50], f"that 002 put into it {SIZE} are in no whole block .bytes {SIZE} to"),
        (block("001"), f"that 002 put into it {SIZE} are .* .it ends at byte {SIZE}"),
        (b"", "that 001 .* that 002 .* .it ends at byte 0"),
        (block("001") + block("003"), "that 002 put into it"),
        (block("001") + block("002") + b"garbage", "that 002 .* neither another block"),
    ],
    ids=["cut", "cut between blocks", "emptied", "a block that names another instant", "garbage behind"],
)
def test_the_write_whose_bytes_are_gone_is_named(data: bytes, message: str) -> None:
    storage = MemoryStorage()
    with pytest.raises(DamagedLog, match=message):
        scan_slice(storage, slice_of(storage, data, t001=SIZE, t002=SIZE), RULES)


def test_archived_writes_are_asked_only_where_something_is_no_block() -> None:
    storage, asked = MemoryStorage(), []

    def archived(log: LogFile) -> tuple[CommittedBytes, ...]:
        asked.append(log.path)
        return (CommittedBytes("001", SIZE),)

    rules = DamageRules(raises=True, advice="", archived=archived)
    scan_slice(storage, slice_of(storage, block("001")), rules)
    scan_slice(storage, slice_of(storage, block("001") + block("002"), t002=SIZE), rules)
    assert not asked
    for data in (b"", block("001")[:60], block("001")[:60] + block("002")):
        with pytest.raises(DamagedLog, match="that 001 put"):
            scan_slice(storage, slice_of(storage, data), rules)


def test_files_are_looked_at_by_this_process_or_by_tasks_and_warned_of_once_each() -> None:
    storage = MemoryStorage()
    whole = slice_of(storage, block("001"), t001=SIZE)
    (log,) = whole.log_files
    slices = []
    for number in range(300):
        path = f"p/.f{number}-0_000.log.1_0-0-0"
        storage.write(path, b"" if number == 7 else block("001"))
        known = LogFile(path, "p", f"f{number}-0", "000", 1, "0-0-0", SIZE, committed=log.committed)
        slices.append(FileSlice(FileGroupId("p", known.file_id), "000", None, (known,)))
    for few in (slices[:10], slices):
        with pytest.warns(UserWarning, match="f7-0_000") as caught:
            report_damage(as_engine(LocalEngine(2)), storage, few, DamageRules(raises=False, advice="Go on."))
        assert len(caught) == 1
