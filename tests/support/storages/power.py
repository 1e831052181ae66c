"""A storage in memory whose power can fail: what was not synced is lost, emptied or cut, and what was deleted comes
back, in any combination that POSIX allows.

It writes down every change and every sync; `after_cut` plays them again up to a moment. A folder keeps, for each name,
what the name has stood for since the folder was synced last, and each name comes out of a cut with any one of these. A
file that was not synced comes out whole, cut off, empty, or as zeros.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pyhudi.storage.memory import MemoryStorage

Verb = Literal["put", "put whole", "modify", "delete", "delete_tree", "folder", "sync"]


@dataclass(frozen=True, slots=True)
class Event:
    """One change or sync. "put whole": what the file holds is synced, its name is not."""

    verb: Verb
    path: str
    data: bytes = b""
    modified_ms: int = 0


@dataclass(slots=True)
class _File:
    data: bytes
    modified_ms: list[int]  # since it was synced; the last one counts
    is_synced: bool


@dataclass(slots=True)
class _Folder:
    names: dict[str, list[_File | _Folder | None]] = field(default_factory=dict)  # since it was synced, last: now

    def now(self, name: str) -> _File | _Folder | None:
        return self.names.get(name, [None])[-1]

    def put(self, name: str, node: _File | _Folder | None) -> None:
        self.names.setdefault(name, [None]).append(node)

    def sync(self) -> None:
        self.names = {name: [nodes[-1]] for name, nodes in self.names.items() if nodes[-1] is not None}


Survivors: TypeAlias = tuple[dict[str, tuple[bytes, int]], set[str]]


class PowerStorage(MemoryStorage):
    """A copy of `storage` that is all on the disk. `events`: what happened to it since."""

    def __init__(self, storage: MemoryStorage | None = None) -> None:
        copy = (storage or MemoryStorage()).clone()
        self._content, self._name = copy._content, copy._name
        self._begin: Survivors = dict(copy._content.files), set(copy._content.folders)
        self._local = threading.local()
        self.events: list[Event] = []

    @property
    def keeps_order(self) -> bool:
        return False

    def clone(self) -> PowerStorage:
        return PowerStorage(super().clone())

    def write(self, path: str, data: bytes) -> None:
        self._put_whole(bool(data))
        super().write(path, data)
        self._put_whole(False)

    def create_synced(self, path: str, data: bytes) -> None:
        self._put_whole(True)
        try:
            super().create_new(path, data)
        finally:
            self._put_whole(False)
        self.sync([path])

    def sync(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._note(Event("sync", path))

    def delete(self, path: str) -> bool:
        found = super().delete(path)
        if found:
            self._note(Event("delete", path))
        return found

    def delete_tree(self, path: str) -> None:
        is_there = self._is_folder(path)
        super().delete_tree(path)
        if is_there:
            self._note(Event("delete_tree", path))

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        self._note(Event("folder", path))

    def set_modified(self, path: str, modified_ms: int) -> None:
        super().set_modified(path, modified_ms)
        self._note(Event("modify", path, modified_ms=modified_ms))

    def _put(self, path: str, data: bytes) -> None:
        super()._put(path, data)
        whole = getattr(self._local, "whole", False)
        self._note(Event("put whole" if whole else "put", path, data, self._content.files[path][1]))

    def _put_whole(self, whole: bool) -> None:
        self._local.whole = whole

    def _note(self, event: Event) -> None:
        with self._content.lock:
            self.events.append(event)

    def after_cut(self, moment: int, chance: random.Random, luck: float | None = None) -> PowerStorage:
        """What is there when the power comes back that failed after so many events.

        Args:    luck: how probably the disk had written by itself what nothing synced; 1 takes nothing away.
        """
        disk = _disk(*self._begin)
        for event in self.events[:moment]:
            _play(event, disk)
        # Disks differ in how much they had written by themselves.
        luck = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0)) if luck is None else luck
        files: dict[str, tuple[bytes, int]] = {}
        folders: set[str] = set()
        _survive(disk, "", chance, luck, (files, folders))
        survived = MemoryStorage(clock=self._content.clock)
        survived._content.files, survived._content.folders = files, folders
        return PowerStorage(survived)

    def after_the_worst_cut(self) -> dict[str, bytes]:
        """Path → content of a disk that wrote nothing by itself: names that were not synced stand for what they were,
        and files that were not are empty.
        """
        disk = _disk(*self._begin)
        for event in self.events:
            _play(event, disk)
        return dict(_synced(disk, ""))

    def contents(self) -> dict[str, bytes]:
        """Path → content as programs see it."""
        return {path: data for path, (data, _) in self._content.files.items()}


def _disk(files: dict[str, tuple[bytes, int]], folders: set[str]) -> _Folder:
    root = _Folder()
    for path in folders:
        _folder(root, path)
    for path, (data, modified_ms) in files.items():
        folder, _, name = path.rpartition("/")
        _folder(root, folder).put(name, _File(data, [modified_ms], is_synced=True))
    _sync_tree(root)
    return root


def _sync_tree(folder: _Folder) -> None:
    folder.sync()
    for (node,) in folder.names.values():
        if isinstance(node, _Folder):
            _sync_tree(node)


def _folder(root: _Folder, path: str) -> _Folder:
    """The folder, made with those above it where they are missing."""
    found = root
    for name in path.split("/") if path else ():
        below = found.now(name)
        if not isinstance(below, _Folder):
            below = _Folder()
            found.put(name, below)
        found = below
    return found


def _play(event: Event, root: _Folder) -> None:
    folder_path, _, name = event.path.rpartition("/")
    if event.verb == "sync":
        _play_sync(event.path, root)
        return
    if event.verb == "folder":
        _folder(root, event.path)
        return
    folder = _folder(root, folder_path)
    node = folder.now(name)
    if event.verb in ("put", "put whole"):
        folder.put(name, _File(event.data, [event.modified_ms], is_synced=event.verb == "put whole"))
    elif event.verb == "modify":
        assert isinstance(node, _File), event
        node.modified_ms.append(event.modified_ms)
    elif node is not None:
        if isinstance(node, _Folder):
            _empty(node)
        folder.put(name, None)


def _empty(folder: _Folder) -> None:
    for name in list(folder.names):
        node = folder.now(name)
        if isinstance(node, _Folder):
            _empty(node)
        if node is not None:
            folder.put(name, None)


def _play_sync(path: str, root: _Folder) -> None:
    folder, names = root, path.split("/") if path else []
    folder.sync()
    for name in names:
        node = folder.now(name)
        if isinstance(node, _File):
            node.is_synced = True
            node.modified_ms = node.modified_ms[-1:]
        if not isinstance(node, _Folder):
            return
        node.sync()
        folder = node


def _survive(folder: _Folder, path: str, chance: random.Random, luck: float, into: Survivors) -> None:
    files, folders = into
    for name, nodes in folder.names.items():
        node = nodes[-1] if chance.random() < luck else chance.choice(nodes)
        below = f"{path}/{name}" if path else name
        if isinstance(node, _Folder):
            folders.add(below)
            _survive(node, below, chance, luck, into)
        elif node is not None:
            files[below] = _content(node, chance, luck), chance.choice(node.modified_ms)


def _synced(folder: _Folder, path: str) -> Iterator[tuple[str, bytes]]:
    for name, (node, *_) in folder.names.items():
        below = f"{path}/{name}" if path else name
        if isinstance(node, _Folder):
            yield from _synced(node, below)
        elif node is not None:
            yield below, node.data if node.is_synced else b""


def _content(file: _File, chance: random.Random, luck: float) -> bytes:
    if file.is_synced or chance.random() < luck:
        return file.data
    cut = file.data[: chance.randint(0, len(file.data))]
    return chance.choice((b"", cut, bytes(len(file.data))))
