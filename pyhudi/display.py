"""Small tables for people: aligned text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import repeat

__all__ = ["html_lines", "html_pairs", "html_table", "pairs_text", "readable_bytes", "text_columns", "text_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of aligned columns: numbers to the right, text to the left, None as blank."""
    return text_columns(header, list(zip(*rows, strict=True)) if rows else [()] * len(header))


def text_columns(header: Sequence[str], columns: Sequence[Sequence[object]]) -> str:
    """Return the same table from columns: a hundred thousand rows take a tenth of a second."""
    aligned = [_aligned(name, column) for name, column in zip(header, columns, strict=True)]
    return "\n".join(map(str.rstrip, map("  ".join, zip(*aligned, strict=True))))


def _aligned(name: str, column: Sequence[object]) -> list[str]:
    """Return the name of a column, a line and its cells, all padded to one width."""
    kinds = set(map(type, column))  # types of the values, without a Python step for each
    cells = [name, "", *(column if kinds == {str} else map(_text, column))]
    width = max(map(len, cells))
    cells[1] = "-" * width
    if any(issubclass(kind, int | float) for kind in kinds):
        return list(map(str.rjust, cells, repeat(width)))
    return list(map(str.ljust, cells, repeat(width)))


def pairs_text(rows: Iterable[tuple[str, object]]) -> str:
    """Return a line for each name and its value, with the values aligned; None is left blank."""
    pairs = [(name, _text(value)) for name, value in rows]
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in pairs)


def html_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as HTML, escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and their values as an HTML table, escaped."""
    lines = (f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{''.join(lines)}</table>"


def html_lines(text: str) -> str:
    """Return the lines of a text as HTML, one below the other, escaped."""
    return "".join(f"<div>{escape(line)}</div>" for line in text.split("\n"))


def readable_bytes(size_bytes: int) -> str:
    """Return a size as text, in powers of 1000: `1234567` → `1.2 MB`."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError(size_bytes)


def _text(value: object) -> str:
    if value is None:
        return ""
    if type(value) is str:
        return value
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
