"""The end of an ORC file, with the user metadata that pyarrow's writer can't write.

A file ends with `footer | postscript | length of the postscript`, and the footer is a Protobuf message in chunks, so
its last field, the user metadata, can be added as a further chunk when the file is closed; only the footer's length in
the postscript changes. Source: ORC specification v1.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.errors import StorageError
from pyhudi.formats.protobuf import bytes_field, read_varint, varint

__all__ = ["HeldTail", "user_metadata"]


def user_metadata(entries: Mapping[str, str], chunk_bytes: int | None) -> bytes:
    """Return the footer's field 5, once per entry: a message of name (1) and value (2).

    Args:    chunk_bytes: the file's compression block; None: the file is not compressed, and has no chunks.
    """
    messages = (bytes_field(1, name.encode()) + bytes_field(2, value.encode()) for name, value in entries.items())
    fields = b"".join(bytes_field(5, message) for message in messages)
    return fields if chunk_bytes is None else _chunks(fields, chunk_bytes)


def _chunks(data: bytes, chunk_bytes: int) -> bytes:
    """Return `data` as uncompressed chunks of a compressed stream: three bytes of `length * 2 + 1`, then the bytes."""
    out = bytearray()
    for first in range(0, len(data), chunk_bytes):
        piece = data[first : first + chunk_bytes]
        out += (len(piece) << 1 | 1).to_bytes(3, "little") + piece
    return bytes(out)


class HeldTail:
    """A file for the ORC writer that holds back the last bytes: the postscript is changed before it is written.

    The writer ends the process when a file refuses its last bytes, so errors are kept from it: `check` raises them.
    """

    _POSTSCRIPT_MAX = 256  # its length is one byte, which follows it

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self._tail = b""
        self._taken_bytes = 0
        self._failure: Exception | None = None
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        piece = bytes(data)
        self._taken_bytes += len(piece)
        if self._failure is None:
            try:
                self._put(piece)
            except (OSError, StorageError) as error:
                self._failure = error
        return len(piece)

    def check(self) -> None:
        """Raise the OSError or StorageError that the file raised while the writer wrote to it."""
        if self._failure is not None:
            raise self._failure

    def _put(self, piece: bytes) -> None:
        if len(piece) >= self._POSTSCRIPT_MAX:
            self._sink.write(self._tail)
            self._sink.write(piece[: -self._POSTSCRIPT_MAX])
            self._tail = piece[-self._POSTSCRIPT_MAX :]
        else:
            joined = self._tail + piece
            self._sink.write(joined[: -self._POSTSCRIPT_MAX])
            self._tail = joined[-self._POSTSCRIPT_MAX :]

    def tell(self) -> int:
        return self._taken_bytes

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def finish(self, footer_extension: bytes) -> None:
        """Write the held bytes, with `footer_extension` at the end of the footer."""
        length = self._tail[-1]
        postscript = self._tail[-1 - length : -1]
        changed = _longer_footer(postscript, len(footer_extension))
        self._sink.write(self._tail[: -1 - length])
        self._sink.write(footer_extension)
        self._sink.write(changed + bytes([len(changed)]))
        self._tail = b""


def _longer_footer(postscript: bytes, extra: int) -> bytes:
    """Return the postscript with its footer length, Protobuf field 1, increased by `extra`."""
    assert postscript[0] == 0x08, postscript[:1].hex()
    length, end = read_varint(postscript, 1, "the postscript of an ORC file")
    return b"\x08" + varint(length + extra) + postscript[end:]
