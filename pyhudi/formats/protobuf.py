"""The part of Protobuf's wire format that files need: numbers, and messages of numbers and bytes.

HFiles have it in their trailer and file info, ORC files in their footer; Avro's numbers have the same form. Every
length is checked against the remaining bytes before it is used. Source: docs/formats/hfile.md, "File info", "Trailer".
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.errors import CorruptFile

__all__ = ["bytes_field", "message_fields", "number_field", "read_varint", "varint"]

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


def varint(value: int) -> bytes:
    """Return a number, not negative: seven bits a byte, lowest first, the high bit says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, position: int, where: str) -> tuple[int, int]:
    """Read a number and where the next byte starts. Raises CorruptFile."""
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, position
    raise CorruptFile(f"{where}: a number of Protobuf is cut off or too long.")


def number_field(number: int, value: int) -> bytes:
    """Return a field of a message with a number in it."""
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field of a message with bytes in it."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def message_fields(data: bytes, where: str) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of the fields of a message, in their order. Raises CorruptFile."""
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position, where)
        kind = tag & 7
        if kind == _VARINT:
            value, position = read_varint(data, position, where)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, position = read_varint(data, position, where)
        elif kind in (_FIXED_64, _FIXED_32):
            length = 8 if kind == _FIXED_64 else 4
        else:
            raise CorruptFile(f"{where}: a Protobuf field of kind {kind}.")
        if length > len(data) - position:
            raise CorruptFile(f"{where}: a Protobuf field of {length} bytes, where {len(data) - position} are left.")
        yield tag >> 3, data[position : position + length]
        position += length
