"""A file that is too large for its kind is refused before it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.markers import list_markers
from pyhudi.filegroup.write.partition_metadata import partition_creation_time
from pyhudi.formats.properties import print_properties
from pyhudi.index.consistent_bucket import load_ring
from pyhudi.model.new_table import CHECKSUM_KEY, table_checksum
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage, Storage, open_storage
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.timeline.lsm_manifest import load_manifest
from pyhudi.timeline.table_properties import load_table_config
from tests.support.values.limits import output_within

TIME = "20240101000000000"
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "6",
    CHECKSUM_KEY: table_checksum({"hoodie.table.name": "t"}),
}
HUGE_BYTES = 300 << 20  # of holes: they take no room on the disk


@pytest.mark.parametrize("kind", ["local", "memory", "arrow"])
def test_a_file_is_read_up_to_its_limit_and_refused_beyond(tmp_path: Path, kind: str) -> None:
    storage: Storage = MemoryStorage() if kind == "memory" else LocalStorage(str(tmp_path))
    if kind == "arrow":
        storage = ArrowStorage("fs://t", filesystem=pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()))
    storage.write("x", b"12345")

    assert storage.read("x") == storage.read("x", 5) == b"12345"
    with pytest.raises(CorruptFile, match=r"/x: 5 bytes, where such a file has 4 at most"):
        storage.read("x", 4)


def huge(folder: str, path: str) -> LocalStorage:
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.truncate(HUGE_BYTES)
    return LocalStorage(folder)


def refusals(folder: str) -> list[bool]:
    """Whether each small file of a table says that it is too large."""
    markers, ring = f".hoodie/.temp/{TIME}/", ".hoodie/.bucket_index/consistent_hashing_metadata/p/"
    huge(folder, f"{markers}MARKERS.type")
    huge(folder, "h/manifest_1")
    huge(folder, "h/_version_")  # as other text: the newest manifest counts
    huge(folder, "g/manifest_1")
    LocalStorage(folder).write("g/_version_", b"1")
    huge(folder, f"{ring}00000000000000.hashing_meta")
    storage = huge(folder, "p/.hoodie_partition_metadata")
    assert load_manifest(storage, "h").files == ()
    refused = []
    for call in (
        lambda: list_markers(storage, TIME),
        lambda: load_manifest(storage, "g"),
        lambda: load_ring(storage, "p", ()),
        lambda: partition_creation_time(storage, "p"),
    ):
        try:
            call()
        except CorruptFile as error:
            refused.append("bytes, where such a file has" in str(error))
    return refused


def test_small_files_of_three_hundred_megabytes_are_refused_without_their_memory(tmp_path: Path) -> None:
    work = f"print(refusals({str(tmp_path)!r}))"
    output = output_within("from tests.storage.test_file_size import *", work, memory_mb=200, cpu_s=10)

    assert output == "[True, True, True, True]\n"


def test_properties_that_are_too_large_count_as_ones_that_are_not_whole(tmp_path: Path) -> None:
    storage = huge(str(tmp_path), ".hoodie/hoodie.properties")
    with pytest.raises(CorruptFile, match=r"properties: 314,572,800 bytes, where such a file has 16,777,216 at most"):
        load_table_config(storage, FixedClock(0))

    storage.write(".hoodie/hoodie.properties.backup", print_properties(PROPERTIES))
    assert load_table_config(open_storage(str(tmp_path)), FixedClock(0)).table_name == "t"
