"""Partition values that look like something else: each is read back, or refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import KeyGenError
from pyhudi.storage.local import LocalStorage
from tests.support.tables.small import TestTable
from tests.support.writers.dying import die_before_completing

TEMPORARY = ".pyhudi-x.tmp"
READABLE = [
    TEMPORARY,
    f"a/{TEMPORARY}",
    f"{TEMPORARY}/b",
    ".x",
    "_x",
    "_temporary/0",
    ".temp",
    "..a",
    "MARKERS.type",
    "hoodie.properties",
    ".hoodie_other",
    "f1-0_0-1-0_20240101000000000.parquet",
    ".f1-0_20240101000000000.log.1_0-1-0",
    "x.marker.CREATE",
    "a.crc",
    "*",
    "%2A",
    "p=*",
    "{a,b}",
    "[a]?",
    "a b",
    "ü/é",
]
REFUSED = [
    "a/.hoodie",
    ".hoodie",
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata_too",
    "a/.hoodie_partition_metadata.parquet",
    "a//b",
    "a/",
]
REFUSED += ["/a", "a/./b", "./a", ".", "..", "a/../b", "a\x00b"]
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, MERGE_ON_READ, ENCODED, {**ENCODED, **MERGE_ON_READ}])
def test_rows_of_strange_partitions_are_read_updated_and_deleted(tmp_path: Path, options: dict[str, str]) -> None:
    table = TestTable(LocalStorage(str(tmp_path / "t")), options)
    table.bulk_insert(*((f"k{n}", name, 1, n) for n, name in enumerate(READABLE)))
    assert table.rows() == sorted((f"k{n}", name, 1, n) for n, name in enumerate(READABLE))

    table.upsert(*((f"k{n}", name, 2, n) for n, name in enumerate(READABLE)))
    table.delete(*((f"k{n}", name) for n, name in enumerate(READABLE) if n % 2))

    assert table.rows() == sorted((f"k{n}", name, 2, n) for n, name in enumerate(READABLE) if not n % 2)


@pytest.mark.parametrize("name", REFUSED)
def test_a_partition_that_could_not_be_found_again_is_refused_and_leaves_no_rows(name: str) -> None:
    table = TestTable()
    table.bulk_insert(("a", "x", 1, 1))
    before = table.memory.paths()

    for operation in ("upsert", "insert", "bulk_insert"):
        with pytest.raises(KeyGenError, match="path"):
            getattr(table, operation)(("b", name, 1, 2))

    assert table.rows() == [("a", "x", 1, 1)]
    assert [path for path in table.memory.paths() if not path.startswith(".hoodie/")] == [
        path for path in before if not path.startswith(".hoodie/")
    ]


@pytest.mark.parametrize("name", [TEMPORARY, f"x/{TEMPORARY}"])
def test_files_of_a_dead_writer_in_a_strange_partition_are_rolled_back(tmp_path: Path, name: str) -> None:
    dying = TestTable()
    dying.bulk_insert(("a", name, 1, 1))
    dead = die_before_completing(dying, ("a", name, 2, 2))
    on_disk = TestTable(LocalStorage(str(tmp_path / "t")))
    for path in dying.memory.paths():
        on_disk.storage.write(path, dying.memory.read(path))

    assert on_disk.upsert(("b", "y", 1, 3)).rolled_back == (dead,)

    assert on_disk.rows() == [("a", name, 1, 1), ("b", "y", 1, 3)]
    assert not list((tmp_path / "t").rglob(f"*{dead}*.parquet"))
