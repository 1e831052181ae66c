"""Lock providers: never two holders, a dead holder's lock expires, refusals that say what to use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConfigError, LockTimeout
from pyhudi.locks import LOCK_PROVIDERS, LockOptions, LockProvider, hold, open_lock
from pyhudi.locks.process import is_surely_dead, note_of_this_process
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage, Storage, SystemClock
from pyhudi.storage.place import mount_kind

LOCK = ".hoodie/lock"
LONG_S = 300  # nothing takes so long, on a busy machine either
FS = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"

# One row per provider: every provider that needs no server is put through the tests below.
PROVIDERS = [name for name in LOCK_PROVIDERS.entries if not name.startswith(("ZOOKEEPER", "DYNAMODB", "HIVE"))]


def lock_of(provider: str, storage: Storage, **options: Any) -> LockProvider:
    clock = options.pop("clock", SystemClock())
    return open_lock(LockOptions(provider, **{"retry_wait_ms": 5, **options}), storage, clock)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_second_writer_waits_until_the_first_releases(provider: str, tmp_path: Path) -> None:
    first, second = (lock_of(provider, LocalStorage(str(tmp_path))) for _ in range(2))

    assert first.try_acquire(0)
    assert first.is_held
    assert not second.try_acquire(0.02)
    assert not second.is_held
    first.release()
    assert second.try_acquire(0)
    second.release()
    assert not second.is_held


@pytest.mark.parametrize("provider", PROVIDERS)
def test_there_are_never_two_holders(provider: str, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    inside, most = [0], [0]

    def work(_: int) -> None:
        with hold(lock_of(provider, storage), LONG_S):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.002)
            inside[0] -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(24)))

    assert most == [1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tables_do_not_share_a_lock(provider: str) -> None:
    with hold(lock_of(provider, MemoryStorage()), 0):
        assert lock_of(provider, MemoryStorage()).try_acquire(0)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_timeout_says_who_holds_the_lock(provider: str, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    def hold_it() -> None:
        with hold(lock_of(provider, storage), 1):
            held.set()
            done.wait(LONG_S)

    held, done = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold_it, name="nightly-load")
    holder.start()
    assert held.wait(LONG_S)
    try:
        with pytest.raises(LockTimeout, match="nightly-load") as caught, hold(lock_of(provider, storage), 0.02):
            pass
    finally:
        done.set()
        holder.join()
    assert caught.value.retryable


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_lock_is_released_when_the_work_fails(provider: str) -> None:
    storage = MemoryStorage()
    with pytest.raises(ZeroDivisionError), hold(lock_of(provider, storage), 0):
        _ = 1 / 0

    assert lock_of(provider, storage).try_acquire(0)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_releasing_what_one_does_not_hold_changes_nothing(provider: str) -> None:
    storage = MemoryStorage()
    with hold(lock_of(provider, storage), 0):
        lock_of(provider, storage).release()
        assert not lock_of(provider, storage).try_acquire(0)


def test_a_link_to_a_table_has_the_tables_lock(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")

    with hold(lock_of("IN_PROCESS", LocalStorage(str(tmp_path / "table"))), 0):
        assert not lock_of("IN_PROCESS", LocalStorage(str(tmp_path / "link"))).try_acquire(0)


def test_java_class_names_are_known() -> None:
    storage = MemoryStorage()
    lock = lock_of(FS, storage)

    assert lock.try_acquire(0)
    assert storage.paths() == (LOCK,)
    lock.release()
    assert storage.paths() == ()
    java = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
    assert type(lock_of(java, storage)).__name__ == "InProcessLock"


def test_a_lock_file_of_real_hudi_is_respected() -> None:
    storage = MemoryStorage()
    storage.create_new(LOCK, b"")  # as 0.15.0 and 1.2.0 leave it: empty

    lock = lock_of("FILESYSTEM", storage)

    assert not lock.try_acquire(0)
    assert "no note" in lock.owner_note


def test_the_lock_file_may_lie_elsewhere(tmp_path: Path) -> None:
    lock = lock_of("FILESYSTEM", MemoryStorage(), filesystem_path=str(tmp_path / "locks"))

    with hold(lock, 0):
        assert (tmp_path / "locks" / "lock").is_file()
    assert not (tmp_path / "locks" / "lock").exists()


def clocked() -> tuple[MemoryStorage, FixedClock, Callable[[], LockProvider]]:
    clock = FixedClock(1_760_000_000_000)
    storage = MemoryStorage(clock=clock)
    return storage, clock, lambda: lock_of("FILESYSTEM", storage, expire_min=5, clock=clock)


def test_the_lock_of_a_dead_process_expires() -> None:
    storage, clock, lock = clocked()
    assert lock().try_acquire(0)  # and this handle is never heard of again

    clock.advance(4 * 60_000)
    assert not lock().try_acquire(0)
    clock.advance(2 * 60_000)
    assert lock().try_acquire(0)
    assert storage.paths() == (LOCK,)


def test_without_an_expiry_a_lock_is_kept_for_ever() -> None:
    clock = FixedClock(1_760_000_000_000)
    storage = MemoryStorage(clock=clock)
    assert lock_of("FILESYSTEM", storage, clock=clock).try_acquire(0)

    clock.advance(10**10)

    assert not lock_of("FILESYSTEM", storage, clock=clock).try_acquire(0)


def test_an_expired_lock_is_taken_over_once() -> None:
    storage, clock, lock = clocked()
    for _ in range(20):
        storage.write(LOCK, b"dead")
        clock.advance(6 * 60_000)
        with ThreadPoolExecutor(4) as pool:
            locks = [lock() for _ in range(4)]
            assert sum(pool.map(lambda one: one.try_acquire(0), locks)) == 1
        storage.delete(LOCK)


def test_a_slow_process_does_not_remove_the_lock_that_a_faster_one_took_over() -> None:
    storage, clock, lock = clocked()
    storage.write(LOCK, b"dead")
    clock.advance(6 * 60_000)
    fast, slow = lock(), lock()
    first = slow._read_lock_file(LOCK)  # type: ignore[attr-defined]
    assert fast.try_acquire(0)

    # The slow one still believes in what it saw.
    slow._read_lock_file = lambda path, once=[first]: once.pop() if once else type(slow)._read_lock_file(slow, path)  # type: ignore

    assert not slow.try_acquire(0)
    assert fast.is_held
    assert storage.read(LOCK) != b"dead"


def test_whoever_breaks_a_lock_and_dies_does_not_block_it_for_ever() -> None:
    storage, clock, lock = clocked()
    storage.write(LOCK, b"dead")
    modified_ms = storage.list(".hoodie")[0].modified_ms
    storage.create_new(f"{LOCK}.expired.{modified_ms}", b"")
    clock.advance(6 * 60_000)

    taken = lock()
    assert taken.try_acquire(1)
    assert storage.paths() == (LOCK,)


def hold_and_die(folder: str) -> None:
    """Take the lock of a table and be killed; for a process of its own."""
    assert lock_of("FILESYSTEM", LocalStorage(folder)).try_acquire(0)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a process is gone for certain")
def test_the_lock_of_a_killed_process_of_this_machine_is_free_at_once(tmp_path: Path) -> None:
    code = f"from tests.locks.test_locks import hold_and_die; hold_and_die({str(tmp_path)!r})"
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / LOCK).is_file()

    assert lock_of("FILESYSTEM", LocalStorage(str(tmp_path))).try_acquire(0)


def test_a_note_of_another_machine_or_of_hudi_is_not_taken_for_dead() -> None:
    note = json.loads(note_of_this_process("t"))
    assert not is_surely_dead(json.dumps(note).encode())
    assert is_surely_dead(json.dumps({**note, "started": "1"}).encode()) == (sys.platform == "linux")
    for other in ({**note, "place": "another boot", "pid": 1}, {"pid": 2**22 + 1}, [], "x"):
        assert not is_surely_dead(json.dumps(other).encode())
    assert not is_surely_dead(b"")


def test_a_lock_that_was_taken_over_is_not_released_but_reported() -> None:
    storage, clock, lock = clocked()
    slow = lock()
    assert slow.try_acquire(0)
    clock.advance(6 * 60_000)
    other = lock()
    assert other.try_acquire(0)

    with pytest.warns(RuntimeWarning, match=r"hoodie\.write\.lock\.filesystem\.expire"):
        slow.release()
    assert not lock().try_acquire(0)
    other.release()
    assert storage.paths() == ()


def test_an_unknown_provider_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="FILESYSTEM"):
        lock_of("FILE_SYSTEM", MemoryStorage())


def test_a_provider_of_ones_own_is_named_by_its_path() -> None:
    lock = lock_of("pyhudi.locks.in_process:InProcessLock", MemoryStorage())

    assert isinstance(lock, LockProvider)


HOLDS = """
import os, sys
from pyhudi.locks import LockOptions, open_lock
from pyhudi.storage import LocalStorage
lock = open_lock(LockOptions(), LocalStorage(sys.argv[1]))
os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
print(lock.try_acquire(0.2), flush=True)
sys.stdin.read()
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users and a mount of /proc")
def test_the_lock_of_another_users_process_that_proc_hides_is_not_taken(tmp_path: Path) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount of /proc here")
    project = Path(__file__).parents[2]
    (tmp_path / ".hoodie").mkdir()
    for folder in (tmp_path, tmp_path / ".hoodie"):
        folder.chmod(0o777)
    for folder in tmp_path.parents:
        if folder.is_relative_to(tempfile.gettempdir()) and folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, "65534"], cwd=project, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"

        other = subprocess.run([*hidden, *command, "65533"], cwd=project, input="", stdout=pipe, text=True, check=True)

        assert other.stdout == "False\n"
        holder.kill()
    assert lock_of("FILESYSTEM", LocalStorage(str(tmp_path))).try_acquire(0)


# ---- a holder that renews --------------------------------------------------------------------------------------------


def lock_file_of_elsewhere(folder: Path, clock: FixedClock, *, is_renewed: bool = True) -> Path:
    """The lock of a process of a container or machine whose processes nobody here can see."""
    note = {**json.loads(note_of_this_process("t", is_renewed=is_renewed)), "place": "elsewhere"}
    storage = LocalStorage(str(folder))
    storage.write(LOCK, json.dumps(note).encode())
    storage.set_modified(LOCK, clock.now_ms())
    return folder / LOCK


def test_a_lock_that_its_holder_does_not_renew_any_more_is_taken_over(tmp_path: Path) -> None:
    clock = FixedClock(1_760_000_000_000)
    lock_file_of_elsewhere(tmp_path, clock)

    started_ms = clock.now_ms()
    assert lock_of("FILESYSTEM", LocalStorage(str(tmp_path)), clock=clock, retry_wait_ms=1000).try_acquire(200)

    assert 60 <= (clock.now_ms() - started_ms) / 1000 < 120


def test_a_lock_that_is_renewed_is_never_taken_over(tmp_path: Path) -> None:
    clock = FixedClock(1_760_000_000_000)
    lock = lock_file_of_elsewhere(tmp_path, clock)

    class Renewed(LocalStorage):
        def create_new(self, path: str, data: bytes) -> None:
            LocalStorage(self.root).set_modified(LOCK, clock.now_ms() - 100_000)  # its machine's clock is behind
            super().create_new(path, data)

    assert not lock_of("FILESYSTEM", Renewed(str(tmp_path)), clock=clock, retry_wait_ms=1000).try_acquire(200)
    assert lock.is_file()


def test_a_lock_of_hudi_or_of_an_older_release_runs_out_only_when_the_options_say_so(tmp_path: Path) -> None:
    clock = FixedClock(1_760_000_000_000)
    lock_file_of_elsewhere(tmp_path, clock, is_renewed=False)

    assert not lock_of("FILESYSTEM", LocalStorage(str(tmp_path)), clock=clock, retry_wait_ms=1000).try_acquire(200)


def test_a_lock_that_is_held_for_long_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.locks.filesystem._RENEWAL_S", 0.02)
    storage = LocalStorage(str(tmp_path))
    with hold(lock_of("FILESYSTEM", storage), 0):
        storage.set_modified(LOCK, 1_000)
        deadline_s = time.monotonic() + LONG_S
        while (tmp_path / LOCK).stat().st_mtime < 1_000_000 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert (tmp_path / LOCK).stat().st_mtime > 1_000_000
    assert not (tmp_path / LOCK).exists()


# ---- by place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "skew_ms"), [("ext4", 1), ("nfs4", 200), ("fuse.sshfs", 200), ("fuseblk", 1), ("", 1), ("cifs", 200)]
)
def test_a_lock_waits_for_other_clocks_only_where_there_may_be_others(
    kind: str, skew_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.storage.place.mount_kind", lambda _: kind)

    assert lock_of("FILESYSTEM", LocalStorage(str(tmp_path))).default_skew_ms == skew_ms


def test_who_names_no_provider_gets_the_one_of_the_tables_place(tmp_path: Path) -> None:
    assert type(open_lock(LockOptions(), LocalStorage(str(tmp_path)))).__name__ == "FileSystemLock"
    assert type(open_lock(LockOptions(), MemoryStorage())).__name__ == "InProcessLock"


def test_a_mount_of_an_object_store_is_warned_about_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("storage.place", "locks.filesystem"):
        monkeypatch.setattr(f"pyhudi.{module}.mount_kind", lambda _: "fuse.s3fs")

    with pytest.warns(RuntimeWarning, match=r"fuse\.s3fs.*s3://"):
        lock_of("FILESYSTEM", LocalStorage(str(tmp_path)))


def test_the_kind_of_a_mount_is_that_of_the_innermost_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda1 / ext4 rw 0 0\n"
        "server:/x /data nfs4 rw 0 0\n"
        "/dev/sdb1 /data/fast xfs rw 0 0\n"
        "mountpoint-s3 /my\\040bucket fuse ro 0 0\n"
    )
    monkeypatch.setattr("pyhudi.storage.place._MOUNTS", str(mounts))
    monkeypatch.setattr("sys.platform", "linux")
    mount_kind.cache_clear()

    kinds = [mount_kind(path) for path in ("/data/t", "/data/fast/t", "/datas", "/my bucket/t")]

    mount_kind.cache_clear()
    assert kinds == ["nfs4", "xfs", "ext4", "fuse.mountpoint-s3"]
