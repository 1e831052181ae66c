"""A disk that is full: the write fails, takes its own files away, and the next one goes on when there is room again."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, StorageError
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.sweeps import SAMPLED
from tests.support.tables.small import Row, TestTable
from tests.support.writers.interrupted_calls import AT_ONCE

START: list[Row] = [("a", "x", 1, 10), ("b", "y", 1, 20)]
CHANGE: list[Row] = [("a", "x", 2, 11), ("b", "y", 2, 21)]
NEXT: Row = ("next", "z", 1, 99)
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
METADATA_TABLE = {"hoodie.metadata.enable": "true"}


class SmallDisk(MemoryStorage):
    """Has room for `room_bytes` more. Names need no space."""

    room_bytes = 1 << 40

    @property
    def used_bytes(self) -> int:
        return sum(len(data) for data, _ in self._content.files.values())

    def fill_up_to(self, room_bytes: int) -> None:
        self.room_bytes, self._used_bytes = room_bytes, self.used_bytes

    def _put(self, path: str, data: bytes) -> None:
        if self.room_bytes < 1 << 40:
            before = len(self._content.files.get(path, (b"", 0))[0])
            if data and self.used_bytes - before + len(data) > self._used_bytes + self.room_bytes:
                raise StorageError(f"{path}: the file system refused: No space left on device.")
        super()._put(path, data)


def table_of(version: str, options: dict[str, str]) -> tuple[TestTable, SmallDisk]:
    disk = SmallDisk()
    table = TestTable(disk, {"hoodie.write.table.version": version, **AT_ONCE, **options}, engine=LocalEngine(1))
    table.bulk_insert(*START)
    return table, disk


def data_files(table: TestTable) -> set[str]:
    return {info.path for info in table.storage.walk("") if not info.path.startswith(".hoodie/")}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("options", [{}, MERGE_ON_READ, METADATA_TABLE], ids=["cow", "mor", "metadata table"])
def test_a_write_that_finds_no_room_takes_its_files_away_and_the_next_one_goes_on(
    version: str, options: dict[str, str]
) -> None:
    table, disk = table_of(version, options)
    before_bytes = disk.used_bytes
    table.upsert(*CHANGE)
    needed_bytes = disk.used_bytes - before_bytes + 2000
    failed = 0
    for room_bytes in range(0, needed_bytes, needed_bytes // (8 if SAMPLED else 60)):
        table, disk = table_of(version, options)
        before = data_files(table)
        disk.fill_up_to(room_bytes)
        try:
            table.upsert(*CHANGE)
        except HudiError:
            failed += 1
            assert table.rows() == START, room_bytes
            assert data_files(table) == before, room_bytes
        disk.fill_up_to(1 << 40)
        rows = table.rows()
        table.upsert(NEXT)
        assert table.rows() == sorted([*rows, NEXT], key=repr), room_bytes
        assert not table.meta.timeline.pending().instants, room_bytes
    assert failed


@pytest.mark.thorough
def test_what_a_dead_writer_left_makes_room_for_its_own_rollback() -> None:
    table, disk = table_of("9", {})
    before = data_files(table)
    rehearsal = TestTable(table.memory.clone(), table.options, engine=table.engine)
    large: list[Row] = [(hashlib.sha256(bytes([n])).hexdigest(), "z", 1, n) for n in range(200)]
    rehearsal.upsert(*large)
    log = rehearsal.memory.log
    completing = next(n for n, (verb, path) in enumerate(log, 1) if verb == "create_new" and path.endswith(".commit"))
    disk.fail_at(completing)
    with pytest.raises(HudiError):
        table.upsert(*large)
    disk.reset_faults()
    assert data_files(table) > before
    disk.fill_up_to(100)
    table.upsert(("a", "x", 3, 12))
    assert table.rows() == [("a", "x", 3, 12), START[1]]
    assert not table.meta.timeline.pending().instants


@pytest.fixture
def small_mount(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting is for root, on Linux")
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.thorough
def test_a_real_disk_that_is_full_is_written_to_again_when_there_is_room(small_mount: Path) -> None:
    table = TestTable(LocalStorage(str(small_mount / "table")), AT_ONCE, engine=LocalEngine(1))
    table.bulk_insert(*START)
    before = data_files(table)
    filler = small_mount / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while os.write(file.fileno(), bytes(4096)):
            pass
    with pytest.raises(HudiError):
        table.upsert(*CHANGE)
    assert data_files(table) == before
    filler.unlink()
    table.upsert(NEXT)
    assert table.rows() == [*START, NEXT]
    assert not table.meta.timeline.pending().instants
