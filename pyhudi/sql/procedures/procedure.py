"""A procedure (arguments, columns of its result, the function that makes the rows), and one call of it.

One line of words declares the arguments and one the columns, as in Hudi's `CALL help`:

    "table string!, limit integer=10"        `!`: required; `=`: the default, none without
    "commit_time string, total_errors long"

Source: Apache Hudi 1.2.0, `CALL help(cmd => '…')`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

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

__all__ = ["Argument", "Procedure", "ProcedureCall", "Row", "Rows", "rows_as_table", "table_name_of"]


Row: TypeAlias = tuple[object, ...]
Rows: TypeAlias = Iterable[Row]

# Rows of one answer: this many file slices or write stats fit into some 100 MB of Python objects.
MAX_PROCEDURE_ROWS = 1_000_000


def rows_as_table(columns: pa.Schema, rows: Rows) -> pa.Table:
    """Rows as a table of these columns. Raises ConfigError for more than MAX_PROCEDURE_ROWS."""
    answer = list(islice(rows, MAX_PROCEDURE_ROWS + 1))
    if len(answer) > MAX_PROCEDURE_ROWS:
        raise ConfigError(f"The answer has more than {MAX_PROCEDURE_ROWS:,} rows; give a limit.")
    values = list(zip(*answer, strict=True)) or [() for _ in columns]
    return pa.table([pa.array(value, field.type) for value, field in zip(values, columns, strict=True)], schema=columns)


_NONE = "none"


@dataclass(frozen=True)
class ProcedureCall:
    """One call of a procedure. `values`: by the names of its arguments, without those that have no value.

    `session`: None for a call from Python. Such a call names a table by its path, or passes an open one as `handle`.
    """

    procedure: str
    values: Mapping[str, str | int | bool]
    session: SqlSession | None = None
    handle: HudiTable | None = None
    storage_options: Mapping[str, object] = field(default_factory=dict)

    # ---- arguments

    def text(self, name: str) -> str:
        """A text; "" without the argument."""
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int | None:
        """A whole number; None without the argument."""
        value = self.values.get(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        return bool(self.values.get(name, False))

    def limited(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The first `limit` rows; all with a limit below zero, none with one of zero."""
        limit = self.number("limit")
        for place, row in enumerate(rows):
            if limit is not None and 0 <= limit <= place:
                return
            yield row

    @property
    def options(self) -> dict[str, str]:
        """The session's options, and those of the argument `options`, `k=v,k=v`."""
        options = dict(self.session.settings) if self.session is not None else {}
        for pair in filter(None, (part.strip() for part in self.text("options").split(","))):
            key, assigned, value = pair.partition("=")
            if not assigned:
                raise ConfigError(
                    f"{self.procedure}: options is a text of key=value, with commas; found {pair!r:.200}."
                )
            options[key.strip()] = value.strip()
        return options

    def properties_at(self, path: str) -> dict[str, str]:
        """The properties in a file at any store."""
        folder, _, name = path.rpartition("/")
        return parse_properties(
            open_storage(folder or ".", self.storage_options).read(name, PROPERTIES_BYTES_MAX), path
        )

    # ---- the table

    @lazy_property
    def table(self) -> HudiTable:
        """The table that `table` or `path` names. Raises ConfigError without either argument, TableNotFound."""
        if self.handle is not None:
            return self.handle
        name = self.text("table") or self.text("path")
        if not name:
            raise ConfigError(f"{self.procedure} needs the argument table, or path.")
        return self.table_called(name)

    def table_called(self, text: str) -> HudiTable:
        """The table of a name, or at a path. Raises TableNotFound."""
        name = table_name_of(text)
        if self.session is None:
            return HudiTable.open(name.path or text, storage_options=self.storage_options)
        table = self.session.find_table(name)
        if table is None:
            raise TableNotFound(f"{self.procedure}: there is no Hudi table {text}.")
        return table.table

    @lazy_property
    def meta(self) -> MetaClient:
        """The table's state at the first look."""
        return self.table.state()

    @property
    def storage(self) -> Storage:
        return self.meta.storage

    def commits(self) -> list[tuple[Instant, CommitMetadata]]:
        """The completed commits of the active timeline with their bodies, newest first."""
        instants = reversed(self.meta.timeline.commits().instants)
        return [(instant, self.meta.commits.metadata(instant)) for instant in instants]

    def completed(self, *actions: ActionKind) -> list[Instant]:
        """The completed instants of some actions, newest first."""
        return list(reversed(self.meta.timeline.completed().of(actions).instants))

    def commit_at(self, instant_time: str) -> tuple[Instant, CommitMetadata]:
        """The completed commit of an instant time. Raises ConfigError when there is none."""
        instant = self.meta.timeline.commits().find(instant_time)
        if instant is None:
            last = self.meta.timeline.last_commit()
            raise ConfigError(
                f"{self.procedure}: {self.table.path} has no completed commit {instant_time!r:.100} on its active "
                f"timeline; its newest is {last.requested_time if last is not None else _NONE}."
            )
        return instant, self.meta.commits.metadata(instant)


def table_name_of(text: str) -> TableName:
    """A table's name in a text: with dots and backticks, or a path."""
    if ("/" in text or ":" in text) and "`" not in text:
        return TableName(("hudi", text))
    parts: list[str] = []
    rest = text
    while rest:
        end = rest.find("`", 1) + 1 if rest.startswith("`") else (rest + ".").index(".")
        part = rest[: end or len(rest)]
        parts.append(part[1:-1].replace("``", "`") if part.startswith("`") else part)
        rest = rest[end or len(rest) :].removeprefix(".")
    return TableName(tuple(parts))


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
        """An argument from its words, `limit integer=10`."""
        words, assigned, default = text.partition("=")
        name, kind = words.split()
        required = kind.endswith("!")
        kind = kind.rstrip("!")
        return cls(name, kind, required, _value_of(default, kind) if assigned else None)

    def value(self, constant: Constant, procedure: str) -> str | int | bool | None:
        """A constant as a value of this argument. Raises ConfigError for one of another type."""
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

    def __str__(self) -> str:
        ending = "!" if self.required else "" if self.default is None else f"={_shown(self.default)}"
        return f"{self.name} {self.kind}{ending}"


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure of `CALL`. `run` gives the rows, in the order of `columns`. `about`: one line for the docs."""

    name: str
    arguments: tuple[Argument, ...]
    columns: pa.Schema
    run: Callable[[ProcedureCall], Rows]
    about: str

    @classmethod
    def of(cls, name: str, arguments: str, columns: str, run: Callable[[ProcedureCall], Rows], about: str) -> Procedure:
        """A procedure from its words."""
        argument_list = tuple(Argument.of(words) for words in arguments.split(", ")) if arguments else ()
        return cls(name, argument_list, _columns(columns), run, about)

    def values(self, positional: Sequence[Constant], by_name: Mapping[str, Constant]) -> dict[str, str | int | bool]:
        """The values of a call, with defaults. An argument without a value and a default is absent.

        Raises: ConfigError for an unknown, missing or doubled argument, and for a value of a wrong type.
        """
        if len(positional) > len(self.arguments):
            raise ConfigError(f"{self.name} takes at most {len(self.arguments)} arguments. {self._takes()}")
        arguments = {argument.name.lower(): argument for argument in self.arguments}
        constants: dict[str, Constant] = dict(zip(arguments, positional, strict=False))
        for name, value in by_name.items():
            if name.lower() not in arguments:
                raise ConfigError(f"{self.name} has no argument {name!r:.100}. {self._takes()}")
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
                raise ConfigError(f"{self.name} needs the argument {argument.name}. {self._takes()}")
        return values

    def _takes(self) -> str:
        return f"It takes ({', '.join(map(str, self.arguments))})."


def _columns(text: str) -> pa.Schema:
    fields = []
    for words in text.split(", "):
        name, kind = words.rsplit(" ", 1)
        fields.append(pa.field(name, _TYPES[kind.rstrip("!")], nullable=not kind.endswith("!")))
    return pa.schema(fields)


def _value_of(text: str, kind: str) -> str | int | bool:
    return text == "true" if kind == "boolean" else text if kind == "string" else int(text)


def _shown(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
