"""The part of Thrift's compact protocol that the footers and page headers of Parquet files need.

Source: the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["FALSE", "I16", "I32", "I64", "LIST", "STRUCT", "CompactReader", "CompactWriter"]


_VARINT_BYTES = 10  # 64 bits, seven to a byte
# Types of the compact protocol.
_BYTE, _DOUBLE, _BINARY, LIST, _SET, _MAP, STRUCT = 3, 7, 8, 9, 10, 11, 12
I16, I32, I64 = 4, 5, 6
_INTEGERS = frozenset({I16, I32, I64})
_LONGEST_STEP = 15  # between numbers of fields; after a longer one the number follows
_LONG_LIST = 15  # with so many elements or more, the number follows
_TRUE, FALSE = 1, 2
_FIXED_BYTES = {_BYTE: 1, _DOUBLE: 8}


class CompactReader:
    """A cursor at position `at` of some bytes. Reading beyond them raises LookupError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; the caller moves over its value."""
        number = 0
        while (head := self._byte()) != 0:
            step = head >> 4
            number = number + step if step else self.integer()
            yield number, head & 15

    def fields_of(self, *field_numbers: int) -> Iterator[int]:
        """The given field numbers that a struct has, each before its value; other fields are skipped."""
        for number, kind in self.fields():
            if number in field_numbers:
                yield number
            else:
                self.skip(kind)

    def elements(self) -> range:
        """Numbers of the elements of a list; the caller moves over each."""
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
        elif kind in (LIST, _SET):
            count, part = self._list_head()
            for _ in range(count):
                self._skip_element(part)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_element(kinds >> 4)
                self._skip_element(kinds & 15)
        elif kind not in (_TRUE, FALSE):  # the type of a field holds these values
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


class CompactWriter:
    """The fields of one struct, in the order of their numbers.

    Args:    begun: `fields` of another writer, to continue; last: the number of their last field.
    """

    def __init__(self, begun: bytes = b"", last: int = 0) -> None:
        self._parts = [begun]
        self._last = last

    def integer(self, number: int, value: int) -> None:
        """An i32."""
        self.raw(number, I32, _varint(_zigzag(value)))

    def long(self, number: int, value: int) -> None:
        """An i64."""
        self.raw(number, I64, _varint(_zigzag(value)))

    def text(self, number: int, value: str) -> None:
        """A string."""
        self.raw(number, _BINARY, _binary(value))

    def struct(self, number: int, value: bytes) -> None:
        """Another struct, as its `end` returned it."""
        self.raw(number, STRUCT, value)

    def integers(self, number: int, values: Sequence[int]) -> None:
        """A list of i32."""
        self._list(number, I32, [_varint(_zigzag(value)) for value in values])

    def texts(self, number: int, values: Sequence[str]) -> None:
        """A list of strings."""
        self._list(number, _BINARY, [_binary(value) for value in values])

    def structs(self, number: int, values: Sequence[bytes]) -> None:
        """A list of structs."""
        self._list(number, STRUCT, values)

    def fields(self) -> bytes:
        """The fields so far."""
        return b"".join(self._parts)

    def end(self) -> bytes:
        """The struct."""
        return b"".join((*self._parts, b"\x00"))

    def raw(self, number: int, kind: int, value: bytes) -> None:
        """A value as `CompactReader.skip` moves over it."""
        step = number - self._last
        head = bytes([step << 4 | kind]) if 0 < step <= _LONGEST_STEP else bytes([kind]) + self.number(number)
        self._parts += [head, value]
        self._last = number

    @staticmethod
    def number(value: int) -> bytes:
        """The encoded value of an integer."""
        return _varint(_zigzag(value))

    @staticmethod
    def struct_list(structs: Sequence[bytes]) -> bytes:
        """The encoded value of a list of structs."""
        return _encoded_list(STRUCT, structs)

    def _list(self, number: int, kind: int, values: Sequence[bytes]) -> None:
        self.raw(number, LIST, _encoded_list(kind, values))


def _encoded_list(kind: int, values: Sequence[bytes]) -> bytes:
    count = len(values)
    head = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + _varint(count)
    return head + b"".join(values)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


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
