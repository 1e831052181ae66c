"""The table of functions: a row for each function has its arguments, its type and its computation.

A function without a row is refused by name (`rule_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import CAST_MACROS
from pyhudi.expressions.functions import conditions, nested, numbers, texts, times
from pyhudi.expressions.functions.aggregates import AGGREGATES, GENERATORS, WINDOWS
from pyhudi.expressions.functions.registry import Rule
from pyhudi.expressions.functions.texts import KERNELS
from pyhudi.expressions.types import BINARY, BOOLEAN, BYTE, DATE, DOUBLE, FLOAT, INT, LONG, MOMENT, SHORT, STRING

__all__ = ["AGGREGATES", "FUNCTIONS", "GENERATORS", "KERNELS", "MACROS", "WINDOWS", "rule_of"]

_CASTS: Mapping[str, pa.DataType] = {
    "boolean": BOOLEAN,
    "tinyint": BYTE,
    "smallint": SHORT,
    "int": INT,
    "bigint": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": MOMENT,
}

FUNCTIONS: Mapping[str, Rule] = {
    **numbers.ROWS,
    **texts.ROWS,
    **conditions.ROWS,
    **times.ROWS,
    **nested.ROWS,
    **{name: conditions.converted(kind) for name, kind in _CASTS.items()},
}

# DuckDB macros. Some use others, so the order matters.
MACROS: Mapping[str, str] = {**CAST_MACROS, **numbers.MACROS, **texts.MACROS, **times.MACROS, **nested.MACROS}


def rule_of(name: str) -> Rule:
    """The row of a function of values. Raises ConfigError for a function without a row."""
    rule = FUNCTIONS.get(name)
    if rule is not None:
        return rule
    near = get_close_matches(name, [known for known in FUNCTIONS if known.isidentifier()], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"the function {name} is not among those that mean the same without Spark.{hint}")
