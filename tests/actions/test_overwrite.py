"""Overwriting: a crash at any moment leaves the old table or none, and overwriting again finishes the work."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.actions.save_modes import check_place, remove_table
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.storage.memory import InjectedFault, MemoryStorage
from pyhudi.table.write import write_table
from pyhudi.timeline.table_properties import table_exists

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}


def table() -> MemoryStorage:
    storage = MemoryStorage("overwrite")
    rows = pa.table({"id": ["a", "b"], "p": ["x", "y"]})
    write_table(storage, rows, LocalEngine(), WriteOptions.parse(OPTIONS))
    return storage


def files(storage: MemoryStorage) -> set[str]:
    return {info.path for info in storage.walk("")}


def test_removing_a_table_leaves_nothing() -> None:
    storage = table()

    remove_table(storage)

    assert files(storage) == set()


@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_crash_leaves_the_whole_table_or_none_and_the_next_overwrite_cleans_up(kind: str) -> None:
    whole = table()
    before = files(whole)
    crashes = 0
    for call in range(1, 200):
        storage = whole.clone()
        storage.fail_at(call, kind=kind)
        try:
            remove_table(storage)
        except InjectedFault:
            crashes += 1
        storage.reset_faults()
        left = files(storage)
        if not left:
            break
        assert left == before or not table_exists(storage)
        # Data files of the old table never lie there without something that keeps a new table away.
        if not table_exists(storage) and any(not path.startswith(".hoodie/") for path in left):
            with pytest.raises(ConfigError, match="interrupted overwrite"):
                check_place(storage, overwrite=False)
        if not table_exists(storage):
            check_place(storage, overwrite=True)
        remove_table(storage)
        assert files(storage) == set()

    assert crashes >= 4


def test_a_folder_of_something_else_is_not_overwritten() -> None:
    storage = MemoryStorage("photos")
    storage.write("cat.jpg", b"meow")

    with pytest.raises(ConfigError, match=r"cat\.jpg"):
        check_place(storage, overwrite=True)
