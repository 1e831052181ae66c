"""A query in Spark's words as DuckDB takes it: quotations and operators; which words in it name tables.

Only what is written differently is changed. Functions that one of them lacks stay as they are: DuckDB says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.sql.literals import Constant, constant_of
from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import SqlToken, TokenKind, dotted_at, tokens_of

__all__ = ["FunctionCall", "Named", "Past", "duckdb_text", "quoted_name", "spoken_names"]

_OPERATORS = {"==": "=", "<=>": "IS NOT DISTINCT FROM"}
_TIMES = ("TIMESTAMP", "SYSTEM_TIME", "VERSION", "SYSTEM_VERSION")
_BEFORE_TABLES = ("FROM", "JOIN", "USING", "INTO", "UPDATE", "TABLE")


@dataclass(frozen=True, slots=True)
class Named:
    """A table by its path: hudi.`/path`."""

    name: TableName


@dataclass(frozen=True, slots=True)
class Past:
    """A table as of a moment: `t TIMESTAMP AS OF '…'`, `t VERSION AS OF '…'`."""

    name: TableName
    as_of: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a table function. Arguments are constants; a name without quotations is a text."""

    function: str
    arguments: tuple[Constant, ...]


# A part of a query that DuckDB can't read, and whose rows it is given under a name.
Part = Named | Past | FunctionCall


def quoted_name(name: str) -> str:
    """An identifier as DuckDB takes it."""
    return '"' + name.replace('"', '""') + '"'


def duckdb_text(text: str, functions: Sequence[str], name_of: Callable[[Part], str]) -> str:
    """A query for DuckDB.

    Args:
        functions: names of the table functions that are ours, in small letters.
        name_of: gives the name under which DuckDB finds the rows of a part.
    Raises: ConfigError for a moment or an argument that is no constant.
    """
    tokens, pieces, at, place = tokens_of(text), [], 0, 0
    structs = _structs(tokens)
    while place < len(tokens):
        token = tokens[place]
        pieces.append(text[at : token.start])
        found = _part(tokens, place, functions)
        if found is None:
            pieces.append(structs[place] if place in structs else _spelled(token))
            place += 1
        else:
            part, place = found
            pieces.append(quoted_name(name_of(part)))
        at = tokens[place - 1].end
    return "".join([*pieces, text[at:]])


def spoken_names(text: str) -> Iterator[TableName]:
    """Names in the places where statements name tables; more than those that are tables."""
    tokens = tokens_of(text)
    for place, token in enumerate(tokens):
        if place and token.is_name and (tokens[place - 1].is_word(*_BEFORE_TABLES)):
            yield TableName(dotted_at(tokens, place)[0])


def _spelled(token: SqlToken) -> str:
    if token.kind is TokenKind.NAME:
        return quoted_name(token.value)
    if token.kind is TokenKind.TEXT:
        return "'" + token.value.replace("'", "''") + "'"
    return _OPERATORS.get(token.text, token.text)


def _structs(tokens: Sequence[SqlToken]) -> dict[int, str]:
    """`named_struct('a', x)` as `struct_pack("a" := x)`: by their places the tokens that are written otherwise."""
    written: dict[int, str] = {}
    keys: list[bool] = []  # for each open parenthesis whether a key of a struct comes in it
    structs: list[bool] = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        if token.is_symbol("("):
            is_struct = before is not None and before.is_word("NAMED_STRUCT")
            if is_struct:
                written[place - 1] = "struct_pack"
            structs.append(is_struct)
            keys.append(is_struct)
        elif token.is_symbol(")") and structs:
            structs.pop()
            keys.pop()
        elif structs and structs[-1]:
            following = tokens[place + 1] if place + 1 < len(tokens) else None
            if token.is_symbol(","):
                keys[-1] = not keys[-1]
                if not keys[-1]:
                    written[place] = " :="
            elif keys[-1] and token.kind is TokenKind.TEXT and following is not None and following.is_symbol(","):
                written[place] = quoted_name(token.value)
    return written


def _part(tokens: Sequence[SqlToken], place: int, functions: Sequence[str]) -> tuple[Part, int] | None:
    """The part that begins at a token, and the place after it."""
    if not tokens[place].is_name or (place and tokens[place - 1].is_symbol(".")):
        return None
    parts, end = dotted_at(tokens, place)
    if len(parts) == 1 and parts[0].lower() in functions and end < len(tokens) and tokens[end].is_symbol("("):
        return _call(tokens, parts[0].lower(), end + 1)
    name = TableName(parts)
    time = end + 1 if end < len(tokens) and tokens[end].is_word("FOR") else end
    words = [token.text.upper() for token in tokens[time : time + 3]]
    if len(words) == 3 and words[0] in _TIMES and words[1:] == ["AS", "OF"]:
        return _past(tokens, name, time + 3)
    return (Named(name), end) if name.path is not None else None


def _past(tokens: Sequence[SqlToken], name: TableName, start: int) -> tuple[Part, int]:
    size = 2 if start < len(tokens) and tokens[start].is_word("TIMESTAMP", "DATE") else 1
    value = constant_of(tokens[start : start + size])
    return Past(name, str(value)), start + size


def _call(tokens: Sequence[SqlToken], function: str, start: int) -> tuple[Part, int]:
    arguments: list[Constant] = []
    first = start
    for place in range(start, len(tokens)):
        token = tokens[place]
        if token.is_symbol("(") or token.is_symbol(";"):
            break
        if token.is_symbol(",") or token.is_symbol(")"):
            if place > first:
                arguments.append(_argument(tokens[first:place]))
            first = place + 1
        if token.is_symbol(")"):
            return FunctionCall(function, tuple(arguments)), place + 1
    raise ConfigError(f"{function}(…) takes constants and a table's name, and ends with a closing bracket.")


def _argument(tokens: Sequence[SqlToken]) -> Constant:
    if tokens[0].is_name and not tokens[0].is_word("TRUE", "FALSE", "NULL", "DATE", "TIMESTAMP"):
        parts, end = dotted_at(tokens, 0)
        if end == len(tokens):
            return str(TableName(parts))
    return constant_of(tokens)
