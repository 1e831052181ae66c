"""MemoryStorage: a table in a dict, with faults on demand. For tests and experiments.

Handles of the same name share content, so that a writer, a reader and the next writer can be simulated in one process.
Faults model a process that dies at one storage call: that call and every later one fail, until `reset_faults`; or a
process that goes on after an error at one call, as after Ctrl-C.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pyhudi.errors import PathExists, PathNotFound, StorageError
from pyhudi.storage.base import READ_BYTES_MAX, AlwaysSynced, FileInfo, check_size
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.paths import inside

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FaultKind", "InjectedFault", "MemoryStorage"]

FaultKind = Literal["before", "after", "torn"]


class InjectedFault(StorageError):
    """A failure injected by a test."""


class _Content:
    """The common content of all handles of one name."""

    def __init__(self, clock: Clock) -> None:
        self.lock = threading.RLock()
        self.clock = clock
        self.files: dict[str, tuple[bytes, int]] = {}  # path → bytes, modified_ms
        self.folders: set[str] = set()
        self.calls = 0
        self.log: list[tuple[str, str]] = []
        self.fault: tuple[int, FaultKind] | None = None
        self.error: type[BaseException] | None = None  # for a process that goes on
        self.dead = False


# Named contents live as long as the process; unnamed ones as long as one of their handles.
_NAMED: dict[str, _Content] = {}
_UNNAMED: weakref.WeakValueDictionary[str, _Content] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count(1)
_REGISTRY_LOCK = threading.Lock()


class MemoryStorage(AlwaysSynced):
    """A storage in this process. Thread-safe. Pickling keeps the name, so a copy works within this process only.

    Args: `name`: handles of one name share content; None makes separate content. `clock` stamps files; the first handle
              of a name decides.
    """

    def __init__(self, name: str | None = None, clock: Clock | None = None) -> None:
        with _REGISTRY_LOCK:
            if name is None:
                name = f"unnamed-{next(_NUMBERS)}"
                self._content = _UNNAMED[name] = _Content(clock or SystemClock())
            elif name in _UNNAMED:
                self._content = _UNNAMED[name]
            else:
                if name not in _NAMED:
                    _NAMED[name] = _Content(clock or SystemClock())
                self._content = _NAMED[name]
        self._name = name

    def __repr__(self) -> str:
        return f"MemoryStorage({self._name!r})"

    def __reduce__(self) -> tuple[type[MemoryStorage], tuple[str]]:
        return MemoryStorage, (self._name,)

    # Faults

    @property
    def calls(self) -> int:
        """Storage calls so far (since the last `reset_faults`)."""
        return self._content.calls

    @property
    def log(self) -> tuple[tuple[str, str], ...]:
        """The calls so far as (verb, path); the n-th entry is the call that `fail_at(n)` hits."""
        return tuple(self._content.log)

    def fail_at(self, n: int, kind: FaultKind = "before", error: type[BaseException] | None = None) -> None:
        """Let the n-th call from now on (1-based) and all later ones fail with InjectedFault; with `error`, only the
        n-th call fails, with that error.

        "before": it does nothing; "after": it does its work, then fails; "torn": a `write` or the close of an
        `open_output` leaves the first half of its bytes, `delete_tree` deletes half of the files, the others do
        nothing. `create_new` never exposes a part.
        """
        self.reset_faults()
        self._content.fault, self._content.error = (n, kind), error

    def reset_faults(self) -> None:
        """Simulate a new process: no fault is pending, calls are counted from zero."""
        content = self._content
        with content.lock:
            content.calls, content.fault, content.error, content.dead = 0, None, None, False
            content.log.clear()

    def clone(self) -> MemoryStorage:
        """Return an unnamed storage with a copy of the content and no faults."""
        copy = MemoryStorage(clock=self._content.clock)
        with self._content.lock:
            copy._content.files = dict(self._content.files)
            copy._content.folders = set(self._content.folders)
        return copy

    def paths(self) -> tuple[str, ...]:
        """Return all files, sorted; not a storage call."""
        with self._content.lock:
            return tuple(sorted(self._content.files))

    # Storage

    @property
    def root(self) -> str:
        return f"memory://{self._name}"

    @property
    def listed_at_once(self) -> int:
        return sys.maxsize

    @property
    def is_local(self) -> bool:
        return True

    def full_path(self, path: str) -> str:
        return f"{self.root}/{inside(path, self.root)}"

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        with _Call(self, "read", path):
            data = self._bytes(path)
            check_size(len(data), limit_bytes, self.full_path(path))
            return data

    def open_input(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        with _Call(self, "open_input", path):
            return pa.BufferReader(self._bytes(path))

    def open_output(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        with _Call(self, "open_output", path):
            self._put(path, b"")
        return pa.PythonFile(_Sink(self, path), mode="w")  # type: ignore[arg-type]  # these methods are enough

    def write(self, path: str, data: bytes) -> None:
        with _Call(self, "write", path) as call:
            self._put(path, data[: len(data) // 2] if call.torn else bytes(data))

    def create_new(self, path: str, data: bytes) -> None:
        with _Call(self, "create_new", path) as call:
            if path in self._content.files or self._is_folder(path):
                raise PathExists(f"{self.full_path(path)} exists already.")
            if not call.torn:
                self._put(path, bytes(data))

    def list(self, path: str) -> tuple[FileInfo, ...]:
        with _Call(self, "list", path):
            prefix = f"{path}/" if path else ""
            infos: dict[str, FileInfo] = {}
            for file, (data, modified_ms) in self._content.files.items():
                if file.startswith(prefix):
                    name, _, deeper = file[len(prefix) :].partition("/")
                    infos[name] = FileInfo(prefix + name, 0 if deeper else len(data), modified_ms, bool(deeper))
            for folder in self._content.folders:
                if folder.startswith(prefix) and folder != path:
                    name = folder[len(prefix) :].partition("/")[0]
                    infos.setdefault(name, FileInfo(prefix + name, 0, 0, True))
            return tuple(infos[name] for name in sorted(infos))

    def walk(self, path: str) -> Iterator[FileInfo]:
        with _Call(self, "walk", path):
            prefix = f"{path}/" if path else ""
            files = [
                FileInfo(file, len(data), modified_ms)
                for file, (data, modified_ms) in self._content.files.items()
                if file.startswith(prefix)
            ]
        return iter(files)

    def stat(self, path: str) -> FileInfo | None:
        with _Call(self, "stat", path):
            if path in self._content.files:
                data, modified_ms = self._content.files[path]
                return FileInfo(path, len(data), modified_ms)
            return FileInfo(path, 0, 0, True) if self._is_folder(path) else None

    def delete(self, path: str) -> bool:
        with _Call(self, "delete", path) as call:
            if call.torn:
                return False
            return self._content.files.pop(path, None) is not None

    def delete_tree(self, path: str) -> None:
        with _Call(self, "delete_tree", path) as call:
            doomed = sorted(file for file in self._content.files if _is_below(file, path))
            for file in doomed[: len(doomed) // 2] if call.torn else doomed:
                del self._content.files[file]
            if not call.torn:
                self._content.folders = {folder for folder in self._content.folders if not _is_below(folder, path)}

    def check_deletable(self, path: str) -> None:
        """Do nothing: everything can be deleted."""

    def make_folder(self, path: str) -> None:
        with _Call(self, "make_folder", path) as call:
            if not call.torn:
                self._content.folders.add(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        with _Call(self, "set_modified", path) as call:
            data = self._bytes(path)
            if not call.torn:
                self._content.files[path] = (data, modified_ms)

    def _bytes(self, path: str) -> bytes:
        try:
            return self._content.files[path][0]
        except KeyError:
            raise PathNotFound(f"{self.full_path(path)} does not exist.") from None

    def _put(self, path: str, data: bytes) -> None:
        self._content.files[path] = (data, self._content.clock.now_ms())

    def _is_folder(self, path: str) -> bool:
        prefix = f"{path}/"
        return path in self._content.folders or any(file.startswith(prefix) for file in self._content.files)


class _Call:
    """One counted storage call, holding the content's lock; it raises the fault when it is this call's turn."""

    def __init__(self, storage: MemoryStorage, verb: str, path: str) -> None:
        self._storage, self._verb, self._path = storage, verb, path
        self.torn = False
        self._fails_after = False

    def __enter__(self) -> _Call:
        inside(self._path, self._storage.root)
        content = self._storage._content
        content.lock.acquire()
        try:
            content.calls += 1
            content.log.append((self._verb, self._path))
            if content.dead:
                raise self._fault("the process is dead already")
            if content.fault is not None and content.calls == content.fault[0]:
                kind = content.fault[1]
                content.dead = content.error is None
                if kind == "before":
                    raise self._fault("before the call")
                self.torn, self._fails_after = kind == "torn", True
        except BaseException:
            content.lock.release()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._storage._content.lock.release()
        if self._fails_after and error is None:
            raise self._fault("in the middle of the call" if self.torn else "after the call")

    def _fault(self, when: str) -> BaseException:
        content = self._storage._content
        number, kind = content.calls, InjectedFault if content.dead or content.error is None else content.error
        return kind(f"Injected fault at call {number} ({self._verb} {self._path!r}): {when}.")


class _Sink:
    """File object behind `open_output`: collects bytes and stores them when it is closed."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage, self._path = storage, path
        self._parts: list[bytes] = []
        self._size = 0
        self.closed = False

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | memoryview) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: bytes reach the storage on close."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        data = b"".join(self._parts)
        with _Call(self._storage, "close_output", self._path) as call:
            self._storage._put(self._path, data[: len(data) // 2] if call.torn else data)


def _is_below(path: str, folder: str) -> bool:
    return folder == "" or path == folder or path.startswith(f"{folder}/")
