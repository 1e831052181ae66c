"""What a procedure is: arguments, columns of its result, and the function that makes the rows.

Both are declared in one line of words each, as Hudi's `CALL help` lists them:

    "table string!, limit integer=10"        `!`: required; `=`: the default, none without
    "commit_time string, total_errors long"

Source: Apache Hudi 1.2.0, `CALL help(cmd => '…')`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.literals import Constant
from pyhudi.sql.procedures.call import ProcedureCall
from pyhudi.sql.procedures.rows import Row, Rows

__all__ = ["Argument", "Procedure", "Row", "Rows"]


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

    def value(self, given: Constant, procedure: str) -> str | int | bool | None:
        """A constant as a value of this argument. Raises ConfigError for one of another type."""
        if given is None or (isinstance(given, bool) and self.kind == "boolean"):
            return given
        text = str(given)
        if self.kind == "string" and not isinstance(given, bool):
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
        taken = tuple(Argument.of(words) for words in arguments.split(", ")) if arguments else ()
        return cls(name, taken, _columns(columns), run, about)

    def values(self, positional: Sequence[Constant], named: Mapping[str, Constant]) -> dict[str, str | int | bool]:
        """The values of a call, defaults among them; arguments that have neither are left out.

        Raises: ConfigError for unknown, missing and doubled arguments, and for values of a wrong type.
        """
        if len(positional) > len(self.arguments):
            raise ConfigError(f"{self.name} takes at most {len(self.arguments)} arguments. {self._takes()}")
        known = {argument.name.lower(): argument for argument in self.arguments}
        given: dict[str, Constant] = dict(zip(known, positional, strict=False))
        for name, value in named.items():
            if name.lower() not in known:
                raise ConfigError(f"{self.name} has no argument {name!r:.100}. {self._takes()}")
            if name.lower() in given:
                raise ConfigError(f"{self.name}: the argument {name} is given twice.")
            given[name.lower()] = value
        values: dict[str, str | int | bool] = {}
        for argument in self.arguments:
            found = argument.value(given.get(argument.name.lower()), self.name)
            value = argument.default if found is None else found
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
