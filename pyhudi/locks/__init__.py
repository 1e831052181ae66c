"""Locks: one writer at a time where it matters. A provider is one file here and one row in LOCK_PROVIDERS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyhudi.errors import LockTimeout
from pyhudi.locks.base import LockOptions, LockProvider, own_options
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.versioned import has_conditional_put

__all__ = ["LOCK_PROVIDERS", "LockOptions", "LockProvider", "hold", "open_lock", "own_options", "provider_of_place"]

_PACKAGE = "org.apache.hudi.client.transaction.lock."
_AWS_PACKAGE = "org.apache.hudi.aws.transaction.lock."

LOCK_PROVIDERS: Registry[Callable[[LockOptions, Storage, Clock], LockProvider]] = Registry(
    kind="lock provider",
    entries={
        "IN_PROCESS": "pyhudi.locks.in_process:InProcessLock",
        "FILESYSTEM": "pyhudi.locks.filesystem:FileSystemLock",
        "STORAGE": "pyhudi.locks.storage_based:StorageLock",
        "ZOOKEEPER": "pyhudi.locks.zookeeper:ZookeeperLock",
        "ZOOKEEPER_IMPLICIT": "pyhudi.locks.zookeeper:ImplicitPathZookeeperLock",
        "DYNAMODB": "pyhudi.locks.dynamodb:DynamoLock",
        "DYNAMODB_IMPLICIT": "pyhudi.locks.dynamodb:ImplicitKeyDynamoLock",
        "HIVE_METASTORE": "pyhudi.locks.hive_metastore:HiveMetastoreLock",
    },
    aliases={
        f"{_PACKAGE}InProcessLockProvider": "IN_PROCESS",
        f"{_PACKAGE}FileSystemBasedLockProvider": "FILESYSTEM",
        f"{_PACKAGE}StorageBasedLockProvider": "STORAGE",
        f"{_PACKAGE}ZookeeperBasedLockProvider": "ZOOKEEPER",
        f"{_PACKAGE}ZookeeperBasedImplicitBasePathLockProvider": "ZOOKEEPER_IMPLICIT",
        f"{_AWS_PACKAGE}DynamoDBBasedLockProvider": "DYNAMODB",
        f"{_AWS_PACKAGE}DynamoDBBasedImplicitPartitionKeyLockProvider": "DYNAMODB_IMPLICIT",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": "HIVE_METASTORE",
    },
)


def open_lock(options: LockOptions, storage: Storage, clock: Clock | None = None) -> LockProvider:
    """The lock of the table behind `storage`, not yet taken; where no provider is named, the one for its place.

    Raises ConfigError for a provider that there is not, or that lacks a package or an option.
    """
    name = options.provider or provider_of_place(storage)
    return LOCK_PROVIDERS.load(name)(options, storage, clock or SystemClock())


def provider_of_place(storage: Storage) -> str:
    """The provider that keeps all processes apart which can reach a table there, without a server."""
    if isinstance(storage, MemoryStorage):
        return "IN_PROCESS"  # no other process can reach it
    return "STORAGE" if has_conditional_put(storage) else "FILESYSTEM"


@contextmanager
def hold(lock: LockProvider, timeout_s: float) -> Iterator[None]:
    """Hold the lock for a `with` block. Raises LockTimeout, naming who holds it, after `timeout_s` seconds."""
    if not lock.try_acquire(timeout_s):
        raise LockTimeout(
            f"The table's lock could not be taken within {timeout_s:g} s; held by {lock.owner_note}. Wait for that "
            f"writer and try again, or raise hoodie.write.lock.wait_time_ms. If the holder is dead, remove its lock."
        )
    try:
        yield
    finally:
        lock.release()
