"""Writes a query's clauses for DuckDB, from the inside out.

Each query results in its text, and in its result columns with Spark's types. A clause that is not known to mean the
same is refused by name.

Source: Spark's SQL reference, "SELECT"; DuckDB's documentation, "SELECT".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.calls import shown
from pyhudi.expressions.casts import cast
from pyhudi.expressions.duckdb import duckdb_expression, quoted_name
from pyhudi.expressions.functions import GENERATORS
from pyhudi.expressions.functions.conditions import condition
from pyhudi.expressions.functions.registry import is_ordered_alike, same_type
from pyhudi.expressions.query.reader import QueryReader
from pyhudi.expressions.query.scope import QueryScope, QuerySource
from pyhudi.expressions.query.sources import Result, SourceWriter, Tables, names_of, renamed
from pyhudi.expressions.tree import Expression, Verbatim
from pyhudi.expressions.types import common_type, is_interval, name_of
from pyhudi.model.sql_text import call_name

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["duckdb_query"]

_CLAUSES = frozenset(
    [
        "with_",
        "expressions",
        "from_",
        "joins",
        "laterals",
        "where",
        "group",
        "having",
        "qualify",
        "order",
        "sort",
        "cluster",
        "distribute",
        "distinct",
        "limit",
        "offset",
        "hint",
        "kind",
    ]
)
_NO_ROW_LIMIT = "ALL"


def duckdb_query(tree: exp.Expr, tables: Tables) -> Result:
    """Write a query for DuckDB; return its text, and its result columns with Spark's types.

    Raises: ConfigError for a query that is not known to mean the same.
    """
    text, schema = _Writer(tables).query(tree, None)
    for one in schema:
        if is_interval(one.type):
            raise ConfigError(f"the column {one.name} is an {name_of(one.type)}, which needs Spark as a result.")
    return text, schema


class _Writer(SourceWriter):
    """Writes queries, from the inside out."""

    def query(self, node: exp.Expr, outer: QueryScope | None) -> Result:
        """Write a query; return its text and its columns."""
        from sqlglot import exp

        before = dict(self._ctes)
        try:
            begin = self._with(node, outer)
            match node:
                case exp.Select():
                    text, schema = self._select(node, outer)
                case exp.SetOperation():
                    text, schema = self._set_operation(node, outer)
                case exp.Subquery():
                    text, schema = self._brackets(node, outer)
                case exp.Values():
                    text, schema = self._values(node, outer)
                case _:
                    raise ConfigError(f"{shown(node)} is no query that is known without Spark.")
            return f"{begin}{text}", schema
        finally:
            self._ctes = before

    # ---- WITH, brackets, sets, values

    def _with(self, node: exp.Expr, outer: QueryScope | None) -> str:
        clause = node.args.get("with_")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise ConfigError("WITH RECURSIVE needs Spark.")
        parts = []
        for cte in clause.expressions:
            text, schema = self.query(cte.this, outer)
            names = [column.name for column in cte.args["alias"].args.get("columns") or []]
            schema = renamed(schema, names)
            alias = f"{cte.alias}__{next(self._numbers)}"
            parts.append(f"{quoted_name(alias)}({names_of(schema)}) AS ({text})")
            self._ctes[cte.alias.lower()] = QuerySource(alias, (cte.alias.lower(),), schema)
        return f"WITH {', '.join(parts)} "

    def _brackets(self, node: exp.Subquery, outer: QueryScope | None) -> Result:
        text, schema = self.query(node.this, outer)
        tail = self._end(node, QueryScope(outer), schema)
        return (f"SELECT * FROM ({text}){tail}" if tail else text), schema

    def _set_operation(self, node: exp.SetOperation, outer: QueryScope | None) -> Result:
        if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
            raise ConfigError(f"{type(node).__name__.upper()} BY NAME needs Spark.")
        sides = [self.query(side, outer) for side in (node.this, node.expression)]
        (_, left), (_, right) = sides
        if len(left) != len(right):
            raise ConfigError(f"{type(node).__name__.upper()} of {len(left)} and {len(right)} columns.")
        kinds = []
        for one, other in zip(left, right, strict=True):
            kind = common_type([one.type, other.type])
            if kind is None or (pa.types.is_map(kind) and node.args.get("distinct")):
                raise ConfigError(
                    f"the column {one.name} is {name_of(one.type)} on one side, {name_of(other.type)} on the other."
                )
            kinds.append(kind)
        schema = pa.schema(list(zip(left.names, kinds, strict=True)))
        word = type(node).__name__.upper() + ("" if node.args.get("distinct") else " ALL")
        text = f" {word} ".join(f"({self._as_types(side, schema)})" for side in sides)
        scope = QueryScope(outer, [QuerySource("q", ("q",), schema)])
        tail = self._end(node, scope, schema)
        return f"SELECT * FROM ({text}) AS q({names_of(schema)}){tail}", schema

    def _as_types(self, side: Result, schema: pa.Schema) -> str:
        text, columns = side
        if columns.types == schema.types:
            return text
        numbers = [f"c{at}" for at in range(len(columns))]
        values = [
            f"{duckdb_expression(cast(Verbatim(f'q.{number}', one.type), of.type))} AS {quoted_name(of.name)}"
            for number, one, of in zip(numbers, columns, schema, strict=True)
        ]
        return f"SELECT {', '.join(values)} FROM ({text}) AS q({', '.join(numbers)})"

    def _values(self, node: exp.Values, outer: QueryScope | None) -> Result:
        from sqlglot import exp

        reader = QueryReader(QueryScope(outer), self.subquery)
        rows = [
            [reader.read(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in node.expressions
        ]
        if len({len(row) for row in rows}) != 1:
            raise ConfigError("VALUES whose rows have different numbers of columns.")
        columns = [same_type("VALUES", cells) for cells in zip(*rows, strict=True)]
        schema = pa.schema([(f"col{at}", kind) for at, (_, kind) in enumerate(columns, 1)])
        cells = zip(*(values for values, _ in columns), strict=True)
        text = ", ".join(f"({', '.join(map(duckdb_expression, row))})" for row in cells)
        return f"SELECT * FROM (VALUES {text}) AS v({names_of(schema)})", schema

    # ---- SELECT

    def _select(self, node: exp.Select, outer: QueryScope | None) -> Result:
        unsupported = [name for name, value in node.args.items() if value and name not in _CLAUSES]
        if unsupported:
            raise ConfigError(f"the clause {unsupported[0].strip('_').upper()} of a query needs Spark.")
        scope = QueryScope(outer)
        sources = self._from(node, scope)
        columns, generator = self._columns(node, scope)
        sources += generator
        scope.aliases = {}
        where = ""
        if node.args.get("where") is not None:
            reader = QueryReader(scope, self.subquery, filters=True)
            where = f" WHERE {duckdb_expression(condition('WHERE', reader.read(node.args['where'].this)))}"
        scope.aliases = {name.lower(): value for name, value in columns}
        group = self._group(node, scope, columns)
        having = self._filter(node, "having", scope) + self._filter(node, "qualify", scope)
        schema = pa.schema([(name, value.type) for name, value in columns])
        distinct = ""
        if node.args.get("distinct") is not None:
            if node.args["distinct"].args.get("on") is not None or any(map(pa.types.is_map, schema.types)):
                raise ConfigError("DISTINCT ON, and DISTINCT of maps, need Spark.")
            distinct = "DISTINCT "
        select_list = ", ".join(f"{duckdb_expression(value)} AS {quoted_name(name)}" for name, value in columns)
        scope.aliases_first = True
        tail = self._end(node, scope, schema)
        return f"SELECT {distinct}{select_list}{sources}{where}{group}{having}{tail}", schema

    def _columns(self, node: exp.Select, scope: QueryScope) -> tuple[list[tuple[str, Expression]], str]:
        """The names and values of the result columns, and the text of a generator among them as a further source."""
        from sqlglot import exp

        reader = QueryReader(scope, self.subquery, aggregates=True)
        columns: list[tuple[str, Expression]] = []
        generator = ""
        for one in node.expressions:
            value = one.this if isinstance(one, exp.Alias | exp.Aliases) else one
            if isinstance(value, exp.Star):
                columns += self._star(value, scope, ())
            elif isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
                columns += self._star(value.this, scope, [part.name for part in value.parts[:-1]])
            elif isinstance(value, exp.Anonymous) and call_name(value) in GENERATORS:
                if generator:
                    raise ConfigError("two generators in one SELECT are refused by Spark.")
                names = (
                    [name.name for name in one.args.get("expressions") or []] if isinstance(one, exp.Aliases) else []
                )
                names = [one.alias] if isinstance(one, exp.Alias) else names
                source, generator = self._generator(value, scope, names, None)
                columns += [
                    (part.name, Verbatim(f"{quoted_name(source.alias)}.{quoted_name(part.name)}", part.type))
                    for part in source.schema
                ]
            else:
                name = one.alias if isinstance(one, exp.Alias) else _column_name(one)
                columns.append((name, reader.read(value)))
                scope.aliases[name.lower()] = columns[-1][1]  # later columns may refer to it
        if not columns:
            raise ConfigError("a query without columns.")
        return columns, generator

    def _star(self, star: exp.Star, scope: QueryScope, qualifier: Sequence[str]) -> list[tuple[str, Expression]]:
        if star.args.get("replace") or star.args.get("rename"):
            raise ConfigError("* REPLACE needs Spark.")
        left_out = {name.name.lower() for name in star.args.get("except_") or star.args.get("except") or []}
        columns = scope.star(qualifier)
        unknown = left_out - {name.lower() for name, _ in columns}
        if unknown:
            raise ConfigError(f"* EXCEPT names {', '.join(sorted(unknown))}, which is no column.")
        return [(name, value) for name, value in columns if name.lower() not in left_out]

    def _filter(self, node: exp.Select, clause: str, scope: QueryScope) -> str:
        part = node.args.get(clause)
        if part is None:
            return ""
        reader = QueryReader(scope, self.subquery, aggregates=True, filters=True)
        return f" {clause.upper()} {duckdb_expression(condition(clause.upper(), reader.read(part.this)))}"

    def _group(self, node: exp.Select, scope: QueryScope, columns: Sequence[tuple[str, Expression]]) -> str:
        from sqlglot import exp

        group = node.args.get("group")
        if group is None:
            return ""
        if group.args.get("all"):
            return " GROUP BY ALL"
        reader = QueryReader(scope, self.subquery)

        def text(part: exp.Expr) -> str:
            if isinstance(part, exp.Literal) and not part.is_string:
                place = int(part.name) if part.name.isdigit() else 0
                if not 1 <= place <= len(columns):
                    raise ConfigError(f"GROUP BY {part.name}: there are {len(columns)} columns.")
                return duckdb_expression(columns[place - 1][1])
            if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets):
                word = {"Rollup": "ROLLUP", "Cube": "CUBE"}.get(type(part).__name__, "GROUPING SETS")
                return f"{word} ({', '.join(map(text, part.expressions))})"
            if isinstance(part, exp.Tuple):
                return f"({', '.join(map(text, part.expressions))})"
            if isinstance(part, exp.Paren):
                return f"({text(part.this)})"
            value = reader.read(part)
            if pa.types.is_map(value.type):
                raise ConfigError("GROUP BY of a map is refused by Spark.")
            return duckdb_expression(value)

        parts = ", ".join(map(text, group.expressions))
        for word in ("rollup", "cube"):
            sets = group.args.get(word)
            if sets:
                inner = [text(one) for whole in sets for one in whole.expressions]
                parts = f"{word.upper()} ({', '.join(inner) or parts})"
        sets = group.args.get("grouping_sets")
        if sets:
            parts = ", ".join(map(text, sets))
        return f" GROUP BY {parts}"

    def _end(self, node: exp.Expr, scope: QueryScope, schema: pa.Schema) -> str:
        """Write ORDER BY, LIMIT and OFFSET. SORT BY and CLUSTER BY sort a partition; here the result is one."""
        from sqlglot import exp

        text = ""
        order = node.args.get("order") or node.args.get("sort") or node.args.get("cluster")
        if order is not None:
            reader = QueryReader(scope, self.subquery, aggregates=True)
            text = f" ORDER BY {', '.join(self._ordered(one, reader, schema) for one in order.expressions)}"
        limit = node.args.get("limit")
        if limit is not None and limit.expression.name != _NO_ROW_LIMIT:
            text += f" LIMIT {_row_count(limit.expression)}"
        offset = node.args.get("offset")
        if isinstance(offset, exp.Offset):
            text += f" OFFSET {_row_count(offset.expression)}"
        return text

    def _ordered(self, node: exp.Expr, reader: QueryReader, schema: pa.Schema) -> str:
        from sqlglot import exp

        ordered = node if isinstance(node, exp.Ordered) else exp.Ordered(this=node, nulls_first=True)
        value = ordered.this
        way = "DESC" if ordered.args.get("desc") else "ASC"
        end = f"{way} NULLS {'FIRST' if ordered.args.get('nulls_first') else 'LAST'}"
        if isinstance(value, exp.Var) and value.name.upper() == "ALL":
            if not all(map(is_ordered_alike, schema.types)):
                raise ConfigError("ORDER BY ALL of nested values needs Spark.")
            return f"ALL {end}"
        if isinstance(value, exp.Literal) and not value.is_string:
            place = int(value.name) if value.name.isdigit() else 0
            if not 1 <= place <= len(schema) or not is_ordered_alike(schema.types[place - 1]):
                raise ConfigError(f"ORDER BY {value.name} needs Spark, or there is no such column.")
            return f"{place} {end}"
        return reader.ordered(ordered)


def _row_count(node: exp.Expr) -> int:
    if not node.name.isdigit():
        raise ConfigError(f"LIMIT and OFFSET take a constant whole number, found {shown(node)}.")
    return int(node.name)


def _column_name(column: exp.Expr) -> str:
    """A name close to Spark's for a computed column."""
    from sqlglot import exp

    if isinstance(column, exp.Column | exp.Dot | exp.Bracket | exp.Literal):
        return column.name or shown(column)
    text = column.sql("spark", normalize_functions=False, comments=False).replace("\1", "")
    text = text.replace("count(*)", "count(1)").replace("COUNT(*)", "count(1)")
    return f"({text})" if isinstance(column, exp.Binary) else text
