"""Small tables for people: as aligned text in a terminal, as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import repeat

__all__ = ["html_lines", "html_pairs", "html_table", "pairs_text", "readable_bytes", "text_columns", "text_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned: numbers to the right, text to the left; None is left blank."""
    return text_columns(header, list(zip(*rows, strict=True)) if rows else [()] * len(header))


def text_columns(header: Sequence[str], columns: Sequence[Sequence[object]]) -> str:
    """`text_table` of columns: a hundred thousand rows take a tenth of a second."""
    aligned = [_aligned(name, column) for name, column in zip(header, columns, strict=True)]
    return "\n".join(map(str.rstrip, map("  ".join, zip(*aligned, strict=True))))


def _aligned(name: str, column: Sequence[object]) -> list[str]:
    """The cells of a column in one width, below its name and a line."""
    kinds = set(map(type, column))  # of the values; without a step of Python for each
    cells = [name, "", *(column if kinds == {str} else map(_text, column))]
    width = max(map(len, cells))
    cells[1] = "-" * width
    if any(issubclass(kind, int | float) for kind in kinds):
        return list(map(str.rjust, cells, repeat(width)))
    return list(map(str.ljust, cells, repeat(width)))


def pairs_text(rows: Iterable[tuple[str, object]]) -> str:
    """Names and their values, a line for each, the values one below the other; None is left blank."""
    pairs = [(name, _text(value)) for name, value in rows]
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in pairs)


def html_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same as an HTML table, escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and their values as an HTML table, escaped."""
    lines = (f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{''.join(lines)}</table>"


def html_lines(text: str) -> str:
    """The lines of a text, one below the other in HTML, escaped."""
    return "".join(f"<div>{escape(line)}</div>" for line in text.split("\n"))


def readable_bytes(size_bytes: int) -> str:
    """`1234567` → `1.2 MB`; powers of 1000."""
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
