"""The part of Thrift's compact protocol that the footers and page headers of Parquet files need.

Source: the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "FALSE",
    "STRUCT",
    "CompactReader",
    "Fields",
    "Value",
    "encoded",
    "i16",
    "i32",
    "i64",
    "integers",
    "number_in",
    "struct",
    "structs",
    "text",
    "texts",
]

Value = tuple[int, bytes]  # the type of a field, and its encoded value
Fields = dict[int, Value]  # of a struct, by their numbers


_VARINT_BYTES = 10  # 64 bits, seven to a byte
# Types of the compact protocol.
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, STRUCT = 3, 7, 8, 9, 10, 11, 12
_I16, _I32, _I64 = 4, 5, 6
_INTEGERS = frozenset({_I16, _I32, _I64})
_LONGEST_STEP = 15  # between numbers of fields; after a longer one the number follows
_LONG_LIST = 15  # a list of this many elements or more: the number follows
_TRUE, FALSE = 1, 2
_FIXED_BYTES = {_BYTE: 1, _DOUBLE: 8}


class CompactReader:
    """A cursor at position `at` of some bytes. Reading beyond them raises LookupError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and type of each field of a struct; the caller moves over its value."""
        number = 0
        while (head := self._byte()) != 0:
            step = head >> 4
            number = number + step if step else self.integer()
            yield number, head & 15

    def fields_of(self, *field_numbers: int) -> Iterator[int]:
        """Yield the given field numbers that a struct has, each before its value; other fields are skipped."""
        for number, kind in self.fields():
            if number in field_numbers:
                yield number
            else:
                self.skip(kind)

    def struct(self) -> Fields:
        """Return a struct, its values as they are encoded. Raises LookupError, ValueError, RecursionError."""
        fields: Fields = {}
        for number, kind in self.fields():
            start = self.at
            self.skip(kind)
            if self.at > len(self.data):
                raise LookupError("a field beyond the end")
            fields[number] = kind, self.data[start : self.at]
        return fields

    def elements(self) -> range:
        """Return numbers of the elements of a list; the caller moves over each."""
        return range(self._list_head()[0])

    def integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def binary(self) -> bytes:
        size = self._varint()
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, kind: int) -> None:
        """Move over a value."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self.binary()
        elif kind == STRUCT:
            for _, part in self.fields():
                self.skip(part)
        elif kind in (_LIST, _SET):
            count, part = self._list_head()
            for _ in range(count):
                self._skip_element(part)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_element(kinds >> 4)
                self._skip_element(kinds & 15)
        elif kind not in (_TRUE, FALSE):  # booleans have their value in the type of the field
            self.at += _FIXED_BYTES[kind]

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, FALSE):
            self.at += 1
        else:
            self.skip(kind)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return (count if count < _LONG_LIST else self._varint()), head & 15

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for place in range(_VARINT_BYTES):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")


def encoded(fields: Mapping[int, Value]) -> bytes:
    """Return a struct of these fields."""
    parts, last = [], 0
    for number in sorted(fields):
        kind, value = fields[number]
        step = number - last
        head = bytes([step << 4 | kind]) if 0 < step <= _LONGEST_STEP else bytes([kind]) + _number(number)
        parts += [head, value]
        last = number
    return b"".join((*parts, b"\x00"))


def number_in(fields: Mapping[int, Value], number: int) -> int:
    """Return an integer of a struct, 0 where it is absent."""
    return CompactReader(fields[number][1]).integer() if number in fields else 0


def i16(value: int) -> Value:
    """Return an integer of 16 bits."""
    return _I16, _number(value)


def i32(value: int) -> Value:
    """Return an integer of 32 bits."""
    return _I32, _number(value)


def i64(value: int) -> Value:
    """Return an integer of 64 bits."""
    return _I64, _number(value)


def text(value: str) -> Value:
    """Return a string."""
    return _BINARY, _binary(value)


def struct(fields: Mapping[int, Value]) -> Value:
    """Return a struct."""
    return STRUCT, encoded(fields)


def integers(values: Sequence[int]) -> Value:
    """Return a list of i32."""
    return _list(_I32, [_number(value) for value in values])


def texts(values: Sequence[str]) -> Value:
    """Return a list of strings."""
    return _list(_BINARY, [_binary(value) for value in values])


def structs(values: Sequence[bytes]) -> Value:
    """Return a list of encoded structs."""
    return _list(STRUCT, values)


def _list(kind: int, values: Sequence[bytes]) -> Value:
    count = len(values)
    head = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + _varint(count)
    return _LIST, head + b"".join(values)


def _number(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)


def _binary(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data
