"""The error of a query when a planned file was deleted since: the query came too late, the table is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import PathNotFound, StaleRead
from pyhudi.storage.base import Storage

__all__ = ["stale_read_if_missing"]


@contextmanager
def stale_read_if_missing(storage: Storage) -> Iterator[None]:
    """Raises StaleRead where the block does not find a file."""
    try:
        yield
    except PathNotFound as error:
        raise StaleRead(
            f"{storage.root}: a file was deleted after the query was planned: {error} Cleaning has "
            "deleted it, or its write was rolled back. Scan again for the newest state; if queries take longer than "
            "files are kept, let cleaning retain more commits."
        ) from error
