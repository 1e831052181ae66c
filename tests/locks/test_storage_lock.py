"""The storage-based lock: Hudi's bytes, Hudi's rules, renewal, and answers of the store that are lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConfigError, CorruptFile, StorageError
from pyhudi.locks import LockOptions, open_lock
from pyhudi.locks.storage_based import LOCK_PATH, StorageLock, _Lease
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.concurrency import StorageLockOptions
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage, Storage
from tests.support.golden.folder import shared_folder

NOW_MS = 1_760_000_000_000


def lock_of(storage: Storage, clock: FixedClock) -> Any:
    options = LockOptions("STORAGE", retry_wait_ms=5, storage=StorageLockOptions(300, 30))
    lock = open_lock(options, storage, clock)
    assert isinstance(lock, StorageLock)
    return lock


@pytest.fixture(params=["memory", "local"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return MemoryStorage() if request.param == "memory" else LocalStorage(str(tmp_path))


def hudis_file(storage: Storage, *, expired: bool, valid_until_ms: int) -> None:
    fields = {"expired": expired, "validUntil": valid_until_ms, "owner": "6d3f8e0a-1b2c-4d5e-8f90-aabbccddeeff"}
    storage.write(LOCK_PATH, json.dumps(fields, separators=(",", ":")).encode())


def test_the_bytes_are_hudis() -> None:
    path = shared_folder() / "golden" / "storage-lock-cases.json"
    if not path.exists():
        pytest.skip("no files of real Hudi here")
    for case in json.loads(path.read_text())["cases"]:
        lease = _Lease(case["expired"], case["validUntil"], case["owner"])
        assert lease.encode() == case["bytes"].encode()
        assert _Lease.decode(case["bytes"].encode(), "here") == lease


def test_a_lock_that_hudi_holds_is_respected_until_it_has_run_out_by_any_clock(storage: Storage) -> None:
    clock = FixedClock(NOW_MS, step_ms=0)
    hudis_file(storage, expired=False, valid_until_ms=NOW_MS + 1000)

    assert not lock_of(storage, clock).try_acquire(0)
    clock.advance(1500)  # run out, but the other clock may be half a second behind
    assert not lock_of(storage, clock).try_acquire(0)
    clock.advance(1)
    assert lock_of(storage, clock).try_acquire(0)


def test_a_lock_that_hudi_has_given_back_is_free(storage: Storage) -> None:
    hudis_file(storage, expired=True, valid_until_ms=NOW_MS + 100_000)

    lock = lock_of(storage, FixedClock(NOW_MS))
    assert lock.try_acquire(0)
    fields = json.loads(storage.read(LOCK_PATH))
    assert (fields["expired"], fields["validUntil"] - NOW_MS >= 300_000) == (False, True)
    lock.release()
    assert json.loads(storage.read(LOCK_PATH)) == {**fields, "expired": True}


def test_a_renewal_puts_the_end_further_away(storage: Storage) -> None:
    clock = FixedClock(NOW_MS)
    lock = lock_of(storage, clock)
    assert lock.try_acquire(0)
    clock.advance(299_000)
    assert lock._renew()
    clock.advance(299_000)
    assert lock.is_held
    assert not lock_of(storage, clock).try_acquire(0)
    lock.release()


def test_a_holder_that_was_not_renewed_knows_that_it_has_lost_the_lock(storage: Storage) -> None:
    clock = FixedClock(NOW_MS)
    slow, other = lock_of(storage, clock), lock_of(storage, clock)
    assert slow.try_acquire(0)
    clock.advance(301_000)
    assert not slow.is_held
    assert other.try_acquire(0)
    assert not slow._renew()
    with pytest.warns(RuntimeWarning, match="taken over"):
        slow.release()
    assert other.is_held
    other.release()


def test_when_an_answer_is_lost_the_lock_is_still_ours() -> None:
    storage, clock = MemoryStorage(), FixedClock(NOW_MS)
    lock = lock_of(storage, clock)
    files = lock._files
    lost: list[str] = []

    class Lossy:
        def read(self, path: str) -> Any:
            return files.read(path)

        def replace(self, path: str, data: bytes, version: str | None) -> Any:
            made = files.replace(path, data, version)
            if lost:
                raise StorageError(lost.pop())
            return made

    lock._files = Lossy()
    lost.append("the answer to the first put")
    with pytest.raises(StorageError):
        lock.try_acquire(0)
    assert lock.try_acquire(0), "the lease in the file is our own"
    lost.append("the answer to a renewal")
    assert lock._renew()
    assert lock._renew(), "it goes on from the version that it finds"
    lost.append("the answer to the release")
    lock.release()
    assert lock_of(storage, clock).try_acquire(0)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"expired":false}', b'{"expired":1,"validUntil":2,"owner":"o"}'])
def test_a_file_that_is_no_lock_is_an_error_with_what_to_do(data: bytes, storage: Storage) -> None:
    storage.write(LOCK_PATH, data)
    with pytest.raises(CorruptFile, match=r"expired, validUntil and owner|a flag, a number and a text"):
        lock_of(storage, FixedClock(NOW_MS)).try_acquire(0)


def test_a_validity_without_time_for_ten_renewals_is_refused() -> None:
    key = "hoodie.write.lock.storage."
    with pytest.raises(ConfigError, match="at least 300 seconds"):
        WriteOptions.parse({f"{key}validity.timeout.secs": "299"})
    options = WriteOptions.parse({f"{key}validity.timeout.secs": "50", f"{key}heartbeat.poll.secs": "5"})
    assert options.lock.storage == StorageLockOptions(50, 5)
