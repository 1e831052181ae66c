"""Open HFiles of a storage. Their indexes, and blocks decoded by lookups, stay cached for the next opening.

Source: docs/formats/hfile.md, "Lookups"; docs/decisions/0015-what-is-kept-of-files.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyhudi.formats.hfile.reader import CachedBlocks, HFileReader
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import FILES, FileState, SameFile, settled_state

__all__ = ["open_hfile"]


@dataclass(frozen=True, slots=True)
class _OpenFile:
    reader: HFileReader
    source: SameFile


@contextmanager
def open_hfile(
    storage: Storage,
    path: str,
    where: str,
    offset: int = 0,
    size_bytes: int | None = None,
    *,
    state: FileState | None = None,
) -> Iterator[HFileReader]:
    """Open an HFile, for one thread.

    Args:    where: its name in messages; offset, size_bytes: its part of the file, None for all of it; state: the
                 file's, if known already.
    Raises:  CorruptFile, UnsupportedTable, PathNotFound.
    """
    state = state or settled_state(storage, path)
    if state is None:
        with storage.open_input(path) as source:
            yield HFileReader(source, where, offset, size_bytes)
        return
    key = (state, path, "hfile", offset)
    hfile = FILES.pop(key)  # another thread then opens its own
    if not isinstance(hfile, _OpenFile):
        file = SameFile(storage, path, state)
        try:
            hfile = _OpenFile(HFileReader(file, where, offset, size_bytes, blocks=CachedBlocks(key)), file)
        finally:
            file.close()
    try:
        yield hfile.reader
    finally:
        hfile.source.close()
    FILES.put(key, hfile, hfile.reader.forget_bytes())
