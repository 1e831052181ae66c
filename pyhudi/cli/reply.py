"""The answer of a command in its forms: text for people, JSON or CSV for programs.

A value is a dataclass (`Result`), a list of them (`ResultList`), or `JsonColumns`. JSON is an object for one thing and
an array for several, with the names of the fields; CSV has a column for each field.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from pyhudi.display import pairs_text, text_columns
from pyhudi.errors import ConfigError
from pyhudi.result import Json, ResultList, plain

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonColumns", "Reply", "show"]

Form: TypeAlias = Literal["text", "json", "csv"]


@dataclass(frozen=True)
class JsonColumns:
    """Rows as columns of JSON values, part by part. `names`: of the columns, even without a part."""

    names: Sequence[str]
    parts: Iterable[Sequence[Sequence[Json]]]

    @classmethod
    def of_arrow(cls, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> JsonColumns:
        """Arrow batches as JSON columns. Values are converted only if their type requires it."""
        return cls(names, ([_json_values(column) for column in batch.columns] for batch in batches))


_JSONS = frozenset(["string", "int8", "int16", "int32", "int64", "bool"])  # types whose values need no conversion


def _json_values(column: pa.Array) -> list[Json]:
    values = column.to_pylist()
    return values if str(column.type) in _JSONS else [plain(one) for one in values]


@dataclass(frozen=True)
class Reply:
    """`value`: see above. `text`: shown to people instead. `row_type`: of the entries of a list, whose names
    are the header even of an empty list.
    """

    value: object
    text: str | None = None
    row_type: type | None = None


def show(answer: Reply, form: Form, out: TextIO) -> None:
    """Write an answer."""
    if form == "json":
        _json(answer.value, out)
    elif form == "csv":
        _csv(_columns_of(answer), out)
    elif (text := answer.text if answer.text is not None else _text(answer, out)) is not None:
        out.write(text + "\n")


def rows_of(value: object) -> Iterator[Json] | None:
    """The rows of a list as JSON; None for a single value."""
    if isinstance(value, list | tuple):
        return map(plain, value)
    if not isinstance(value, JsonColumns):
        return None
    names = value.names
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ConfigError(
            f"Several columns are called {duplicate!r}, and JSON has one value for each name. Rename one: AS …."
        )
    return (dict(zip(names, row, strict=True)) for part in value.parts for row in zip(*part, strict=True))


def _columns_of(answer: Reply) -> JsonColumns:
    """An answer of any kind as columns; a single value is one row."""
    if isinstance(answer.value, JsonColumns):
        return answer.value
    columns = [
        row if isinstance(row, dict) else {"value": row} for row in rows_of(answer.value) or [plain(answer.value)]
    ]
    names = _names(answer) or list(dict.fromkeys(name for row in columns for name in row))
    return JsonColumns(names, [[[row.get(name) for row in columns] for name in names]])


def _names(answer: Reply) -> list[str]:
    """The columns of a list, if they are known without an entry."""
    value, kind = answer.value, answer.row_type
    kind = value.entry_type if isinstance(value, ResultList) else kind
    if kind is None:
        return []
    return [one.name for one in fields(kind) if one.name[0] != "_"] if is_dataclass(kind) else ["value"]


def _json(value: object, out: TextIO) -> None:
    """Write an object on several lines, or an array with a row on each line, as rows arrive."""
    rows = rows_of(value)
    if rows is None:
        out.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")
        return
    encode = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make one for each row
    before = "["
    for row in rows:
        out.write(f"{before}\n{encode(row)}")
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _csv(columns: JsonColumns, out: TextIO) -> None:
    """Write a line for each row. Nested values are JSON texts, null is empty, an empty text `""`."""
    writer = csv.writer(out, lineterminator="\n")
    if columns.names:
        writer.writerow(columns.names)
    for part in columns.parts:
        for row in zip(*([_shown(one) for one in values] for values in part), strict=True):
            if "" in row:
                out.write(",".join(map(_field, row)) + "\n")
            else:
                writer.writerow(row)


def _field(value: object) -> str:
    """A field of CSV; Python's writer would write an empty text as null."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if value == "" or not {*text}.isdisjoint(',"\r\n') else text


def _text(answer: Reply, out: TextIO) -> str | None:
    """Write text for people. On a terminal rich fits tables to its width; a row is a line for each column if that would
    fold columns such as instant times.
    """
    value = answer.value
    if isinstance(value, ResultList):
        rows = [value._row(entry) for entry in value]
        return _table(value.header, list(zip(*rows, strict=True)) if rows else [()] * len(value.header), out, True)
    if not isinstance(value, JsonColumns | list | tuple):
        return str(value)
    columns = _columns_of(answer)
    parts = list(columns.parts)
    shown = [_shown_values(part[place] for part in parts) for place in range(len(columns.names))]
    return _table(columns.names, shown, out)


def _shown_values(parts: Iterable[Sequence[Json]]) -> list[object]:
    """The values of a column in text. Nearly always none is nested."""
    values: list[object] = list(chain.from_iterable(parts))
    return [_shown(one) for one in values] if not {dict, list, bool}.isdisjoint(map(type, values)) else values


def _shown(value: Json) -> object:
    """The form of a value in text and CSV."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _columns_in(width: int, columns: Sequence[int]) -> int:
    """The number of leading columns that fit."""
    return next((n for n in range(len(columns), 0, -1) if sum(columns[:n]) + _BETWEEN * n <= width), 0)


_WHOLE = 20  # characters of a column that is not folded on a terminal: an instant time has 17
_FOLDED = 16  # the minimum width to which a wider column is folded
_BETWEEN = 3  # between two columns


def _table(header: Sequence[str], columns: Sequence[Sequence[object]], out: TextIO, is_cut: bool = False) -> str | None:
    """Write a table. `is_cut`: columns that do not fit are left out."""
    if not out.isatty() or find_spec("rich") is None:
        return text_columns(header, columns)
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out)
    cells = [["" if one is None else f"{one:,}" if type(one) is int else str(one) for one in part] for part in columns]
    widths = [max(map(len, [name, *part])) for name, part in zip(header, cells, strict=True)]
    least = [width if width <= _WHOLE else _FOLDED for width in widths]
    if is_cut and (room := _columns_in(console.width, least)) < len(header) and room > 1:
        shown = _table(header[:room], columns[:room], out)
        out.write(f"{shown or ''}not shown: {', '.join(header[room:])} (--json, --csv, a wider terminal)\n")
        return None
    if any(cells) and sum(least) + _BETWEEN * len(least) > console.width:
        return "\n\n".join(pairs_text(zip(header, row, strict=True)) for row in zip(*cells, strict=True))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column, width in zip(header, columns, least, strict=True):
        is_number = any(isinstance(value, int | float) for value in column)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold", min_width=width)
    for row in zip(*cells, strict=True):
        table.add_row(*map(Text, row))
    console.print(table)
    return None
