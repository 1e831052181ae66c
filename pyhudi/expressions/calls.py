"""Function calls in an expression: arguments, lambdas as arguments, and keywords between arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.functions import rule_of
from pyhudi.expressions.functions.nested import LAMBDA_CONDITIONS, LAMBDAS, struct_of
from pyhudi.expressions.functions.registry import Row
from pyhudi.expressions.functions.times import ZONED
from pyhudi.expressions.tree import Expression, Form, Lambda, TypedCall, TypedColumn, TypedLiteral, Verbatim
from pyhudi.expressions.types import BOOLEAN, DATE, INT, MOMENT, NOTHING, STRING, name_of

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["CallReader", "shown"]

_UNITS_FIRST = ("datediff", "date_diff", "timestampdiff", "dateadd", "date_add", "timestampadd")


class CallReader(ABC):
    """Reads calls. `zone`: the session's; `now`: the current time, None: the engine's."""

    def __init__(self, zone: str, now: datetime | None) -> None:
        self._zone, self._now = zone, now
        self._parameters: dict[str, Verbatim] = {}

    @abstractmethod
    def read(self, node: exp.Expr) -> Expression:
        """Convert a tree of sqlglot's to a typed tree."""

    def special_function(self, name: str, node: exp.Anonymous) -> Expression | None:
        """Read a function that only a query may have, such as an aggregate; None for other functions."""
        return None

    def arguments(self, node: exp.Anonymous) -> list[Expression]:
        """Read the arguments of a call."""
        return [self.read(argument) for argument in node.expressions]

    def _function(self, name: str, arguments: Sequence[Expression]) -> Expression:
        if self._now is not None and name in ("now", "current_timestamp", "current_date", "curdate"):
            return (
                TypedLiteral(self._now, MOMENT)
                if name in ("now", "current_timestamp")
                else TypedLiteral(self._now.date(), DATE)
            )
        return rule_of(name)(name, arguments)

    def _special(self, node: exp.Expr) -> Expression:
        """Read a function with keywords between its arguments."""
        from sqlglot import exp

        value = self.read(node.this)
        if isinstance(node, exp.Trim):
            characters = node.expression and self.read(node.expression)
            side = (node.args.get("position") or "BOTH").upper()
            if characters is None:
                return self._function({"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side], [value])
            name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
            return self._function(name, [value, characters] if name == "btrim" else [characters, value])
        if isinstance(node, exp.Substring):
            parts = [node.args.get(part) for part in ("start", "length")]
            return self._function("substring", [value, *(self.read(part) for part in parts if part is not None)])
        if isinstance(node, exp.StrPosition):
            return self._function("position", [self.read(node.args["substr"]), value])
        arguments = [self.read(node.expression), self.read(node.args["from_"])]
        length = node.args.get("for_")
        count = self._function("length", arguments[:1]) if length is None else self.read(length)
        text = "left({0}, greatest({2} - 1, 0)) || {1} || substring({0}, {2} + {3})"
        return Row(text, STRING, (STRING, STRING, INT, INT))("overlay", [value, *arguments, count])

    def _call(self, name: str, node: exp.Anonymous) -> Expression:
        from sqlglot import exp

        special = self.special_function(name, node)
        if special is not None:
            return special
        if name == "struct":
            return self._struct(node)
        if any(isinstance(argument, exp.Lambda) for argument in node.expressions):
            return self._with_lambda(name, node)
        if name in _UNITS_FIRST and len(node.expressions) == 3:
            unit, *values = node.expressions
            if not isinstance(unit, exp.Column) or len(unit.parts) != 1:
                raise ConfigError(f"{name} takes a unit first, such as DAY.")
            return rule_of(name)(name, [TypedColumn((unit.name,), NOTHING), *map(self.read, values)])
        arguments = self.arguments(node)
        if name in ZONED:
            return ZONED[name](self._zone, name, arguments)
        return self._function(name, arguments)

    def _struct(self, node: exp.Anonymous) -> Expression:
        from sqlglot import exp

        fields = []
        for at, part in enumerate(node.expressions, 1):
            value = part.this if isinstance(part, exp.Alias) else part
            name = part.alias if isinstance(part, exp.Alias) else ""
            if not name and isinstance(value, exp.Column):
                name = value.name
            fields.append((name or f"col{at}", self.read(value)))
        return struct_of("struct", fields)

    def _with_lambda(self, name: str, node: exp.Anonymous) -> Expression:
        from sqlglot import exp

        if name in ("aggregate", "reduce") and len(node.expressions) == 3:
            return self._reduced(name, node)
        whole = [argument for argument in node.expressions if not isinstance(argument, exp.Lambda)]
        functions = [argument for argument in node.expressions if isinstance(argument, exp.Lambda)]
        if name not in LAMBDAS or len(whole) != 1 or len(functions) != 1 or node.expressions[0] is not whole[0]:
            raise ConfigError(f"{name} with a function needs Spark; known are {', '.join(LAMBDAS)}.")
        value = self.read(whole[0])
        if not pa.types.is_list(value.type):
            raise ConfigError(f"{name} takes an array, found {name_of(value.type)}.")
        body = self._lambda(functions[0], [value.type.value_type, INT])
        if name in LAMBDA_CONDITIONS and body.type != BOOLEAN:
            raise ConfigError(f"{name} takes a condition, found {name_of(body.type)}.")
        text, kind = LAMBDAS[name](value.type, body.type)
        return TypedCall(Form(name, text), (value, body), kind)

    def _reduced(self, name: str, node: exp.Anonymous) -> Expression:
        """Read aggregate(array, start, (state, element) -> …). The state must not change its type."""
        from sqlglot import exp

        value, start = (self.read(argument) for argument in node.expressions[:2])
        function = node.expressions[2]
        if not isinstance(function, exp.Lambda) or not pa.types.is_list(value.type):
            raise ConfigError(f"{name} takes an array, a start and a function of two parameters.")
        body = self._lambda(function, [start.type, value.type.value_type], places=False)
        if body.type != start.type or len(body.parameters) != 2:
            raise ConfigError(f"{name}: the function gives {name_of(body.type)}, the start is {name_of(start.type)}.")
        return TypedCall(Form(name, "list_reduce({0}, {2}, {1})"), (value, start, body), start.type)

    def _lambda(self, node: exp.Lambda, kinds: Sequence[pa.DataType], *, places: bool = True) -> Lambda:
        names = [parameter.name for parameter in node.expressions]
        if len(names) > len(kinds) or len({name.lower() for name in names}) < len(names):
            raise ConfigError(f"{shown(node)}: a function of {len(names)} parameters needs Spark.")
        hidden = {name.lower(): self._parameters.get(name.lower()) for name in names}
        inner = [f"{name.lower()}__{len(self._parameters)}" for name in names]
        for at, (name, kind) in enumerate(zip(names, kinds, strict=False)):
            quoted = '"' + inner[at].replace('"', '""') + '"'
            # DuckDB counts from 1, as BIGINT.
            text = f"CAST({quoted} - 1 AS INTEGER)" if at and places else quoted
            self._parameters[name.lower()] = Verbatim(text, kind)
        try:
            body = self.read(node.this)
        finally:
            for name, before in hidden.items():
                self._parameters.pop(name, None)
                if before is not None:
                    self._parameters[name] = before
        return Lambda(tuple(inner), body, body.type)


def shown(node: exp.Expr) -> str:
    """A part of an SQL text as error messages show it."""
    text: str = node.sql("spark").replace("\1", "")
    return text if len(text) <= 100 else f"{text[:100]}…"
