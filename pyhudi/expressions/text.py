"""Reading Spark SQL into the typed tree: sqlglot parses it; names get their columns and functions their rows here.

Source: Spark's SQL reference, "Literals", "Operators", "Functions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.calls import CallReader, shown
from pyhudi.expressions.casts import cast
from pyhudi.expressions.functions.conditions import case, compared, condition, is_in
from pyhudi.expressions.functions.nested import field_of, item_of, struct_of
from pyhudi.expressions.functions.numbers import negated
from pyhudi.expressions.functions.registry import call
from pyhudi.expressions.functions.texts import like
from pyhudi.expressions.functions.times import extracted, interval_of, time_arithmetic
from pyhudi.expressions.tree import Expression, Form, TypedCall, TypedColumn, TypedLiteral
from pyhudi.expressions.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NOTHING,
    STRING,
    fields_named,
    is_integral,
    is_interval,
    name_of,
    read_cast,
    spark_type,
    type_of_text,
)
from pyhudi.model.sql_text import call_name, query_of, with_deep_stack

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["ExpressionReader", "Resolve", "of_schema", "typed_value"]

# Finds a name's column by the parts of the name as written. Raises ConfigError for an unknown name.
Resolve = Callable[[Sequence[str]], Expression]

_SIGNS = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "Mod": "%",
    "IntDiv": "div",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "BitwiseLeftShift": "shiftleft",
    "BitwiseRightShift": "shiftright",
    "DPipe": "||",
    "And": "and",
    "Or": "or",
}
_COMPARISONS = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "<=>",
    "NullSafeNEQ": "IS DISTINCT FROM",
}
# Spark's grammar has no operator after these without brackets.
_PREDICATES = ("In", "Between", "Like", "ILike", "RegexpLike", "Is", "Not")
# sqlglot and Spark give these different precedence, so neighbours need brackets.
_BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseLeftShift", "BitwiseRightShift", "DPipe")
_MIXED = {**dict.fromkeys(_BITS, (*_BITS, "Add", "Sub")), "Add": _BITS, "Sub": _BITS}


def of_schema(schema: pa.Schema) -> Resolve:
    """Return a resolver of names of columns, and of their fields, in a schema. Case matters only if several fit."""

    def resolve(parts: Sequence[str]) -> Expression:
        whole = ".".join(parts)
        if schema.get_field_index(whole) >= 0:
            return column_of_field(schema.field(whole))
        matches = fields_named(schema, parts[0])
        if len(matches) != 1:
            raise ConfigError(f"there is no column {whole}.")
        value: Expression = column_of_field(matches[0])
        for part in parts[1:]:
            value = field_of(value, part)
        return value

    return resolve


def column_of_field(field: pa.Field, source: str | None = None) -> Expression:
    """A column with the type that Spark reads it as."""
    kind = spark_type(field.type)
    if kind is None:  # no function takes it, but a query may pass it on
        return TypedColumn((field.name,), field.type, source)
    column = TypedColumn((field.name,), kind, source)
    text = read_cast(field.type)
    return column if text is None else TypedCall(Form("cast", text), (column,), kind)


def typed_value(text: str, schema: pa.Schema, zone: str = "UTC", now: datetime | None = None) -> Expression:
    """Read a text as a typed expression for rows with these columns.

    Raises: ConfigError for a text that is no expression, or whose meaning in Spark is not known.
    """
    from sqlglot import exp

    query = query_of(f"SELECT {text}\n", calls_by_name=True)
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        raise ConfigError("it is outside of Spark's grammar.")
    tree = query.expressions[0]
    value = with_deep_stack(lambda: ExpressionReader(of_schema(schema), zone, now).read(tree))
    if is_interval(value.type):
        raise ConfigError(f"it is an {name_of(value.type)}, which no column holds.")
    return value


class ExpressionReader(CallReader):
    """Reads trees in one scope of names. `zone`: the session's; `now`: the current time, None: the engine's."""

    def __init__(self, resolve: Resolve, zone: str = "UTC", now: datetime | None = None) -> None:
        super().__init__(zone, now)
        self._resolve = resolve

    def read(self, node: exp.Expr) -> Expression:
        """Convert a tree of sqlglot's. Raises ConfigError for unknown functions, and for types that don't fit."""
        from sqlglot import exp

        name = type(node).__name__
        if name in _COMPARISONS:
            return self._comparison(_COMPARISONS[name], node)
        if name in _SIGNS:
            return self._operator(_SIGNS[name], node)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self._column([part.name for part in node.parts])
            case exp.Identifier():
                return self._column([node.name])
            case exp.Dot():
                return self._dot(node)
            case exp.Literal():
                return TypedLiteral(node.name, STRING) if node.is_string else number_of_text(node.name)
            case exp.RawString():
                return TypedLiteral(node.name, STRING)
            case exp.HexString():
                return TypedLiteral(bytes.fromhex(node.name.rjust(len(node.name) + len(node.name) % 2, "0")), BINARY)
            case exp.Boolean():
                return TypedLiteral(bool(node.this), BOOLEAN)
            case exp.Null():
                return TypedLiteral(None, NOTHING)
            case exp.Neg():
                return self._negative(node.this)
            case exp.Not():
                return self._function("not", [self._term(node.this)])
            case exp.BitwiseNot():
                return self._function("~", [self.read(node.this)])
            case exp.Is():
                return self._is(node)
            case exp.In() if node.args.get("query") is None and node.args.get("unnest") is None:
                return self._negated(node, is_in(self._term(node.this), [self.read(item) for item in node.expressions]))
            case exp.Between():
                return self._between(node)
            case exp.Like() | exp.ILike() | exp.Escape() | exp.RegexpLike():
                return self._pattern(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Interval():
                return self._interval(node)
            case exp.Extract():
                return extracted("extract", node.this.name, self.read(node.expression))
            case exp.Trim() | exp.Substring() | exp.Overlay() | exp.StrPosition():
                return self._special(node)
            case exp.Bracket() if len(node.expressions) == 1:
                return item_of(self.read(node.this), self.read(node.expressions[0]))
            case exp.Concat():
                return self._adjacent(node)
            case exp.Tuple():
                return struct_of(
                    "a tuple", [(f"col{at}", self.read(part)) for at, part in enumerate(node.expressions, 1)]
                )
            case exp.CurrentTimestamp() | exp.CurrentDate():
                return self._function("current_date" if isinstance(node, exp.CurrentDate) else "now", [])
            case exp.Anonymous():
                return self._call(call_name(node), node)
        return self.other(node)

    def other(self, node: exp.Expr) -> Expression:
        """Refuse a node that is no expression of one row's values; a query's reader allows more. Raises ConfigError."""
        raise ConfigError(f"{shown(node)} needs Spark.")

    # ---- names and literals

    def _column(self, parts: Sequence[str]) -> Expression:
        parameter = self._parameters.get(parts[0].lower())
        if parameter is None:
            return self._resolve(parts)
        value: Expression = parameter
        for part in parts[1:]:
            value = field_of(value, part)
        return value

    def _dot(self, node: exp.Dot) -> Expression:
        from sqlglot import exp

        if isinstance(node.expression, exp.Star):
            return self.other(node)
        return field_of(self.read(node.this), node.expression.name)

    def _negative(self, node: exp.Expr) -> Expression:
        from sqlglot import exp

        if isinstance(node, exp.Literal) and not node.is_string:
            return number_of_text(f"-{node.name}")
        value = self.read(node)
        if pa.types.is_duration(value.type):
            return call("negative", "(-{0})", value.type, value)
        return negated("-", [value])

    def _adjacent(self, node: exp.Concat) -> Expression:
        """Join adjacent texts, which are one text in SQL."""
        values = [self.read(part) for part in node.expressions]
        if not all(isinstance(value, TypedLiteral) and isinstance(value.value, str) for value in values):
            raise ConfigError(f"{shown(node)} needs Spark.")
        return TypedLiteral("".join(str(value.value) for value in values if isinstance(value, TypedLiteral)), STRING)

    def _interval(self, node: exp.Interval) -> Expression:
        from sqlglot import exp

        number, unit = node.this, node.args.get("unit")
        is_negative = isinstance(number, exp.Neg)
        number = number.this if is_negative else number
        if not isinstance(number, exp.Literal) or not isinstance(unit, exp.Var):
            raise ConfigError(f"{shown(node)} needs Spark; INTERVAL with one whole number and one unit is known.")
        return interval_of(f"-{number.name}" if is_negative else number.name, unit.name)

    # ---- operators

    def _term(self, node: exp.Expr) -> Expression:
        return self.read(node)

    def _operator(self, sign: str, node: exp.Expr) -> Expression:
        if sign in ("and", "or"):
            return self._logic(sign, node)
        for side in (node.this, node.expression):
            if type(side) is not type(node) and type(side).__name__ in _MIXED.get(type(node).__name__, ()):
                raise ConfigError(f"{shown(node)}: write brackets around one of the two operators.")
        left, right = self._side(node.this), self._side(node.expression)
        if sign in ("+", "-"):
            moved = time_arithmetic(sign, left, right)
            if moved is not None:
                return moved
        return self._function(sign, [left, right])

    def _logic(self, sign: str, node: exp.Expr) -> Expression:
        """Read a chain of AND or OR as a balanced tree: chains can be long, and depth is limited."""
        parts, chain = [], [node]
        while chain:
            part = chain.pop()
            if type(part) is type(node):
                chain += [part.expression, part.this]
            else:
                parts.append(condition(sign.upper(), self.read(part)))
        while len(parts) > 1:
            parts = [
                self._function(sign, parts[at : at + 2]) if at + 1 < len(parts) else parts[at]
                for at in range(0, len(parts), 2)
            ]
        return parts[0]

    def _side(self, node: exp.Expr) -> Expression:
        if type(node).__name__ in _PREDICATES:
            raise ConfigError(f"{shown(node)} stands beside an operator, where Spark wants brackets around it.")
        return self.read(node)

    def _comparison(self, sign: str, node: exp.Expr) -> Expression:
        if any(type(side).__name__ in _COMPARISONS for side in (node.this, node.expression)):
            raise ConfigError(f"{shown(node)}: write brackets around one of the two comparisons.")
        return compared(sign, self._side(node.this), self._side(node.expression))

    def _negated(self, node: exp.Expr, value: Expression) -> Expression:
        return self._function("not", [value]) if node.args.get("negate") else value

    def _is(self, node: exp.Is) -> Expression:
        from sqlglot import exp

        value, what = self._side(node.this), node.expression
        is_negated = isinstance(what, exp.Not)
        what = what.this if is_negated else what
        if isinstance(what, exp.Null):
            answer = self._function("isnull", [value])
        elif isinstance(what, exp.Boolean):
            answer = compared("<=>", condition("IS", value), TypedLiteral(bool(what.this), BOOLEAN))
        else:
            raise ConfigError(f"{shown(node)} needs Spark.")
        return self._function("not", [answer]) if is_negated or node.args.get("negate") else answer

    def _between(self, node: exp.Between) -> Expression:
        value, low, high = self._side(node.this), self._side(node.args["low"]), self._side(node.args["high"])
        both = [compared(">=", value, low), compared("<=", value, high)]
        return self._negated(node, self._function("and", both))

    def _pattern(self, node: exp.Expr) -> Expression:
        from sqlglot import exp

        escape = "\\"
        is_negated = bool(node.args.get("negate"))
        if isinstance(node, exp.Escape):
            escape, node = node.expression.name, node.this
            is_negated = is_negated or bool(node.args.get("negate"))
        value, pattern = self._side(node.this), node.expression
        if isinstance(node, exp.RegexpLike):
            answer = self._function("rlike", [value, self.read(pattern)])
        elif isinstance(pattern, exp.Any | exp.All):
            patterns = pattern.this.unnest()
            parts = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
            if isinstance(patterns, exp.Query):
                raise ConfigError(f"{shown(node)} needs Spark.")
            word = "or" if isinstance(pattern, exp.Any) else "and"
            answers = [self._like(node, value, self.read(part), escape) for part in parts]
            answer = answers[0]
            for other in answers[1:]:
                answer = self._function(word, [answer, other])
        else:
            answer = self._like(node, value, self.read(pattern), escape)
        return self._function("not", [answer]) if is_negated else answer

    def _like(self, node: exp.Expr, value: Expression, pattern: Expression, escape: str) -> Expression:
        from sqlglot import exp

        return like("ilike" if isinstance(node, exp.ILike) else "like", value, pattern, escape)

    def _case(self, node: exp.Case) -> Expression:
        branches = []
        for branch in node.args["ifs"]:
            when = self.read(branch.this)
            if node.this is not None:
                when = compared("=", self.read(node.this), when)
            branches.append((when, self.read(branch.args["true"])))
        default = node.args.get("default")
        return case(branches, None if default is None else self.read(default))

    def _cast(self, node: exp.Cast) -> Expression:
        to = type_of_text(node.to)
        if to is None or node.args.get("format") is not None:
            raise ConfigError(f"{shown(node)}: a cast to {node.to.sql('spark')} needs Spark.")
        value = self.read(node.this)
        if (
            isinstance(value, TypedLiteral)
            and isinstance(value.value, int)
            and is_integral(to)
            and is_integral(value.type)
        ):
            # It may be 5L, whose precision beside a decimal is its digits, or CAST(5 AS BIGINT), whose precision isn't.
            return TypedCall(Form("cast of a constant", "{0}", "cast"), (cast(value, to),), to)
        return cast(value, to, tries=bool(node.args.get("safe")))


def number_of_text(text: str) -> TypedLiteral:
    """Read a number with Spark's type: INT, BIGINT or DECIMAL by its digits, DOUBLE with an exponent."""
    if "e" in text.lower():
        return TypedLiteral(float(text), DOUBLE)
    exact = Decimal(text)
    if "." not in text:
        whole = int(exact)
        for kind in (INT, LONG):
            if -(2 ** (kind.bit_width - 1)) <= whole < 2 ** (kind.bit_width - 1):
                return TypedLiteral(whole, kind)
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    scale = -exponent
    precision = max(len(digits), scale)
    if precision > 38:
        raise ConfigError(f"the number {text:.50} has more than 38 digits.")
    return TypedLiteral(exact, pa.decimal128(precision, scale))
