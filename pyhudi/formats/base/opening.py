"""What all formats of base files share about files that can't be opened, read or finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.damage import FOREIGN_ERRORS
from pyhudi.storage.base import Storage

__all__ = ["as_corrupt_file", "check_outline", "close_quietly", "open_stored"]


MAX_ROWS = 1 << 31  # of a file: a forged number must not be counted to; record positions have the same limit


class Closeable(Protocol):
    """Has something to close."""

    def close(self) -> object: ...


def open_stored(storage: Storage, path: str) -> pa.NativeFile:
    """The bytes of a base file that the table names. Raises PathNotFound with the likely reason."""
    try:
        return storage.open_input(path)
    except PathNotFound as error:
        raise PathNotFound(
            f"{storage.root}/{path} does not exist, though the table had it a moment ago. A cleaner or a rollback may "
            "have removed it since: load the table again (a new scan). If it stays away, restore it from a copy."
        ) from error


@contextmanager
def as_corrupt_file(where: str, format_name: str) -> Iterator[None]:
    """Turn what pyarrow says about bytes into CorruptFile with the file's name."""
    try:
        yield
    except FOREIGN_ERRORS as error:
        raise CorruptFile(
            f"{where}: not a readable {format_name} file: {error} Restore the file from a copy of the table, or roll "
            "the write back that made it."
        ) from error


def check_outline(where: str, rows: int, names: Sequence[str]) -> None:
    """What a footer says of the whole file: how many rows, and the names of its columns. Raises CorruptFile."""
    if not 0 <= rows <= MAX_ROWS:
        raise CorruptFile(f"{where}: expected 0 to {MAX_ROWS} rows, found {rows}. Restore the file from a copy.")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise CorruptFile(f"{where}: columns are there twice: {', '.join(twice)[:200]}. Restore the file from a copy.")


def close_quietly(*parts: Closeable | None) -> None:
    """Close what can be closed, after an error."""
    for part in parts:
        try:
            if part is not None:
                part.close()
        except (pa.ArrowException, OSError, ValueError):
            continue  # the error that brought us here is the one to tell
