"""Filtering rows by a bound predicate with Arrow.

`to_arrow` converts a predicate to an Arrow expression, `RowFilter` filters batches, and `Truth` also tells which rows
are unknown. One `RowFilter` serves all batches of a file. For a list of values in one column it uses a hash table. Any
other filter is an Arrow expression, whose evaluation takes longer to start than looking up thousands of rows.

`call_expression` converts functions of columns to Arrow expressions, so that Arrow filters by them as by its own
functions. Arrow has no kernels with Spark's meaning. When a filter first uses a function with its arguments and column
type, this combination is registered as a new function of Arrow.

Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import compute, result_type
from pyhudi.expressions.columns import resolve, resolve_operand
from pyhudi.expressions.engines import condition_expression, passes, projected
from pyhudi.expressions.foreign import columns_of_expression
from pyhudi.expressions.literals import list_values
from pyhudi.expressions.predicates import (
    And,
    Call,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    SqlText,
    Value,
    column_of,
    split_texts,
)

__all__ = [
    "MAX_CALLS",
    "RowFilter",
    "Truth",
    "call_expression",
    "to_arrow",
    "top_level_columns",
    "truth_of",
]


# Functions with different arguments that one process filters by: Arrow never unregisters one.
MAX_CALLS = 10_000
_ANY_COLUMN = Column(("values",))
_names: dict[tuple[Call, pa.DataType], str] = {}
_lock = threading.Lock()


def call_expression(call: Call, column_type: pa.DataType) -> pc.Expression:
    """Convert a call to an Arrow expression; `why_not` must return None for it.

    Raises ConfigError for more than MAX_CALLS different calls in one process.
    """
    field = pc.field(*call.column.path)
    name = _registered(Call(call.function, _ANY_COLUMN, call.options), column_type)
    # Arrow's internal way to call a registered function; the stubs lack it.
    expression: pc.Expression = pc.Expression._call(name, [field])  # type: ignore[attr-defined]
    return expression


def _registered(call: Call, column_type: pa.DataType) -> str:
    with _lock:
        name = _names.get((call, column_type))
        if name is not None:
            return name
        if len(_names) >= MAX_CALLS:
            raise ConfigError(
                f"where: {call.function} comes with more than {MAX_CALLS} different arguments in one process; "
                f"expected at most as many."
            )
        name = f"pyhudi_{call.function}_{len(_names)}"

        def computed(context: pc.UdfContext, values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
            if isinstance(values, pa.Scalar):
                one: pa.Scalar = compute(call, pa.array([values.as_py()], column_type))[0]
                return one
            return compute(call, values)

        doc = {"summary": f"Spark's {call.function}", "description": str(call)}
        pc.register_scalar_function(computed, name, doc, {"values": column_type}, result_type(call, column_type))
        _names[(call, column_type)] = name
        return name


def top_level_columns(predicate: Predicate, schema: pa.Schema) -> set[str]:
    """The names of the top-level columns that evaluating a bound predicate needs.

    If an Arrow expression does not reveal its columns, every column whose name occurs in its text is included.
    """
    match predicate:
        case And(children) | Or(children):
            return set().union(*(top_level_columns(child, schema) for child in children))
        case Not(child):
            return top_level_columns(child, schema)
        case CompareColumns(left, _, right):
            return {column_of(left).path[0], column_of(right).path[0]}
        case Compare(column, _, _) | In(column, _, _) | IsNull(column) | Like(column, _):
            return {column_of(column).path[0]}
        case SqlText() as condition:
            return set(condition.columns)
        case Opaque(expression):
            names, text = columns_of_expression(expression), str(expression)
            return {name for name in schema.names if (name in text if names is None else name in names)}
    return set()


_CHAIN_TERMS = 64
_ANY_INTEGER = pa.decimal128(20, 0)  # holds signed and unsigned integers of 64 bits
_KERNELS: dict[str, Callable[[pc.Expression, pc.Expression | pa.Scalar], pc.Expression]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def to_arrow(predicate: Predicate, schema: pa.Schema) -> pc.Expression:
    """Convert a bound predicate to an Arrow expression with the same three-valued answers (Kleene logic)."""
    match predicate:
        case And(children):
            return _combined(children, schema, lambda left, right: left & right, True)
        case Or(children):
            return _combined(children, schema, lambda left, right: left | right, False)
        case Not(child):
            return ~to_arrow(child, schema)
        case Constant(value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case Compare(column, op, value):
            kind = resolve_operand(column, schema)[1]
            if pa.types.is_floating(kind):
                return _compare_float(_field(column, schema), op, value)
            return _KERNELS[op](_field(column, schema), _literal(value, kind))
        case CompareColumns(left, op, right):
            kinds = [resolve_operand(column, schema)[1] for column in (left, right)]
            return _compare_columns(_field(left, schema), op, _field(right, schema), kinds)
        case In(column, values, has_null):
            unknown = (Constant(None),) if has_null else ()
            missing = And((IsNull(column), Constant(None)))  # null IN (...) is unknown, also for an empty list
            return _is_in(column, values, schema) | to_arrow(Or((*unknown, missing)), schema)
        case IsNull(column):
            return _field(column, schema).is_null()
        case Like(column, _) as like:
            return pc.match_substring_regex(_field(column, schema), like.regex())
        case Opaque(expression):
            return expression
        case SqlText() as condition:
            return condition_expression(condition, schema)
    raise AssertionError(predicate)


def _field(operand: Operand, schema: pa.Schema) -> pc.Expression:
    if isinstance(operand, Call):
        return call_expression(operand, resolve(operand.column, schema)[1])
    return pc.field(*operand.path)


def _is_in(column: Operand, values: tuple[Value, ...], schema: pa.Schema) -> pc.Expression:
    """An expression that is true if the column's value is one of these, and false for null."""
    kind, field = resolve_operand(column, schema)[1], _field(column, schema)
    if not pa.types.is_floating(kind):
        return field.isin(list_values(values, kind))
    is_listed = field.isin(list_values([value for value in values if value == value], kind))
    has_nan = any(value != value for value in values)
    return is_listed | (pc.is_nan(field) & field.is_valid()) if has_nan else is_listed


def _compare_float(column: pc.Expression, op: str, value: float) -> pc.Expression:
    """Compare in Spark's order: NaN equals itself and is greater than any other number. Arrow's kernels do neither."""
    nan = pc.is_nan(column)
    if value != value:
        never = nan & ~nan  # false, but unknown if the column is null
        return {"=": nan, ">=": nan, "<>": ~nan, "<": ~nan, ">": never, "<=": ~never}[op]
    plain = _KERNELS[op](column, pa.scalar(value, pa.float64()))
    return plain | nan if op in (">", ">=") else plain


def _compare_columns(left: pc.Expression, op: str, right: pc.Expression, kinds: Sequence[pa.DataType]) -> pc.Expression:
    if pa.uint64() in kinds and any(pa.types.is_signed_integer(kind) for kind in kinds):
        left, right = left.cast(_ANY_INTEGER), right.cast(_ANY_INTEGER)  # pyarrow would make both int64
    plain = _KERNELS[op](left, right)
    if not any(pa.types.is_floating(kind) for kind in kinds):
        return plain
    unknown = pc.scalar(pa.scalar(None, pa.bool_()))
    left_nan, right_nan = (
        pc.is_nan(column) if pa.types.is_floating(kind) else column.is_null() & unknown
        for column, kind in zip((left, right), kinds, strict=True)
    )
    match op:
        case "=":
            return plain | (left_nan & right_nan)
        case "<>":
            return plain & ~(left_nan & right_nan)
        case "<":
            return plain | (right_nan & ~left_nan)
        case "<=":
            return plain | (right_nan & (left_nan | ~left_nan))
        case ">":
            return plain | (left_nan & ~right_nan)
        case _:
            return plain | (left_nan & (right_nan | ~right_nan))


def _combined(
    children: tuple[Predicate, ...],
    schema: pa.Schema,
    join: Callable[[pc.Expression, pc.Expression], pc.Expression],
    empty: bool,
) -> pc.Expression:
    expressions = [to_arrow(child, schema) for child in children]
    if not expressions:
        return pc.scalar(empty)
    # Arrow treats all terms joined by one operator as one chain, in any grouping, and recurses for each of them. Two
    # NOTs around a short chain make it a single term of the next chain.
    while len(expressions) > _CHAIN_TERMS:
        chains = [expressions[i : i + _CHAIN_TERMS] for i in range(0, len(expressions), _CHAIN_TERMS)]
        expressions = [~~reduce(join, chain) for chain in chains]
    return reduce(join, expressions)


def _literal(value: Value, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, pa.timestamp("us", kind.tz))
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(value), kind)
    return pa.scalar(value, kind)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filters batches of one schema. Rows pass that have one of the `values` in `column`, or, without values, for which
    `expression` is true; without either, all rows. Of these, only rows for which all `texts` are true pass.
    """

    expression: pc.Expression | None = None
    column: str = ""
    values: pa.Array | None = None
    texts: tuple[SqlText, ...] = ()

    @classmethod
    def of(cls, predicate: Predicate, schema: pa.Schema) -> RowFilter:
        """Args: predicate: bound to the schema."""
        plain, texts = split_texts(predicate)
        if texts:
            return replace(cls.of(plain, schema), texts=texts)
        if predicate == Constant(True):
            return cls()
        match predicate:
            case In(Column((name,)), values):
                kind = resolve_operand(Column((name,)), schema)[1]
                if not pa.types.is_floating(kind):  # floats need a test for NaN, too
                    return cls(column=name, values=list_values(values, kind))
            case Compare(Column((name,)), "=", value):
                kind = resolve_operand(Column((name,)), schema)[1]
                if pa.types.is_string(kind) or pa.types.is_integer(kind):
                    return cls(column=name, values=list_values((value,), kind))
        return cls(to_arrow(predicate, schema))

    def filter(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that pass. Raises ConfigError."""
        rows = self._plainly_filtered(rows)
        for text in self.texts:  # only for the remaining rows: `d <> 0 AND n / d > 1` must not divide by zero
            if rows.num_rows:
                rows = rows.filter(passes(text, pa.Table.from_batches([rows])))
        return rows

    def _plainly_filtered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.values is not None:
            return rows.filter(pc.is_in(rows.column(self.column), value_set=self.values))
        if self.expression is None:
            return rows
        try:
            passing = pa.Table.from_batches([rows]).filter(self.expression).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ConfigError(f"where can't be evaluated on the table's columns: {error}.") from error
        batches = passing.to_batches()
        return batches[0] if batches else rows.slice(0, 0)


@dataclass(frozen=True, slots=True)
class Truth:
    """Tells if a predicate is true for rows of one schema; null if that is unknown.

    A text is evaluated only for rows for which the other terms are not false: `d <> 0 AND n / d > 1` must not divide by
    zero. `what`: begins error messages.
    """

    expression: pc.Expression
    texts: tuple[SqlText, ...] = ()
    what: str = "where"

    @classmethod
    def of(cls, predicate: Predicate, schema: pa.Schema, what: str = "where") -> Truth:
        """Args: predicate: bound to the schema."""
        plain, texts = split_texts(predicate)
        return cls(to_arrow(plain, schema), texts, what)

    def __call__(self, rows: pa.Table) -> pa.BooleanArray:
        """An answer for each row. Raises ConfigError if a value can't be computed for these rows."""
        answers: pa.Array = projected(self.expression, rows, self.what).combine_chunks()
        if not pa.types.is_boolean(answers.type):
            raise ConfigError(f"{self.what} is of type {answers.type}; expected true or false.")
        for text in self.texts:
            undecided = pc.fill_null(answers, True)
            if pc.any(undecided).as_py():
                more = pc.and_kleene(answers.filter(undecided), passes(text, rows.filter(undecided)))
                answers = pc.replace_with_mask(answers, undecided, more)
        return cast("pa.BooleanArray", answers)


def truth_of(predicate: Predicate, rows: pa.Table, what: str = "where") -> pa.BooleanArray:
    """Tell if a bound predicate is true for these rows: see `Truth`."""
    return Truth.of(predicate, rows.schema, what)(rows)
