"""The typed tree of an expression. Each node has the type that Spark gives it.

    Expression = TypedColumn | TypedLiteral | TypedCall | Lambda | Verbatim

Casts, operators, CASE and functions are all calls. A call has a `Form` from the table of functions, which says how a
back end computes it. Types are converted only where Spark converts them: the arguments of a call have the types that
its form takes, and no back end adds a cast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "Expression",
    "Form",
    "Kind",
    "Lambda",
    "TypedCall",
    "TypedColumn",
    "TypedLiteral",
    "Verbatim",
    "columns_of",
    "nodes_of",
]

Kind: TypeAlias = Choice["value", "aggregate", "window", "generator"]


@dataclass(frozen=True, slots=True)
class Form:
    """The computation of a call. `duckdb`: DuckDB's text, with the arguments as {0}, {1}; `arrow`: an Arrow kernel with
    the same result, if there is one.
    """

    name: str
    duckdb: str
    arrow: str | None = None
    kind: Kind = "value"


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column, or a field of one, by its path. `source`: the table of a query that has it."""

    path: tuple[str, ...]
    type: pa.DataType
    source: str | None = None


@dataclass(frozen=True, slots=True)
class TypedLiteral:
    """A constant: the Python value of its type, None for NULL."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class TypedCall:
    """A function or an operator with its arguments."""

    form: Form
    arguments: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Lambda:
    """A function as an argument: `x -> x + 1`. `type`: that of its body."""

    parameters: tuple[str, ...]
    body: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A part of a query that is already DuckDB's text: a subquery, a parameter of a lambda."""

    text: str
    type: pa.DataType


Expression: TypeAlias = TypedColumn | TypedLiteral | TypedCall | Lambda | Verbatim


def nodes_of(expression: Expression) -> Iterator[Expression]:
    """The expression and all of its parts."""
    parts = [expression]
    while parts:
        part = parts.pop()
        yield part
        if isinstance(part, TypedCall):
            parts += part.arguments
        elif isinstance(part, Lambda):
            parts.append(part.body)


def columns_of(expression: Expression) -> tuple[str, ...]:
    """The top-level columns that an expression reads, each once."""
    return tuple(dict.fromkeys(part.path[0] for part in nodes_of(expression) if isinstance(part, TypedColumn)))
