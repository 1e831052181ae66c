"""What a command answers, and how it looks: as text for people, as JSON or CSV for programs.

A value is a dataclass (`Result`), a list of them (`ResultList`), rows of Arrow, or plain JSON values. JSON is an object
for one of them and an array for several, with the names of the fields; CSV has a column for each field.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, cast

from pyhudi.result import Json, ResultList, plain
from pyhudi.text_table import pairs_text, text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Reply", "show"]

Form: TypeAlias = Literal["text", "json", "csv"]


@dataclass(frozen=True)
class Reply:
    """`value`: see above. `text`: what people read instead of it. `found_wrong`: the run ends with exit code 3."""

    value: object
    text: str | None = None
    found_wrong: bool = False


def show(answer: Reply, form: Form, out: TextIO) -> None:
    """Write an answer."""
    if form == "json":
        _json(answer.value, out)
    elif form == "csv":
        _csv(answer.value, out)
    elif (text := answer.text if answer.text is not None else _text(answer.value, out)) is not None:
        out.write(text + "\n")


def rows_of(value: object) -> Iterator[dict[str, Json]] | None:
    """The rows of a value that is a list; None for one thing."""
    if isinstance(value, ResultList):
        return iter(value.to_dicts())
    if isinstance(value, list | tuple):
        return (plain(row) for row in value)
    if hasattr(value, "to_batches"):  # pyarrow's Table
        return (plain(row) for batch in value.to_batches() for row in batch.to_pylist())
    if hasattr(value, "read_next_batch"):  # and RecordBatchReader
        return (plain(row) for batch in cast("pa.RecordBatchReader", value) for row in batch.to_pylist())
    return None


def _json(value: object, out: TextIO) -> None:
    """An object over several lines, or an array with a row on each line, written as it comes."""
    rows = rows_of(value)
    if rows is None:
        out.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")
        return
    before = "["
    for row in rows:
        out.write(before + "\n" + json.dumps(row, ensure_ascii=False))
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _csv(value: object, out: TextIO) -> None:
    """A line for each row. Nested values are JSON texts, null is empty."""
    rows = rows_of(value)
    writer = csv.writer(out, lineterminator="\n")
    header = _names(value)
    if header:
        writer.writerow(header)
    for row in [plain(value)] if rows is None else rows:
        if not isinstance(row, dict):
            row = {"value": row}
        if not header:
            header = list(row)
            writer.writerow(header)
        writer.writerow([_cell(row.get(name)) for name in header])


def _names(value: object) -> list[str]:
    """The columns of rows, where they are known without one."""
    schema: pa.Schema | None = getattr(value, "schema", None)
    if schema is not None and hasattr(schema, "names"):
        return list(schema.names)
    if isinstance(value, ResultList):
        return [field.name for field in fields(value.entry_type)]
    return []


def _cell(value: Json) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _text(value: object, out: TextIO) -> str | None:
    """What people read. Tables go through rich on a terminal, which fits them to its width."""
    if isinstance(value, ResultList):
        return _table(value.header, [value._row(entry) for entry in value], out)
    rows = rows_of(value)
    if rows is not None:
        listed = list(rows)
        header = _names(value) or list(dict.fromkeys(name for row in listed for name in row))
        return _table(header, [[_shown(row.get(name)) for name in header] for row in listed], out)
    if isinstance(value, Mapping):
        return pairs_text((name.replace("_", " "), _shown(one)) for name, one in plain(value).items())
    return str(value)


def _shown(value: Json) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _table(header: Sequence[str], rows: Sequence[Sequence[object]], out: TextIO) -> str | None:
    if not out.isatty():
        return text_table(header, rows)
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(header):
        is_number = any(isinstance(row[number], int | float) for row in rows)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(
            *(Text("" if value is None else f"{value:,}" if type(value) is int else str(value)) for value in row)
        )
    Console(file=out).print(table)
    return None
