"""Lock provider FILESYSTEM: a file named `lock` that only one process can create.

The file lies in the table's `.hoodie` or in `hoodie.write.lock.filesystem.path`, as with Hudi's provider, so both
exclude each other. Its content names its owner, which Hudi ignores. Set `expire_min` to more minutes than any writer
ever holds the lock: an older file counts as abandoned by a dead process and is taken over. The file of a process on
this machine that is certainly dead is taken over at once. On disks and mounts the holder renews its file's time while
it works, so the file of a lost machine or container is taken over after a minute.

Hudi's provider deletes the file twice: when it releases its lock, and some milliseconds later when it closes, whoever
owns the file by then. So after waiting for a lock of Hudi's, a new lock is checked again before it counts, and
`is_held` reads the file. Only for stores with exclusive create. Source: docs/formats/writers.md, "Locks".
"""

from __future__ import annotations

from contextlib import suppress

from pyhudi.errors import PathExists, PathNotFound, StorageError
from pyhudi.locks.base import LockOptions, Pauses, retry_until
from pyhudi.locks.process import is_note, is_renewed, is_surely_dead, note_of_this_process
from pyhudi.locks.renewal import Renewal
from pyhudi.model.filenames import LOCK_FILE_NAME, META_FOLDER
from pyhudi.redaction import quoted
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.paths import child
from pyhudi.storage.place import creates_exclusively, is_of_one_machine, mount_kind
from pyhudi.storage.versioned import LOCK_BYTES_MAX
from pyhudi.warnings import warn_caller

__all__ = ["FileSystemLock"]

_NEAR: Pauses = (0.002, 0.01)  # this machine's disks: looking costs microseconds
_FAR: Pauses = (0.05, 1.0)
_CREATIONS = 2  # in one attempt: once more if the lock was released in between; then wait for the next attempt
_RENEWAL_S = 10.0
_LEASE_S = 60.0
_SILENCE_S = 30.0  # measured by the waiting process: the clocks of two machines may differ by more than a lease
_SKEW_MS = {True: 1, False: 200}  # by whether all processes that share the table have one clock
_HUDI_CLOSES_S = 0.05  # measured: up to 4 ms between Hudi's two deletions, on a busy machine


class FileSystemLock:
    """A handle on the lock file of one table."""

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        elsewhere = settings.filesystem_path
        self._storage = open_storage(elsewhere) if elsewhere else storage
        self._path = LOCK_FILE_NAME if elsewhere else child(META_FOLDER, LOCK_FILE_NAME)
        self._expire_ms = settings.expire_min * 60_000
        self._pauses = _pauses(settings, self._storage)
        self._clock = clock
        self.default_skew_ms = _SKEW_MS[is_of_one_machine(storage) and is_of_one_machine(self._storage)]
        _warn_of_place(self._storage)
        self._renewal = Renewal(self._renew, _RENEWAL_S) if isinstance(self._storage, LocalStorage) else None
        self._silent: tuple[tuple[bytes, int], float] | None = None  # another's file, unchanged since
        self._content: bytes | None = None  # content of our lock file, None while we hold none
        self._refusal: str | None = None  # the obstacle of the last attempt, where no lock file can be seen
        self._has_waited_for_hudi = False

    @property
    def is_held(self) -> bool:
        if self._content is None:
            return False
        note = self._read_lock_file(self._path)
        return note is not None and note[0] == self._content

    @property
    def owner_note(self) -> str:
        note = self._read_lock_file(self._path)
        if note is None:
            return f"nobody ({self._refusal})" if self._refusal else "nobody"
        content, modified_ms = note
        age_s = max(0, self._clock.now_ms() - modified_ms) // 1000
        who = quoted(content.decode("utf-8", errors="replace").strip()) or "a process that left no note"
        return f"{who}, file {self._storage.full_path(self._path)} made {age_s} s ago"

    def try_acquire(self, timeout_s: float) -> bool:
        content, self._has_waited_for_hudi = self._note(), False
        return retry_until(lambda: self._attempt(content), timeout_s, self._pauses, self._clock)

    def _attempt(self, content: bytes) -> bool:
        self._refusal = refusal = None
        for _ in range(_CREATIONS):
            try:
                self._storage.create_new(self._path, content)
            except PathExists as error:
                if not self._break_expired():
                    return False
                refusal = str(error)
            except PathNotFound:
                return False  # undoing the creation of a table deletes its empty folder
            except BaseException:
                self._undo_unconfirmed(content)
                raise
            else:
                self._content = content
                if not self._outlives_hudi():
                    return False
                if self._renewal is not None:
                    self._renewal.start()
                return True
        self._refusal = refusal
        return False

    def _undo_unconfirmed(self, content: bytes) -> None:
        """Delete the lock file if the store created it without confirming."""
        with suppress(Exception):  # the original error says more
            note = self._read_lock_file(self._path)
            if note is not None and note[0] == content:
                self._storage.delete(self._path)

    def _outlives_hudi(self) -> bool:
        """True if the new lock file still exists once Hudi, whose lock we waited for, must have closed."""
        if self._has_waited_for_hudi:
            self._clock.sleep_s(_HUDI_CLOSES_S)
            if not self.is_held:
                self._content = None
                return False
        return True

    def _renew(self) -> bool:
        """Show that the holder is at work; False when it no longer has the lock."""
        try:
            if not self.is_held:
                return False
            self._storage.set_modified(self._path, self._clock.now_ms())
        except StorageError:
            pass  # a mount that refuses now may answer next time
        return True

    def release(self) -> None:
        if self._renewal is not None:
            self._renewal.stop()
        content = self._content
        if content is None:
            return
        note = self._read_lock_file(self._path)
        if note is not None and note[0] == content:
            self._storage.delete(self._path)
            self._content = None
            return
        self._content = None
        warn_caller(
            f"The lock file {self._storage.full_path(self._path)} was taken over while it was held: "
            f"hoodie.write.lock.filesystem.expire is shorter than a write holds the lock (raise it), or real Hudi "
            f"deleted it when it closed its own (docs/locks.md). Two writers may have overlapped.",
            RuntimeWarning,
        )

    def _break_expired(self) -> bool:
        """Remove the lock file if it is stale. True if another attempt at once may succeed.

        Only the waiting process that creates the mark of this file removes it, after another look: without the mark a
        slow process would remove the lock that a faster one has just taken.
        """
        note = self._read_lock_file(self._path)
        if note is None:
            return True
        self._has_waited_for_hudi |= not is_note(note[0])
        if not self._is_left_behind(note):
            return False
        mark = f"{self._path}.expired.{note[1]}"
        try:
            self._storage.create_new(mark, self._note())
        except PathExists:
            marked = self._read_lock_file(mark)
            if marked is not None and self._is_left_behind(marked):
                self._storage.delete(mark)  # the process that created it died, too
            return False
        if self._read_lock_file(self._path) == note:
            self._storage.delete(self._path)
        self._storage.delete(mark)
        return True

    def _is_left_behind(self, note: tuple[bytes, int]) -> bool:
        content, modified_ms = note
        age_ms = self._clock.now_ms() - modified_ms
        is_old = self._expire_ms > 0 and age_ms > self._expire_ms
        return is_old or is_surely_dead(content) or (age_ms > _LEASE_S * 1000 and self._is_silent(note))

    def _is_silent(self, note: tuple[bytes, int]) -> bool:
        """True if the holder stopped renewing a lock file while this process watched it."""
        if self._renewal is None or not is_renewed(note[0]):
            return False
        now_s = self._clock.monotonic_s()
        if self._silent is None or self._silent[0] != note:
            self._silent = note, now_s
        return now_s - self._silent[1] >= _SILENCE_S

    def _read_lock_file(self, path: str) -> tuple[bytes, int] | None:
        info = self._storage.stat(path)
        if info is None:
            return None
        try:
            with self._storage.open_input(path) as file:
                return bytes(file.read(LOCK_BYTES_MAX)), info.modified_ms
        except PathNotFound:
            return None

    def _note(self) -> bytes:
        return note_of_this_process(self._clock.new_uuid(), is_renewed=self._renewal is not None)


_warned: set[str] = set()  # mounts


def _warn_of_place(storage: Storage) -> None:
    if not isinstance(storage, LocalStorage) or creates_exclusively(storage):
        return
    kind = mount_kind(storage.root)
    if kind not in _warned:
        _warned.add(kind)
        warn_caller(
            f"{storage.root} is on a mount of the kind {quoted(kind)}, which does not keep two machines from creating "
            f"one file: a lock file there holds off processes of this machine alone. If other machines write to the "
            f"table, open it by its URI (s3://, gs://, abfss://), or give a hoodie.write.lock.provider that has a "
            f"server (docs/locks.md).",
            RuntimeWarning,
        )


def _pauses(settings: LockOptions, storage: Storage) -> Pauses:
    if settings.retry_wait_ms is not None:
        return settings.retry_wait_ms / 1000, settings.retry_wait_ms / 1000
    return _NEAR if storage.full_path("").startswith(("file:", "memory:")) else _FAR
