"""Results of calls: in one line, as plain JSON values, and for notebooks. `Result` is one, `ResultList` several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from importlib.util import find_spec
from os import PathLike, fspath
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from pyhudi.display import html_lines, html_table, text_table
from pyhudi.errors import MissingLibrary

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Result", "ResultList", "plain"]

EntryT = TypeVar("EntryT")
Json: TypeAlias = Any  # a JSON value, whose type the reader checks
_LINE_CHARACTERS = 200


class Result:
    """A dataclass, made with `repr=False`, whose `str` describes the result in words."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Json]:
        """The fields by name, nested ones included, as JSON values: texts, numbers, lists, objects, null."""
        return _fields(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __repr__(self) -> str:
        first, _, more = str(self).partition("\n")
        is_whole = not more and len(first) <= _LINE_CHARACTERS
        return f"{type(self).__name__}({first if is_whole else first[:_LINE_CHARACTERS] + '...'})"

    def _repr_html_(self) -> str:
        return html_lines(str(self))


class ResultList(list[EntryT]):
    """A list of dataclasses that prints as a table.

    A subclass names the type of its entries and the displayed columns, and may make the row of an entry; without that a
    row has all fields.
    """

    entry_type: ClassVar[type]
    header: ClassVar[tuple[str, ...]]

    def _row(self, entry: EntryT) -> Sequence[object]:
        return list(_fields(entry).values())

    def to_dicts(self) -> list[dict[str, Json]]:
        """The entries, each with its fields by name as JSON values."""
        return [plain(entry) for entry in self]

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dicts` as JSON text."""
        return json.dumps(self.to_dicts(), indent=indent, ensure_ascii=False)

    def to_arrow(self) -> pa.Table:
        """The entries as rows, their fields as columns."""
        import pyarrow as pa

        hints = get_type_hints(self.entry_type)
        names = [one.name for one in fields(self.entry_type)]
        schema = pa.schema([pa.field(name, _arrow_type(hints[name])) for name in names])
        columns = [pa.array([_arrow_value(getattr(e, f.name)) for e in self], f.type) for f in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame. Raises MissingLibrary."""
        if find_spec("pandas") is None:
            raise MissingLibrary("to_pandas needs pandas, which is not installed: pip install pandas.")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return text_table(self.header, [self._row(entry) for entry in self])

    def _repr_html_(self) -> str:
        return html_table(self.header, [self._row(entry) for entry in self])


def plain(value: object) -> Json:
    """A value in JSON's types. A value without a JSON form becomes its text."""
    match value:
        case Enum():
            return value.value if isinstance(value, str) else value.name.lower()
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)  # infinite, or NaN
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping():
            return {_name(key): plain(one) for key, one in value.items()}
        case Sequence():
            return [plain(one) for one in value]
        case set() | frozenset():
            return sorted((plain(one) for one in value), key=str)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    return fspath(value) if isinstance(value, PathLike) else str(value)


def _fields(value: object) -> dict[str, Json]:
    names = [one.name for one in fields(value) if not one.name.startswith("_")]  # type: ignore[arg-type]
    return {name: plain(getattr(value, name)) for name in names}


def _name(key: object) -> str:
    value = plain(key)
    return value if isinstance(value, str) else "/".join(map(str, value.values() if isinstance(value, dict) else [key]))


def _arrow_type(hint: object) -> pa.DataType:
    """The column's type for a field: of `X | None` that of X, of a sequence a list, of a mapping of texts a map."""
    import pyarrow as pa

    parts = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) in (Union, UnionType):
        return _arrow_type(parts[0]) if len(parts) == 1 else pa.string()
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return pa.map_(_arrow_type(parts[0]), _arrow_type(parts[1]))
    if origin in (tuple, list):
        return pa.list_(_arrow_type(parts[0]))
    types: dict[object, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return types.get(hint, pa.string())


def _arrow_value(value: object) -> object:
    value = plain(value)
    return list(value.items()) if isinstance(value, dict) else value
