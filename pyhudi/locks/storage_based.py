"""Lock provider STORAGE: a file of the table that is replaced by conditional puts; no server needed.

    .hoodie/.locks/table_lock.json    {"expired":false,"validUntil":<epoch ms>,"owner":"<uuid and more>"}

The process that replaces a released, expired or missing file holds the lock, renews it while working, and writes
`"expired":true` at the end; the file stays. The bytes and rules are those of Hudi's StorageBasedLockProvider, so both
exclude each other. On local disks, which Hudi's provider does not support, all writers must be on this machine.
Source: docs/formats/writers.md, "Locks".
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, replace

from pyhudi.errors import CorruptFile, StorageError
from pyhudi.locks.audit import LockJournal, State, is_audited
from pyhudi.locks.base import LockOptions, Pauses, retry_until
from pyhudi.locks.renewal import Renewal
from pyhudi.model.filenames import LOCKS_FOLDER
from pyhudi.redaction import quoted
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.versioned import FileBusy, versioned_files
from pyhudi.warnings import warn_caller

__all__ = ["LOCK_PATH", "StorageLock"]

LOCK_PATH = f"{LOCKS_FOLDER}/table_lock.json"
_CLOCK_DRIFT_MS = 500  # how far clocks of two machines may differ, as in Hudi
_RELEASE_ATTEMPTS = 3
_BUSY_RELEASES = 200  # ten seconds: a lock that is not released keeps all others waiting for minutes
_MS_MAX = 2**63 - 1  # validUntil is a long of Java's
_NEAR: Pauses = (0.005, 0.02)
_FAR: Pauses = (0.1, 1.0)


@dataclass(frozen=True, slots=True)
class _Lease:
    """The content of the lock file."""

    expired: bool
    valid_until_ms: int
    owner: str

    def encode(self) -> bytes:
        fields = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode("utf-8")

    @classmethod
    def decode(cls, data: bytes, where: str) -> _Lease:
        try:
            fields = json.loads(data)
            expired, until, owner = (fields[key] for key in ("expired", "validUntil", "owner"))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptFile(
                f"{where}: expected expired, validUntil and owner of a lock as JSON, found {data[:80]!r}. If no writer "
                f"is at work on the table, delete the file."
            ) from error
        if type(expired) is not bool or type(until) is not int or type(owner) is not str or abs(until) > _MS_MAX:
            raise CorruptFile(
                f"{where}: expected a flag, a number and a text, found {data[:80]!r}. If no writer is at work on the "
                f"table, delete the file."
            )
        return cls(expired, until, owner)


class StorageLock:
    """A handle on the lock of one table."""

    default_skew_ms = 200  # processes on several machines

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        self._storage, self._files = storage, versioned_files(storage)
        self._where = storage.full_path(LOCK_PATH)
        self._clock = clock
        thread = threading.current_thread().name
        self._owner = f"{clock.new_uuid()} ({thread!r} of process {os.getpid()} on {socket.gethostname()})"
        self._validity_ms = settings.storage.validity_s * 1000
        wait = settings.retry_wait_ms
        near = storage.full_path("").startswith(("file:", "memory:"))
        self._pauses = (_NEAR if near else _FAR) if wait is None else (wait / 1000, wait / 1000)
        self._mutex = threading.Lock()  # the renewing thread and the working one
        self._held: tuple[_Lease, str] | None = None  # with the file's version
        self._refusal: str | None = None  # the store's refusal at the last attempt, when the lock was free
        self._renewal = Renewal(self._renew, settings.storage.renewal_s)
        self._is_audited: bool | None = None  # read once, when the lock is first taken
        self._journal: LockJournal | None = None

    @property
    def is_held(self) -> bool:
        lease_and_version = self._held
        return lease_and_version is not None and self._clock.now_ms() < lease_and_version[0].valid_until_ms

    @property
    def owner_note(self) -> str:
        current = self._files.read(LOCK_PATH)
        lease = _Lease.decode(current[0], self._where) if current is not None else None
        if lease is None or lease.expired:
            return f"nobody ({self._refusal})" if self._refusal else "nobody"
        left_s = (lease.valid_until_ms - self._clock.now_ms()) // 1000
        return f"{quoted(lease.owner)}, file {self._where} valid for {left_s} s more"

    def try_acquire(self, timeout_s: float) -> bool:
        return retry_until(self._attempt, timeout_s, self._pauses, self._clock)

    def release(self) -> None:
        self._renewal.stop()
        with self._mutex:
            lease_and_version = self._held
        if lease_and_version is None:
            return
        self._end_lease(*lease_and_version)
        self._held = None

    def _end_lease(self, lease: _Lease, version: str) -> None:
        attempts = {True: _BUSY_RELEASES, False: _RELEASE_ATTEMPTS}
        while True:
            try:
                end_ms = self._clock.now_ms()
                if self._put(replace(lease, expired=True), version):
                    self._audit("END", end_ms)
                else:
                    self._warn("was taken over while it was held: its holder did not renew it in time, and two writers")
                return
            except StorageError as error:
                is_busy = isinstance(error, FileBusy)
                attempts[is_busy] -= 1
                if not attempts[is_busy]:
                    self._warn(f"could not be released ({error}); it expires by itself, and until then others")
                    return

    def _renew(self) -> bool:
        """Extend the lease; False when there is nothing left to renew."""
        with self._mutex:
            if self._held is None:
                return False
            lease, version = self._held
            now_ms = self._clock.now_ms()
            longer = replace(lease, valid_until_ms=now_ms + self._validity_ms)
            try:
                newer = self._put(longer, version)
            except StorageError:
                return self.is_held  # the store may answer next time
            self._held = (longer, newer) if newer else (replace(lease, valid_until_ms=0), version)
            if newer is not None:
                self._audit("RENEW", now_ms)
            return newer is not None

    def _attempt(self) -> bool:
        if self.is_held:
            return False
        current = self._files.read(LOCK_PATH)
        now_ms = self._clock.now_ms()
        if current is not None:
            lease = _Lease.decode(current[0], self._where)
            is_free = lease.expired or now_ms > lease.valid_until_ms + _CLOCK_DRIFT_MS
            if not is_free and lease.owner != self._owner:  # ours: the answer to an earlier attempt was lost
                return False
        ours = _Lease(False, now_ms + self._validity_ms, self._owner)
        try:
            version = self._files.replace(LOCK_PATH, ours.encode(), current[1] if current is not None else None)
        except FileBusy as error:
            self._refusal = str(error)
            return False  # others may release it while we wait
        except BaseException:
            self._undo_unconfirmed()
            raise
        self._refusal = None
        if version is None:
            return False
        self._held = (ours, version)
        self._renewal.start()
        self._begin_audit(now_ms)
        return True

    def _begin_audit(self, now_ms: int) -> None:
        if self._is_audited is None:
            self._is_audited = is_audited(self._storage)
        if self._is_audited:
            self._journal = LockJournal(self._storage, self._owner, now_ms, self._validity_ms)
            self._audit("START", now_ms)

    def _audit(self, state: State, now_ms: int) -> None:
        if self._journal is not None:
            self._journal.record(state, now_ms, self.is_held)

    def _undo_unconfirmed(self) -> None:
        """End the lease if the store wrote it without confirming."""
        with suppress(Exception):  # the original error says more
            current = self._files.read(LOCK_PATH)
            lease = _Lease.decode(current[0], self._where) if current is not None else None
            if current is not None and lease is not None and lease.owner == self._owner and not lease.expired:
                self._files.replace(LOCK_PATH, replace(lease, expired=True).encode(), current[1])

    def _put(self, lease: _Lease, version: str) -> str | None:
        """Replace our lease; None when another process has the lock. Raises StorageError.

        The file may be ours with another version: an earlier put reached the store, but its answer was lost.
        """
        new_version = self._files.replace(LOCK_PATH, lease.encode(), version)
        if new_version is None:
            current = self._files.read(LOCK_PATH)
            if current is not None and _Lease.decode(current[0], self._where).owner == self._owner:
                new_version = self._files.replace(LOCK_PATH, lease.encode(), current[1])
        return new_version

    def _warn(self, what: str) -> None:
        warn_caller(
            f"The lock file {self._where} {what} may overlap or have to wait. Its validity is "
            f"hoodie.write.lock.storage.validity.timeout.secs={self._validity_ms // 1000}.",
            RuntimeWarning,
        )
