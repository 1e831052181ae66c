"""Functions of columns that a filter and an expression index may name, by Spark's names and Hudi's options.

`pyhudi/java/spark_functions.py` computes them. Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhudi.model.predicate.limits import NotUnderstood, brief
from pyhudi.model.predicate.tree import Call, Column, Value

__all__ = ["CALL_ARGUMENTS", "call_of", "call_sql", "call_with"]

# Function → names of Hudi's options for its arguments after the column, in order.
CALL_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "identity": (),
    "lower": (),
    "upper": (),
    "trim": (),
    "ltrim": (),
    "rtrim": (),
    "length": (),
    "substring": ("pos", "len"),
    "year": (),
    "month": (),
    "day": (),
    "hour": (),
    "date_format": ("format",),
    "from_unixtime": ("format",),
    "to_date": (),
    "unix_timestamp": (),
    "date_add": ("days",),
    "date_sub": ("days",),
}
_DEFAULTS: Mapping[tuple[str, str], str] = {("from_unixtime", "format"): "yyyy-MM-dd HH:mm:ss"}
_TEXTS = frozenset({"format"})


def call_of(function: str, column: Column, options: Mapping[str, str]) -> Call:
    """The call of an index definition. A missing argument has Spark's default."""
    names = CALL_ARGUMENTS.get(function, ())
    defaults = {name: text for (of, name), text in _DEFAULTS.items() if of == function and name in names}
    return Call(function, column, tuple(sorted({**defaults, **options}.items())))


def call_with(function: str, column: Column, arguments: Sequence[Value]) -> Call:
    """The call in SQL text. Raises ConfigError for an unknown function, and for wrong arguments."""
    name = function.lower()
    names = CALL_ARGUMENTS.get(name)
    if names is None:
        raise NotUnderstood(
            f"The function {brief(function)} of {column} is not known exactly here; known are "
            f"{', '.join(CALL_ARGUMENTS)}."
        )
    least = sum((name, one) not in _DEFAULTS for one in names)
    fits = all(isinstance(value, str if one in _TEXTS else int) for one, value in zip(names, arguments, strict=False))
    if not least <= len(arguments) <= len(names) or not fits:
        raise NotUnderstood(
            f"{name}({column}, ...) has the arguments {', '.join(names) or 'none'} behind the column, found "
            f"{', '.join(map(brief, arguments)) or 'none'}."
        )
    return call_of(name, column, {one: str(value) for one, value in zip(names, arguments, strict=False)})


def call_sql(call: Call, column: str) -> str:
    """The call as SQL text. `column`: its column, quoted."""
    options = dict(call.options)
    names = CALL_ARGUMENTS.get(call.function, tuple(options))
    texts = (options[name] for name in names)
    literals = (_quoted(text) if name in _TEXTS else text for name, text in zip(names, texts, strict=True))
    return f"{call.function}({', '.join([column, *literals])})"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
