"""Locks: one writer at a time where it matters. A provider is one file here and one row in LOCK_PROVIDERS."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from pyhudi.errors import LockTimeout
from pyhudi.interrupts import uninterrupted
from pyhudi.locks.base import LockOptions, LockProvider, own_options
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.versioned import has_conditional_put
from pyhudi.warnings import warn_caller

__all__ = [
    "LOCK_PROVIDERS",
    "LockOptions",
    "LockProvider",
    "hold",
    "open_lock",
    "own_options",
    "provider_of_place",
    "release_if_held",
]

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
    """Return the lock of the table behind `storage`, not yet taken. Without a named provider, its storage decides.

    Raises ConfigError for an unknown provider, or one that lacks a package or an option.
    """
    name = options.provider or provider_of_place(storage)
    return LOCK_PROVIDERS.load(name)(options, storage, clock or SystemClock())


def provider_of_place(storage: Storage) -> str:
    """Return the provider that excludes all processes that can reach a table there, without a server."""
    if isinstance(storage, MemoryStorage):
        return "IN_PROCESS"  # no other process can reach it
    return "STORAGE" if has_conditional_put(storage) else "FILESYSTEM"


def hold(lock: LockProvider, timeout_s: float) -> AbstractContextManager[None]:
    """Hold the lock for a `with` block. Raises LockTimeout, naming who holds it, after `timeout_s` seconds.

    The lock is released however the block ends, even by Ctrl-C. A failed release becomes a warning: the work under the
    lock is done.
    """
    return _Held(lock, timeout_s)


class _Held(AbstractContextManager[None]):
    """A class, not a generator: an interrupt between `yield` and the block would leave the lock held."""

    def __init__(self, lock: LockProvider, timeout_s: float) -> None:
        self._lock, self._timeout_s = lock, timeout_s

    def __enter__(self) -> None:
        try:
            if self._lock.try_acquire(self._timeout_s):
                return
        except BaseException:
            release_if_held(self._lock)  # an interrupt may have come after the lock was taken
            raise
        raise LockTimeout(
            f"The table's lock could not be taken within {self._timeout_s:g} s; held by {self._lock.owner_note}. Wait "
            f"for that writer and try again, or raise hoodie.write.lock.wait_time_ms. If the holder is dead, remove "
            f"its lock."
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            _release(self._lock)
        except BaseException:  # an interrupt from before interrupts are deferred
            _release(self._lock)
            raise


def release_if_held(lock: LockProvider) -> None:
    """Release a lock if it is held: an interrupt can hit after the last line of a block, before its end."""
    with uninterrupted():
        if lock.is_held:
            _release(lock)


def _release(lock: LockProvider) -> None:
    with uninterrupted():
        try:
            try:
                lock.release()
            except BaseException:
                if lock.is_held:
                    lock.release()  # try again: all others wait for it
                raise
        except Exception as error:
            warn_caller(
                f"The table's lock could not be released; others may have to wait until it expires, or until "
                f"this process ends. {type(error).__name__}: {error}",
                RuntimeWarning,
            )
