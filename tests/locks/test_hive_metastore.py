"""The lock HIVE_METASTORE at a real Hive metastore: waiting, heartbeats, silent holders, broken connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyhudi.errors import LockTimeout
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.model.options.concurrency import HiveLockOptions
from pyhudi.storage import MemoryStorage, SystemClock
from tests.support.servers.metastore import hive_metastore

pytest.importorskip("pymetastore")
pytestmark = pytest.mark.servers

TIMEOUT_S = 6


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore"), TIMEOUT_S) as uri:
        yield uri


def lock_of(uri: str, table: str) -> Any:
    """A handle that sends a heartbeat every second."""
    options = LockOptions(
        "HIVE_METASTORE", retry_wait_ms=20, lease_renewal_ms=2000, hive=HiveLockOptions("lake", table, uri)
    )
    return open_lock(options, MemoryStorage(), SystemClock())


def test_a_second_writer_waits_until_the_first_releases(uri: str) -> None:
    first, second = lock_of(uri, "waits"), lock_of(uri, "waits")

    assert first.try_acquire(5)
    assert not second.try_acquire(0)
    with pytest.raises(LockTimeout, match=r"lake\.waits"), hold(second, 0.2):
        pass
    other = lock_of(uri, "another table")
    assert other.try_acquire(5)
    other.release()
    first.release()
    assert second.try_acquire(5)
    second.release()


def test_there_are_never_two_holders(uri: str) -> None:
    inside, most = [0], [0]

    def work(_: int) -> None:
        for _ in range(5):
            with hold(lock_of(uri, "counted"), 120):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.002)
                inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert most == [1]


def test_heartbeats_keep_a_lock_and_a_silent_holder_loses_it(uri: str) -> None:
    holder, other = lock_of(uri, "kept"), lock_of(uri, "kept")
    assert holder.try_acquire(5)
    time.sleep(2 * TIMEOUT_S)
    assert holder.is_held
    assert not other.try_acquire(0)

    holder._renewal.stop()
    begin_s = time.monotonic()
    assert other.try_acquire(5 * TIMEOUT_S)
    assert time.monotonic() - begin_s > TIMEOUT_S - 2
    assert not holder._renew(), "a late heartbeat must not bring the lock back"
    assert not holder.is_held
    holder.release()
    assert other._renew()
    other.release()


def test_a_lock_outlives_a_broken_connection(uri: str) -> None:
    """Heartbeats and the release use a new one; otherwise another writer would get the lock while it is held."""
    holder, other = lock_of(uri, "cut"), lock_of(uri, "cut")
    assert holder.try_acquire(5)
    holder._connection[1].close()
    time.sleep(2 * TIMEOUT_S)
    assert holder.is_held
    assert not other.try_acquire(0)

    holder._renewal.stop()
    holder._connection[1].close()
    holder.release()
    assert other.try_acquire(1)
    other.release()
