"""Hadoop's VInt, the numbers in the indexes of an HFile. Source: docs/formats/hfile.md, "Indexes"."""

from __future__ import annotations

from pyhudi.errors import CorruptFile

__all__ = ["hadoop_vint", "read_hadoop_vint"]


def hadoop_vint(value: int) -> bytes:
    """A number of Hadoop's WritableUtils, not negative."""
    if value <= 127:
        return bytes((value,))
    payload = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((256 - 112 - len(payload),)) + payload


def read_hadoop_vint(data: bytes, position: int, where: str) -> tuple[int, int]:
    """A number of Hadoop's WritableUtils and where the next byte starts. Raises CorruptFile."""
    if position >= len(data):
        raise CorruptFile(f"{where}: an index entry without the length of its key.")
    first = data[position] - 256 if data[position] > 127 else data[position]
    position += 1
    if first >= -112:
        return first, position
    negative = first < -120
    size = -(first + 120) if negative else -(first + 112)
    if size > len(data) - position:
        raise CorruptFile(f"{where}: a number of {size} bytes, where {len(data) - position} are left.")
    value = int.from_bytes(data[position : position + size], "big")
    return (-value - 1 if negative else value), position + size
