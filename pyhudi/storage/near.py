"""Storages that answer at once: the disks of this machine.

Threads that wait for several answers at a time cost more there than they save, and to look at the files of a folder
takes longer than to read their names. Only some storages have these calls.
"""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.storage.base import Storage

__all__ = ["is_near", "names_in"]


def is_near(storage: Storage) -> bool:
    """Does the storage answer in less time than it takes to begin a thread?"""
    return bool(getattr(storage, "is_near", False))


def names_in(storage: Storage, path: str) -> frozenset[str]:
    """The names of what `Storage.list` lists in a folder."""
    names: Callable[[str], frozenset[str]] | None = getattr(storage, "names_in", None)
    return frozenset(entry.name for entry in storage.list(path)) if names is None else names(path)
