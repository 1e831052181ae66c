"""A first write that fails leaves nothing; one that died leaves a table that the next first write may make anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.create_table import is_written
from pyhudi.errors import ConfigError, HudiError, KeyGenError, TableExists
from pyhudi.model.filenames import PROPERTIES_PATH
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table import write as write_table
from pyhudi.table.save import write
from pyhudi.timeline.table_properties import table_exists
from tests.support.tables.small import SCHEMA, TestTable, rows_of
from tests.support.writers.dying import died_before_completing

_LOCKS = "org.apache.hudi.client.transaction.lock."
NULL_KEY = pa.table({"id": ["a", None], "k": ["x", "y"], "p": ["q", "r/s"]})
GOOD = rows_of(("a", "x", 1, 1), ("b", "y", 1, 2))


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_a_first_write_with_a_null_key_leaves_nothing(
    tmp_path: Path, operation: str, table_type: str, version: int
) -> None:
    kind = {"table_type": table_type, "table_version": version, "partition_by": "p"}

    with pytest.raises(KeyGenError, match="record key"):
        write_hudi(tmp_path / "t", NULL_KEY, operation, record_key="id", **kind)

    assert files(tmp_path / "t") == []
    write_hudi(tmp_path / "t", NULL_KEY, operation, record_key="k", **kind)
    assert HudiTable.open(tmp_path / "t").state().config.record_key_fields == ("k",)
    assert HudiTable.open(tmp_path / "t").scan().count() == 2


@pytest.mark.parametrize("provider", ["FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_a_lock_in_the_tables_folder_is_held_to_the_end(tmp_path: Path, provider: str, recwarn: Any) -> None:
    lock = {"hoodie.write.lock.provider": _LOCKS + provider}

    with pytest.raises(KeyGenError):
        write_hudi(tmp_path / "t", NULL_KEY, record_key="id", partition_by="p", options=lock)

    assert not HudiTable.exists(tmp_path / "t")
    assert {name.split("/")[1] for name in files(tmp_path / "t") if "/" in name} <= {".locks"}
    assert not recwarn.list
    write_hudi(tmp_path / "t", NULL_KEY, record_key="k", options=lock)
    assert HudiTable.open(tmp_path / "t").scan().count() == 2


def test_partitions_that_the_failed_write_made_go_and_other_files_stay(tmp_path: Path) -> None:
    notes = tmp_path / "x" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    table = TestTable(LocalStorage(str(tmp_path)))

    with pytest.MonkeyPatch.context() as failing:
        failing.setattr("pyhudi.actions.runner._complete", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.upsert(("a", "x", 1, 1), ("b", "y/z", 1, 2))

    assert files(tmp_path) == ["x", "x/notes.txt"]


def test_a_table_that_was_made_with_columns_stays(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("k", pa.string()), ("p", pa.string())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")

    with pytest.raises(KeyGenError):
        table.upsert(NULL_KEY)

    assert HudiTable.open(tmp_path / "t").schema().names[-3:] == ["id", "k", "p"]
    with pytest.raises(ConfigError, match="was made with 'id'"):
        write_hudi(tmp_path / "t", NULL_KEY, record_key="k")
    with pytest.raises(TableExists):
        write_hudi(tmp_path / "t", NULL_KEY, mode="error", record_key="k")


def test_a_table_that_another_writer_has_taken_up_meanwhile_stays() -> None:
    storage = MemoryStorage()

    def failing() -> Iterator[pa.RecordBatch]:
        TestTable(storage).upsert(("b", "x", 1, 1))
        yield from rows_of(("a", "x", 1, 1)).to_batches()
        raise ValueError("no more rows")

    with pytest.raises((ValueError, HudiError)):
        TestTable(storage).write("upsert", pa.RecordBatchReader.from_batches(SCHEMA, failing()))

    assert TestTable(storage).rows() == [("b", "x", 1, 1)]


def test_a_writer_whose_table_was_taken_back_before_it_began_makes_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    table = TestTable(storage)
    ready = write_table.prepare

    def then_taken_back(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(write_table, "prepare", ready)
        made = ready(*args, **how)
        storage.delete_tree(".hoodie")
        return made

    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(write_table, "table_removed_on_error", lambda _: 1 / 0)  # the other one has made the table
        with pytest.raises(ZeroDivisionError):
            table.upsert(("a", "x", 1, 1))
    assert table_exists(storage)
    monkeypatch.setattr(write_table, "prepare", then_taken_back)
    table.upsert(("b", "x", 1, 1))

    assert table.rows() == [("b", "x", 1, 1)]


@pytest.mark.parametrize("mode", ["append", "error", "ignore"])
def test_after_a_first_write_that_died_the_next_one_chooses_again(mode: str) -> None:
    died = died_before_completing(TestTable(MemoryStorage()), lambda table: table.upsert(("a", "x", 1, 1)))
    other = {
        "hoodie.table.name": "other",
        "hoodie.datasource.write.recordkey.field": "v",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }

    write(died.storage, GOOD, other, mode, None)

    assert died.rows(("id", "v")) == [("a", 1), ("b", 2)]
    assert died.meta.config.record_key_fields == ("v",)
    assert (died.meta.config.table_name, died.meta.config.table_type) == ("other", "MERGE_ON_READ")
    assert [entry.path for entry in died.storage.walk("") if entry.path.startswith("x/")] == []


def test_after_a_first_write_that_died_a_write_that_chooses_nothing_else_goes_on() -> None:
    died = died_before_completing(TestTable(MemoryStorage()), lambda table: table.upsert(("a", "x", 1, 1)))

    died.upsert(("b", "x", 1, 1))

    assert died.rows() == [("b", "x", 1, 1)]


def test_the_choices_of_a_table_with_a_commit_stand() -> None:
    table = TestTable(MemoryStorage())
    table.upsert(("a", "x", 1, 1))

    other = {"hoodie.datasource.write.recordkey.field": "v"}

    with pytest.raises(ConfigError, match="was made with 'id'"):
        write(table.storage, GOOD, other, "append", None)
    with pytest.raises(TableExists):
        write(table.storage, GOOD, other, "error", None)
    assert write(table.storage, GOOD, other, "ignore", None) is None

    assert table.rows() == [("a", "x", 1, 1)]


def test_a_table_that_can_not_be_read_is_somebodys() -> None:
    storage = MemoryStorage()
    assert not is_written(storage)
    storage.write(PROPERTIES_PATH, b"hoodie.table.version=nine\n")

    assert is_written(storage)
