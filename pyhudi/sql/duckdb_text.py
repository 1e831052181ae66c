"""A query in Spark's words as DuckDB's text, by sqlglot, and the tables that it names.

A text outside Spark's grammar is a statement of DuckDB's own. Only its quotations change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.predicate.where_text import negative, number_of
from pyhudi.model.sql_text import MisreadSql, query_of, with_deep_stack
from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import Constant, SqlToken, TokenKind, dotted_at, keywords, tokens_of

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["DuckDbText", "FunctionCall", "PathTable", "TimeTravel", "duckdb_text", "quoted_name"]

_QUERIES = keywords("SELECT WITH FROM VALUES TABLE INSERT CREATE (")
_BEFORE_TABLES = ("FROM", "JOIN", "USING", "INTO", "UPDATE", "TABLE")


@dataclass(frozen=True, slots=True)
class PathTable:
    """A table by its path: hudi.`/path`."""

    name: TableName


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """A table as of a moment: `t TIMESTAMP AS OF '…'`, `t VERSION AS OF '…'`."""

    name: TableName
    as_of: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a table function. Arguments are constants; a name without quotations is a text."""

    function: str
    arguments: tuple[Constant, ...]


# A part of a query that DuckDB can't read itself: its rows are registered under a name.
Part = PathTable | TimeTravel | FunctionCall


@dataclass(frozen=True, slots=True)
class DuckDbText:
    """A statement for DuckDB. `names`: names in the places of tables; some may be no Hudi tables."""

    text: str
    names: tuple[TableName, ...]


def quoted_name(name: str) -> str:
    """An identifier as DuckDB takes it."""
    return '"' + name.replace('"', '""') + '"'


def duckdb_text(text: str, functions: Sequence[str], name_of: Callable[[Part], str]) -> DuckDbText:
    """A statement for DuckDB.

    Args:
        functions: names of the table functions that are ours, in small letters.
        name_of: gives the name under which DuckDB finds the rows of a part.
    Raises: ConfigError for a moment or an argument that is not a constant, and for a function without a counterpart.
    """
    first = tokens_of(text, 1)
    if not first or first[0].text.upper() not in _QUERIES:
        return _own_statement(text)
    try:
        tree = query_of(text)
    except MisreadSql as error:
        raise ConfigError(f"SQL: {error.what}.") from None
    if tree is None:
        return _own_statement(text)
    names = [_name_in_duckdb(table, functions, name_of) for table in _tables(tree)]
    tables = tuple(dict.fromkeys(name for name in names if name is not None))
    try:
        return DuckDbText(with_deep_stack(lambda: _translation(tree)), tables)
    except RecursionError:
        raise ConfigError("SQL: the query has too many terms in one expression.") from None


def _translation(tree: exp.Expr) -> str:
    from sqlglot.errors import UnsupportedError

    from pyhudi.sql.duckdb_functions import duckdb_query

    _name_columns(tree)
    try:
        return duckdb_query(tree)
    except (UnsupportedError, ValueError) as error:
        raise ConfigError(f"DuckDB has no counterpart of this: {error}") from None


def _name_columns(tree: exp.Expr) -> None:
    """Give computed columns names close to Spark's. DuckDB would name them in its own words."""
    from sqlglot import exp

    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return
    for column in list(tree.expressions):
        is_computed = isinstance(column, exp.Func | exp.Binary | exp.Literal | exp.Case | exp.Unary | exp.Predicate)
        if is_computed and not isinstance(column, exp.UDTF | exp.Explode | exp.Inline | exp.Dot):
            column.replace(exp.alias_(column.copy(), _column_name(column), quoted=True, copy=False))


def _column_name(column: exp.Expr) -> str:
    from sqlglot import exp

    if isinstance(column, exp.Literal):
        return column.name
    text = column.sql("spark", normalize_functions="lower", comments=False).replace("count(*)", "count(1)")
    return f"({text})" if isinstance(column, exp.Binary) else text


def _tables(tree: exp.Expr) -> list[exp.Table]:
    from sqlglot import exp

    return list(tree.find_all(exp.Table))


def _name_in_duckdb(table: exp.Table, functions: Sequence[str], name_of: Callable[[Part], str]) -> TableName | None:
    """Put a table's name in DuckDB into the query; the table's own name when the session may know it."""
    from sqlglot import exp

    if isinstance(table.this, exp.Anonymous) and table.this.name.lower() in functions:
        arguments = tuple(_constant(argument) for argument in table.this.expressions)
        _replace(table, name_of(FunctionCall(table.this.name.lower(), arguments)))
        return None
    if not isinstance(table.this, exp.Identifier | exp.Dot):
        return None
    name = TableName(tuple(part.name for part in table.parts))
    version = table.args.get("version")
    if version is not None:
        if not table.alias and name.path is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name.parts[-1], quoted=True)))
        _replace(table, name_of(TimeTravel(name, str(_constant(version.expression)))))
        return None
    if name.path is not None:
        _replace(table, name_of(PathTable(name)))
        return None
    return name


def _replace(table: exp.Table, name: str) -> None:
    from sqlglot import exp

    table.set("this", exp.to_identifier(name, quoted=True))
    for part in ("db", "catalog", "version"):
        table.set(part, None)


def _constant(node: exp.Expr) -> Constant:
    """The value of a constant, the text of a name."""
    from sqlglot import exp

    match node:
        case exp.Column():
            return str(TableName(tuple(part.name for part in node.parts)))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return negative(number_of(node.name))
        case exp.Literal():
            return node.name if node.is_string else number_of(node.name)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Cast(this=exp.Literal()) | exp.RawString():
            return node.name
    raise ConfigError(
        f"Expected a constant (a text, a number, TRUE, FALSE, NULL, DATE '…'), found {node.sql('spark')!r:.200}."
    )


def _own_statement(text: str) -> DuckDbText:
    tokens = tokens_of(text)
    pieces, at = [], 0
    for token in tokens:
        pieces += [text[at : token.start], _token_text(token)]
        at = token.end
    return DuckDbText("".join([*pieces, text[at:]]), tuple(dict.fromkeys(_table_names(tokens))))


def _token_text(token: SqlToken) -> str:
    if token.kind is TokenKind.NAME:
        return quoted_name(token.value)
    if token.kind is TokenKind.TEXT:
        return "'" + token.value.replace("'", "''") + "'"
    return token.text


def _table_names(tokens: Sequence[SqlToken]) -> Iterator[TableName]:
    """Names in the places where statements name tables."""
    for place, token in enumerate(tokens):
        if place and token.is_name and tokens[place - 1].is_word(*_BEFORE_TABLES):
            yield TableName(dotted_at(tokens, place)[0])
