"""A table's files filmed while others change them, and shown to a reader at whatever pace a test likes."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from pyhudi.storage import FileInfo, MemoryStorage
from pyhudi.storage.base import READ_BYTES_MAX

Files = dict[str, tuple[bytes, int]]


class _Watched(MemoryStorage, ABC):
    """Calls `_turn` before every call."""

    @abstractmethod
    def _turn(self, verb: str) -> None: ...

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        self._turn("read")
        return super().read(path, limit_bytes)

    def open_input(self, path: str) -> Any:
        self._turn("open_input")
        return super().open_input(path)

    def open_output(self, path: str) -> Any:
        self._turn("open_output")
        return super().open_output(path)

    def write(self, path: str, data: bytes) -> None:
        self._turn("write")
        super().write(path, data)

    def create_new(self, path: str, data: bytes) -> None:
        self._turn("create_new")
        super().create_new(path, data)

    def list(self, path: str) -> tuple[FileInfo, ...]:
        self._turn("list")
        return super().list(path)

    def walk(self, path: str) -> Iterator[FileInfo]:
        self._turn("walk")
        return super().walk(path)

    def stat(self, path: str) -> FileInfo | None:
        self._turn("stat")
        return super().stat(path)

    def delete(self, path: str) -> bool:
        self._turn("delete")
        return super().delete(path)

    def delete_tree(self, path: str) -> None:
        self._turn("delete_tree")
        super().delete_tree(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._turn("set_modified")
        super().set_modified(path, modified_ms)


class FilmedStorage(_Watched):
    """A copy of `storage` to be changed. `frames`: its files as they are, and as they were before each change."""

    def __init__(self, storage: MemoryStorage) -> None:
        copy = storage.clone()
        self._content, self._name = copy._content, copy._name
        self._frames: list[Files] = [dict(self._content.files)]

    @property
    def frames(self) -> list[Files]:
        self._turn("end")
        return self._frames

    def _turn(self, verb: str) -> None:
        with self._content.lock:
            if self._content.files != self._frames[-1]:
                self._frames.append(dict(self._content.files))


class ShownStorage(_Watched):
    """Before the n-th call (from 1 on) it turns to the frame that `frame_of(n)` names. To be read only."""

    def __init__(self, frames: list[Files], frame_of: Callable[[int], int]) -> None:
        super().__init__()
        self._frames, self._frame_of = frames, frame_of
        self._one = threading.Lock()
        self.turns = 0
        self._content.files = frames[frame_of(1)]

    def _turn(self, verb: str) -> None:
        with self._one:
            self.turns += 1
            self._content.files = self._frames[self._frame_of(self.turns)]


class InterruptedStorage(_Watched):
    """The content of `storage`. Before call number `at` (from 1 on) `act` is done, by other handles of the content.

    `verbs`: of the calls so far.
    """

    def __init__(self, storage: MemoryStorage, at: int = 0, act: Callable[[], object] = lambda: None) -> None:
        self._content, self._name = storage._content, storage._name
        self._at, self._act = at, act
        self._one = threading.RLock()
        self.verbs: list[str] = []

    def _turn(self, verb: str) -> None:
        with self._one:
            self.verbs.append(verb)
            if len(self.verbs) == self._at:
                self._act()
