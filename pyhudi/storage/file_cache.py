"""FileCache: footers, schemas, bodies and blocks of files, in this process's memory for later readers.

    file state     device, inode, size, and both times of a file: changed bytes have another state
    entry          a value derived from a file in one state; a file that may be changing has none

A replaced or changed file has another state, so entries of the old one are never used again. Times of files have
limited resolution: two changes within one step would leave the same state. So a file counts as settled, and gets
entries, only once its last change is more than a step ago. Files in stores without states are read every time.
Source: docs/decisions/0015-what-is-kept-of-files.md.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pyhudi.errors import PathNotFound
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CACHE_BYTES",
    "FILES",
    "FileCache",
    "FileState",
    "SameFile",
    "get_or_load",
    "get_or_load_in_state",
    "load_on_second_use",
    "peek",
    "peek_in_state",
    "settled_state",
    "state_of",
]

CACHE_BYTES = 64 << 20  # of all entries together
_LARGEST_PART = 4  # a value larger than the cache divided by this is not cached
_ENTRY_BYTES = 500  # approximate size of an entry, without its value
_STEP_MS = 100  # kernels record times by their clock's tick, 10 ms at most
_COARSE_STEP_MS = 5000  # for file systems with whole milliseconds or seconds: FAT has steps of 2 s
_MS = 1_000_000  # in ns

_CLOCK = SystemClock()

_ASKED_ONCE = object()  # marks a value that is loaded on the next use

T = TypeVar("T")


class FileState(NamedTuple):
    """The state of a file, equal only while its bytes are unchanged."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int  # the system's time of the last change, which can't be set

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Return the state in the result of a system call."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def is_settled(self, now_ms: int) -> bool:
        """True if any change from `now_ms` on would alter the state."""
        newest = max(self.modified_ns, self.changed_ns)
        is_coarse = self.modified_ns % _MS == 0 or self.changed_ns % _MS == 0
        return newest // _MS + (_COARSE_STEP_MS if is_coarse else _STEP_MS) < now_ms


def state_of(storage: Storage, path: str) -> FileState | None:
    """Return the state of a file; None for a missing file, or if the store has no states."""
    ask: Callable[[str], FileState | None] | None = getattr(storage, "file_state", None)
    return None if ask is None else ask(path)


def settled_state(storage: Storage, path: str) -> FileState | None:
    """Like `state_of`, but None for a file that was changed just now."""
    state = state_of(storage, path)
    return state if state is not None and state.is_settled(_CLOCK.now_ms()) else None


class FileCache:
    """Values by key, up to a number of bytes; the least recently used are dropped first. Thread-safe.

    Callers must not change the values.
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Empty the cache and replace its lock, which another thread may have held when this process was forked."""
        self.size_bytes = 0
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> object | None:
        """Return the value of a key, None if missing."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def pop(self, key: Hashable) -> object | None:
        """Remove the value of a key and return it, None if missing."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            self.size_bytes -= entry[1]
            return entry[0]

    def put(self, key: Hashable, value: object, size_bytes: int) -> None:
        """Set the value of a key; `size_bytes`: its approximate size."""
        size_bytes += _ENTRY_BYTES
        if size_bytes > self._limit_bytes // _LARGEST_PART:
            return
        with self._lock:
            self.size_bytes += size_bytes - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = value, size_bytes
            while self.size_bytes > self._limit_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self.size_bytes -= freed

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()
            self.size_bytes = 0


FILES = FileCache()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FILES.reset_after_fork)


def get_or_load(storage: Storage, path: str, part: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
    """Return the result of `make` for a file, possibly cached.

    Args:   part: names the value among those of one file; size_of: returns its approximate size in bytes.
    """
    state = settled_state(storage, path)  # before the bytes are read: later changes have another state
    return make() if state is None else get_or_load_in_state(state, path, part, make, size_of)


def get_or_load_in_state(
    state: FileState, path: str, part: Hashable, make: Callable[[], T], size_of: Callable[[T], int]
) -> T:
    """Like `get_or_load`, for a file whose state the caller knows, such as an open one."""
    key = (state, path, part)
    value = cast("T | None", FILES.get(key))  # the key stands for what `make` makes
    if value is None:
        value = make()
        FILES.put(key, value, size_of(value))
    return value


def peek(storage: Storage, path: str, part: Hashable, kind: type[T]) -> T | None:
    """Return the cached value of a file, None if missing."""
    state = settled_state(storage, path)
    return None if state is None else peek_in_state(state, path, part, kind)


def peek_in_state(state: FileState, path: str, part: Hashable, kind: type[T]) -> T | None:
    """Like `peek`, for a file whose state the caller knows."""
    value = FILES.get((state, path, part))
    return value if isinstance(value, kind) else None


def load_on_second_use(
    state: FileState, path: str, part: Hashable, make: Callable[[], T], size_of: Callable[[T], int]
) -> T | None:
    """Like `get_or_load_in_state`, for a value that isn't worth loading for a single use: None the first time."""
    key = (state, path, part)
    value = FILES.get(key)
    if value is None:
        FILES.put(key, _ASKED_ONCE, 0)
        return None
    if value is not _ASKED_ONCE:
        return cast("T", value)  # the key stands for what `make` makes
    made = make()
    FILES.put(key, made, size_of(made))
    return made


class SameFile:
    """A file in one state, opened when bytes are read, and again after `close`. It has the part of `pa.NativeFile` that
    readers of single blocks need.

    Raises: PathNotFound from `read` when the file's state has changed.
    """

    def __init__(self, storage: Storage, path: str, state: FileState) -> None:
        self._storage, self._path, self._state = storage, path, state
        self._file: pa.NativeFile | None = None
        self._position = 0

    def size(self) -> int:
        return self._state.size_bytes

    def seek(self, position: int, /) -> int:
        self._position = position
        return position

    def read(self, length: int, /) -> bytes:
        file = self._file or self._open()
        file.seek(self._position)
        data = bytes(file.read(length))
        self._position += len(data)
        return data

    def close(self) -> None:
        """Close the file until the next `read`."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> pa.NativeFile:
        file = self._storage.open_input(self._path)
        if state_of(self._storage, self._path) != self._state:
            file.close()
            raise PathNotFound(f"{self._storage.root}/{self._path} was replaced while it was read. Read again.")
        self._file = file
        return file
