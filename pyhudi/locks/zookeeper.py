"""Lock provider ZOOKEEPER: sequential nodes below a path, the lowest number holds (extra `pyhudi[zookeeper]`).

The nodes are named as those of Curator's InterProcessMutex, which Hudi's provider uses, so both exclude each other. A
holder that dies or is cut off loses the lock with its session. Source: docs/formats/writers.md, "Locks"; Curator's
recipe.
"""

from __future__ import annotations

import importlib
import os
import socket
from types import ModuleType
from typing import Protocol

from pyhudi.errors import ConfigError, StorageError
from pyhudi.java.hashes import hash_id_64
from pyhudi.locks.base import LockOptions
from pyhudi.redaction import quoted
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["ImplicitPathZookeeperLock", "ZookeeperLock"]

_KEY = "hoodie.write.lock.zookeeper."
_NODE_NAME = "-lock-"  # in the names of Curator's nodes


class _Client(Protocol):
    """A session of kazoo."""

    connected: bool

    def start(self, timeout: float) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class _Contended(Protocol):
    """A lock of kazoo."""

    is_acquired: bool
    prefix: str
    create_path: str
    _NODE_NAME: str

    def acquire(self, blocking: bool, timeout: float | None) -> bool: ...

    def release(self) -> bool: ...

    def contenders(self) -> list[str]: ...


class ZookeeperLock:
    """A handle on the lock of one table. It is connected only while it asks for the lock or holds it."""

    default_skew_ms = 200  # processes on several machines

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        self._options = settings.zookeeper
        if self._options.url is None:
            raise ConfigError(f"{_KEY}url is not given: the hosts of the ensemble, as `host:port,host:port`.")
        self._hosts = _hosts(self._options.url, self._options.port)
        self._path = self._lock_path(settings, storage)
        self._kazoo = _kazoo()
        self._client: _Client | None = None
        self._lock: _Contended | None = None

    def _lock_path(self, settings: LockOptions, storage: Storage) -> str:
        base, name = settings.zookeeper.base_path, settings.zookeeper.lock_key or settings.table_name
        if base is None or name is None:
            missing = "base_path" if base is None else "lock_key"
            raise ConfigError(f"{_KEY}{missing} is not given: locks are the nodes <base_path>/<lock_key>.")
        return f"/{base.strip('/')}/{name.strip('/')}"

    @property
    def is_held(self) -> bool:
        return self._lock is not None and self._client is not None and self._lock.is_acquired and self._client.connected

    @property
    def owner_note(self) -> str:
        client = self._connected()
        try:
            contenders = self._new_lock(client).contenders()
        except UnicodeDecodeError:
            contenders = ["a writer whose note is not text"]
        except self._kazoo.exceptions.KazooException as error:
            raise self._failed(error) from error
        finally:
            _close(client)
        who = quoted(contenders[0] or "a writer without a note") if contenders else None
        return f"{who}, node {self._path}" if who else "nobody"

    def try_acquire(self, timeout_s: float) -> bool:
        if self._lock is not None:
            return False
        client = self._connected()
        lock = self._new_lock(client)
        self._client, self._lock = client, lock  # before the lock is requested: an interrupt then finds what to release
        is_acquired = False
        try:
            is_acquired = lock.acquire(blocking=timeout_s > 0, timeout=timeout_s if timeout_s > 0 else None)
        except self._kazoo.exceptions.LockTimeout:
            return False
        except self._kazoo.exceptions.KazooException as error:
            raise self._failed(error) from error
        finally:
            if not is_acquired:
                self._client = self._lock = None
                _close(client)
        return bool(is_acquired)

    def release(self) -> None:
        client, lock, self._client, self._lock = self._client, self._lock, None, None
        if lock is None or client is None:
            return
        try:
            lock.release()
        except self._kazoo.exceptions.KazooException:
            return  # the node disappears with the session, which ends here
        finally:
            _close(client)

    def _failed(self, error: Exception) -> StorageError:
        return StorageError(f"ZooKeeper at {self._hosts}, node {self._path}: {error!r}")

    def _connected(self) -> _Client:
        try:
            client: _Client = self._kazoo.client.KazooClient(self._hosts, timeout=self._options.session_timeout_s)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{_KEY}url={self._hosts}: expected `host:port,host:port`, found {error}.") from error
        try:
            client.start(self._options.connection_timeout_s)
        except self._kazoo.exceptions.KazooException as error:
            _close(client)
            raise self._failed(error) from error
        except self._kazoo.handlers.threading.KazooTimeoutError as error:
            _close(client)
            raise StorageError(
                f"No ZooKeeper answers at {self._hosts} within {self._options.connection_timeout_s:g} s. See {_KEY}url."
            ) from error
        except BaseException:  # Ctrl-C: the client's threads would go on asking
            _close(client)
            raise
        return client

    def _new_lock(self, client: _Client) -> _Contended:
        lock: _Contended = self._kazoo.recipe.lock.Lock(
            client, self._path, f"process {os.getpid()} on {socket.gethostname()}", (_NODE_NAME,)
        )
        # Curator sorts nodes by the text after this; kazoo's name would not sort in that order.
        lock.prefix = lock.prefix.replace(lock._NODE_NAME, _NODE_NAME)
        lock.create_path = f"{self._path}/{lock.prefix}"
        return lock


class ImplicitPathZookeeperLock(ZookeeperLock):
    """The lock's path follows from the table's path, as in Hudi."""

    def _lock_path(self, settings: LockOptions, storage: Storage) -> str:
        root = storage.root
        root = f"s3://{root[6:]}" if root.startswith("s3a://") else root  # one lock, however the table is opened
        return f"/tmp/{hash_id_64(root)}/lock_key"


def _hosts(url: str, port: int | None) -> str:
    hosts = [host.strip() for host in url.split(",") if host.strip()]
    return ",".join(host if ":" in host or port is None else f"{host}:{port}" for host in hosts)


def _close(client: _Client) -> None:
    client.stop()
    client.close()


def _kazoo() -> ModuleType:
    try:
        for name in ("kazoo.client", "kazoo.exceptions", "kazoo.handlers.threading", "kazoo.recipe.lock"):
            importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            "The lock provider ZOOKEEPER needs the package kazoo: install the extra `pyhudi[zookeeper]`."
        ) from error
    return importlib.import_module("kazoo")
