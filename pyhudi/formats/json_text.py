"""JSON as Hudi's Java writers print it: Jackson's default pretty printer.

    {                                two blanks per object level, `"key" : value`
      "a" : [ 1, 2 ],                arrays on one line, objects inside them open on that line
      "b" : [ {
        "c" : null
      } ],
      "d" : { },                     empty ones hold one blank
      "e" : [ ]
    }

`parse_json` reads JSON of any origin. Source: docs/formats/timeline.md, "Bodies"; golden tables of 0.15.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from json.encoder import encode_basestring

from pyhudi.errors import CorruptFile

__all__ = ["parse_json", "pretty_json"]

_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]|[\xed\x00]")  # escaped, in UTF-8, or in a UTF-16 file


def pretty_json(value: object) -> str:
    """Print mappings (in their order), sequences, strings, finite numbers, booleans and None; no newline at the end."""
    parts: list[str] = []
    _print(value, "\n", parts)
    return "".join(parts)


def _print(value: object, line: str, parts: list[str]) -> None:
    """`line`: a newline and the indentation of the enclosing object."""
    if isinstance(value, str):
        parts.append(encode_basestring(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, (int, float)):
        parts.append(repr(value))
    elif isinstance(value, Mapping):
        if not value:
            parts.append("{ }")
            return
        inner = line + "  "
        separator = "{"
        for key, item in value.items():
            parts += (separator, inner, encode_basestring(key), " : ")
            _print(item, inner, parts)
            separator = ","
        parts += (line, "}")
    else:
        assert isinstance(value, Collection), value
        if not value:
            parts.append("[ ]")
            return
        separator = "[ "
        for item in value:
            parts.append(separator)
            _print(item, line, parts)
            separator = ", "
        parts.append(" ]")


def parse_json(data: bytes, where: str, expected: str) -> object:
    """Return the content of a JSON file: the only entry for JSON in a table.

    Args:    where: the file, for messages; expected: what should be in it ("the JSON of a ring").
    Raises:  CorruptFile for invalid JSON, nesting too deep for Python, a number of thousands of digits or NaN; and for
             half a surrogate pair, which no file name or message can hold.
    """
    try:
        value: object = json.loads(data, parse_constant=_refuse_constant)
        if _HALF_PAIR.search(data):  # perhaps halves of one character; encoding decides
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError, OverflowError) as error:
        raise CorruptFile(
            f"{where}: expected {expected}, found {data[:40]!r} ({type(error).__name__}: {error!s:.200}). The file is "
            f"truncated or damaged; restore it, or roll the instant back."
        ) from error
    return value


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is not a number in JSON")
