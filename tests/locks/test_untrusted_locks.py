"""Whatever the lock's files contain, a writer waits no longer than its timeout, and names the holder in one line."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import CorruptFile, HudiError, LockTimeout, StorageError
from pyhudi.locks import LockOptions, dynamodb, hive_metastore, hold, open_lock
from pyhudi.locks.process import is_note, is_surely_dead, note_of_this_process
from pyhudi.locks.storage_based import LOCK_PATH
from pyhudi.model.options.concurrency import DynamoOptions, HiveLockOptions, StorageLockOptions, ZookeeperOptions
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage, Storage, SystemClock
from pyhudi.storage.versioned import LOCK_BYTES_MAX, FileBusy, versioned_files

LOCK = ".hoodie/lock"
GUARD = ".hoodie/.locks/.pyhudi-table_lock.json.tmp"
LATER_MS = 4_000_000_000_000


def lock_of(provider: str, storage: Storage) -> Any:
    return open_lock(LockOptions(provider, retry_wait_ms=5, storage=StorageLockOptions(300, 30)), storage)


def test_a_dangling_link_at_the_lock_file_is_waited_for_and_named(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / LOCK).symlink_to(tmp_path / "nothing")
    clock = FixedClock(1_760_000_000_000)
    lock = open_lock(LockOptions("FILESYSTEM", retry_wait_ms=5), LocalStorage(str(tmp_path)), clock)

    with (
        pytest.raises(LockTimeout, match=r"lock exists already: it is a symbolic link that leads nowhere"),
        hold(lock, 2),
    ):
        pass

    assert 1.5 < clock.slept_s <= 2
    assert not (tmp_path / "nothing").exists()


def test_a_foreign_lock_on_the_guard_is_waited_for_and_named(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create_new(GUARD, b"")
    with open(tmp_path / GUARD) as guard:
        fcntl.flock(guard, fcntl.LOCK_SH)
        began = time.monotonic()
        lock, message = lock_of("STORAGE", storage), r"nobody \(.*table_lock\.json\.tmp: another process"
        with pytest.raises(LockTimeout, match=message), hold(lock, 0.1):
            pass
        assert time.monotonic() - began < 30
        with pytest.raises(FileBusy):
            versioned_files(storage).replace(LOCK_PATH, b"x", None)

    lock = lock_of("STORAGE", storage)
    assert lock.try_acquire(0)
    lock.release()


def test_a_lock_whose_guard_is_kept_by_another_is_held_and_renewed_later(tmp_path: Path) -> None:
    lock = lock_of("STORAGE", LocalStorage(str(tmp_path)))
    assert lock.try_acquire(0)
    with open(tmp_path / GUARD) as guard:
        fcntl.flock(guard, fcntl.LOCK_SH)
        assert lock._renew()
        assert lock.is_held
    assert lock._renew()
    lock.release()
    assert json.loads((tmp_path / LOCK_PATH).read_bytes())["expired"]


def test_a_lock_is_given_back_as_soon_as_its_guard_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine others may stay between reading and replacing for a while."""
    lock = lock_of("STORAGE", LocalStorage(str(tmp_path)))
    assert lock.try_acquire(0)
    kind, busy = type(lock._files), [20]
    replace = kind.replace

    def later(self: Any, path: str, data: bytes, version: str | None) -> str | None:
        busy[0] -= 1
        if busy[0] > 0:
            raise FileBusy("others are at it")
        return replace(self, path, data, version)

    monkeypatch.setattr(kind, "replace", later)
    lock.release()
    assert json.loads((tmp_path / LOCK_PATH).read_bytes())["expired"]

    monkeypatch.setattr(kind, "replace", replace)
    assert lock.try_acquire(0)
    busy[0] = 10**9
    monkeypatch.setattr(kind, "replace", later)
    with pytest.warns(RuntimeWarning, match="could not be released"):
        lock.release()


def test_a_link_at_the_guard_makes_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "t/.hoodie/.locks").mkdir(parents=True)
    for target in ("outside", "t/.hoodie/.locks/there"):
        (tmp_path / "t" / GUARD).unlink(missing_ok=True)
        (tmp_path / "t" / GUARD).symlink_to(tmp_path / target)
        with pytest.raises(StorageError, match=r"symbolic link, remove it"):
            lock_of("STORAGE", LocalStorage(str(tmp_path / "t"))).try_acquire(0)
        assert not (tmp_path / target).exists()


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"expired":false,"validUntil":' + b"9" * 5000 + b',"owner":"o"}',
        b'{"expired":false,"validUntil":' + b"9" * 30 + b',"owner":"o"}',
        b'{"expired":false,"validUntil":true,"owner":"o"}',
        b'{"expired":false,"validUntil":1e3,"owner":"o"}',
        b'{"expired":false,"validUntil":1,"owner":null}',
        b"\xff\xfe",
        b'"expired validUntil owner"',
        b"null",
        b" " * (LOCK_BYTES_MAX + 1),
    ],
)
def test_a_file_that_is_no_lock_of_ours_is_one_clear_error(data: bytes, tmp_path: Path) -> None:
    for storage in (MemoryStorage(), LocalStorage(str(tmp_path))):
        storage.write(LOCK_PATH, data)
        lock = lock_of("STORAGE", storage)
        for look in (lambda lock=lock: lock.try_acquire(0), lambda lock=lock: lock.owner_note):
            with pytest.raises(CorruptFile, match="delete the file") as caught:
                look()
            assert len(str(caught.value)) < 600


NOTES = [
    b"[" * 100_000,
    b'{"pid":' + b"9" * 5000 + b"}",
    json.dumps({"pid": 10**4000, "started": "1"}).encode(),
    b'{"pid":-1,"started":"1"}',
    b'{"pid":true,"started":[]}',
    b'{"pid":1,"started":{}}',
    b'"\\ud800"',
    b"\xff" * 100,
]


@pytest.mark.parametrize("note", NOTES)
def test_no_note_of_strangers_is_taken_for_that_of_a_dead_process(note: bytes) -> None:
    assert not is_surely_dead(note)
    place = json.loads(note_of_this_process("t"))["place"]
    for pid in (10**4000, -1, 0, True):
        assert isinstance(is_surely_dead(json.dumps({"pid": pid, "started": "1", "place": place}).encode()), bool)
    assert is_note(note) in (True, False)


EVIL = "s3://KEY:SECRET/MORE@bucket \x1b[2J\r\nINFO all is well\u202e\ud800" + "x" * 5_000_000


@pytest.mark.parametrize("provider", ["FILESYSTEM", "STORAGE"])
def test_a_holders_text_is_escaped_shortened_and_without_credentials(provider: str, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    owner = EVIL if provider == "FILESYSTEM" else EVIL[:20_000]
    storage.write(LOCK, owner.encode("utf-8", errors="surrogatepass"))
    storage.write(LOCK_PATH, json.dumps({"expired": False, "validUntil": LATER_MS, "owner": owner}).encode())

    with pytest.raises(LockTimeout) as caught, hold(lock_of(provider, storage), 0):
        pass

    message = str(caught.value)
    assert "s3://***@bucket" in message
    assert r"\x1b[2J\r\nINFO" in message
    assert "SECRET" not in message
    assert message.isprintable()
    assert len(message) < 1000


LARGE = """
import resource, sys
from pyhudi.locks import LockOptions, open_lock
from pyhudi.storage import LocalStorage
from pyhudi.errors import HudiError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
lock = open_lock(LockOptions(sys.argv[2], retry_wait_ms=5), LocalStorage(sys.argv[1]))
try:
    print(lock.try_acquire(0), len(lock.owner_note) < 1000)
except HudiError as error:
    print(type(error).__name__)
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(
    ("provider", "path", "output"), [("FILESYSTEM", LOCK, "False True"), ("STORAGE", LOCK_PATH, "CorruptFile")]
)
def test_a_lock_file_of_many_gigabytes_is_not_read(provider: str, path: str, output: str, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    with open(tmp_path / path, "wb") as file:
        file.truncate(100 << 30)
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path), provider], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout.strip(), done.returncode) == (output, 0), done.stderr


def test_a_folder_at_the_lock_file_is_an_error_of_ours(tmp_path: Path) -> None:
    for provider, path in (("FILESYSTEM", LOCK), ("STORAGE", LOCK_PATH), ("STORAGE", GUARD)):
        os.makedirs(tmp_path / provider / path)
        with pytest.raises(HudiError):
            lock_of(provider, LocalStorage(str(tmp_path / provider))).try_acquire(0)


def test_a_lock_that_goes_away_at_each_look_does_not_hold_a_writer_up() -> None:
    """Others take and release the lock faster than it can be inspected."""

    class Fast(MemoryStorage):
        def create_new(self, path: str, data: bytes) -> None:
            super().create_new(path, b"")
            super().create_new(path, data)

        def stat(self, path: str) -> Any:
            self.delete(path)

    lock = open_lock(LockOptions("FILESYSTEM", retry_wait_ms=1), Fast(), SystemClock())
    assert not lock.try_acquire(0.05)


# ---- at servers, whose answers anyone may have put there

ITEMS: list[dict[str, Any]] = [
    {"recordVersionNumber": {"S": "1"}, "leaseDuration": {"S": "soon"}},
    {"recordVersionNumber": {"S": "1"}, "leaseDuration": {"S": "9" * 5000}},
    {"recordVersionNumber": {"S": "1"}, "leaseDuration": {"S": "²"}, "ownerName": {"N": "7"}},
    {"recordVersionNumber": {"S": "1"}, "leaseDuration": {"N": "7"}, "ownerName": {"S": EVIL[:100_000]}},
    {"recordVersionNumber": {"B": b"1"}, "ownerName": "somebody"},
    {},
]


class Table:
    """A stand-in for boto3's client, with one permanent item."""

    def __init__(self, item: dict[str, Any]) -> None:
        self._item = item

    def describe_table(self, **_: object) -> dict[str, Any]:
        return {"Table": {"TableStatus": "ACTIVE"}}

    def get_item(self, **_: object) -> dict[str, Any]:
        return {"Item": self._item}

    def put_item(self, **_: object) -> None:
        exceptions = pytest.importorskip("botocore.exceptions")
        raise exceptions.ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "PutItem")


@pytest.mark.parametrize("item", ITEMS, ids=range(len(ITEMS)))
def test_an_item_of_strangers_holds_the_lock_and_is_reported_in_one_line(
    item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    monkeypatch.setattr(dynamodb, "_client", lambda *_: (Table(item), exceptions))
    options = LockOptions("DYNAMODB", dynamo=DynamoOptions(table="locks", partition_key="k"))
    lock = open_lock(options, MemoryStorage(), FixedClock(1_760_000_000_000))

    with pytest.raises(LockTimeout) as caught, hold(lock, 1):
        pass
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()
    assert "SECRET" not in str(caught.value)


@pytest.mark.thorough
def test_what_boto_refuses_is_an_error_of_ours() -> None:
    pytest.importorskip("boto3")
    for url in ("nonsense", "http://who:SECRET@", "http://[::1"):
        dynamo = DynamoOptions(table="locks", partition_key="k", region="r", endpoint_url=url)
        with pytest.raises(HudiError) as caught:
            open_lock(LockOptions("DYNAMODB", dynamo=dynamo), MemoryStorage())
        assert "SECRET" not in str(caught.value)


def test_what_kazoo_refuses_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kazoo")
    for url in ("host:port", "", "who:SECRET@host:x"):
        options = ZookeeperOptions(url=url, base_path="/b", lock_key="k", connection_timeout_s=0.1)
        with pytest.raises(HudiError):
            open_lock(LockOptions("ZOOKEEPER", zookeeper=options), MemoryStorage()).try_acquire(0)

    lock: Any = open_lock(
        LockOptions("ZOOKEEPER", zookeeper=ZookeeperOptions(url="h:1", base_path="/b", lock_key="k")), MemoryStorage()
    )

    class Contended:
        notes: Any = (EVIL,)

        def contenders(self) -> list[str]:
            return list(self.notes) if isinstance(self.notes, tuple) else self.notes.decode()

    monkeypatch.setattr(lock, "_connected", lambda: Client())
    monkeypatch.setattr(lock, "_new_lock", lambda client: Contended())
    assert lock.owner_note.isprintable()
    assert len(lock.owner_note) < 400
    Contended.notes = b"\xff"
    assert "note is not text" in lock.owner_note


class Client:
    def stop(self) -> None: ...

    def close(self) -> None: ...


def test_what_thrift_refuses_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymetastore")
    many = "9" * 5000
    for uris in ("thrift://host:port", "thrift://127.0.0.1:99999", "thrift://:²", f"thrift://h:{many}", "//\x00:1"):
        options = LockOptions("HIVE_METASTORE", hive=HiveLockOptions("lake", "t", uris))
        with pytest.raises(HudiError):
            open_lock(options, MemoryStorage()).try_acquire(0)

    def nobody() -> str:
        raise KeyError("uid 1234 not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert hive_metastore._user() == str(os.getuid())
