"""What goes wrong while a stream of a store is written: a full disk, a quota, a connection that breaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import StorageError

__all__ = ["as_storage_error"]


@contextmanager
def as_storage_error(where: str) -> Iterator[None]:
    """Around calls of a sink that `open_output` gave. `where`: the file's full path. Raises StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{where}: the file could not be written: {error}. The write is not complete; what it left is taken away "
            f"by the next one. Make room, or mend the store, and write again."
        ) from error
