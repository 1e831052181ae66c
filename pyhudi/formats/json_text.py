"""JSON as Hudi's Java writers print it: Jackson's default pretty printer.

    {                                two blanks per object level, `"key" : value`
      "a" : [ 1, 2 ],                arrays on one line, objects inside them open on that line
      "b" : [ {
        "c" : null
      } ],
      "d" : { },                     empty ones hold one blank
      "e" : [ ]
    }

Source: docs/formats/timeline.md, "Bodies"; golden tables of 0.15.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from json.encoder import encode_basestring

__all__ = ["pretty_json"]


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
