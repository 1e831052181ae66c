"""Values as SQL text: `n + 1`, `upper(city)`, `CASE WHEN fare > 9 THEN 'high' ELSE 'low' END`, with Spark's meaning.

`sql_value` makes of a text, whichever of them says it exactly,

    Literal        a constant
    Expression     an Arrow expression: columns, arithmetic, CASE, COALESCE, conditions, some functions and casts
    EngineValue    everything else: DuckDB evaluates the text, batch by batch, where it is installed

The text has names of columns and no subqueries. Names match exactly, or in any case where only one column fits. Sums
that overflow and divisions by zero are errors, as in Spark's ANSI mode.

Source: Spark's SQL reference, "Arithmetic operations", "ANSI Compliance".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.model.predicate import parse_where
from pyhudi.model.predicate.limits import MAX_WHERE_CHARS, brief, check_expressions
from pyhudi.model.predicate.where_text import negative, number_of
from pyhudi.model.sql_text import MisreadSql, query_of, with_deep_stack
from pyhudi.queries.filters import bind, to_arrow
from pyhudi.queries.sql_engine import ENGINES
from pyhudi.shown_text import is_text
from pyhudi.storage.clock import Clock, SystemClock

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["EngineValue", "Literal", "SqlValue", "UnknownName", "columns_in", "path_of", "sql_value", "tree_of"]

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, as the Python value that it is."""

    value: object


@dataclass(frozen=True, slots=True)
class EngineValue:
    """SQL text that DuckDB evaluates. `what`: begins errors."""

    text: str
    what: str

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        """The value for each row. Raises ConfigError for what DuckDB can't evaluate, and where it is not installed."""
        try:
            return ENGINES.load("DUCKDB")(self.text, rows, "UTC")
        except ConfigError as error:
            raise ConfigError(f"{self.what}: {error}") from error


SqlValue: TypeAlias = Literal | pc.Expression | EngineValue


class UnknownName(ConfigError):
    """A text has a name that is not a column."""


def sql_value(text: str, schema: pa.Schema, what: str, clock: Clock = _CLOCK) -> SqlValue:
    """The value that a text means for rows with these columns.

    Args:    what: begins errors, such as "set= gives the column 'n'".
    Raises:  ConfigError for a text that is not an SQL expression; UnknownName for one with an unknown column.
    """
    tree = tree_of(text, what)
    literal = _literal(tree)
    if literal is not None:
        return literal
    _check(tree, schema, text, what)
    try:
        expression = with_deep_stack(lambda: _Translation(schema, clock).of(tree))
        check_expressions([expression], what)
        _type_of(expression, schema)
    except _Beyond:
        return EngineValue(text, what)
    return expression


def columns_in(text: str, schema: pa.Schema, what: str) -> tuple[str, ...]:
    """The top-level columns that a text names, each once. Raises ConfigError as `sql_value`."""
    from sqlglot import exp

    tree = tree_of(text, what)
    _check(tree, schema, text, what)
    paths = (path_of([part.name for part in column.parts], schema) for column in tree.find_all(exp.Column))
    return tuple(dict.fromkeys(path[0] for path in paths if path is not None))


def tree_of(text: str, what: str) -> exp.Expr:
    """The tree of one expression. Raises ConfigError for a text that is none."""
    from sqlglot import exp

    if len(text) > MAX_WHERE_CHARS:
        raise ConfigError(f"{what}: a text of {len(text)} characters; expected at most {MAX_WHERE_CHARS}.")
    if not is_text(text):
        raise ConfigError(f"{what}: {brief(text)} has half a character in it, which no file can hold.")
    try:
        query = query_of(f"SELECT {text}\n")
    except MisreadSql as error:
        raise ConfigError(f"{what}: {brief(text)} is no SQL expression: {error.what}.") from None
    is_plain = isinstance(query, exp.Select) and len(query.expressions) == 1 and set(_parts(query)) <= {"expressions"}
    tree = query.expressions[0] if is_plain and query is not None else None
    if tree is None or isinstance(tree, exp.Alias | exp.Star):
        raise ConfigError(f"{what}: {brief(text)} is no SQL expression.")
    inner = tree.find(exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter)
    if inner is not None:
        raise ConfigError(
            f"{what}: {brief(text)} holds {brief(inner.sql('spark'))}; expected an expression of one row's columns."
        )
    unnested: exp.Expr = tree.unnest()
    return unnested


def _parts(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value not in (None, [], False)]


def _check(tree: exp.Expr, schema: pa.Schema, text: str, what: str) -> None:
    """Raise UnknownName for a name that is not a column."""
    from sqlglot import exp

    bound = {name.name for function in tree.find_all(exp.Lambda) for name in function.expressions}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0] not in bound and path_of(parts, schema) is None:
            raise UnknownName(
                f"{what}: {brief(text)} names the column {brief('.'.join(parts))}, which is not there. Columns: "
                f"{', '.join(schema.names)}."
            )


def path_of(parts: Sequence[str], schema: pa.Schema) -> tuple[str, ...] | None:
    """A column or a field of one by its name; None for an unknown one. Case matters where several fit."""
    whole = ".".join(parts)
    if schema.get_field_index(whole) >= 0:
        return (whole,)
    fields = list(schema)
    path = []
    for part in parts:
        matches = [field for field in fields if field.name == part]
        matches = matches or [field for field in fields if field.name.lower() == part.lower()]
        if len(matches) != 1:
            return None
        path.append(matches[0].name)
        kind = matches[0].type
        fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return tuple(path)


def _literal(tree: exp.Expr) -> Literal | None:
    """The constant that a tree is, None for anything else."""
    from sqlglot import exp

    match tree:
        case exp.Literal():
            return Literal(tree.name if tree.is_string else number_of(tree.name))
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Null():
            return Literal(None)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return Literal(negative(number_of(tree.this.name)))
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            if tree.to.is_type("date", "timestamp", "timestamptz", "timestampntz"):
                return Literal(tree.this.name)
    return None


class _Beyond(Exception):
    """Arrow has no counterpart of this with Spark's meaning."""


def _type_of(expression: pc.Expression, schema: pa.Schema) -> pa.DataType:
    import pyarrow.acero as acero  # loads pyarrow.dataset, which a small write needs not

    rows = acero.Declaration("table_source", acero.TableSourceNodeOptions(schema.empty_table()))
    values = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]))
    try:
        computed = acero.Declaration.from_sequence([rows, values]).to_table(use_threads=False)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise _Beyond from error
    kind: pa.DataType = computed.schema.field(0).type
    return kind


_ARITHMETIC: Mapping[str, str] = {"Add": "add_checked", "Sub": "subtract_checked", "Mul": "multiply_checked"}
_CONDITIONS = ("And", "Or", "Not", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "In", "Is", "Between", "Like")
_NUMBERS: Mapping[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}


class _Translation:
    """A tree as an Arrow expression."""

    def __init__(self, schema: pa.Schema, clock: Clock) -> None:
        self.schema, self.clock = schema, clock

    def of(self, node: exp.Expr) -> pc.Expression:
        """The expression. Raises _Beyond for what Arrow does differently."""
        from sqlglot import exp

        name = type(node).__name__
        if name in _CONDITIONS:
            return self._condition(node)
        if name in _ARITHMETIC:
            return self._arithmetic(node)
        match node:
            case exp.Paren():
                return self.of(node.this)
            case exp.Column():
                path = path_of([part.name for part in node.parts], self.schema)
                if path is None:
                    raise _Beyond
                return pc.field(*path)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return self._constant(node)
            case exp.Neg():
                return _call("negate_checked", self._number(node.this))
            case exp.Div():
                return self._division(node)
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.Coalesce():
                return _call("coalesce", *map(self.of, [node.this, *node.expressions]))
            case exp.Upper():
                return _call("utf8_upper", self._text(node.this))
            case exp.Lower():
                return _call("utf8_lower", self._text(node.this))
            case exp.Length():
                return _call("utf8_length", self._text(node.this))
            case exp.Trim() if _parts(node) == ["this"]:
                return _call("utf8_trim", self._text(node.this), options=pc.TrimOptions(characters=" "))
            case exp.Concat() | exp.DPipe():
                return self._joined(node)
            case exp.Abs():
                return _call("abs_checked", self._number(node.this))
            case exp.CurrentTimestamp() | exp.CurrentDate():
                now = datetime.fromtimestamp(self.clock.now_ms() / 1000, timezone.utc)
                if isinstance(node, exp.CurrentDate):
                    return pc.scalar(pa.scalar(now.date(), pa.date32()))
                return pc.scalar(pa.scalar(now, pa.timestamp("us", "UTC")))
            case exp.Cast():
                return self._cast(node)
        raise _Beyond

    def _condition(self, node: exp.Expr) -> pc.Expression:
        """As a filter of a query has it."""
        try:
            predicate = bind(parse_where(node.sql("spark"), evaluates=False), self.schema)
        except ConfigError as error:
            raise _Beyond from error
        return to_arrow(predicate, self.schema)

    def _constant(self, node: exp.Expr) -> pc.Expression:
        literal = _literal(node)
        if literal is None or literal.value is None:
            raise _Beyond  # a null takes its type from its context
        value = literal.value
        kind = None
        if isinstance(value, int) and not isinstance(value, bool):
            kind = pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
        try:
            return pc.scalar(pa.scalar(value, kind))
        except (pa.ArrowException, OverflowError) as error:
            raise _Beyond from error

    def _type(self, expression: pc.Expression) -> pa.DataType:
        return _type_of(expression, self.schema)

    def _number(self, node: exp.Expr) -> pc.Expression:
        number = self.of(node)
        kind = self._type(number)
        if not (pa.types.is_signed_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
            raise _Beyond
        return number

    def _text(self, node: exp.Expr) -> pc.Expression:
        text = self.of(node)
        if not pa.types.is_string(self._type(text)):
            raise _Beyond
        return text

    def _arithmetic(self, node: exp.Expr) -> pc.Expression:
        """Whole numbers stay whole, with decimals all are decimals, with doubles all are doubles."""
        left, right = self._number(node.this), self._number(node.expression)
        kinds = [self._type(left), self._type(right)]
        if any(map(pa.types.is_floating, kinds)):
            doubles = pa.float32() if all(kind == pa.float32() for kind in kinds) else pa.float64()
            left, right = left.cast(doubles), right.cast(doubles)
        elif any(map(pa.types.is_decimal, kinds)):
            sides = zip((left, right), kinds, (node.this, node.expression), strict=True)
            left, right = (_as_decimal(side, kind, part) for side, kind, part in sides)
        return _call(_ARITHMETIC[type(node).__name__], left, right)

    def _division(self, node: exp.Expr) -> pc.Expression:
        """For numbers other than decimals: a double."""
        sides = [self._number(side) for side in (node.this, node.expression)]
        if any(pa.types.is_decimal(self._type(side)) for side in sides):
            raise _Beyond
        return _call("divide_checked", *(side.cast(pa.float64()) for side in sides))

    def _case(self, node: exp.Expr) -> pc.Expression:
        from sqlglot import exp

        if isinstance(node, exp.Case) and node.this is not None:
            branches = [(exp.EQ(this=node.this.copy(), expression=b.this.copy()), b) for b in node.args["ifs"]]
        elif isinstance(node, exp.Case):
            branches = [(branch.this, branch) for branch in node.args["ifs"]]
        else:
            branches = [(node.this, node)]
        values = [branch.args["true"] for _, branch in branches]
        last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        conditions = [_call("coalesce", self.of(when), pc.scalar(False)) for when, _ in branches]
        typed = [self.of(value) for value in values if not isinstance(value, exp.Null)]
        otherwise = None if last is None or isinstance(last, exp.Null) else self.of(last)
        kinds = {self._type(value) for value in [*typed, *([otherwise] if otherwise is not None else [])]}
        if len(kinds) != 1:
            raise _Beyond
        nothing = pc.scalar(pa.scalar(None, kinds.pop()))
        result = nothing if otherwise is None else otherwise
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            chosen = nothing if isinstance(value, exp.Null) else self.of(value)
            result = _call("if_else", condition, chosen, result)
        return result

    def _joined(self, node: exp.Expr) -> pc.Expression:
        parts = node.expressions or [node.this, node.expression]
        texts = [self._as_text(self.of(part)) for part in parts]
        return _call(
            "binary_join_element_wise", *texts, pc.scalar(""), options=pc.JoinOptions(null_handling="emit_null")
        )

    def _as_text(self, value: pc.Expression) -> pc.Expression:
        kind = self._type(value)
        if pa.types.is_string(kind):
            return value
        if pa.types.is_signed_integer(kind):
            return value.cast(pa.string())
        raise _Beyond

    def _cast(self, node: exp.Expr) -> pc.Expression:
        """Casts between numbers, which are cut, and of whole numbers to text."""
        from sqlglot import exp

        assert isinstance(node, exp.Cast)
        value = self.of(node.this)
        kind, to = self._type(value), node.to
        if to.is_type("text") or to.is_type("varchar"):
            return self._as_text(value)
        target = None if to.expressions else _NUMBERS.get(to.this.name)
        if isinstance(node, exp.TryCast) or target is None:
            raise _Beyond
        if pa.types.is_signed_integer(kind) or (pa.types.is_floating(kind) and pa.types.is_floating(target)):
            return value.cast(target)
        if pa.types.is_floating(kind):
            return _call("trunc", value).cast(target)
        raise _Beyond


def _as_decimal(number: pc.Expression, kind: pa.DataType, node: exp.Expr) -> pc.Expression:
    """A whole number as the decimal that Spark takes it for: a constant has the digits that it has."""
    from sqlglot import exp

    if pa.types.is_decimal(kind):
        return number
    if isinstance(node, exp.Literal):
        return pc.scalar(pa.scalar(Decimal(node.name), pa.decimal128(len(node.name), 0)))
    return number.cast(pa.decimal128({8: 3, 16: 5, 32: 10}.get(kind.bit_width, 20), 0))


def _call(name: str, *arguments: pc.Expression, options: pc.FunctionOptions | None = None) -> pc.Expression:
    """A kernel of Arrow's on expressions; constants alone would be computed at once."""
    expression: pc.Expression = pc.Expression._call(name, list(arguments), options)  # type: ignore[attr-defined]
    return expression
