"""A storage whose listings take time: changes fall into them, as with folders of a file system and pages of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyhudi.storage import FileInfo, MemoryStorage

Shuffle = Callable[[list[str]], list[str]]


class TornStorage(MemoryStorage):
    """The content of `storage`. Of the names that a listing of `folder` comes to, in the order that `shuffle` gives
    them, the first half is shown as it was before the next of `changes` is made, the rest as it is after it.
    """

    def __init__(
        self, storage: MemoryStorage, folder: str, changes: Sequence[Callable[[], object]], shuffle: Shuffle = sorted
    ) -> None:
        self._content, self._name = storage._content, storage._name
        self._folder, self._shuffle = folder, shuffle
        self._changes: Iterator[Callable[[], object]] = iter(changes)

    @property
    def listed_at_once(self) -> int:
        return 0

    def list(self, path: str) -> tuple[FileInfo, ...]:
        before = {entry.name: entry for entry in super().list(path)}
        if path != self._folder:
            return tuple(before.values())
        next(self._changes, lambda: None)()
        after = {entry.name: entry for entry in super().list(path)}
        names = self._shuffle(sorted(before.keys() | after.keys()))
        half = len(names) // 2
        shown = [before.get(name) for name in names[:half]] + [after.get(name) for name in names[half:]]
        return tuple(sorted((entry for entry in shown if entry is not None), key=lambda entry: entry.name))
