"""Files that a filter by a function of a column need not open, by the expression indexes of the metadata table.

    from_unixtime(ts, 'yyyy-MM-dd') = '2024-01-01'    an index of exactly this function of this column

Functions of times are those of UTC here, and of the session's time zone where Spark wrote the index: nothing tells
which. So what such an index says is taken for what any zone may have made of it, and where that says nothing, not at
all. Source: docs/formats/metadata-table.md, "Expression index", "Bounds".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta

import pyarrow as pa

from pyhudi.java.spark_functions import FUNCTIONS, pattern_fields
from pyhudi.metadata.expression_index import call_of_definition, is_bloom_index, why_no_expression_index
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.predicate import Call, Predicate, ValueRange, calls_of
from pyhudi.model.predicate.tree import Value

__all__ = ["depends_on_zone", "expression_indexes", "in_any_zone"]

_APART = timedelta(hours=18)  # of a zone and UTC, at most: java.time has none beyond
_IN_ORDER = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_CODES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_LONGEST = {"yyyy": 366, "MM": 31, "dd": 1, "HH": 1, "mm": 1, "ss": 1}  # days that a text with this last part is of
_YEAR_DIGITS = 4


def expression_indexes(table: MetadataTable, predicate: Predicate, *, blooms: bool = False) -> Mapping[Call, str]:
    """The functions in a predicate of which the metadata table has an index that can be followed → its partition.

    Args:   blooms: indexes of bloom filters; else those of ranges. Raises CorruptFile.
    """
    wanted = set(calls_of(predicate))
    names = [name for name in table.partitions if kind_of(name) is MetadataKind.EXPRESSION_INDEX] if wanted else []
    definitions = read_index_definitions(table.data.storage).by_name if names else {}
    found: dict[Call, str] = {}
    for name in names:
        if why_no_expression_index(table.data, name) is not None or is_bloom_index(definitions[name]) is not blooms:
            continue
        call = call_of_definition(definitions[name])
        if call in wanted:
            found[call] = name
    return found


def in_any_zone(call: Call, column_type: pa.DataType, known: ValueRange) -> ValueRange:
    """The range in UTC of what an index tells of the session's zone, whichever it was."""
    if not depends_on_zone(call, column_type):
        return known
    widen = _widening(call)
    low = None if known.low is None or widen is None else widen(known.low, False)
    high = None if known.high is None or widen is None else widen(known.high, True)
    return replace(known, low=low, high=high)


def depends_on_zone(call: Call, column_type: pa.DataType) -> bool:
    """Does the session's time zone change what the function makes of a column of this type?"""
    return FUNCTIONS[call.function].depends_on_zone and not pa.types.is_date32(column_type)


def _widening(call: Call) -> Callable[[Value, bool], Value] | None:
    """What makes a bound, and whether it is the upper one, a bound in UTC; None when nothing can."""
    if call.function in ("from_unixtime", "date_format"):
        pattern = dict(call.options)["format"]
        return (lambda text, upper: _moved_text(text, pattern, upper)) if _is_ordered(pattern) else None
    if call.function == "to_date":
        return _moved_day
    if call.function == "year":
        return lambda year, upper: year + (1 if upper else -1)
    return None


def _is_ordered(pattern: str) -> bool:
    """Are texts of this pattern in the order of their times?"""
    parts = tuple(part for part in pattern_fields(pattern) or () if part in _CODES)
    return bool(parts) and parts == _IN_ORDER[: len(parts)]


def _moved_text(text: str, pattern: str, upper: bool) -> str | None:
    parts = pattern_fields(pattern) or ()
    code = "".join(_CODES.get(part, part.strip("'").replace("%", "%%")) for part in parts)
    try:
        moment = datetime.strptime(text, code)
        if _text(moment, parts) != text:
            return None  # a year of more digits, or nothing that this pattern makes
        longest = timedelta(days=_LONGEST[[part for part in parts if part in _CODES][-1]])
        return _text(moment + longest + _APART if upper else moment - _APART, parts)
    except (ValueError, OverflowError):
        return None


def _text(moment: datetime, parts: tuple[str, ...]) -> str:
    values = {
        "yyyy": f"{moment.year:0{_YEAR_DIGITS}d}",
        "MM": f"{moment.month:02d}",
        "dd": f"{moment.day:02d}",
        "HH": f"{moment.hour:02d}",
        "mm": f"{moment.minute:02d}",
        "ss": f"{moment.second:02d}",
    }
    return "".join(values.get(part, part.strip("'")) for part in parts)


def _moved_day(day: date, upper: bool) -> date | None:
    try:
        return day + timedelta(days=1 if upper else -1)
    except OverflowError:
        return None
