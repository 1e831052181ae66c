"""The sources of a query after FROM: tables, subqueries, joins and the rows of generators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.calls import shown
from pyhudi.expressions.duckdb import duckdb_expression, quoted_name
from pyhudi.expressions.functions import GENERATORS
from pyhudi.expressions.functions.conditions import condition
from pyhudi.expressions.query.generators import generated_rows
from pyhudi.expressions.query.reader import QueryReader
from pyhudi.expressions.query.scope import QueryScope, QuerySource
from pyhudi.expressions.tree import TypedLiteral
from pyhudi.model.sql_text import call_name

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Result", "SourceWriter", "Tables", "names_of", "renamed"]

# Finds a table that a query names: its text in DuckDB, and its columns. Raises ConfigError.
Tables = Callable[["exp.Table"], "tuple[str, pa.Schema]"]
Result = tuple[str, pa.Schema]


class SourceWriter(ABC):
    """Writes FROM. `tables`: finds the tables that the query names."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._ctes: dict[str, QuerySource] = {}
        self._numbers = count(1)

    @abstractmethod
    def query(self, node: exp.Expr, outer: QueryScope | None) -> Result:
        """Write a query; return its text and its columns."""

    def subquery(self, node: exp.Expr, scope: QueryScope) -> Result:
        """Write a query inside an expression; it sees the columns around it."""
        return self.query(node, scope)

    def _from(self, node: exp.Select, scope: QueryScope) -> str:
        clause = node.args.get("from_")
        if clause is None:
            if node.args.get("joins") or node.args.get("laterals"):
                raise ConfigError("a query with a join and without FROM.")
            return ""
        text = f" FROM {self._source(clause.this, scope)}"
        for join in node.args.get("joins") or []:
            text += self._join(join, scope)
        for lateral in node.args.get("laterals") or []:
            text += self._lateral(lateral, scope)
        return text

    def _join(self, join: exp.Join, scope: QueryScope) -> str:
        from sqlglot import exp

        side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
        if isinstance(join.this, exp.Lateral):
            return self._lateral(join.this, scope)
        if method not in ("", "NATURAL") or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"):
            raise ConfigError(f"{method} {kind} JOIN needs Spark.")
        before = list(scope.sources)
        text = self._source(join.this, scope)
        right = scope.sources[-1]
        names = [name.name for name in join.args.get("using") or []]
        if method == "NATURAL":
            left_names = {name.lower() for source in before for name in source.schema.names}
            names = [name for name in right.schema.names if name.lower() in left_names]
        word = "CROSS" if kind == "CROSS" else " ".join(part for part in (side, kind) if part not in ("INNER", "OUTER"))
        word = kind if kind in ("SEMI", "ANTI") else word
        on = ""
        if names:
            scope.sources.pop()
            scope.merge(names, right, side)
            scope.sources.append(right)
            on = f" USING ({', '.join(quoted_name(name) for name in names)})"
        elif join.args.get("on") is not None:
            reader = QueryReader(scope, self.subquery, filters=True)
            on = f" ON {duckdb_expression(condition('ON', reader.read(join.args['on'])))}"
        elif word != "CROSS":
            word, on = (word or "INNER"), " ON true"
        if kind in ("SEMI", "ANTI"):
            scope.sources.pop()
        return f" {word} JOIN {text}{on}" if word else f" JOIN {text}{on}"

    def _source(self, node: exp.Expr, scope: QueryScope) -> str:
        """Write a table, a subquery or VALUES in FROM, and add it to the scope's sources."""
        from sqlglot import exp

        if node.args.get("sample") or node.args.get("pivots"):
            raise ConfigError("TABLESAMPLE and PIVOT need Spark.")
        alias = node.args.get("alias")
        name = alias.name if alias is not None else ""
        columns = [column.name for column in (alias.args.get("columns") if alias is not None else None) or []]
        inside = node.args.get("joins") or node.args.get("laterals")
        if inside:
            raise ConfigError("joins in brackets need Spark.")
        if isinstance(node, exp.Table):
            text, schema, qualifier = self._table(node)
            qualifier = (name.lower(),) if name else qualifier
        elif isinstance(node, exp.Subquery | exp.Values):
            inner, schema = self.query(node.this if isinstance(node, exp.Subquery) else node, scope.outer)
            text, qualifier = f"({inner})", (name.lower(),)
        else:
            raise ConfigError(f"{shown(node)} after FROM needs Spark.")
        schema = renamed(schema, columns)
        own = f"{name or qualifier[-1] or 'q'}__{next(self._numbers)}"
        scope.sources.append(QuerySource(own, qualifier, schema))
        return f"{text} AS {quoted_name(own)}({names_of(schema)})"

    def _table(self, node: exp.Table) -> tuple[str, pa.Schema, tuple[str, ...]]:
        from sqlglot import exp

        if isinstance(node.this, exp.Anonymous) and call_name(node.this) == "range":
            return (*self._range(node.this), ("range",))
        parts = [part.name for part in node.parts] if not isinstance(node.this, exp.Anonymous) else []
        cte = self._ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            return quoted_name(cte.alias), cte.schema, cte.qualifier
        text, schema = self._tables(node)
        return text, schema, tuple(part.lower() for part in parts) or ("",)

    def _range(self, node: exp.Anonymous) -> Result:
        reader = QueryReader(QueryScope(), self.subquery)
        values = [reader.read(argument) for argument in node.expressions]
        if not 1 <= len(values) <= 3 or not all(
            isinstance(value, TypedLiteral) and isinstance(value.value, int) for value in values
        ):
            raise ConfigError("range without Spark takes 1 to 3 constant whole numbers.")
        numbers = ", ".join(str(value.value) for value in values if isinstance(value, TypedLiteral))
        return f"(SELECT CAST(range AS BIGINT) FROM range({numbers}))", pa.schema([("id", pa.int64())])

    def _lateral(self, node: exp.Lateral, scope: QueryScope) -> str:
        from sqlglot import exp

        if not isinstance(node.this, exp.Anonymous) or call_name(node.this) not in GENERATORS:
            raise ConfigError(f"LATERAL {shown(node.this)} needs Spark.")
        alias = node.args.get("alias")
        columns = [column.name for column in (alias.args.get("columns") if alias is not None else None) or []]
        name = alias.name if alias is not None else ""
        source, text = self._generator(node.this, scope, columns, bool(node.args.get("outer")))
        scope.sources.append(QuerySource(source.alias, (name.lower(),), source.schema))
        return text

    def _generator(
        self, node: exp.Anonymous, scope: QueryScope, names: Sequence[str], outer: bool | None
    ) -> tuple[QuerySource, str]:
        """Write the rows of explode and other generators as a join of each row with the rows made from it."""
        name = call_name(node)
        reader = QueryReader(scope, self.subquery)
        if len(node.expressions) != 1:
            raise ConfigError(f"{name} takes 1 argument, found {len(node.expressions)}.")
        text, schema = generated_rows(name, reader.read(node.expressions[0]))
        schema = renamed(schema, names)
        alias = f"rows__{next(self._numbers)}"
        word = "LEFT JOIN" if outer or name.endswith("_outer") else "JOIN"
        join = f" {word} LATERAL ({text}) AS {quoted_name(alias)}({names_of(schema)}) ON true"
        if not scope.sources:
            join = f" FROM (SELECT 1){join}"
        return QuerySource(alias, (alias,), schema), join


def renamed(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Rename the columns if there are names. Raises ConfigError."""
    if not names:
        return schema
    if len(names) != len(schema):
        raise ConfigError(f"{len(names)} names for {len(schema)} columns: {', '.join(names)}.")
    return pa.schema(list(zip(names, schema.types, strict=True)))


def names_of(schema: pa.Schema) -> str:
    """The column names as a list in DuckDB's text."""
    return ", ".join(quoted_name(name) for name in schema.names)
