"""Log files that something went wrong with after their write was complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["DAMAGES", "damage", "log_files"]

MAGIC_BYTES = 6


def _flipped_length(data: bytes) -> bytes:
    """One bit of the block's length."""
    return data[: MAGIC_BYTES + 6] + bytes([data[MAGIC_BYTES + 6] ^ 0x10]) + data[MAGIC_BYTES + 7 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "cut in half": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "zeros behind its beginning": lambda data: data[:20] + bytes(len(data) - 20),
    "a bit of its length flipped": _flipped_length,
    "deleted": lambda data: None,
}


def log_files(path: Path) -> list[Path]:
    """The log files of a table, in the order of their names."""
    return sorted(found for found in path.rglob(".*.log.*") if found.suffix != ".crc" and ".hoodie" not in found.parts)


def damage(path: Path, kind: str) -> Path:
    """Damage the newest log file of a table on this machine. Returns the file."""
    log = log_files(path)[-1]
    data = DAMAGES[kind](log.read_bytes())
    if data is None:
        log.unlink()
    else:
        log.write_bytes(data)
    return log
