"""Symbolic links to folders, while a table's folders are walked through: each folder of the disk is in a table once.

A link may lead to a folder on another disk. One that leads up, into the table, or where another link of the table leads
would show the same files under several names: with links in a circle, without an end.
Source: docs/decisions/0011-what-a-symbolic-link-means.md.
"""

from __future__ import annotations

import os

from pyhudi.errors import StorageError
from pyhudi.storage.base import FileInfo

__all__ = ["FolderLinks"]


class FolderLinks:
    """The links that one walk through the table at `root` has followed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._walked: dict[str, str] = {}  # real folder → its name in the table
        self._above: dict[str, str] = {}  # folders above those

    def follow(self, entry: FileInfo) -> None:
        """Before a folder is entered. Raises StorageError for a link to what is, or holds, a folder of the table."""
        target = entry.leads_to
        if target is None:
            return
        if not self._walked:
            self._add(os.path.realpath(self._root), "the table itself")
        above = _folders_above(target)
        other = self._walked.get(target) or self._above.get(target)
        other = other or next((self._walked[folder] for folder in above if folder in self._walked), None)
        if other is not None:
            raise StorageError(
                f"{self._root}: the folder {entry.path!r} is a symbolic link to {target!r}, which is also {other}, or "
                f"lies in or above it: its files would be in the table twice, and circles of symbolic links have no "
                f"end. Remove the link; nothing was changed."
            )
        self._add(target, repr(entry.path))

    def _add(self, folder: str, name: str) -> None:
        self._walked[folder] = name
        for above in _folders_above(folder):
            self._above.setdefault(above, name)


def _folders_above(folder: str) -> list[str]:
    found = []
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        found.append(folder)
    return found
