"""The lock at a Hive metastore with real Hudi: HiveMetastoreBasedLockProvider and ours exclude each other.

Real: Hudi's provider with its Hive client (2.3, as Spark brings it), and the metastore (`make servers`).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pyhudi.locks import LockOptions, LockProvider, open_lock
from pyhudi.model.options.concurrency import HiveLockOptions
from pyhudi.storage import MemoryStorage, SystemClock
from tests.support.judge.hudi_on_s3 import Holder, classes_of_the_lock
from tests.support.judge.real_hudi import Judge
from tests.support.servers.metastore import OPENED, hive_metastore

pytest.importorskip("pymetastore")
pytestmark = [pytest.mark.slow, pytest.mark.servers]
TIMEOUT_S = 6


def lock_of(uri: str) -> LockProvider:
    hive = HiveLockOptions("lake", "shared", uri)
    options = LockOptions("HIVE_METASTORE", retry_wait_ms=20, lease_renewal_ms=2000, hive=hive)
    return open_lock(options, MemoryStorage(), SystemClock())


def test_hudi_and_we_exclude_each_other(judge: Judge, tmp_path: Path) -> None:
    with hive_metastore(tmp_path, TIMEOUT_S) as uri:
        command = ["java", "-Xmx256m", *OPENED, "-cp", classes_of_the_lock(tmp_path), "HiveLockPlay"]
        hudi, ours = Holder([*command, uri, "lake", "shared"]), lock_of(uri)
        try:
            assert ours.try_acquire(5)
            assert hudi.ask("try") == "false", "Hudi has the lock that we hold"
            ours.release()
            assert hudi.ask("take") == "true"
            renewed_until_s = time.monotonic() + 2 * TIMEOUT_S
            while time.monotonic() < renewed_until_s:
                assert not ours.try_acquire(0), "we have the lock that Hudi holds"
                time.sleep(0.5)
            assert hudi.ask("release") == "released"
            assert ours.try_acquire(5)
            ours.release()

            assert hudi.ask("take") == "true"
            hudi.kill()
            assert not ours.try_acquire(0)
            assert ours.try_acquire(5 * TIMEOUT_S), "the lock of a Hudi that is dead runs out"
            ours.release()
        finally:
            hudi.kill()
