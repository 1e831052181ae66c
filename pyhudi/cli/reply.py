"""What a command answers, and how it looks: as text for people, as JSON or CSV for programs.

A value is a dataclass (`Result`), a list of them (`ResultList`), rows of Arrow, `JsonColumns`, or plain JSON values.
JSON is an object for one of them and an array for several, with the names of the fields; CSV has a column for each
field.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, cast

from pyhudi.errors import ConfigError
from pyhudi.result import Json, ResultList, plain
from pyhudi.text_table import pairs_text, text_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowRows", "JsonColumns", "Reply", "show"]

Form: TypeAlias = Literal["text", "json", "csv"]


@dataclass(frozen=True)
class JsonColumns:
    """Rows as columns of JSON values, by name; without Arrow, whose import takes as long as listing many files."""

    values: Mapping[str, list[Json]]


@dataclass(frozen=True)
class ArrowRows:
    """Rows as batches of Arrow; there may be none. `names`: their columns."""

    names: Sequence[str]
    batches: Sequence[pa.RecordBatch]


@dataclass(frozen=True)
class Reply:
    """`value`: see above. `text`: what people read instead of it. `found_wrong`: the run ends with exit code 3."""

    value: object
    text: str | None = None
    found_wrong: bool = False


def show(answer: Reply, form: Form, out: TextIO, row_type: type | None = None) -> None:
    """Write an answer. `row_type`: of a list's rows, whose names stand above them even where there is none."""
    if form == "json":
        _json(answer.value, out)
    elif form == "csv":
        _csv(answer.value, out, row_type)
    elif (text := answer.text if answer.text is not None else _text(answer.value, out, row_type)) is not None:
        out.write(text + "\n")


def rows_of(value: object) -> Iterator[dict[str, Json]] | None:
    """The rows of a value that is a list; None for one thing."""
    if isinstance(value, ResultList):
        return iter(value.to_dicts())
    if isinstance(value, list | tuple):
        return (plain(row) for row in value)
    parts, names = _parts_of(value), _names(value)
    if parts is None:
        return None
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"Several columns are called {twice!r}, and JSON has one value for a name. Rename one: AS ….")
    return (dict(zip(names, row, strict=True)) for part in parts for row in zip(*part, strict=True))


def _parts_of(value: object) -> Iterator[list[list[Json]]] | None:
    """`JsonColumns` as they are, those of a Table and a RecordBatchReader batch by batch; None for all else."""
    if isinstance(value, JsonColumns):
        return iter([list(value.values.values())])
    if isinstance(value, ArrowRows):
        return map(_columns_of, value.batches)
    if hasattr(value, "to_batches"):
        return map(_columns_of, cast("pa.Table", value).to_batches())
    return map(_columns_of, cast("pa.RecordBatchReader", value)) if hasattr(value, "read_next_batch") else None


_JSONS = frozenset(["string", "int8", "int16", "int32", "int64", "bool"])  # types whose values are JSON's as they are


def _columns_of(batch: pa.RecordBatch) -> list[list[Json]]:
    """Its columns with values of JSON. A value is looked into only where its type calls for it."""
    columns = ((column.to_pylist(), str(column.type) in _JSONS) for column in batch.columns)
    return [values if is_json else [plain(one) for one in values] for values, is_json in columns]


def _json(value: object, out: TextIO) -> None:
    """An object over several lines, or an array with a row on each line, written as it comes."""
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


def _csv(value: object, out: TextIO, row_type: type | None) -> None:
    """A line for each row. Nested values are JSON texts, null is empty, an empty text `""`."""
    writer = csv.writer(out, lineterminator="\n")

    def write(row: Sequence[object]) -> None:
        if "" in row:
            out.write(",".join(map(_field, row)) + "\n")
        else:
            writer.writerow(row)

    header = _names(value, row_type)
    if header:
        writer.writerow(header)
    parts = _parts_of(value)
    if parts is not None:
        for part in parts:
            for cells in zip(*([_cell(one) for one in values] for values in part), strict=True):
                write(cells)
        return
    rows = rows_of(value)
    for row in [plain(value)] if rows is None else rows:
        if not isinstance(row, dict):
            row = {"value": row}
        if not header:
            header = list(row)
            writer.writerow(header)
        write([_cell(row.get(name)) for name in header])


def _field(value: object) -> str:
    """A field of CSV; the writer of Python would make null of an empty text."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if value == "" or not {*text}.isdisjoint(',"\r\n') else text


def _names(value: object, row_type: type | None = None) -> list[str]:
    """The columns of rows, where they are known without one."""
    if row_type is not None:
        return [one.name for one in fields(row_type) if one.name[0] != "_"] if is_dataclass(row_type) else ["value"]
    if isinstance(value, JsonColumns):
        return list(value.values)
    if isinstance(value, ArrowRows):
        return list(value.names)
    schema: pa.Schema | None = getattr(value, "schema", None)
    if schema is not None and hasattr(schema, "names"):
        return list(schema.names)
    if isinstance(value, ResultList):
        return [field.name for field in fields(value.entry_type)]
    return []


def _cell(value: Json) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return _word(value) if isinstance(value, bool) else value


def _word(value: bool) -> str:
    return "true" if value else "false"


def _text(value: object, out: TextIO, row_type: type | None) -> str | None:
    """What people read. On a terminal rich fits tables to its width; a row is a line for each column where that would
    fold columns such as instant times.
    """
    if isinstance(value, ResultList):
        columns = _turned([value._row(entry) for entry in value], len(value.header))
        return _table(value.header, columns, out, is_cut=True)
    parts = _parts_of(value)
    if parts is not None:
        read = list(parts)
        shown = [_shown_values(part[place] for part in read) for place in range(len(_names(value)))]
        return _table(_names(value), shown, out)
    rows = rows_of(value)
    if rows is not None:
        listed = list(rows)
        header = _names(value, row_type) or list(dict.fromkeys(name for row in listed for name in row))
        return _table(header, [[_shown(row.get(name)) for row in listed] for name in header], out)
    if isinstance(value, Mapping):
        return pairs_text((name.replace("_", " "), _shown(one)) for name, one in plain(value).items())
    return str(value)


def _turned(rows: Sequence[Sequence[object]], width: int) -> list[Sequence[object]]:
    """Rows as columns."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _shown_values(parts: Iterable[Sequence[Json]]) -> list[object]:
    """The values of a column as people see them. Nearly always none is nested."""
    values: list[object] = list(chain.from_iterable(parts))
    return [_shown(one) for one in values] if not {dict, list, bool}.isdisjoint(map(type, values)) else values


def _shown(value: Json) -> object:
    if isinstance(value, bool):
        return _word(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _columns_in(width: int, columns: Sequence[int]) -> int:
    """How many of the first columns have room."""
    return next((n for n in range(len(columns), 0, -1) if sum(columns[:n]) + _BETWEEN * n <= width), 0)


_WHOLE = 20  # characters of a column that is not folded on a terminal: an instant time has 17
_FOLDED = 16  # and the fewest that a wider one is folded to
_BETWEEN = 3  # between two columns


def _table(header: Sequence[str], columns: Sequence[Sequence[object]], out: TextIO, is_cut: bool = False) -> str | None:
    """The table, or None when it was written. `is_cut`: columns are left out where they have no room."""
    if not out.isatty():
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
