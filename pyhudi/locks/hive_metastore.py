"""Lock provider HIVE_METASTORE: an exclusive lock of a table at a Hive metastore (extra `pyhudi[hive]`).

The requests are those of Hudi's provider, so both exclude each other. The holder sends heartbeats; the metastore
expires a lock whose holder is silent (`hive.txn.timeout`). Source: docs/formats/writers.md, "Locks"; the metastore's
Thrift interface.
"""

from __future__ import annotations

import getpass
import os
import socket
import struct
from collections.abc import Callable
from typing import TypeVar

from pyhudi.errors import ConfigError, StorageError
from pyhudi.locks.base import LockOptions, Pauses, retry_until
from pyhudi.locks.renewal import Renewal
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.hive_metastore import HiveModules, HiveService, HiveTransport, connection

__all__ = ["HiveMetastoreLock"]

_KEY = "hoodie.write.lock.hivemetastore."
_PAUSES: Pauses = (0.1, 1.0)
_SILENCES = 2  # after so many heartbeat intervals without an answer the lock may be another's: far below txn.timeout

Answer = TypeVar("Answer")


class HiveMetastoreLock:
    """A handle on the lock of one table. It is connected only while it asks for the lock or holds it."""

    default_skew_ms = 200  # processes on several machines

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        options = settings.hive
        for name, value in (("database", options.database), ("table", options.table), ("uris", options.uris)):
            if not value:
                raise ConfigError(f"{_KEY}{name} is not given: the lock is that of a table at a Hive metastore.")
        self._database, self._table, self._uris = options.database, options.table, str(options.uris)
        self._hive = HiveModules("The lock provider HIVE_METASTORE needs")
        self._clock = clock
        wait = settings.retry_wait_ms
        self._pauses = _PAUSES if wait is None else (wait / 1000, wait / 1000)
        self._connection: tuple[HiveService, HiveTransport] | None = None  # while the lock is held
        self._lock_id: int | None = None
        self._answered_s = 0.0  # when the metastore last answered about the lock
        self._silence_s = settings.lease_renewal_ms * _SILENCES / 1000
        self._renewal = Renewal(self._renew, settings.lease_renewal_ms / 2000)

    @property
    def is_held(self) -> bool:
        # The metastore drops a lock without heartbeats, and can't inform a holder that does not reach it.
        return self._lock_id is not None and self._clock.monotonic_s() - self._answered_s < self._silence_s

    @property
    def owner_note(self) -> str:
        return f"another writer, table {self._database}.{self._table} at the Hive metastore {self._uris}"

    def try_acquire(self, timeout_s: float) -> bool:
        if self._lock_id is not None:
            return False
        client, _ = self._connection = self._connected()
        is_acquired = False
        try:
            is_acquired = retry_until(lambda: self._attempt(client), timeout_s, self._pauses, self._clock)
        finally:
            if not is_acquired:
                self._unlock()  # an interrupt may have come after the lock was taken
        if is_acquired:
            self._renewal.start()
        return is_acquired

    def release(self) -> None:
        self._renewal.stop()
        self._unlock()

    def _unlock(self) -> None:
        lock_id, self._lock_id = self._lock_id, None
        if self._connection is None:
            return
        try:
            if lock_id is not None:
                request = self._hive.types.UnlockRequest(lockid=lock_id)
                self._call(lambda: self._send(lambda client: client.unlock(request)))
        finally:
            connection, self._connection = self._connection, None
            connection[1].close()

    def _attempt(self, client: HiveService) -> bool:
        types = self._hive.types
        component = types.LockComponent(
            type=types.LockType.EXCLUSIVE, level=types.LockLevel.TABLE, dbname=self._database, tablename=self._table
        )
        host = f"{socket.gethostname()} process {os.getpid()}"
        request = types.LockRequest(component=[component], user=_user(), hostname=host)
        answer = self._call(lambda: client.lock(request))
        if answer.state == types.LockState.ACQUIRED:
            self._lock_id = int(answer.lockid)
            self._answered_s = self._clock.monotonic_s()
            return True
        # A pending request would acquire the lock after we have stopped waiting for it.
        self._call(lambda: client.unlock(types.UnlockRequest(lockid=answer.lockid)))
        return False

    def _renew(self) -> bool:
        lock_id = self._lock_id
        if self._connection is None or lock_id is None:
            return False
        types, asked_s = self._hive.types, self._clock.monotonic_s()
        try:
            self._send(lambda client: client.heartbeat(types.HeartbeatRequest(lockid=lock_id)))
            self._answered_s = asked_s
        except (types.NoSuchLockException, types.NoSuchTxnException, types.TxnAbortedException):
            self._lock_id = None  # the metastore has dropped it
            return False
        except (self._hive.errors.TException, OSError, StorageError, ValueError, EOFError, struct.error):
            return True  # the metastore may answer next time
        return True

    def _send(self, send: Callable[[HiveService], Answer]) -> Answer:
        """Send over the held lock's connection, or over a new one when that is broken."""
        assert self._connection is not None
        try:
            return send(self._connection[0])
        except (self._hive.transports.TTransportException, OSError):
            self._connection[1].close()
            self._connection = self._connected()
            return send(self._connection[0])

    def _connected(self) -> tuple[HiveService, HiveTransport]:
        return connection(self._hive, self._uris, f"{_KEY}uris")

    def _call(self, send: Callable[[], Answer]) -> Answer:
        try:
            return send()
        except (self._hive.errors.TException, OSError, ValueError, TypeError, EOFError, struct.error) as error:
            raise StorageError(f"The Hive metastore {self._uris} refused: {error!r}") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user need not have a name
        return str(os.getuid()) if hasattr(os, "getuid") else "pyhudi"
