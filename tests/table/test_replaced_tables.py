"""A table that is replaced stays as it is until the new one is complete, whatever goes wrong on the way."""

from __future__ import annotations

import datetime
import decimal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, HudiError, StorageError, TableNotFound, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import PROPERTIES_PATH, REPLACEMENT_PATH
from pyhudi.queries.validation import validate
from pyhudi.sql.duckdb_session import DuckDbSession
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.staged_table import StagedTable

KEYS = {"record_key": "id", "partition_by": "p", "table_name": "t"}
OLD = [{"id": 1, "p": "x", "v": 1}, {"id": 2, "p": "y", "v": 1}]


def broken_stream() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": [1], "p": ["x"], "v": [1]})
    raise OSError("the source broke off")


def table_of(**columns: Any) -> pa.Table:
    return pa.table({"id": [9], "p": ["z"], **columns})


BAD: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "a column of nulls": (lambda: table_of(v=pa.nulls(1)), {}),
    "a null key": (lambda: pa.table({"id": pa.array([1, None]), "p": ["x", "y"]}), {}),
    "a bad name": (lambda: pa.table([[9], ["z"], [1], [2]], ["id", "p", "v", ""]), {}),
    "a name twice": (lambda: pa.table([[9], ["z"], [1], [2]], ["id", "p", "v", "v"]), {}),
    "a duration": (lambda: table_of(v=[datetime.timedelta(1)]), {}),
    "decimals that are too long": (
        lambda: table_of(v=pa.array([decimal.Decimal(1)], pa.decimal256(50, 2))),
        {},
    ),
    "a wrong option": (lambda: table_of(v=[1]), {"options": {"hoodie.parquet.compression.codec": "zipp"}}),
    "a lock that is not there": (lambda: table_of(v=[1]), {"options": {"hoodie.write.lock.provider": "nowhere"}}),
    "a bad value of a partition": (lambda: pa.table({"id": [9], "p": ["a/../../b"], "v": [1]}), {}),
    "a stream that breaks off": (broken_stream, {}),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_hudi(tmp_path / "t", OLD, **KEYS)
    return tmp_path / "t"


def rows(place: Path | MemoryStorage) -> list[dict[str, Any]]:
    table = HudiTable(MetaClient.load(place) if isinstance(place, MemoryStorage) else place)
    return sorted(table.scan(columns=["id", "p", "v"]).to_arrow().to_pylist(), key=repr)


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", list(BAD))
def test_the_old_table_stays_when_the_new_data_can_not_be_written(name: str, place: Path) -> None:
    make, more = BAD[name]
    before = files(place)

    with pytest.raises((HudiError, OSError)):
        write_hudi(place, make(), mode="replace", **KEYS, **more)

    assert rows(place) == OLD
    assert files(place) == before
    assert len(HudiTable.open(place).history()) == 1


def test_the_old_table_stays_when_a_bootstrap_fails(place: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": pa.array([1, None])}), tmp_path / "source" / "a.parquet")

    for mode in ("METADATA_ONLY", "FULL_RECORD"):
        with pytest.raises(HudiError):
            pyhudi.bootstrap(tmp_path / "source", place, record_key="id", mode=mode, overwrite=True)
        assert rows(place) == OLD


def test_the_old_table_stays_when_the_command_line_can_not_write_the_new_one(place: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,p,v\n,x,1\n")

    words = ["write", place, tmp_path / "new.csv", "--mode", "replace", "--record-key", "id"]
    assert main([str(word) for word in words]) != 0
    assert rows(place) == OLD


def test_sql_that_can_not_make_the_new_table_leaves_the_old_one(tmp_path: Path) -> None:
    session = DuckDbSession(catalog=tmp_path)
    session.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT 1 AS id, 'x' AS p, 1 AS v")
    before = session.sql("SELECT id, p, v FROM t").to_arrow().to_pylist()

    with pytest.raises(HudiError):
        session.sql("CREATE OR REPLACE TABLE t USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT NULL::INT AS id")
    assert session.sql("SELECT id, p, v FROM t").to_arrow().to_pylist() == before
    session.sql("CREATE OR REPLACE TABLE t (k INT) USING hudi TBLPROPERTIES (primaryKey='k')")
    assert session.sql("SELECT k FROM t").to_arrow().to_pylist() == []
    session.sql("CREATE OR REPLACE TABLE t USING hudi TBLPROPERTIES (primaryKey='k') AS SELECT 7 AS k FROM t")
    assert session.sql("SELECT k FROM t").to_arrow().to_pylist() == []


def test_a_table_can_be_replaced_by_rows_of_its_own(place: Path) -> None:
    write_hudi(place, HudiTable.open(place).scan(columns=["id", "p", "v"], where="p = 'x'"), mode="replace", **KEYS)

    assert rows(place) == OLD[:1]
    assert not (place / "y").exists()
    assert not list((place / ".hoodie/.temp").iterdir())


def test_what_others_wrote_meanwhile_is_replaced_and_who_is_not_through_writes_to_the_new_table(
    place: Path,
) -> None:
    write_hudi(place, OLD, operation="upsert")
    entered, may_go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [3], "p": ["x"], "v": [3]})
        entered.set()
        may_go_on.wait(20)

    writer = threading.Thread(target=lambda: write_hudi(place, slow(), operation="insert"))
    writer.start()
    assert entered.wait(20)
    write_hudi(place, [{"id": 9, "p": "x", "v": 9}], mode="replace", **KEYS)
    may_go_on.set()
    writer.join()

    assert rows(place) == [{"id": 3, "p": "x", "v": 3}, {"id": 9, "p": "x", "v": 9}]
    assert validate(MetaClient.load(HudiTable.open(place).state().storage)) == ()


class CopiesNothing(MemoryStorage):
    """As pyarrow is on HDFS."""

    def copy_file(self, source: str, target: str) -> None:
        raise StorageError("CopyFile is not supported")


def test_where_the_store_copies_nothing_the_bytes_come_through_this_process() -> None:
    storage = CopiesNothing()
    write_hudi(storage, OLD, **KEYS)
    write_hudi(storage, OLD[:1], mode="replace", **KEYS)
    assert rows(storage) == OLD[:1]


def switched() -> MemoryStorage:
    """A table whose replacer died when the new one counted and was not in its place."""
    storage = MemoryStorage()
    write_hudi(storage, OLD, **KEYS)
    rehearsal = storage.clone()
    replace = [{"id": 9, "p": "z", "v": 9}]
    write_hudi(rehearsal, replace, mode="replace", **KEYS)
    switch = max(n for n, call in enumerate(rehearsal.log, 1) if call == ("delete", PROPERTIES_PATH))
    storage.fail_at(switch + 1)
    with pytest.raises(HudiError) as raised:
        write_hudi(storage, replace, mode="replace", **KEYS)
    assert any("could not be deleted yet" in note for note in getattr(raised.value, "__notes__", []))
    storage.reset_faults()
    return storage


def test_a_reader_goes_on_while_a_dead_replacement_is_put_in_its_place() -> None:
    storage = switched()
    table = HudiTable(MetaClient.load(storage))
    assert isinstance(table.state().storage, StagedTable)
    scan = table.scan(columns=["id"])
    assert table.path == storage.root

    write_hudi(storage, [{"id": 10, "p": "z", "v": 1}], operation="insert")

    assert scan.to_arrow().to_pylist() == [{"id": 9}]
    assert sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == [9, 10]
    assert storage.stat(REPLACEMENT_PATH) is None


def test_nothing_is_written_to_a_table_before_it_is_in_its_place() -> None:
    staged = MetaClient.load(switched()).storage

    for change in (
        lambda: staged.write("a", b""),
        lambda: staged.create_new("a", b""),
        lambda: staged.open_output("a"),
        lambda: staged.delete(PROPERTIES_PATH),
        lambda: staged.delete_tree(""),
    ):
        with pytest.raises(WriteConflict, match="the next write finishes the replacement first"):
            change()


@pytest.mark.parametrize("act", ["service", "drop", "replace", "alter"])
def test_every_change_finishes_a_dead_replacement_first(act: str) -> None:
    storage = switched()
    table = HudiTable(MetaClient.load(storage))

    if act == "drop":
        table.drop()
        assert storage.paths() == ()
        with pytest.raises(TableNotFound):
            MetaClient.load(storage)
        return
    if act == "replace":
        write_hudi(storage, OLD, mode="replace", **KEYS)
    elif act == "service":
        table.clean()
    else:
        table.alter(pyhudi.schema.AddColumn("w", pa.int32()))

    assert rows(storage) == (OLD if act == "replace" else [{"id": 9, "p": "z", "v": 9}])
    assert MetaClient.load(storage).storage is storage
    assert validate(MetaClient.load(storage)) == ()


def test_a_dropped_table_does_not_come_back_as_the_one_that_should_have_replaced_it() -> None:
    storage = MemoryStorage()
    write_hudi(storage, OLD, **KEYS)
    rehearsal = storage.clone()
    write_hudi(rehearsal, OLD[:1], mode="replace", **KEYS)
    named = next(n for n, call in enumerate(rehearsal.log, 1) if call == ("create_new", REPLACEMENT_PATH))
    storage.fail_at(named, "after")
    with pytest.raises(HudiError):
        write_hudi(storage, OLD[:1], mode="replace", **KEYS)
    storage.reset_faults()
    assert rows(storage) == OLD

    before_drop = storage.clone()
    HudiTable(MetaClient.load(before_drop)).drop()
    for n in range(1, len(before_drop.log) + 1):
        dropping = storage.clone()
        dropping.fail_at(n)
        with pytest.raises(HudiError):
            HudiTable(MetaClient.load(dropping)).drop()
        dropping.reset_faults()
        with suppress(TableNotFound):
            assert rows(dropping) == OLD


def test_of_two_that_replace_a_table_at_once_the_first_one_wins(place: Path) -> None:
    other = [{"id": 8, "p": "x", "v": 8}]

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [7], "p": ["x"], "v": [7]})
        write_hudi(place, other, mode="replace", **KEYS)

    with pytest.raises(HudiError):
        write_hudi(place, overtaken(), mode="replace", **KEYS)

    assert rows(place) == other
    assert not [path for path in (place / ".hoodie/.temp").rglob("*") if path.is_file()]
    assert validate(HudiTable.open(place).state()) == ()


def test_a_replacement_that_is_not_of_this_release_is_not_taken_for_one(place: Path) -> None:
    for name in (b"../x", b"replacement-1", b"\xff", b"x" * 2000):
        (place / REPLACEMENT_PATH).write_bytes(name)
        write_hudi(place, OLD, operation="upsert")
        assert rows(place) == OLD
    (place / PROPERTIES_PATH).unlink()
    with pytest.raises(TableNotFound):
        HudiTable.open(place)
    with pytest.raises(ConfigError, match="without table properties"):
        write_hudi(place, OLD, **KEYS)
