"""How large a file may be that is read into memory as a whole; looked at before any of it is read."""

from __future__ import annotations

from pyhudi.errors import CorruptFile

__all__ = ["READ_BYTES_MAX", "check_size"]

# Timeline files are the largest that are read so, and Java readers hold one in an array, which has no more bytes.
READ_BYTES_MAX = 2**31 - 1


def check_size(size_bytes: int, limit_bytes: int, where: str) -> None:
    """Raises CorruptFile for a file that has more bytes than its kind can have. `where`: its full path."""
    if size_bytes > limit_bytes:
        raise CorruptFile(
            f"{where}: {size_bytes:,} bytes, where such a file has {limit_bytes:,} at most. It was overwritten with "
            f"something else; restore it from a copy of the table."
        )
