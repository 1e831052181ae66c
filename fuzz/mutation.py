"""Damage: to bytes, to JSON, to texts. All of it is drawn from one source of random numbers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["Json", "Mutator", "json_shape"]

Json = object

_NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 1000, 65_535, 65_536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**62, 2**63 - 1)
_HUGE = (2**63, -(2**63) - 1, 2**70, 10**30, -1, 0)
_TEXTS = (
    "",
    " ",
    "null",
    "true",
    "0",
    "-1",
    "..",
    "../../x",
    "/etc/passwd",
    "a/b",
    ".hoodie/x",
    "\x00",
    "\ud800",
    "é😀",
    "x" * 300,
    "9" * 5000,
    "20240101000000000",
    "99999999999999999",
    "00000000000000000",
    "1e999999",
    "nan",
    "%s{0}",
    "a\nb",
    "٣",
)
_MOST_OF_A_LIST = 300
_REPEATS = (2, 3, 10, 100, 1000, 20_000)
_MOST_BYTES = 1 << 18  # of what repeating may make


@dataclass(frozen=True)
class Mutator:
    """Draws damage. `words`: pieces to put in; `others`: inputs to take pieces of."""

    random: Random
    words: Sequence[bytes] = ()
    others: Sequence[bytes] = ()

    # Bytes

    def damaged(self, data: bytes) -> bytes:
        """One to five changes."""
        changes: list[Callable[[bytes], bytes]] = [
            self._flip, self._set_byte, self._cut, self._remove, self._repeat, self._splice, self._length, self._length,
            self._varint, self._insert,
        ]  # fmt: skip
        if self.words:
            changes += [self._word, self._word]
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 5))):
            data = self.random.choice(changes)(data)
        return data

    def place(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self.random.randrange(len(data))
        return data[:at] + bytes((data[at] ^ 1 << self.random.randrange(8),)) + data[at + 1 :]

    def _set_byte(self, data: bytes) -> bytes:
        at = self.place(data)
        return (
            data[:at]
            + bytes((self.random.choice((0, 1, 0x7F, 0x80, 0xFF, self.random.randrange(256))),))
            + data[at + 1 :]
        )

    def _cut(self, data: bytes) -> bytes:
        return data[: self.place(data)] if self.random.random() < 0.8 else data[self.place(data) :]

    def _remove(self, data: bytes) -> bytes:
        first, last = self._range(data)
        return data[:first] + data[last:]

    def _repeat(self, data: bytes) -> bytes:
        first, last = self._range(data)
        times = min(self.random.choice(_REPEATS), _MOST_BYTES // max(1, last - first))
        return data[:last] + data[first:last] * times + data[last:]

    def _splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.others) if self.others else data
        first, last = self._range(other)
        at, behind = self._range(data)
        return data[:at] + other[first:last] + data[behind if self.random.random() < 0.5 else at :]

    def _length(self, data: bytes) -> bytes:
        """A number of 2, 4 or 8 bytes in either order."""
        kind = self.random.choice("hiqHIQ")
        order = self.random.choice("<>")
        at = self.place(data)
        width = struct.calcsize(order + kind)
        value = self.random.choice((*_NUMBERS, len(data), len(data) - at, len(data) - at - width))
        packed = (value % (1 << 8 * width)).to_bytes(width, "little" if order == "<" else "big")
        return data[:at] + packed + data[at + width :]

    def _varint(self, data: bytes) -> bytes:
        at = self.place(data)
        value = abs(self.random.choice(_NUMBERS)) * self.random.choice((1, 2))
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        return data[:at] + bytes(out) + data[at + self.random.choice((0, 1, len(out))) :]

    def _insert(self, data: bytes) -> bytes:
        at = self.place(data)
        return data[:at] + self.random.randbytes(self.random.choice((1, 2, 4, 16))) + data[at:]

    def _word(self, data: bytes) -> bytes:
        at, word = self.place(data), self.random.choice(self.words)
        return data[:at] + word + data[at + self.random.choice((0, 0, len(word))) :]

    def _range(self, data: bytes) -> tuple[int, int]:
        first = self.place(data)
        size = self.random.choice((1, 4, 16, 64, 256, len(data)))
        return first, min(len(data), first + self.random.randint(1, max(1, size)))

    # Texts

    def text(self, text: str) -> str:
        """A text of the kind that breaks things, or this one damaged."""
        if self.random.random() < 0.5:
            return self.random.choice(_TEXTS)
        return self.damaged(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    # JSON

    def json(self, value: Json) -> Json:
        """The same tree with one to three of its nodes changed; what is given stays as it is."""
        for _ in range(self.random.choice((1, 1, 2, 3))):
            value = self._json_at(value, self.random.randrange(max(1, _nodes(value))))[0]
        return value

    def _json_at(self, value: Json, left: int) -> tuple[Json, int]:
        """The tree with its node number `left` changed; and how many nodes are still to pass by, below 0 when done."""
        if left == 0:
            return self._json_node(value), -1
        left -= 1
        if isinstance(value, dict):
            out: dict[str, Json] = {}
            for key, child in value.items():
                out[key], left = self._json_at(child, left) if left >= 0 else (child, left)
            return out, left
        if isinstance(value, list):
            items = []
            for child in value:
                item, left = self._json_at(child, left) if left >= 0 else (child, left)
                items.append(item)
            return items, left
        return value, left

    def _json_node(self, value: Json) -> Json:
        choice = self.random.random()
        if choice < 0.35:
            return self._json_leaf(value)
        if isinstance(value, dict) and value:
            key = self.random.choice(list(value))
            if choice < 0.6:
                return {name: child for name, child in value.items() if name != key}
            if choice < 0.8:
                return {(self.text(name) if name == key else name): child for name, child in value.items()}
            return {**value, self.text(key): value[key]}
        if isinstance(value, list) and value:
            if choice < 0.6:
                return (value * self.random.choice(_REPEATS))[:_MOST_OF_A_LIST]
            if choice < 0.8:
                return value[: self.random.randrange(len(value))]
            return [*value, self.random.choice(value)]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self.random.choice((*_NUMBERS, *_HUGE, value + 1, -value))
        return self._json_leaf(value)

    def _json_leaf(self, value: Json) -> Json:
        def nested(deep: int) -> Json:
            inner = value
            for _ in range(deep):
                inner = [inner] if self.random.random() < 0.5 else {"a": inner}
            return inner

        return self.random.choice(
            (
                None, True, False, [], {}, [None], [[]], {"": ""}, 0, -1, 1.5, math.nan, math.inf, -0.0, self.text("a"),
                self.random.choice(_NUMBERS), self.random.choice(_HUGE), nested(1), nested(40), nested(150),
                [value, value],
            )
        )  # fmt: skip


def json_shape(data: bytes, mutator: Mutator) -> bytes:
    """A JSON text with a changed tree."""
    try:
        return json.dumps(mutator.json(json.loads(data))).encode()
    except (ValueError, RecursionError):
        return mutator.damaged(data)


def _nodes(value: Json) -> int:
    if isinstance(value, dict):
        return 1 + sum(_nodes(child) for child in value.values())
    if isinstance(value, list):
        return 1 + sum(_nodes(child) for child in value)
    return 1
