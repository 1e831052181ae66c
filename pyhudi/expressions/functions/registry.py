"""A row of the table of functions: a function's arguments, its result type and its computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, implicit_cast
from pyhudi.expressions.tree import Expression, Form, Kind, Lambda, TypedCall, TypedLiteral
from pyhudi.expressions.types import NOTHING, common_type, is_nested, is_number, name_of

__all__ = [
    "ANY",
    "ARRAY",
    "MAP",
    "NUMBER",
    "Arguments",
    "Row",
    "Rule",
    "call",
    "constant_text",
    "constant_whole",
    "is_ordered_alike",
    "once",
    "quoted_part",
    "same_type",
]

Arguments: TypeAlias = Sequence[Expression]
# Makes a typed call from a function's name and arguments. Raises ConfigError for arguments that it does not take.
Rule: TypeAlias = Callable[[str, Arguments], Expression]
Match: TypeAlias = Callable[[Expression], "Expression | None"]


def _any(value: Expression) -> Expression | None:
    return None if isinstance(value, Lambda) else value


def _number(value: Expression) -> Expression | None:
    if value.type == pa.string():
        return cast(value, pa.float64())
    if value.type == NOTHING:
        return cast(value, pa.float64())
    return value if is_number(value.type) else None


def _array(value: Expression) -> Expression | None:
    return value if pa.types.is_list(value.type) else None


def _map(value: Expression) -> Expression | None:
    return value if pa.types.is_map(value.type) else None


ANY: Match = _any
NUMBER: Match = _number
ARRAY: Match = _array
MAP: Match = _map


@dataclass(frozen=True, slots=True)
class Row:
    """A function whose arguments and result type need no special rule.

    `result`: the type, or a function of the arguments' types. `defaults`: of the last arguments, which may be omitted.
    """

    duckdb: str
    result: pa.DataType | Callable[[Sequence[pa.DataType]], pa.DataType]
    parameters: Sequence[pa.DataType | Match] = ()
    arrow: str | None = None
    defaults: Sequence[TypedLiteral] = ()
    kind: Kind = "value"

    def __call__(self, name: str, arguments: Arguments) -> Expression:
        """Make the typed call. Raises ConfigError."""
        fewest, most = len(self.parameters) - len(self.defaults), len(self.parameters)
        if not fewest <= len(arguments) <= most:
            expected = str(most) if fewest == most else f"{fewest} to {most}"
            raise ConfigError(f"{name} takes {expected} arguments, found {len(arguments)}.")
        left_out = most - len(arguments)
        whole = [*arguments, *(self.defaults[len(self.defaults) - left_out :] if left_out else ())]
        values = tuple(_fitted(name, v, p) for v, p in zip(whole, self.parameters, strict=True))
        result = self.result if isinstance(self.result, pa.DataType) else self.result([v.type for v in values])
        return TypedCall(Form(name, self.duckdb, self.arrow, self.kind), values, result)


def _fitted(name: str, value: Expression, parameter: pa.DataType | Match) -> Expression:
    if isinstance(value, Lambda):
        raise ConfigError(f"{name} takes no function here.")
    fitted = implicit_cast(value, parameter) if isinstance(parameter, pa.DataType) else parameter(value)
    if fitted is None:
        raise ConfigError(f"{name} takes no argument of type {name_of(value.type)} here.")
    return fitted


def call(
    name: str, duckdb: str, result: pa.DataType, *arguments: Expression, arrow: str | None = None, kind: Kind = "value"
) -> TypedCall:
    """Make a call whose arguments already have the right types."""
    return TypedCall(Form(name, duckdb, arrow, kind), arguments, result)


def same_type(name: str, values: Arguments, *, texts_give_way: bool = True) -> tuple[list[Expression], pa.DataType]:
    """Cast values to their common type. Raises ConfigError if there is none."""
    kind = common_type([value.type for value in values], texts_give_way=texts_give_way)
    if kind is None:
        kinds = ", ".join(dict.fromkeys(name_of(value.type) for value in values))
        raise ConfigError(f"{name} takes values of one type, found {kinds}.")
    return [cast(value, kind) for value in values], kind


def constant_text(name: str, value: Expression, what: str) -> str:
    """The value of an argument that must be a constant text. Raises ConfigError."""
    if isinstance(value, TypedLiteral) and isinstance(value.value, str):
        return value.value
    raise ConfigError(f"{name} without Spark takes {what} as a constant text.")


def constant_whole(name: str, value: Expression, what: str) -> int:
    """The value of an argument that must be a constant integer. Raises ConfigError."""
    if isinstance(value, TypedLiteral) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    raise ConfigError(f"{name} without Spark takes {what} as a constant whole number.")


def once(body: str, place: int = 0) -> str:
    """DuckDB's text that computes an argument once for a body that uses it several times, as `v`."""
    return f"list_transform([{{{place}}}], lambda v: {body})[1]"


def quoted_part(text: str) -> str:
    """Quote a constant text for a form, in which no brace is an argument's place."""
    return "(" + "'" + text.replace("'", "''").replace("{", "' || chr(123) || '") + "')"


def is_ordered_alike(kind: pa.DataType) -> bool:
    """True if engines order values of this type alike. Nulls in nested values come first in Spark, last in DuckDB."""
    return not is_nested(kind)
