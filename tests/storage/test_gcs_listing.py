"""Folders of Google's storage have no marker objects: pyarrow alone shows none of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.storage import FileInfo, MemoryStorage, Storage
from pyhudi.storage.stores.gcs_listing import entries_of_walk
from tests.support.servers.object_stores import StartServer, fake_gcs_server
from tests.support.tables.small import TestTable


def test_folders_are_taken_from_the_paths_below() -> None:
    files = [FileInfo(path, 1, 2) for path in ("t/x/1", "t/x/y/2", "t/f", "t/z/3")]

    found = [(info.path, info.is_dir) for info in entries_of_walk("t", files)]
    assert found == [("t/x", True), ("t/f", False), ("t/z", True)]
    assert [info.path for info in entries_of_walk("", files)] == ["t"]


@pytest.mark.servers
def test_folders_are_listed_without_obstore_too(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = start_server("gcs").table()
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    with_obstore = names(storage)
    monkeypatch.setitem(sys.modules, "obstore", None)

    assert names(storage) == with_obstore == [(".hoodie", True), ("x", True), ("y", True)]
    assert len(table.rows()) == 2


@pytest.mark.servers
def test_a_table_is_read_from_fake_gcs_server(tmp_path: Path) -> None:
    """pyarrow uploads its files: this server supports no conditional puts, nor plain ones in XML."""
    pytest.importorskip("obstore")
    table = TestTable(MemoryStorage(), engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y y", 1, 20))
    table.upsert(("a", "x", 2, 11))
    with fake_gcs_server(tmp_path) as server:
        there = server.table()
        for info in table.storage.walk(""):
            with there.open_output(info.path) as sink:
                sink.write(table.storage.read(info.path))

        assert names(there) == [(".hoodie", True), ("x", True), ("y y", True)]
        assert TestTable(there, engine=LocalEngine(1)).rows() == table.rows()
        there.delete_tree("x")
        assert names(there) == [(".hoodie", True), ("y y", True)]


def names(storage: Storage) -> list[tuple[str, bool]]:
    return [(info.name, info.is_dir) for info in storage.list("")]
