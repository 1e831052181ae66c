"""Writing an object as a stream that is nothing before it is closed.

For Azure: pyarrow's stream empties the old object when it opens, and what a dead writer left would be an empty file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from pyhudi.storage.arrow_store import ObjectStore, shown_error, shown_store_error

__all__ = ["open_object_stream"]

Answer = TypeVar("Answer")


def open_object_stream(api: ObjectStore, path: str, where: str) -> pa.NativeFile:
    """A sink for pyarrow. Its calls raise StorageError."""
    return pa.PythonFile(_ObjectStream(api, path, where), mode="w")  # type: ignore[arg-type]  # its methods are enough


class _ObjectStream:
    """What pyarrow asks of a file, over obstore's writer, which sends an object in parts and joins them at the end."""

    def __init__(self, api: ObjectStore, path: str, where: str) -> None:
        self._exceptions, self._where = api.exceptions, where
        self._writer = self._call(lambda: api.module.open_writer(api.store, path))
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        content = memoryview(data).cast("B")
        return int(self._call(lambda: self._writer.write(content)))

    def flush(self) -> None:
        """Nothing: parts go when they are full."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._call(self._writer.close)

    def _call(self, act: Callable[[], Answer]) -> Answer:
        try:
            return act()
        except (self._exceptions.BaseError, OSError) as error:
            raise shown_store_error(self._where, error) from shown_error(error)
