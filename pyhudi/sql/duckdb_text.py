"""A query in Spark's words as DuckDB takes it, by sqlglot; which tables it names.

What Spark's grammar does not know is a statement of DuckDB's own: it goes as it is, but for its quotations.
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

__all__ = ["DuckDbText", "FunctionCall", "Named", "Past", "duckdb_text", "quoted_name"]

_QUERIES = keywords("SELECT WITH FROM VALUES TABLE INSERT CREATE (")
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


@dataclass(frozen=True, slots=True)
class DuckDbText:
    """A statement for DuckDB. `names`: those of tables in it, and of some that are none."""

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
    Raises: ConfigError for a moment or an argument that is no constant, and for what DuckDB has no counterpart of.
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
    names = dict.fromkeys(name for table in _tables(tree) if (name := _ready(table, functions, name_of)) is not None)
    try:
        return DuckDbText(with_deep_stack(lambda: _translated(tree)), tuple(names))
    except RecursionError:
        raise ConfigError("SQL: the query has too many terms in one expression.") from None


def _translated(tree: exp.Expr) -> str:
    from sqlglot.errors import UnsupportedError

    from pyhudi.sql.duckdb_functions import duckdb_query

    _name_columns(tree)
    try:
        return duckdb_query(tree)
    except (UnsupportedError, ValueError) as error:
        raise ConfigError(f"DuckDB has no counterpart of this: {error}") from None


def _name_columns(tree: exp.Expr) -> None:
    """Columns without a name get the one that Spark gives them, near enough: DuckDB's would be in its own words."""
    from sqlglot import exp

    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return
    for column in list(tree.expressions):
        is_computed = isinstance(column, exp.Func | exp.Binary | exp.Literal | exp.Case | exp.Unary | exp.Predicate)
        if is_computed and not isinstance(column, exp.UDTF | exp.Explode | exp.Inline | exp.Dot):
            column.replace(exp.alias_(column.copy(), _column_name(column), quoted=True))


def _column_name(column: exp.Expr) -> str:
    from sqlglot import exp

    if isinstance(column, exp.Literal):
        return column.name
    text = column.sql("spark", normalize_functions="lower", comments=False).replace("count(*)", "count(1)")
    return f"({text})" if isinstance(column, exp.Binary) else text


def _tables(tree: exp.Expr) -> list[exp.Table]:
    from sqlglot import exp

    return list(tree.find_all(exp.Table))


def _ready(table: exp.Table, functions: Sequence[str], name_of: Callable[[Part], str]) -> TableName | None:
    """Give a table of a query its name in DuckDB; the name when it is one that a session may know."""
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
        _replace(table, name_of(Past(name, str(_constant(version.expression)))))
        return None
    if name.path is not None:
        _replace(table, name_of(Named(name)))
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
        pieces += [text[at : token.start], _spelled(token)]
        at = token.end
    return DuckDbText("".join([*pieces, text[at:]]), tuple(dict.fromkeys(_spoken_names(tokens))))


def _spelled(token: SqlToken) -> str:
    if token.kind is TokenKind.NAME:
        return quoted_name(token.value)
    if token.kind is TokenKind.TEXT:
        return "'" + token.value.replace("'", "''") + "'"
    return token.text


def _spoken_names(tokens: Sequence[SqlToken]) -> Iterator[TableName]:
    """Names in the places where statements name tables."""
    for place, token in enumerate(tokens):
        if place and token.is_name and tokens[place - 1].is_word(*_BEFORE_TABLES):
            yield TableName(dotted_at(tokens, place)[0])
