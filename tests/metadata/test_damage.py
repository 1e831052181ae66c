"""A metadata table that is damaged or stale: readers go without it, the next write builds it anew or refuses, and no
row is lost.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyhudi.errors import MetadataTableDamaged
from pyhudi.metadata.build import MetadataTableRebuilt
from pyhudi.model.filenames import METADATA_TABLE_FOLDER, PROPERTIES_PATH
from pyhudi.queries.skip.skip import MetadataTableIgnored
from tests.support.tables.small import TestTable
from tests.support.tables.with_metadata import check, metadata_of, table_of

VERSIONS = ["6", "8", "9"]
FILES = f"{METADATA_TABLE_FOLDER}/files"


def made(version: str, **options: str) -> TestTable:
    table = table_of(version, **options)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "y", 1, 30))
    return table


def last_log(table: TestTable) -> str:
    (found,) = metadata_of(table).slices("files")
    return f"{METADATA_TABLE_FOLDER}/{found.log_files[-1].path}"


def base_file(table: TestTable) -> str:
    (found,) = metadata_of(table).slices("files")
    assert found.base_file is not None
    return f"{METADATA_TABLE_FOLDER}/{found.base_file.path}"


def cut_log(table: TestTable) -> None:
    path = last_log(table)
    table.storage.write(path, table.storage.read(path)[:-200])


def flip_bits_of_log(table: TestTable) -> None:
    path = last_log(table)
    content = bytearray(table.storage.read(path))
    middle = content.index(b"\x1f\x8b", len(content) // 3)  # a compressed block
    content[middle + 12 : middle + 30] = bytes(18)
    table.storage.write(path, bytes(content))


def lose_log(table: TestTable) -> None:
    table.storage.delete(last_log(table))


def lose_base_file(table: TestTable) -> None:
    table.storage.delete(base_file(table))


def lose_partition(table: TestTable) -> None:
    table.storage.delete_tree(FILES)


def lose_folder(table: TestTable) -> None:
    table.storage.delete_tree(METADATA_TABLE_FOLDER)


def write_beside_it(table: TestTable) -> None:
    """A writer that knows of no metadata table writes while it is away."""
    kept = {e.path: table.storage.read(e.path) for e in table.storage.walk(METADATA_TABLE_FOLDER)}
    kept[PROPERTIES_PATH] = table.storage.read(PROPERTIES_PATH)
    given, table.options = table.options, {**table.options, "hoodie.metadata.enable": "false"}
    with pytest.warns(UserWarning, match="taken out"):
        table.upsert(("d", "z", 1, 40))
    table.options = given
    for path, content in kept.items():
        table.storage.write(path, content)


NOTICED: dict[str, Callable[[TestTable], None]] = {
    "log file cut off": cut_log,
    "log file missing": lose_log,
    "base file missing": lose_base_file,
    "partition missing": lose_partition,
    "folder missing": lose_folder,
    "another writer": write_beside_it,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NOTICED)
def test_readers_go_without_it_and_the_next_write_rebuilds_it(name: str, version: str) -> None:
    table = made(version, **({"metadata_compact_max_delta_commits": "2"} if name == "base file missing" else {}))
    NOTICED[name](table)
    with pytest.warns(MetadataTableIgnored):
        rows = table.rows()
    assert rows[:3] == [("a", "x", 2, 11), ("b", "y", 1, 20), ("c", "y", 1, 30)]
    before = sorted((e.path, e.size_bytes) for e in table.storage.walk(""))

    with pytest.raises(MetadataTableDamaged, match=r"hoodie\.pyhudi\.metadata\.stale=refuse"):
        table.upsert(("e", "z", 1, 50), pyhudi_metadata_stale="refuse")
    assert sorted((e.path, e.size_bytes) for e in table.storage.walk("")) == before

    with pytest.warns(MetadataTableRebuilt):
        table.upsert(("e", "z", 1, 50))
    check(table, name)
    assert table.rows() == sorted([*rows, ("e", "z", 1, 50)])


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_what_only_reading_shows_is_found_by_the_next_compaction(version: str) -> None:
    table = made(version)
    flip_bits_of_log(table)
    with pytest.warns(MetadataTableIgnored):
        rows = table.rows()
    table.upsert(("e", "z", 1, 50))  # adds a log file, reads none
    with pytest.warns(MetadataTableRebuilt, match="during this write"):
        table.upsert(("f", "z", 1, 60), metadata_compact_max_delta_commits="1")
    check(table)
    assert table.rows() == sorted([*rows, ("e", "z", 1, 50), ("f", "z", 1, 60)])
