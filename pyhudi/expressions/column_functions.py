"""Spark's functions of one column, on Arrow arrays: those of Hudi's expression indexes that can be computed exactly.

Times are in UTC, as always if no zone is given.

    text        lower upper trim ltrim rtrim length substring
    moments     year month day hour date_format to_date unix_timestamp      of dates and timestamps
    numbers     from_unixtime                                               seconds since 1970
    dates       date_add date_sub
    anything    identity

The result for null is null. Source: docs/formats/metadata-table.md, "Expression index"; Spark's SQL reference,
"Functions" and "Datetime patterns".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_text
from pyhudi.expressions.limits import NotUnderstood
from pyhudi.expressions.predicates import Call, Column, Value
from pyhudi.redaction import brief

__all__ = [
    "CALL_ARGUMENTS",
    "FUNCTIONS",
    "SparkFunction",
    "call_of",
    "call_sql",
    "call_with",
    "compute",
    "pattern_fields",
    "result_type",
    "why_not",
]

_Longs: TypeAlias = npt.NDArray[np.int64]
_Options: TypeAlias = Mapping[str, str]

_SECOND, _DAY_S = 1_000_000, 86_400
_UNITS = {"s": 1, "ms": 1000, "us": _SECOND, "ns": 10**9}  # of a timestamp, in a second
_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|'[^']+'|[^A-Za-z'#\[\]{}]")
_LETTERS = frozenset({"yyyy", "MM", "dd", "HH", "mm", "ss"})
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)

# Function → the names of Hudi's options for the arguments that follow the column, in order.
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


@dataclass(frozen=True, slots=True)
class SparkFunction:
    """One function. `result`: the type of the results, None if the function does not take the column's type.
    `depends_on_zone`: its results depend on the zone, for timestamps or seconds.
    """

    compute: Callable[[pa.Array, _Options], pa.Array]
    result: Callable[[pa.DataType], pa.DataType | None]
    depends_on_zone: bool = False


def result_type(call: Call, column_type: pa.DataType) -> pa.DataType:
    """The type of the results. `why_not` must return None for the call."""
    result_type = FUNCTIONS[call.function].result(column_type)
    assert result_type is not None, call
    return result_type


def compute(call: Call, values: pa.Array) -> pa.Array:
    """Apply the function to each value. `why_not` must return None for the call."""
    plain = values.cast(pa.string()) if is_text(values.type) else values
    return FUNCTIONS[call.function].compute(plain, dict(call.options))


def why_not(call: Call, column_type: pa.DataType) -> str | None:
    """Why the call can't be computed exactly, as a part of a sentence; None if it can."""
    function = FUNCTIONS.get(call.function)
    if function is None:
        return f"the function {call.function!r} is not known exactly here; known are {', '.join(sorted(FUNCTIONS))}"
    options = dict(call.options)
    names = CALL_ARGUMENTS[call.function]
    unknown = sorted(set(options) - set(names))
    if unknown:
        return f"{call.function} with the option {unknown[0]!r} is not known exactly here"
    missing = [name for name in names if name not in options]
    if missing:
        return f"{call.function} needs the option {missing[0]!r}"
    if function.result(column_type) is None:
        return f"{call.function} of {column_type} ({call.column}) is not known exactly here"
    return _why_not_with(options)


def _why_not_with(options: _Options) -> str | None:
    pattern = options.get("format")
    if pattern is not None and pattern_fields(pattern) is None:
        return f"the format {pattern!r:.100} has other parts than yyyy, MM, dd, HH, mm, ss and signs"
    for name in ("pos", "len", "days"):
        if name in options and not _WHOLE.fullmatch(options[name]):
            return f"the option {name!r} is no whole number of at most nine digits: {options[name]!r:.100}"
    if int(options.get("pos", 0)) < 0:
        return "substring with a position counted from the end is not known exactly here"
    return None


def pattern_fields(pattern: str) -> tuple[str, ...] | None:
    """The parts of a datetime pattern, letters and signs; None if it has parts that this module does not know."""
    parts = _PATTERN.findall(pattern)
    return tuple(parts) if parts and "".join(parts) == pattern else None


# ---- text ------------------------------------------------------------------------------------------------------------


def _lower(values: pa.Array, options: _Options) -> pa.Array:
    return _in_case(values, pc.ascii_lower, str.lower)


def _upper(values: pa.Array, options: _Options) -> pa.Array:
    return _in_case(values, pc.ascii_upper, str.upper)


def _in_case(values: pa.Array, plain: Callable[[pa.Array], pa.Array], full: Callable[[str], str]) -> pa.Array:
    """Map case as Java does, by all of Unicode's rules ("ß" to "SS"). Arrow maps letter by letter: only for ASCII."""
    if pc.all(pc.string_is_ascii(values), min_count=0).as_py():
        return plain(values)
    coded = values.dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    texts = [full(str(text)) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _trimmed(trim: Callable[[pa.Array, str], pa.Array]) -> Callable[[pa.Array, _Options], pa.Array]:
    return lambda values, options: trim(values, " ")  # spaces only, no other white space


def _length(values: pa.Array, options: _Options) -> pa.Array:
    return pc.utf8_length(values).cast(pa.int32())


def _substring(values: pa.Array, options: _Options) -> pa.Array:
    start, length = max(int(options["pos"]) - 1, 0), max(int(options["len"]), 0)
    return pc.utf8_slice_codeunits(values, start, start + length)


# ---- moments ---------------------------------------------------------------------------------------------------------


def _seconds(values: pa.Array) -> _Longs:
    """The whole seconds of dates and timestamps; missing values have arbitrary numbers."""
    if pa.types.is_date32(values.type):
        return _numbers(values.cast(pa.int32())) * _DAY_S
    return _numbers(values.cast(pa.int64())) // _UNITS[values.type.unit]


def _numbers(values: pa.Array) -> _Longs:
    filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return cast("_Longs", np.asarray(filled).astype(np.int64))


def _civil(seconds: _Longs) -> dict[str, _Longs]:
    days = (seconds // _DAY_S).astype("M8[D]")
    months = days.astype("M8[M]")
    of_day = seconds % _DAY_S
    return {
        "yyyy": days.astype("M8[Y]").astype(np.int64) + 1970,
        "MM": months.astype(np.int64) % 12 + 1,
        "dd": (days - months.astype("M8[D]")).astype(np.int64) + 1,
        "HH": of_day // 3600,
        "mm": of_day // 60 % 60,
        "ss": of_day % 60,
    }


def _part(name: str) -> Callable[[pa.Array, _Options], pa.Array]:
    return lambda values, options: _null_where_null(_civil(_seconds(values))[name], values, pa.int32())


def _null_where_null(numbers: npt.NDArray[np.int64], values: pa.Array, kind: pa.DataType) -> pa.Array:
    wide = pa.array(numbers).cast(kind)
    return pc.if_else(values.is_valid(), wide, pa.scalar(None, kind))


def _formatted(seconds: _Longs, values: pa.Array, pattern: str) -> pa.Array:
    fields = _civil(seconds)
    parts: list[pa.Array | pa.Scalar] = []
    for part in pattern_fields(pattern) or ():
        if part not in _LETTERS:
            parts.append(pa.scalar(part.strip("'"), pa.string()))
        elif part == "yyyy":
            parts.append(_years(fields[part]))
        else:
            parts.append(pc.utf8_lpad(pa.array(fields[part]).cast(pa.string()), 2, "0"))
    text = pc.binary_join_element_wise(*parts, pa.scalar("", pa.string()))
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _years(years: _Longs) -> pa.Array:
    """Years with at least four digits, and with a sign after 9999 and before year 0."""
    digits = pc.utf8_lpad(pa.array(np.abs(years)).cast(pa.string()), 4, "0")
    signs = pa.array(np.where(years < 0, "-", np.where(years > 9999, "+", "")).tolist(), pa.string())
    return pc.binary_join_element_wise(signs, digits, "")


def _from_unixtime(values: pa.Array, options: _Options) -> pa.Array:
    # Spark converts them to microseconds, which overflows like Java's multiplication.
    micros = _numbers(values.cast(pa.int64())) * np.int64(_SECOND)
    return _formatted(micros // _SECOND, values, options["format"])


def _date_format(values: pa.Array, options: _Options) -> pa.Array:
    return _formatted(_seconds(values), values, options["format"])


def _to_date(values: pa.Array, options: _Options) -> pa.Array:
    return _null_where_null(_seconds(values) // _DAY_S, values, pa.int32()).cast(pa.date32())


def _unix_timestamp(values: pa.Array, options: _Options) -> pa.Array:
    """Seconds by integer division as in Java, truncating toward zero (rounding up before 1970)."""
    below = np.sign(_numbers(values.cast(pa.int64()))) < 0
    whole = _numbers(values.cast(pa.int64())) % _UNITS[values.type.unit] == 0
    return _null_where_null(_seconds(values) + (below & ~whole), values, pa.int64())


def _moved(sign: int) -> Callable[[pa.Array, _Options], pa.Array]:
    def moved(values: pa.Array, options: _Options) -> pa.Array:
        days = _numbers(values.cast(pa.int32())).astype(np.int32) + np.int32(sign * int(options["days"]))
        dates: pa.Array = pc.if_else(values.is_valid(), pa.array(days), pa.scalar(None, pa.int32()))
        return dates.cast(pa.date32())

    return moved


# ---- types -----------------------------------------------------------------------------------------------------------


def _of(
    kinds: Sequence[Callable[[pa.DataType], bool]], result: pa.DataType
) -> Callable[[pa.DataType], pa.DataType | None]:
    return lambda kind: result if any(is_kind(kind) for is_kind in kinds) else None


def _whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int32(kind) or pa.types.is_int64(kind))


def _same(kind: pa.DataType) -> pa.DataType | None:
    return kind if pa.types.is_string(kind) or _whole(kind) or pa.types.is_date32(kind) else None


_MOMENT = (pa.types.is_date32, pa.types.is_timestamp)
_OF_TEXT = _of((is_text,), pa.string())
_NUMBER = _of(_MOMENT, pa.int32())

FUNCTIONS: Mapping[str, SparkFunction] = {
    "identity": SparkFunction(lambda values, options: values, _same),
    "lower": SparkFunction(_lower, _OF_TEXT),
    "upper": SparkFunction(_upper, _OF_TEXT),
    "trim": SparkFunction(_trimmed(pc.utf8_trim), _OF_TEXT),
    "ltrim": SparkFunction(_trimmed(pc.utf8_ltrim), _OF_TEXT),
    "rtrim": SparkFunction(_trimmed(pc.utf8_rtrim), _OF_TEXT),
    "length": SparkFunction(_length, _of((is_text,), pa.int32())),
    "substring": SparkFunction(_substring, _OF_TEXT),
    "year": SparkFunction(_part("yyyy"), _NUMBER, depends_on_zone=True),
    "month": SparkFunction(_part("MM"), _NUMBER, depends_on_zone=True),
    "day": SparkFunction(_part("dd"), _NUMBER, depends_on_zone=True),
    "hour": SparkFunction(_part("HH"), _of((pa.types.is_timestamp,), pa.int32()), depends_on_zone=True),
    "date_format": SparkFunction(_date_format, _of(_MOMENT, pa.string()), depends_on_zone=True),
    "from_unixtime": SparkFunction(_from_unixtime, _of((_whole,), pa.string()), depends_on_zone=True),
    "to_date": SparkFunction(_to_date, _of(_MOMENT, pa.date32()), depends_on_zone=True),
    "unix_timestamp": SparkFunction(_unix_timestamp, _of((pa.types.is_timestamp,), pa.int64())),
    "date_add": SparkFunction(_moved(1), _of((pa.types.is_date32,), pa.date32())),
    "date_sub": SparkFunction(_moved(-1), _of((pa.types.is_date32,), pa.date32())),
}
