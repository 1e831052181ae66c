"""Statements of a session, written for DuckDB: Spark SQL queries as DuckDB's text, with the tables that they name.

A statement that is no query is DuckDB's own. Only its quotes change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.duckdb import quoted_name
from pyhudi.expressions.query import duckdb_query
from pyhudi.expressions.where_text import negative, number_of
from pyhudi.model.sql_text import MisreadSql, call_name, query_of, with_deep_stack
from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import Constant, SqlToken, TokenKind, dotted_at, keywords, tokens_of

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["DuckDbText", "FunctionCall", "PathTable", "TimeTravel", "duckdb_text"]

_QUERIES = keywords("SELECT WITH FROM VALUES TABLE INSERT CREATE (")
_IN_QUERIES = frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
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
    """A call of a table function. Arguments are constants; an unquoted name is a text."""

    function: str
    arguments: tuple[Constant, ...]


# A part of a query that DuckDB can't read itself: its rows are registered under a name.
Part = PathTable | TimeTravel | FunctionCall


@dataclass(frozen=True, slots=True)
class DuckDbText:
    """A statement for DuckDB. `names`: names in the positions of tables; some may not be Hudi tables."""

    text: str
    names: tuple[TableName, ...]


def duckdb_text(
    text: str,
    functions: Sequence[str],
    name_of: Callable[[Part], str],
    columns_of: Callable[[TableName | str], tuple[str, pa.Schema]],
    dialect: str = "spark",
) -> DuckDbText:
    """Write a statement for DuckDB.

    Args:
        functions: names of our table functions, in lower case.
        name_of: registers the rows of a part and returns their name in DuckDB.
        columns_of: returns DuckDB's text for a table, or for the rows of a text, and its columns.
        dialect: "spark", or "duckdb" for a text in DuckDB's own words.
    Raises: ConfigError for a query that is not known to mean what Spark says.
    """
    if dialect not in ("spark", "duckdb"):
        raise ConfigError(f"dialect is {dialect!r}; expected 'spark' or 'duckdb'.")
    words = [token.text.upper() for token in tokens_of(text)]
    has_query = words[:1] != ["CREATE"] or not _IN_QUERIES.isdisjoint(words)
    if dialect == "duckdb" or not words or words[0] not in _QUERIES or not has_query:
        return _own_statement(text)
    try:
        tree = query_of(text, calls_by_name=True)
    except MisreadSql as error:
        raise ConfigError(f"SQL: {error.what}.") from None
    if tree is None:
        raise ConfigError("SQL: the text is outside of Spark's grammar. For DuckDB's own words say dialect='duckdb'.")
    tables = _Tables(functions, name_of, columns_of)
    try:
        return DuckDbText(with_deep_stack(lambda: _translation(tree, tables)), ())
    except RecursionError:
        raise ConfigError("SQL: the query has too many terms in one expression.") from None
    except ConfigError as error:
        if type(error) is not ConfigError or "dialect=" in str(error):
            raise
        raise ConfigError(f"SQL: {error} For DuckDB's own words say dialect='duckdb'.") from error


def _translation(tree: exp.Expr, tables: _Tables) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Create | exp.Insert):
        return duckdb_query(tree, tables)[0]
    query = tree.args.get("expression")
    if query is not None:
        tree.set("expression", exp.Var(this=duckdb_query(query, tables)[0]))
    text: str = tree.sql("duckdb")
    return text.replace("\1", "")


@dataclass(frozen=True, slots=True)
class _Tables:
    """Finds the tables of a query: Hudi's by name, path and time travel, our functions, and DuckDB's own tables."""

    functions: Sequence[str]
    name_of: Callable[[Part], str]
    columns_of: Callable[[TableName | str], tuple[str, pa.Schema]]

    def __call__(self, table: exp.Table) -> tuple[str, pa.Schema]:
        """DuckDB's text for the table, and its columns."""
        from sqlglot import exp

        if isinstance(table.this, exp.Anonymous):
            function = call_name(table.this)
            if function not in self.functions:
                text: str = table.this.sql("duckdb")
                return self.columns_of(text.replace("\1", ""))
            arguments = tuple(_constant(argument) for argument in table.this.expressions)
            return self.columns_of(quoted_name(self.name_of(FunctionCall(function, arguments))))
        name = TableName(tuple(part.name for part in table.parts))
        version = table.args.get("version")
        if version is not None:
            return self.columns_of(quoted_name(self.name_of(TimeTravel(name, str(_constant(version.expression))))))
        return self.columns_of(name if name.path is None else quoted_name(self.name_of(PathTable(name))))


def _constant(node: exp.Expr) -> Constant:
    """The value of a constant, or the text of a name."""
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
    """The names in the positions where statements name tables."""
    for place, token in enumerate(tokens):
        if place and token.is_name and tokens[place - 1].is_word(*_BEFORE_TABLES):
            yield TableName(dotted_at(tokens, place)[0])
