"""Sinks that start writing their bytes to the disk before the sync that waits for them."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

__all__ = ["FileToSync", "begin_sync"]

_WRITE_NOW = 2  # SYNC_FILE_RANGE_WRITE of linux/fs.h: begin without waiting


class FileToSync(pa.OSFile):
    """A sink that starts writing its bytes to the disk on close and on `begin_sync`, so that the sync has less to do.

    On systems without such a call, the sync does all the work.
    Source: sync_file_range(2).
    """

    def begin_sync(self) -> None:
        """Start writing the bytes so far to the disk, without waiting and without reporting errors."""
        if not self.closed and (begin := _write_behind()) is not None:
            with suppress(AttributeError):  # older PyArrow has no descriptor for such a file
                begin(self.fileno(), 0, 0, _WRITE_NOW)  # the result is ignored: the sync reports errors

    def close(self) -> None:
        self.begin_sync()
        super().close()


def begin_sync(sink: pa.NativeFile) -> None:
    """Writers of large files call this after each part. It does nothing if the sink is not synced later."""
    if isinstance(sink, FileToSync):
        sink.begin_sync()


@functools.cache
def _write_behind() -> Callable[[int, int, int, int], object] | None:
    """`sync_file_range` of the C library, on Linux."""
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
