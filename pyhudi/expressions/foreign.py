"""Filters of pyarrow and polars as predicates, so that they skip files and row groups like any other filter.

pyarrow has no API to inspect an expression. It serialises one as a batch of one row: the columns hold the literals and
the options of functions, and the schema's metadata list functions, columns and literals in the order of the tree:

    call: and_kleene
      call: greater, field_ref: n, literal: 0, end: greater
      call: is_in, field_ref: city, options: 1, end: is_in
    end: and_kleene

polars returns its tree as JSON: {"BinaryExpr": {"left": {"Column": "n"}, "op": "Gt", "right": {"Literal": ...}}}.

An unknown part, or one that Arrow and Spark answer differently (not-a-number), widens the predicate: it then keeps more
rows than the foreign filter, which is still applied to them. polars and Spark order not-a-number alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.expressions.predicates import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Value,
    conjunction,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["ArrowPredicate", "arrow_predicate", "columns_of_expression", "polars_predicate"]

KindOf: TypeAlias = "Callable[[Column], pa.DataType | None]"

_LINE = re.compile(r"(\w+): '(.*)'")
_METADATA = "-- schema metadata --\n"
_OPERATORS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ANYTHING, _NOTHING = Constant(True), Constant(False)
_EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True, slots=True)
class ArrowPredicate:
    """The predicates that a part of an expression implies.

    `when_true` holds for every row for which the part is true, `when_false` for every row for which it is false.
    `is_exact`: they hold for no other rows.
    """

    when_true: Predicate = _ANYTHING
    when_false: Predicate = _ANYTHING
    is_exact: bool = False


_UNKNOWN = ArrowPredicate()


@dataclass(frozen=True, slots=True)
class _Literal:
    scalar: pa.Scalar


_Argument: TypeAlias = "ArrowPredicate | Column | _Literal"


@dataclass(slots=True)
class _Function:
    name: str
    arguments: list[_Argument] = field(default_factory=list)
    options: Mapping[str, pa.Scalar] | None = None


def arrow_predicate(expression: pc.Expression, kind_of: KindOf) -> ArrowPredicate:
    """Convert an Arrow expression to predicates on columns. `kind_of`: a column's type, None for a missing column."""
    notes = _notes(expression)
    try:
        return _UNKNOWN if notes is None else _read(*notes, kind_of)
    except (ValueError, IndexError, pa.ArrowException, OverflowError):
        return _UNKNOWN  # the form of another pyarrow release


def columns_of_expression(expression: pc.Expression) -> frozenset[str] | None:
    """The names of the top-level columns that an expression needs; None if they can't be determined."""
    notes = _notes(expression)
    if notes is None:
        return None
    names, nested = set[str](), 0
    for key, text in notes[0]:
        if key == "nested_field_ref":
            nested = -1
        elif key == "field_ref":
            if nested <= 0:
                names.add(text)
            nested = 1 if nested else 0
        else:
            nested = 0
    return frozenset(names)


def _notes(expression: pc.Expression) -> tuple[list[tuple[str, str]], pa.RecordBatch] | None:
    """The tree in order, and the literals; None if a name could be mistaken for a part of the tree."""
    data = cast("pa.Buffer", expression.__reduce__()[1][0])
    if b"'\n" in data.to_pybytes():
        return None
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        batch = reader.get_batch(0)
    text = batch.schema.to_string(truncate_metadata=False).partition(_METADATA)[2]
    matches = [_LINE.fullmatch(line) for line in text.split("\n")]
    if not text or not all(matches):
        return None
    return [(match[1], match[2]) for match in matches if match is not None], batch


def _read(notes: list[tuple[str, str]], literals: pa.RecordBatch, kind_of: KindOf) -> ArrowPredicate:
    open_calls, at = [_Function("")], 0
    while at < len(notes):
        key, text = notes[at]
        innermost = open_calls[-1]
        at += 1
        if key == "call":
            open_calls.append(_Function(text))
        elif key == "end":
            open_calls.pop()
            open_calls[-1].arguments.append(_answer(innermost, kind_of))
        elif key == "field_ref":
            innermost.arguments.append(Column((text,)))
        elif key == "nested_field_ref":
            parts = notes[at : at + int(text)]
            innermost.arguments.append(Column(tuple(name for _, name in parts)))
            at += len(parts)
        elif key == "literal":
            innermost.arguments.append(_Literal(literals.column(int(text))[0]))
        elif key == "options":
            innermost.options = cast("Mapping[str, pa.Scalar]", literals.column(int(text))[0])
        else:
            return _UNKNOWN
    (whole,) = open_calls[0].arguments
    return _as_condition(whole, kind_of)


def _as_condition(argument: _Argument, kind_of: KindOf) -> ArrowPredicate:
    """Convert a boolean column, or a constant, to a condition."""
    if isinstance(argument, ArrowPredicate):
        return argument
    if isinstance(argument, Column):
        kind = kind_of(argument)
        is_true = Compare(argument, "=", True)
        return ArrowPredicate(is_true, Not(is_true), True) if kind is not None and pt.is_boolean(kind) else _UNKNOWN
    if not pt.is_boolean(argument.scalar.type):
        return _UNKNOWN
    value = argument.scalar.as_py()
    return ArrowPredicate(Constant(value is True), Constant(value is False), True)


def _answer(call: _Function, kind_of: KindOf) -> ArrowPredicate:
    match call.name, call.arguments:
        case (("and_kleene" | "and"), [left, right]):
            return _both(_as_condition(left, kind_of), _as_condition(right, kind_of), call.name == "and_kleene")
        case (("or_kleene" | "or"), [left, right]):
            one, other = (_inverted(_as_condition(part, kind_of)) for part in (left, right))
            return _inverted(_both(one, other, call.name == "or_kleene"))
        case "invert", [part]:
            return _inverted(_as_condition(part, kind_of))
        case "is_valid", [Column() as column] if kind_of(column) is not None:
            return ArrowPredicate(Not(IsNull(column)), IsNull(column), True)
        case "is_null", [Column() as column] if kind_of(column) is not None and not _option(call, "nan_is_null"):
            return ArrowPredicate(IsNull(column), Not(IsNull(column)), True)
        case "is_in", [Column() as column]:
            return _is_in(column, call, kind_of)
        case "starts_with", [Column() as column] if _is_text(kind_of(column)) and not _option(call, "ignore_case"):
            prefix = re.sub(r"([\\%_])", r"\\\1", str(_option(call, "pattern")))
            return ArrowPredicate(Like(column, f"{prefix}%"))
        case "if_else", [condition, part, _Literal(other)] if not other.is_valid:
            # DuckDB writes IN this way: if_else(is_valid(a), is_in(a, ...), null).
            first, then = _as_condition(condition, kind_of), _as_condition(part, kind_of)
            return ArrowPredicate(
                _and(first.when_true, then.when_true),
                _and(first.when_true, then.when_false),
                first.is_exact and then.is_exact,
            )
        case name, [Column() as column, _Literal(literal)] if name in _OPERATORS:
            return _comparison(column, _OPERATORS[name], literal, kind_of)
        case name, [_Literal(literal), Column() as column] if name in _OPERATORS:
            op = _OPERATORS[name]
            return _comparison(column, _MIRRORED.get(op, op), literal, kind_of)
    return _UNKNOWN


def _both(left: ArrowPredicate, right: ArrowPredicate, is_kleene: bool) -> ArrowPredicate:
    """The AND of both parts. Without Kleene's logic it is unknown if either part is, and true or false less often."""
    return ArrowPredicate(
        _and(left.when_true, right.when_true),
        _or(left.when_false, right.when_false),
        is_kleene and left.is_exact and right.is_exact,
    )


def _inverted(part: ArrowPredicate) -> ArrowPredicate:
    return ArrowPredicate(part.when_false, part.when_true, part.is_exact)


def _and(left: Predicate, right: Predicate) -> Predicate:
    sides = [side for side in (left, right) if side != _ANYTHING]
    if len(sides) < 2:
        return sides[0] if sides else _ANYTHING
    return And(tuple(part for side in sides for part in (side.children if isinstance(side, And) else (side,))))


def _or(left: Predicate, right: Predicate) -> Predicate:
    if _ANYTHING in (left, right):
        return _ANYTHING
    parts = [part for side in (left, right) for part in (side.children if isinstance(side, Or) else (side,))]
    return Or(tuple(parts))


def _comparison(column: Column, op: str, literal: pa.Scalar, kind_of: KindOf) -> ArrowPredicate:
    kind = kind_of(column)
    if kind is not None and not literal.is_valid:
        return ArrowPredicate(_NOTHING, _NOTHING, True)
    value = _value(literal, kind)
    if value is None:
        return _UNKNOWN
    compared = Compare(column, op, value)
    if isinstance(value, float) or (kind is not None and pt.is_floating(kind)):
        return ArrowPredicate(compared)  # Spark finds not-a-number larger; Arrow's comparisons with it are never true
    return ArrowPredicate(compared, Not(compared), True)


def _is_in(column: Column, call: _Function, kind_of: KindOf) -> ArrowPredicate:
    kind = kind_of(column)
    if call.options is None or kind is None or _option(call, "null_matching_behavior") != 0:
        return _UNKNOWN
    literals: list[pa.Scalar] = list(getattr(call.options["value_set"], "values", None) or ())
    values = [_value(literal, kind) for literal in literals if literal.is_valid]
    if any(value is None for value in values):
        return _UNKNOWN
    listed: Predicate = In(column, tuple(value for value in values if value is not None))
    missing = IsNull(column)
    has_null = len(values) < len(literals)
    when_true = Or((listed, missing)) if has_null else listed
    if pt.is_floating(kind):
        return ArrowPredicate(when_true)
    return ArrowPredicate(when_true, Not(listed) if has_null else Or((Not(listed), missing)), True)


def _option(call: _Function, name: str) -> object:
    return None if call.options is None else call.options[name].as_py()


def _is_text(kind: pa.DataType | None) -> bool:
    return kind is not None and (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _value(literal: pa.Scalar, kind: pa.DataType | None) -> Value:
    """The literal's value if comparing it with a column of this type means the same in Arrow and here, else None."""
    if kind is None:
        return None
    other, value = literal.type, literal.as_py()
    if pt.is_floating(other):
        is_plain = math.isfinite(value) and abs(value) < _EXACT_IN_DOUBLE
        return float(value) if is_plain and (pt.is_integer(kind) or pt.is_float64(kind)) else None
    if pt.is_integer(other):
        is_number = pt.is_integer(kind) or pt.is_decimal(kind)
        is_plain = pt.is_float64(kind) and abs(value) < _EXACT_IN_DOUBLE
        return int(value) if is_number or is_plain else None
    if pt.is_timestamp(other):
        if not pt.is_timestamp(kind) or (other.tz is None) is not (kind.tz is None):
            return None
        return cast("Value", _in_microseconds(literal).as_py()) if _fits(literal, kind) else None
    same = (
        (_is_text(other) and _is_text(kind))
        or (pt.is_boolean(other) and pt.is_boolean(kind))
        or (pt.is_date32(other) and pt.is_date32(kind))
        or (pt.is_decimal(other) and pt.is_decimal(kind))
        or (pt.is_binary(other) and pt.is_binary(kind))
    )
    return cast("Value", value) if same else None


def _fits(literal: pa.Scalar, kind: pa.DataType) -> bool:
    """True if a time is no finer than the column's times, and no finer than Python's."""
    try:
        return bool(_in_microseconds(literal).cast(kind).is_valid)
    except pa.ArrowInvalid:
        return False


def _in_microseconds(literal: pa.Scalar) -> pa.Scalar:
    kind: pa.DataType = pa.timestamp("us", cast("pa.TimestampType", literal.type).tz)
    return literal.cast(kind)


# ---- polars

_Node: TypeAlias = object  # of polars' JSON
_POLARS_OPERATORS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_INTEGERS = {
    "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(),
    "UInt8": pa.uint8(), "UInt16": pa.uint16(), "UInt32": pa.uint32(), "UInt64": pa.uint64(),
}  # fmt: skip
_FLOATS = {"Float32": pa.float32(), "Float64": pa.float64()}
_EPOCH = date(1970, 1, 1)


def polars_predicate(tree: object, kind_of: KindOf) -> Predicate | None:
    """A condition that holds for every row that passes a polars filter; None if nothing is known of the filter.

    Args:   tree: polars' JSON, as Python objects. kind_of: a column's type, None for a missing column.
    """
    known = list[Predicate]()
    for part in _polars_conjuncts(tree):
        try:
            known.append(_polars_condition(part, kind_of))
        except (pa.ArrowException, ValueError, TypeError, KeyError, OverflowError):
            continue
    return conjunction(tuple(known)) if known else None


def _polars_conjuncts(node: _Node) -> Iterator[_Node]:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            yield from _polars_conjuncts(left)
            yield from _polars_conjuncts(right)
        case _:
            yield node


def _polars_condition(node: _Node, kind_of: KindOf) -> Predicate:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "Or" as op, "right": right}}:
            sides = (_polars_condition(left, kind_of), _polars_condition(right, kind_of))
            return And(sides) if op == "And" else Or(sides)
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": {"Literal": literal}}}:
            return _polars_comparison(name, _POLARS_OPERATORS[op], literal, kind_of)
        case {"BinaryExpr": {"left": {"Literal": literal}, "op": str(op), "right": {"Column": str(name)}}}:
            sign = _POLARS_OPERATORS[op]
            return _polars_comparison(name, _MIRRORED.get(sign, sign), literal, kind_of)
        case {"Function": {"input": [{"Column": str(name)}, *others], "function": function}}:
            return _polars_function(name, others, function, kind_of)
    raise ValueError("not known")


def _polars_comparison(name: str, op: str, literal: _Node, kind_of: KindOf) -> Predicate:
    column = Column((name,))
    value = _value(_polars_literal(literal), kind_of(column))
    if value is None:
        raise ValueError("not known")
    return Compare(column, op, value)


def _polars_function(name: str, arguments: Sequence[_Node], function: _Node, kind_of: KindOf) -> Predicate:
    column = Column((name,))
    match function, arguments:
        case {"Boolean": "IsNull"}, []:
            return IsNull(column)
        case {"Boolean": "IsNotNull"}, []:
            return Not(IsNull(column))
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [{"Literal": {"Scalar": {"List": bytes_of_values}}}]:
            with pa.ipc.open_stream(bytes(bytes_of_values)) as stream:
                literals = stream.read_all().column(0)
            values = [_value(literal, kind_of(column)) if literal.is_valid else None for literal in literals]
            if None not in values:
                return In(column, tuple(values))
        case {"Boolean": {"IsBetween": {"closed": "Both"}}}, [{"Literal": low}, {"Literal": high}]:
            sides = (_polars_comparison(name, op, bound, kind_of) for op, bound in ((">=", low), ("<=", high)))
            return And(tuple(sides))
    raise ValueError("not known")


def _polars_literal(literal: _Node) -> pa.Scalar:
    match literal:
        case {"Scalar": {**entry}} if len(entry) == 1:
            kind, value = next(iter(entry.items()))
        case _:
            raise ValueError("not known")
    match kind, value:
        case ("String", str()) | ("Boolean", bool()):
            return pa.scalar(value)
        case (str(), int()) if kind in _INTEGERS:
            return pa.scalar(value, _INTEGERS[kind])
        case (str(), float()) if kind in _FLOATS:
            return pa.scalar(value, _FLOATS[kind])
        case ("Date", int(days)):
            return pa.scalar(_EPOCH + timedelta(days=days))
        case ("Datetime", [int(ticks), "Microseconds" | "Milliseconds" as unit, None | str() as zone]):
            return pa.scalar(ticks, pa.timestamp("us" if unit == "Microseconds" else "ms", zone))
    raise ValueError("not known")
