"""A procedure (arguments, columns of its result, the function that answers), and one call of it.

A procedure is a decorated function. One line of text declares its arguments and one its columns, as in Hudi's
`CALL help`:

    "table string!, limit integer=10"        `!`: required; `=`: the default, none without
    "commit_time string = instant.requested_time, total_errors long = errors"

A column with `=` names an attribute of the objects that the function returns as rows; other columns are items of
tuples.

Source: Apache Hudi 1.2.0, `CALL help(cmd => '…')`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.formats.properties import PROPERTIES_BYTES_MAX, parse_properties
from pyhudi.lazy_property import lazy_property
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import Constant
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table import HudiTable

if TYPE_CHECKING:
    from pyhudi.sql.session import SqlSession

__all__ = ["TABLE", "Argument", "Procedure", "ProcedureCall", "Row", "Rows", "procedure", "table_name_of"]


Row: TypeAlias = tuple[object, ...]
Rows: TypeAlias = Iterable[object]  # tuples, or values that have the columns as attributes
Answer: TypeAlias = Callable[["ProcedureCall"], Rows]

TABLE = "table string, path string"  # a table by its name or its path

# Rows of one answer: this many file slices or write stats fit into some 100 MB of Python objects.
MAX_PROCEDURE_ROWS = 1_000_000


@dataclass(frozen=True)
class ProcedureCall:
    """One call of a procedure. `values`: by the names of its arguments, without those that have no value.

    `session`: None for a call from Python. Such a call names a table by its path, or passes an open table as `handle`.
    """

    procedure: str
    values: Mapping[str, str | int | bool]
    session: SqlSession | None = None
    handle: HudiTable | None = None
    storage_options: Mapping[str, object] = field(default_factory=dict)

    # ---- arguments

    def text(self, name: str) -> str:
        """An argument as text; "" without the argument."""
        return str(self.values.get(name, ""))

    def texts(self, name: str) -> list[str]:
        """An argument split at commas, without surrounding blanks and empty texts."""
        return [text.strip() for text in self.text(name).split(",") if text.strip()]

    def number(self, name: str) -> int | None:
        """An argument as integer; None without the argument."""
        value = self.values.get(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        return bool(self.values.get(name, False))

    def limited(self, rows: Rows) -> Iterator[object]:
        """The first `limit` rows; all if the limit is below zero, none if it is zero."""
        limit = self.number("limit")
        return islice(rows, None if limit is None or limit < 0 else limit)

    @property
    def options(self) -> dict[str, str]:
        """The session's options, and those of the argument `options`, `k=v,k=v`."""
        options = dict(self.session.settings) if self.session is not None else {}
        for pair in self.texts("options"):
            key, assigned, value = pair.partition("=")
            if not assigned:
                raise self.error(f"options is a text of key=value, with commas; found {pair!r:.200}.")
            options[key.strip()] = value.strip()
        return options

    def options_of(self, keys: Mapping[str, str]) -> dict[str, str]:
        """`options`, and the arguments that have a value, by their keys. `keys`: argument → key."""
        return {**self.options, **{key: str(self.values[name]) for name, key in keys.items() if name in self.values}}

    def properties_at(self, path: str) -> dict[str, str]:
        """The properties in a file in any store."""
        folder, _, name = path.rpartition("/")
        data = open_storage(folder or ".", self.storage_options).read(name, PROPERTIES_BYTES_MAX)
        return parse_properties(data, path)

    def error(self, text: str) -> ConfigError:
        """The error for a wrong argument."""
        return ConfigError(f"{self.procedure}: {text}")

    # ---- the table

    @property
    def table_name(self) -> str:
        """`table` or `path`, "" without either."""
        return self.text("table") or self.text("path")

    @lazy_property
    def table(self) -> HudiTable:
        """The table that `table` or `path` names. Raises ConfigError if both are missing, TableNotFound."""
        if self.handle is not None:
            return self.handle
        if not self.table_name:
            raise ConfigError(f"{self.procedure} needs the argument table, or path.")
        return self.table_called(self.table_name)

    def table_called(self, text: str) -> HudiTable:
        """The table with a name, or at a path. Raises TableNotFound."""
        name = table_name_of(text)
        if self.session is None:
            return HudiTable.open(name.path or text, storage_options=self.storage_options)
        table = self.session.find_table(name)
        if table is None:
            raise TableNotFound(f"{self.procedure}: there is no Hudi table {text}.")
        return table.table

    @lazy_property
    def meta(self) -> MetaClient:
        """The table's state at the first access."""
        return self.table.state()

    @property
    def storage(self) -> Storage:
        return self.meta.storage

    def commits(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """The completed commits of the active timeline with their bodies, newest first."""
        for instant in reversed(self.meta.timeline.commits().instants):
            yield instant, self.meta.commits.metadata(instant)

    def completed(self, *actions: ActionKind) -> list[Instant]:
        """The completed instants of some actions, newest first."""
        return list(reversed(self.meta.timeline.completed().of(actions).instants))

    def commit_at(self, instant_time: str) -> tuple[Instant, CommitMetadata]:
        """The completed commit of an instant time. Raises ConfigError when there is none."""
        instant = self.meta.timeline.commits().find(instant_time)
        if instant is None:
            last = self.meta.timeline.last_commit()
            newest = "none" if last is None else last.requested_time
            raise self.error(
                f"{self.table.path} has no completed commit {instant_time!r:.100} on its active timeline; its newest "
                f"is {newest}."
            )
        return instant, self.meta.commits.metadata(instant)


_NAME_PART = re.compile("`((?:[^`]|``)*)`|([^.`]+)")


def table_name_of(text: str) -> TableName:
    """Read a table's name from a text: with dots and backticks, or a path."""
    if ("/" in text or ":" in text) and "`" not in text:
        return TableName(("hudi", text))
    return TableName(tuple(quoted.replace("``", "`") or plain for quoted, plain in _NAME_PART.findall(text)))


_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `kind`: string, integer, long or boolean; `default`: None for none."""

    name: str
    kind: str
    required: bool
    default: str | int | bool | None

    @classmethod
    def of(cls, text: str) -> Argument:
        """Read an argument's declaration, `limit integer=10`."""
        words, assigned, default = text.partition("=")
        name, kind = words.split()
        argument = cls(name, kind.rstrip("!"), kind.endswith("!"), None)
        return cls(name, kind, False, argument.value(default, name)) if assigned else argument

    def value(self, constant: Constant, procedure: str) -> str | int | bool | None:
        """Convert a constant to a value of this argument. Raises ConfigError for a constant of another type."""
        if constant is None or (isinstance(constant, bool) and self.kind == "boolean"):
            return constant
        text = str(constant)
        if self.kind == "string" and not isinstance(constant, bool):
            return text
        if self.kind == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self.kind in ("integer", "long") and text.lstrip("+-").isdecimal():
            return int(text)
        raise ConfigError(f"{procedure}: {self.name} takes {self.kind} values, found {text!r:.100}.")

    @property
    def default_text(self) -> str | None:
        """The default as SQL writes it; None for none."""
        return str(self.default).lower() if isinstance(self.default, bool) else self._default_as(str)

    def __str__(self) -> str:
        default = self.default_text if isinstance(self.default, bool) else self._default_as(repr)
        return f"{self.name} {self.kind}{'!' if self.required else '' if default is None else f'={default}'}"

    def _default_as(self, written: Callable[[object], str]) -> str | None:
        return None if self.default is None else written(self.default)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure of `CALL`. `about`: one line for the docs. `attributes`: the attributes of the function's rows that
    make the columns; () for tuples. `is_limited`: the argument `limit` limits the rows.
    """

    name: str
    arguments: tuple[Argument, ...]
    columns: pa.Schema
    answer: Answer
    about: str
    attributes: tuple[str, ...] = ()
    is_limited: bool = True

    def rows(self, call: ProcedureCall) -> pa.Table:
        """Answer a call. Raises ConfigError for more than MAX_PROCEDURE_ROWS rows."""
        rows = call.limited(self.answer(call)) if self.is_limited else self.answer(call)
        answer = list(
            islice(map(attrgetter(*self.attributes), rows) if self.attributes else rows, MAX_PROCEDURE_ROWS + 1)
        )
        if len(answer) > MAX_PROCEDURE_ROWS:
            raise ConfigError(f"The answer has more than {MAX_PROCEDURE_ROWS:,} rows; give a limit.")
        values = list(zip(*cast("list[Row]", answer), strict=True)) or [() for _ in self.columns]
        arrays = [pa.array(value, field.type) for value, field in zip(values, self.columns, strict=True)]
        return pa.table(arrays, schema=self.columns)

    def values(self, positional: Sequence[Constant], by_name: Mapping[str, Constant]) -> dict[str, str | int | bool]:
        """The values of a call, with defaults. An argument with neither value nor default is absent.

        Raises: ConfigError for an unknown, missing or duplicate argument, and for a value of the wrong type.
        """
        takes = f"It takes ({', '.join(map(str, self.arguments))})."
        if len(positional) > len(self.arguments):
            raise ConfigError(f"{self.name} takes at most {len(self.arguments)} arguments. {takes}")
        arguments = {argument.name.lower(): argument for argument in self.arguments}
        constants: dict[str, Constant] = dict(zip(arguments, positional, strict=False))
        for name, value in by_name.items():
            if name.lower() not in arguments:
                raise ConfigError(f"{self.name} has no argument {name!r:.100}. {takes}")
            if name.lower() in constants:
                raise ConfigError(f"{self.name}: the argument {name} is given twice.")
            constants[name.lower()] = value
        values: dict[str, str | int | bool] = {}
        for argument in self.arguments:
            value = argument.value(constants.get(argument.name.lower()), self.name)
            value = argument.default if value is None else value
            if value is not None:
                values[argument.name] = value
            elif argument.required:
                raise ConfigError(f"{self.name} needs the argument {argument.name}. {takes}")
        return values


def procedure(arguments: str, columns: str, *, is_limited: bool = True) -> Callable[[Answer], Procedure]:
    """Make a procedure from the function that answers its calls; it gets the function's name and docstring."""
    argument_list = tuple(Argument.of(words) for words in arguments.split(", ")) if arguments else ()
    words, _, paths = zip(*(column.partition(" = ") for column in columns.split(", ")), strict=True)
    schema = pa.schema([_column(*text.rsplit(" ", 1)) for text in words])

    def made(answer: Answer) -> Procedure:
        about = " ".join((answer.__doc__ or "").split())
        return Procedure(answer.__name__, argument_list, schema, answer, about, tuple(filter(None, paths)), is_limited)

    return made


def _column(name: str, kind: str) -> pa.Field:
    return pa.field(name, _TYPES[kind.rstrip("!")], nullable=not kind.endswith("!"))
