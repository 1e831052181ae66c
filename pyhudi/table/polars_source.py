"""A scan as a source of polars: its columns, filters and `head` reach the files.

polars hands a source the columns that a query needs, its filter, and the number of rows that are enough. The filter is
read from polars' JSON of it. What is not known there isn't pushed down, so that the scan returns more rows; polars'
own filter runs over all of them, and decides.

The number of rows counts before the filter: `frame.head(10).filter(...)`. Where both are given, only the number is
pushed down.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from polars import DataFrame, Expr, from_arrow
from polars.io.plugins import register_io_source

from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from polars import LazyFrame

    from pyhudi.expressions.filters import Where

__all__ = ["LazyRows", "condition_of", "polars_source"]

Node: TypeAlias = object  # of polars' JSON

_COMPARISONS = {"Eq": "__eq__", "NotEq": "__ne__", "Lt": "__lt__", "LtEq": "__le__", "Gt": "__gt__", "GtEq": "__ge__"}
_MIRRORED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_HOLDS_FOR_NAN = {"NotEq", "Gt", "GtEq"}  # to polars it is the greatest number, to Arrow none
_INTEGERS = {
    "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(),
    "UInt8": pa.uint8(), "UInt16": pa.uint16(), "UInt32": pa.uint32(), "UInt64": pa.uint64(),
}  # fmt: skip
_FLOATS = {"Float32": pa.float32(), "Float64": pa.float64()}
_EPOCH = date(1970, 1, 1)


class LazyRows(Protocol):
    """A query that can be narrowed: a `Scan`."""

    @property
    def schema(self) -> pa.Schema: ...

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> LazyRows: ...

    def first_rows(self, n: int | None) -> LazyRows: ...

    def to_batches(self) -> pa.RecordBatchReader: ...


def polars_source(scan: LazyRows) -> LazyFrame:
    """`Scan.to_polars(lazy=True)`."""
    return register_io_source(_Source(scan), schema=_frame(scan.schema.empty_table()).schema)


@dataclass(frozen=True)
class _Source:
    """What polars calls for the rows of a query."""

    scan: LazyRows

    def __call__(
        self, with_columns: list[str] | None, predicate: Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[DataFrame]:
        condition = None if predicate is None or n_rows is not None else condition_of(predicate)
        scan = self.scan
        if with_columns is not None or condition is not None:
            try:
                scan = self.scan.narrowed(with_columns, condition)
            except ConfigError:  # polars compares types that a filter of ours does not
                scan = self.scan.narrowed(with_columns)
        for batch in scan.first_rows(n_rows).to_batches():
            frame = _frame(pa.Table.from_batches([batch]))
            yield frame if predicate is None else frame.filter(predicate)


def _frame(rows: pa.Table) -> DataFrame:
    frame = from_arrow(rows)
    assert isinstance(frame, DataFrame)
    return frame


class _Unknown(Exception):
    """A part of a filter that has no translation."""


def condition_of(predicate: Expr) -> pc.Expression | None:
    """A condition that every row which passes the filter fulfils. None: nothing of it is known."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # whatever polars can't write as JSON, a Python function among it
        return None
    known = []
    for part in _conjuncts(tree):
        try:
            known.append(_condition(part))
        except (_Unknown, pa.ArrowException, ValueError, TypeError, KeyError, OverflowError):
            continue
    return reduce(and_, known) if known else None


def _conjuncts(node: Node) -> Iterator[Node]:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield node


def _condition(node: Node) -> pc.Expression:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            return _condition(left) & _condition(right)
        case {"BinaryExpr": {"left": left, "op": "Or", "right": right}}:
            return _condition(left) | _condition(right)
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": {"Literal": literal}}}:
            return _compared(name, op, _value(literal))
        case {"BinaryExpr": {"left": {"Literal": literal}, "op": str(op), "right": {"Column": str(name)}}}:
            return _compared(name, _MIRRORED.get(op, op), _value(literal))
        case {"Function": {"input": [{"Column": str(name)}, *others], "function": function}}:
            return _called(pc.field(name), others, function)
    raise _Unknown


def _compared(name: str, op: str, value: object) -> pc.Expression:
    if op not in _COMPARISONS:
        raise _Unknown
    condition = getattr(pc.field(name), _COMPARISONS[op])(value)
    assert isinstance(condition, pc.Expression)
    if isinstance(value, pa.FloatScalar | pa.DoubleScalar):
        if math.isnan(value.as_py()):
            raise _Unknown
        if op in _HOLDS_FOR_NAN:
            return condition | pc.is_nan(pc.field(name))
    return condition


def _called(column: pc.Expression, others: list[Node], function: Node) -> pc.Expression:
    match function, others:
        case {"Boolean": "IsNull"}, []:
            return column.is_null()
        case {"Boolean": "IsNotNull"}, []:
            return ~column.is_null()
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [{"Literal": {"Scalar": {"List": bytes_of_values}}}]:
            with pa.ipc.open_stream(bytes(bytes_of_values)) as stream:
                values = stream.read_all().column(0).combine_chunks()
            if values.null_count or not (pa.types.is_integer(values.type) or _is_text(values.type)):
                raise _Unknown
            return column.isin(values.cast(pa.string()) if _is_text(values.type) else values)
        case {"Boolean": {"IsBetween": {"closed": "Both"}}}, [{"Literal": low}, {"Literal": high}]:
            return (column >= _value(low)) & (column <= _value(high))
    raise _Unknown


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _value(literal: Node) -> pa.Scalar:
    match literal:
        case {"Scalar": {**entry}} if len(entry) == 1:
            return _scalar(*next(iter(entry.items())))
    raise _Unknown


def _scalar(kind: object, value: Node) -> pa.Scalar:
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
    raise _Unknown
