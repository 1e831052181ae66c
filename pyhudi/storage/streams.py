"""What goes wrong while a stream of a store or a temporary file is written: a full disk, a quota, a lost connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import StorageError

__all__ = ["as_storage_error", "as_temporary_error"]


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


@contextmanager
def as_temporary_error(where: str, setting: str = "the environment variable TMPDIR") -> Iterator[None]:
    """Around calls that make, write or read back a file of rows in a temporary folder. Raises StorageError.

    Args: where: the file; setting: what says in which folder it is.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{where}: rows that don't fit in memory can't be kept there: {error}. Let {setting} name a folder "
            f"with room for all rows of the call."
        ) from error
