"""Functions of columns as Arrow expressions, so that Arrow filters by them as it does by its own.

Arrow has no kernels with Spark's meaning; a function with its arguments and the type of its column becomes one of
Arrow's functions when a filter first names it. Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.java.spark_functions import compute, result_type
from pyhudi.model.predicate import Call, Column

__all__ = ["MAX_CALLS", "call_expression"]

# Functions with different arguments that one process filters by: Arrow never forgets one.
MAX_CALLS = 10_000
_ANY_COLUMN = Column(("values",))
_names: dict[tuple[Call, pa.DataType], str] = {}
_lock = threading.Lock()


def call_expression(call: Call, column_type: pa.DataType) -> pc.Expression:
    """The function of its column, for a call that `why_not` of the functions says nothing of.

    Raises ConfigError for more than MAX_CALLS different ones in one process.
    """
    field = pc.field(*call.column.path)
    name = _registered(Call(call.function, _ANY_COLUMN, call.options), column_type)
    # Arrow's own way to call a function that is not among its kernels; the stubs do not know it.
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
