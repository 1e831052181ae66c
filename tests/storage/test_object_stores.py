"""Tables on object stores, against servers on this machine: conditional puts, two writers at once, torn uploads.

S3 is moto's and always there. Azure is Microsoft's Azurite and Google's storage its own testbench: `make servers`.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import write_hudi
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, PathExists, PathNotFound, StorageError
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.model.options.concurrency import StorageLockOptions
from pyhudi.storage import Storage, SystemClock, open_storage
from pyhudi.storage.versioned import versioned_files
from tests.support.servers.object_stores import ObjectStoreServer
from tests.support.tables.small import DEFAULTS, NO_METADATA, TestTable, rows_of

MANY = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
    "hoodie.write.num.retries.on.conflict.failures": "20",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}


@pytest.fixture
def storage(stored: Storage) -> Storage:
    return stored


def test_what_was_written_is_read_listed_and_deleted(storage: Storage) -> None:
    storage.write("a/b/one.bin", b"one")
    storage.write("a/two.bin", b"two")

    assert storage.read("a/b/one.bin") == b"one"
    assert [(info.name, info.is_dir) for info in storage.list("a")] == [("b", True), ("two.bin", False)]
    assert sorted(info.path for info in storage.walk("")) == ["a/b/one.bin", "a/two.bin"]
    info = storage.stat("a/two.bin")
    assert info is not None
    assert info.size_bytes == 3
    assert storage.delete("a/two.bin")
    assert not storage.delete("a/two.bin")
    storage.delete_tree("a")
    assert list(storage.walk("")) == []
    with pytest.raises(PathNotFound, match=r"one\.bin"):
        storage.read("a/b/one.bin")


def test_an_object_is_created_once_however_many_try(storage: Storage) -> None:
    def create(number: int) -> bool:
        try:
            storage.create_new(".hoodie/timeline/x.commit", f"writer {number}".encode())
        except PathExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(16)))

    assert sum(made) == 1
    assert storage.read(".hoodie/timeline/x.commit") == f"writer {made.index(True)}".encode()


def test_an_object_is_replaced_only_in_the_version_that_was_read(storage: Storage) -> None:
    files = versioned_files(storage)
    assert files.read("f") is None
    first = files.replace("f", b"1", None)
    assert first is not None
    assert files.replace("f", b"again", None) is None
    second = files.replace("f", b"2", first)
    assert second is not None
    assert files.replace("f", b"late", first) is None
    assert files.read("f") == (b"2", second)
    storage.delete("f")
    assert files.replace("f", b"3", second) is None


def test_the_lock_of_hudi_excludes(storage: Storage) -> None:
    options = LockOptions("STORAGE", retry_wait_ms=5, storage=StorageLockOptions(300, 30))
    inside, most = [0], [0]

    def work(_: int) -> None:
        with hold(open_lock(options, storage, SystemClock()), 300):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))

    assert most == [1]
    assert b'"expired":true' in storage.read(".hoodie/.locks/table_lock.json")


def test_a_table_lives_there(storage: Storage) -> None:
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "y", 1, 30))
    table.delete(("b", "y"))

    assert table.rows() == [("a", "x", 2, 11), ("c", "y", 1, 30)]
    assert not list(storage.walk(".hoodie/.temp"))


@pytest.mark.parametrize("value", ["p x", "a%2Fb", "ü/ß", "1:2?3#4", "x=y&z"])
def test_partition_values_may_have_any_characters(storage: Storage, value: str) -> None:
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(("a", value, 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", value, 2, 11))

    assert table.rows() == [("a", value, 2, 11), ("b", "y", 1, 20)]


def test_a_table_with_logs_lives_there(storage: Storage) -> None:
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    table = TestTable(storage, kind, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "y", 1, 30))
    table.delete(("b", "y"))

    assert table.rows() == [("a", "x", 2, 11), ("c", "y", 1, 30)]
    assert [info.name for info in storage.walk("x") if ".log." in info.name]


@pytest.mark.parametrize("name", ["a b", "a%20b", "ü?x#y", "a+b"])
def test_the_path_of_a_table_is_taken_as_it_is(server: ObjectStoreServer, name: str) -> None:
    """One client writes what the other reads: both have to mean the same place."""
    storage = open_storage(f"{server.table().root}/{name}", server.options)
    storage.create_new("f", b"x")

    assert storage.read("f") == b"x"
    assert [info.path for info in storage.walk("")] == ["f"]


def test_a_table_is_replaced_there_by_copies_of_the_store(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TestTable(storage)
    table.upsert(("a", "x", 1, 10), ("b", "y", 1, 20))
    options = {**NO_METADATA, **DEFAULTS}
    copied = list[str]()
    real = type(storage).copy_file  # type: ignore[attr-defined]
    monkeypatch.setattr(type(storage), "copy_file", lambda *of: (copied.append(of[2]), real(*of)))

    write_hudi(storage, rows_of(("n", "x", 1, 5)), mode="replace", options=options)

    assert table.rows() == [("n", "x", 1, 5)]
    assert [path for path in copied if path.endswith(".parquet")]
    assert not [info.path for info in storage.walk("") if "replace" in info.path or info.path.startswith("y/")]
    table.upsert(("n", "x", 2, 6))
    assert table.rows() == [("n", "x", 2, 6)]


def test_what_is_deleted_leaves_nothing(storage: Storage) -> None:
    for path in ("t/a/1", "t/a/2", "t/b/3", "kept/4"):
        storage.write(path, b"x")
    storage.delete("t/b/3")
    storage.delete_tree("t/a")
    storage.delete_tree("t/a")

    assert storage.stat("t") is None
    assert [info.name for info in storage.list("")] == ["kept"]


def test_a_data_file_is_written_as_a_stream_however_large(storage: Storage) -> None:
    piece = bytes(range(256)) * (1 << 12)  # 1 MB
    with storage.open_output("p/large.parquet") as sink:
        for _ in range(20):
            sink.write(piece)

    with storage.open_input("p/large.parquet") as source:
        assert source.size() == 20 << 20
        source.seek(19 << 20)
        assert source.read() == piece


def test_an_object_that_is_deleted_while_it_is_read_is_not_found(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3's answer that a small object is gone is longer than the object, which PyArrow takes for a failure."""
    storage.write("a/heartbeat", b"alive")
    opened = type(storage).open_input

    def deleted_after_opening(self: Any, path: str) -> Any:
        file = opened(self, path)
        storage.delete(path)
        return file

    monkeypatch.setattr(type(storage), "open_input", deleted_after_opening)
    with pytest.raises(PathNotFound, match="heartbeat"):
        storage.read("a/heartbeat")


def test_two_writers_at_once_lose_nothing(storage: Storage) -> None:
    TestTable(storage, MANY, engine=LocalEngine(1), failed_writes_policy="LAZY").upsert(("shared", "x", 0, 0))

    def write(name: str) -> None:
        table = TestTable(storage, MANY, engine=LocalEngine(1), failed_writes_policy="LAZY")
        for number in range(3):
            table.upsert((f"{name}{number}", "x", 1, number), ("shared", "x", number, number))

    threads = [threading.Thread(target=write, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    keys = [row[0] for row in TestTable(storage).rows()]
    assert keys == sorted([*(f"{name}{n}" for name in ("first", "second") for n in range(3)), "shared"], key=repr)


UPLOAD = """
import sys
from pyhudi.storage import open_storage
storage = open_storage(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:]))
stream = storage.open_output("p/f.parquet")
stream.write(bytes(12 << 20))  # more than one part
print("under way", flush=True)
sys.stdin.read()
"""


def test_an_upload_that_is_broken_off_leaves_the_old_object(server: ObjectStoreServer, storage: Storage) -> None:
    """A process is killed when parts of its object have already reached the server."""
    storage.write("p/f.parquet", b"old")
    command = [sys.executable, "-c", UPLOAD, storage.root, *(f"{k}={v}" for k, v in server.options.items())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "under way\n"
        assert storage.read("p/f.parquet") == b"old"
        process.kill()

    assert [info.name for info in storage.list("p")] == ["f.parquet"]
    assert storage.read("p/f.parquet") == b"old"


def test_a_large_object_is_written_at_once(server: ObjectStoreServer, storage: Storage) -> None:
    if server.lake.startswith("gs:"):
        pytest.skip("Google's testbench has no uploads in parts at its XML interface, which Google's storage has")
    data = bytes(range(256)) * (12 << 12)  # 12 MB
    storage.write("large.bin", data)
    storage.write("large.bin", data[::-1])

    assert storage.read("large.bin") == data[::-1]


def test_a_writer_that_dies_in_the_middle_of_its_files_leaves_the_table_as_it_was(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10))
    kind = type(storage)
    create_new, calls = kind.create_new, itertools.count()

    def dying(self: Any, path: str, data: bytes) -> None:
        if next(calls) >= 3:
            raise StorageError(f"{path}: the network is gone")
        create_new(self, path, data)

    monkeypatch.setattr(kind, "create_new", dying)
    with pytest.raises(HudiError):
        table.upsert(("a", "x", 2, 11))
    monkeypatch.undo()

    assert table.rows() == [("a", "x", 1, 10)]
    table.upsert(("a", "x", 3, 12))
    assert table.rows() == [("a", "x", 3, 12)]
    assert not list(storage.walk(".hoodie/.temp"))


def test_no_credential_is_in_any_message(
    server: ObjectStoreServer, storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    refused = open_storage(f"{server.elsewhere}/table", server.options)
    texts = [repr(storage), repr(refused), str(storage), repr(versioned_files(storage))]
    for act in (
        lambda: refused.write("f", b"x"),
        lambda: refused.create_new("f", b"x"),
        lambda: refused.read("f"),
        lambda: refused.list(""),
        lambda: versioned_files(refused).replace("f", b"x", None),
    ):
        try:
            act()
        except HudiError as error:
            texts += [str(error), repr(error), str(error.__cause__)]
    assert len(texts) > 6
    assert not [text for text in (*texts, caplog.text) if server.secret and server.secret in text]


def test_rows_are_read_in_batches(storage: Storage) -> None:
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(*((f"k{n}", "x", 1, n) for n in range(50)))

    assert isinstance(table.read(), pa.Table)
    assert len(table.rows()) == 50
