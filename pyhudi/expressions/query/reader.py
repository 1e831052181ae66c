"""Expressions of a query, which may also have aggregates, windows and subqueries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast
from pyhudi.expressions.duckdb import duckdb_expression
from pyhudi.expressions.functions import AGGREGATES, WINDOWS
from pyhudi.expressions.functions.aggregates import distinct, over, without_nulls
from pyhudi.expressions.functions.conditions import condition
from pyhudi.expressions.functions.registry import call, is_ordered_alike
from pyhudi.expressions.query.scope import QueryScope
from pyhudi.expressions.text import ExpressionReader
from pyhudi.expressions.tree import Expression, TypedLiteral, Verbatim
from pyhudi.expressions.types import BOOLEAN, INT, common_type, name_of

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["QueryReader", "Subquery"]

# Reads a query in an expression: its DuckDB text and its columns.
Subquery = Callable[["exp.Expr", QueryScope], "tuple[str, pa.Schema]"]


class QueryReader(ExpressionReader):
    """Reads expressions in a scope.

    `aggregates`: aggregates are allowed here. `filters`: this is a WHERE, HAVING or ON, which allow IN (SELECT …).
    """

    def __init__(
        self, scope: QueryScope, subquery: Subquery, *, aggregates: bool = False, filters: bool = False
    ) -> None:
        super().__init__(scope.resolve)
        self._scope, self._subquery = scope, subquery
        self._aggregates, self._filters = aggregates, filters

    def special_function(self, name: str, node: exp.Anonymous) -> Expression | None:
        """Read an aggregate; None for another function. Raises ConfigError if aggregates are not allowed here."""
        from sqlglot import exp

        if name == "count" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
            self._check_aggregate(name)
            return call("count", "count(*){w}", pa.int64(), kind="aggregate")
        if name not in AGGREGATES and name not in WINDOWS:
            return None
        self._check_aggregate(name)
        arguments = node.expressions
        is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        values = [self.read(value) for value in (arguments[0].expressions if is_distinct else arguments)]
        aggregate = {**AGGREGATES, **WINDOWS}[name](name, values)
        return distinct(aggregate) if is_distinct else aggregate

    def _check_aggregate(self, name: str) -> None:
        if not self._aggregates:
            raise ConfigError(f"{name} is an aggregate, which can't stand here.")

    def other(self, node: exp.Expr) -> Expression:
        """Read a window, a filtered aggregate or a subquery. Raises ConfigError."""
        from sqlglot import exp

        match node:
            case exp.Window():
                return self._window(node)
            case exp.Filter():
                when = condition("FILTER", self.read(node.expression.this))
                return over(self.read(node.this), f"FILTER (WHERE {duckdb_expression(when)})")
            case exp.IgnoreNulls():
                return without_nulls(self.read(node.this))
            case exp.RespectNulls():
                return self.read(node.this)
            case exp.WithinGroup():
                return self._within_group(node)
            case exp.Subquery():
                return self._scalar(node.this)
            case exp.Exists():
                text, _ = self._subquery(node.this, self._scope)
                return Verbatim(f"EXISTS ({text})", BOOLEAN)
            case exp.In():
                return self._in_query(node)
        return super().other(node)

    def _scalar(self, query: exp.Expr) -> Expression:
        text, schema = self._subquery(query, self._scope)
        if len(schema) != 1:
            raise ConfigError(f"a subquery as a value has one column, found {len(schema)}.")
        return Verbatim(f"({text})", schema.field(0).type)

    def _in_query(self, node: exp.In) -> Expression:
        """Read value IN (SELECT …). It is refused in a SELECT list, where Spark returns false instead of SQL's NULL."""
        if not self._filters:
            raise ConfigError("IN (SELECT …) outside of WHERE, HAVING and ON needs Spark.")
        value = self.read(node.this)
        query = node.args["query"]
        text, schema = self._subquery(getattr(query, "this", query), self._scope)
        kind = common_type([value.type, *schema.types]) if len(schema) == 1 else None
        if kind is None:
            raise ConfigError(f"IN (SELECT …): {name_of(value.type)} is not compared with {len(schema)} columns.")
        column = cast(Verbatim('q."c"', schema.field(0).type), kind)
        text = f'SELECT {duckdb_expression(column)} FROM ({text}) q("c")'
        answer = Verbatim(f"({duckdb_expression(cast(value, kind))} IN ({text}))", BOOLEAN)
        return self._function("not", [answer]) if node.args.get("negate") else answer

    def _within_group(self, node: exp.WithinGroup) -> Expression:
        from sqlglot import exp

        ordered = node.expression.expressions
        if not isinstance(node.this, exp.Anonymous) or len(ordered) != 1 or ordered[0].args.get("desc"):
            raise ConfigError("WITHIN GROUP by other than one ascending value needs Spark.")
        function = node.this.copy()
        function.append("expressions", ordered[0].this.copy())
        return self.read(function)

    def _window(self, node: exp.Window) -> Expression:
        from sqlglot import exp

        if node.args.get("alias") is not None or isinstance(node.this, exp.Identifier):
            raise ConfigError("a window by its name needs Spark; write it after OVER.")
        inner = self.read(node.this)
        parts = []
        partition = node.args.get("partition_by") or []
        if partition:
            parts.append("PARTITION BY " + ", ".join(duckdb_expression(self.read(one)) for one in partition))
        order = node.args.get("order")
        if order is not None:
            parts.append("ORDER BY " + ", ".join(self.ordered(one) for one in order.expressions))
        spec = node.args.get("spec")
        if spec is not None:
            parts.append(self._frame(spec))
        return over(inner, f"OVER ({' '.join(parts)})")

    def _frame(self, spec: exp.WindowSpec) -> str:
        kind = str(spec.args.get("kind") or "").upper()
        if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
            raise ConfigError("this frame of a window needs Spark.")
        sides = [
            self._frame_side(spec.args.get(side), spec.args.get(f"{side}_side"), kind) for side in ("start", "end")
        ]
        return f"{kind} BETWEEN {sides[0]} AND {sides[1] or 'CURRENT ROW'}"

    def _frame_side(self, value: object, side: object, kind: str) -> str:
        if value is None:
            return ""
        word = f" {side}".upper() if side else ""
        if isinstance(value, str):
            return f"{value.upper()}{word}"
        number = self.read(value)  # type: ignore[arg-type]
        if kind != "ROWS" or not isinstance(number, TypedLiteral) or number.type != INT or int(str(number.value)) < 0:
            raise ConfigError("a window's frame takes constant numbers of rows without Spark.")
        return f"{number.value}{word}"

    def ordered(self, node: exp.Ordered) -> str:
        """DuckDB's text for one value of an ORDER BY. Raises ConfigError."""
        value = self.read(node.this)
        if not is_ordered_alike(value.type):
            raise ConfigError(f"ORDER BY of {name_of(value.type)} needs Spark.")
        first = bool(node.args.get("nulls_first"))
        way = "DESC" if node.args.get("desc") else "ASC"
        return f"{duckdb_expression(value)} {way} NULLS {'FIRST' if first else 'LAST'}"
