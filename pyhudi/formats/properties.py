r"""Java `Properties` text: `hoodie.properties` and `.hoodie_partition_metadata`.

Layout: ISO-8859-1, one `key=value` per line, `#` or `!` starts a comment line, a trailing backslash continues a line,
`\t \n \r \f \uXXXX` and `\` before any other character are escapes; the first unescaped `=`, `:` or white space ends
the key. Source: docs/formats/table-config.md, "Text form", "Checksum"; the grammar is java.util.Properties'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone

from pyhudi.errors import CorruptFile
from pyhudi.model.new_table import CHECKSUM_KEY, has_valid_checksum, table_checksum

__all__ = [
    "CHECKSUM_KEY",
    "PROPERTIES_BYTES_MAX",
    "date_comment",
    "ends_with_line",
    "has_valid_checksum",
    "parse_properties",
    "print_properties",
    "readable_properties",
    "table_checksum",
]

_WHITE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PRINTED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"} | {mark: f"\\{mark}" for mark in "=:#!"}
# Up to the first separator that has no backslash before it. A backslash that ends the line belongs to the key.
_KEY = re.compile(r"(?:[^\\=: \t\f]+|\\.)*(?:\\\Z)?", re.DOTALL)
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# A properties file holds a few hundred lines, of which the table's schema is the longest: 2 MB with 10,000 columns. A
# larger file is not one, and would be parsed for minutes.
PROPERTIES_BYTES_MAX = 16 * 2**20
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_properties(data: bytes, source: str) -> dict[str, str]:
    """Return the properties in `data`; a later line overrides an earlier one with the same key.

    Args: `source`: the file's name, for messages. Raises CorruptFile for a broken `\\u` escape, a NUL byte (a block
    that a crashed disk never wrote), or more bytes than PROPERTIES_BYTES_MAX.
    """
    if len(data) > PROPERTIES_BYTES_MAX:
        raise CorruptFile(
            f"{source}: {len(data)} bytes, where a properties file has {PROPERTIES_BYTES_MAX} at most. It was "
            f"overwritten with something else; restore it from its backup."
        )
    if b"\x00" in data:
        raise CorruptFile(
            f"{source} at byte {data.index(0)}: expected the text of a properties file, found a NUL byte. The file was "
            f"not written completely; restore it from its backup."
        )
    return dict(_property(line, source) for line in _logical_lines(data.decode("iso-8859-1")))


def readable_properties(data: bytes, source: str) -> dict[str, str]:
    """Return the properties in the lines of damaged `data` that can be read.

    A last line without its end is damage, too: its value may be a part of the one that was written.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(data[: _end_of_whole_lines(data)].decode("iso-8859-1")):
        if "\x00" not in line:
            with suppress(CorruptFile):
                key, value = _property(line, source)
                properties[key] = value
    return properties


def ends_with_line(data: bytes) -> bool:
    """True if the last line of a properties file is terminated. Otherwise the file was cut off."""
    return _end_of_whole_lines(data) == len(data)


def print_properties(properties: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """Return the bytes of a properties file: comments, then keys in order, the checksum last.

    The checksum comes last so that a file cut off anywhere lacks it.
    """
    lines = [f"#{comment}" for comment in comments]
    for key in sorted(properties, key=lambda key: (key == CHECKSUM_KEY, key)):
        lines.append(f"{_escape(key, is_key=True)}={_escape(properties[key], is_key=False)}")
    return "".join(f"{line}\n" for line in lines).encode("iso-8859-1")


def date_comment(moment_ms: int) -> str:
    """Return a moment as `java.util.Date.toString()` prints it in UTC: `Sun Jul 13 01:05:36 UTC 2025`."""
    moment = datetime.fromtimestamp(moment_ms // 1000, timezone.utc)
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]  # not strftime, which depends on the locale
    return f"{day} {month} {moment:%d %H:%M:%S} UTC {moment.year}"


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blanks, continuations joined."""
    parts: list[str] = []  # of a continued line; each ends in an even number of backslashes
    continues = False
    for natural in _LINE_ENDS.split(text):
        line = natural.lstrip(_WHITE)
        if not continues and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continues = backslashes % 2 == 1
        parts.append(line[:-1] if continues else line)
        if not continues:
            if any(parts):
                yield "".join(parts)
            parts = []
    if any(parts):
        yield "".join(parts)


def _end_of_whole_lines(data: bytes) -> int:
    """Return where the last terminated line ends; a backslash before the line end continues the line."""
    at = len(data)
    while at:
        at = max(data.rfind(b"\n", 0, at), data.rfind(b"\r", 0, at)) + 1
        line = data[:at].rstrip(b"\r\n")
        if (len(line) - len(line.rstrip(b"\\"))) % 2 == 0:
            break
        at = len(line)
    return at


def _property(line: str, source: str) -> tuple[str, str]:
    """Return the key and value of a logical line."""
    end = _key_end(line)
    value_start = end
    while value_start < len(line) and line[value_start] in _WHITE:
        value_start += 1
    if value_start < len(line) and line[value_start] in "=:":
        value_start += 1
        while value_start < len(line) and line[value_start] in _WHITE:
            value_start += 1
    return _unescape(line[:end], source), _unescape(line[value_start:], source)


def _key_end(line: str) -> int:
    match = _KEY.match(line)
    assert match is not None  # it also matches empty text
    return match.end()


def _unescape(text: str, source: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                if not _HEX.fullmatch(digits):
                    raise CorruptFile(
                        f"{source}: expected four hexadecimal digits after \\u, found {digits!r}. The file is damaged "
                        f"or was edited by hand; restore it from a backup or correct the line."
                    )
                character = chr(int(digits, 16))
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        units.append(character)
    return _join_surrogates("".join(units))


def _join_surrogates(text: str) -> str:
    """Join UTF-16 pairs, Java's escapes beyond the basic plane, into one character; a lone half stays."""
    return _SURROGATE_PAIR.sub(lambda pair: pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


def _escape(text: str, *, is_key: bool) -> str:
    parts: list[str] = []
    for index, character in enumerate(text):
        if character == " ":
            parts.append("\\ " if is_key or index == 0 else " ")
        elif character in _PRINTED:
            parts.append(_PRINTED[character])
        elif " " <= character <= "~":
            parts.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            parts.extend(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    return "".join(parts)
