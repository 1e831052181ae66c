"""The Arrow back end: typed expressions whose Arrow kernels have Spark's meaning. DuckDB computes all others.

A `Form` names the kernel. Comparisons of floating-point numbers follow Spark's order, in which NaN equals itself and is
greater than every other number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.expressions.functions import KERNELS
from pyhudi.expressions.tree import Expression, TypedCall, TypedColumn, TypedLiteral
from pyhudi.expressions.types import STRING

__all__ = ["arrow_expression"]

_lock = threading.Lock()
_registered: set[str] = set()
_OF_NAN: dict[str, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    # The result of a comparison if the left or the right side is NaN.
    "equal": lambda left, right: left & right,
    "not_equal": lambda left, right: ~(left & right),
    "less": lambda left, right: right & ~left,
    "less_equal": lambda left, right: right,
    "greater": lambda left, right: left & ~right,
    "greater_equal": lambda left, right: left,
}


def arrow_expression(expression: Expression) -> pc.Expression | None:
    """Convert an expression to Arrow's; None if a part of it has no kernel with the same meaning."""
    match expression:
        case TypedColumn(path):
            return pc.field(*path)
        case TypedLiteral(value, kind):
            return pc.scalar(pa.scalar(value, kind))
        case TypedCall(form, arguments, kind) if form.arrow is not None:
            parts = [arrow_expression(argument) for argument in arguments]
            values = [part for part in parts if part is not None]
            if len(values) < len(parts):
                return None
            return _computed(form.arrow, values, [argument.type for argument in arguments], kind)
    return None


def _computed(
    kernel: str, values: Sequence[pc.Expression], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> pc.Expression:
    if kernel == "cast":
        return values[0].cast(kind)
    if kernel == "truncate":
        return _call("trunc", values).cast(kind)
    if kernel == "case":
        return _case(values, kind)
    if kernel == "concat":
        return _call("binary_join_element_wise", [*values, pc.scalar("")], pc.JoinOptions(null_handling="emit_null"))
    if kernel == "trim":
        return _call("utf8_trim", values, pc.TrimOptions(characters=" "))
    if kernel.startswith("match "):
        return pc.match_substring_regex(values[0], kernel.removeprefix("match "))
    if kernel.startswith("field "):
        place = pc.StructFieldOptions([int(kernel.removeprefix("field "))])  # type: ignore[attr-defined]
        return _call("struct_field", values, place)
    if kernel in _OF_NAN and any(map(pa.types.is_floating, kinds)):
        nan = [pc.is_nan(value) for value in values]
        return pc.if_else(nan[0] | nan[1], _OF_NAN[kernel](nan[0], nan[1]), _call(kernel, values))
    if kernel.startswith("pyhudi_"):
        _register(kernel)
    return _call(kernel, values)


def _case(values: Sequence[pc.Expression], kind: pa.DataType) -> pc.Expression:
    branches, otherwise = values[: len(values) // 2 * 2], values[len(values) // 2 * 2 :]
    result = otherwise[0] if otherwise else pc.scalar(pa.scalar(None, kind))
    for at in range(len(branches) - 2, -1, -2):
        is_true = _call("coalesce", [branches[at], pc.scalar(False)])
        result = _call("if_else", [is_true, branches[at + 1], result])
    return result


def _register(name: str) -> None:
    """Register a Python function with Arrow, once: Arrow never unregisters one."""
    with _lock:
        if name in _registered:
            return
        kernel = KERNELS[name.replace("pyhudi_", "spark_")]

        def computed(context: pc.UdfContext, values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
            if isinstance(values, pa.Scalar):
                one: pa.Scalar = kernel(pa.array([values.as_py()], STRING))[0]
                return one
            return kernel(values)

        doc = {"summary": f"Spark's {name.removeprefix('pyhudi_')}", "description": "As Java maps letters."}
        pc.register_scalar_function(computed, name, doc, {"values": STRING}, STRING)
        _registered.add(name)


def _call(name: str, arguments: Sequence[pc.Expression], options: pc.FunctionOptions | None = None) -> pc.Expression:
    """Call a kernel on expressions. `pyarrow.compute` would evaluate calls with only constants at once."""
    expression: pc.Expression = pc.Expression._call(name, list(arguments), options)  # type: ignore[attr-defined]
    return expression
