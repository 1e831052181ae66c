"""Files that a filter by a function of a column need not open, by the expression indexes of the metadata table.

    from_unixtime(ts, 'yyyy-MM-dd') = '2024-01-01'    an index of exactly this function of this column

Functions of times are those of UTC here, and of the session's time zone where Spark wrote the index: nothing tells
which. So what such an index says is taken for what any zone may have made of it, and where that says nothing, not at
all. Source: docs/formats/metadata-table.md, "Expression index", "Bounds".

Base files that a filter by values of a function need not open, by the bloom filters of expression indexes.

    lower(city) = 'bern'    base files without log files whose filter surely lacks the text 'bern' are left out

Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import pyarrow as pa

from pyhudi.formats.bloom import BloomFilter
from pyhudi.java.spark_functions import FUNCTIONS, pattern_fields
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import bloom_filter_key, stored_partition
from pyhudi.metadata.partitions.expression_index import call_of_definition, is_bloom_index, why_no_expression_index
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice
from pyhudi.model.predicate import Call, Predicate, ValueRange, calls_of, is_opaque
from pyhudi.model.predicate.tree import Value
from pyhudi.queries.filters import resolve, resolve_operand
from pyhudi.queries.skip.keys import exact_values

__all__ = ["MAX_BLOOM_VALUES", "depends_on_zone", "expression_indexes", "in_any_zone", "slices_without"]


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


# Values that a query looks up in bloom filters: with more of them every filter has one by chance, or by right.
MAX_BLOOM_VALUES = 1000
_FILTERS_AT_ONCE = 64  # in memory; Hudi's own have some 430 kB each
_PAYLOAD = MetadataKind.BLOOM_FILTERS.payloads[0]


def slices_without(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, slices: Mapping[FileSlice, Collection[str]]
) -> frozenset[FileSlice]:
    """Those of the slices that surely have no row that the predicate keeps.

    Args:   predicate: bound to `schema`; slices: those of which only the base file is read → its columns whose values
            are not those in the file.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    left_out: set[FileSlice] = set()
    indexes = {} if is_opaque(predicate) else expression_indexes(table, predicate, blooms=True)
    for call, index in indexes.items():
        texts = _texts(predicate, call, schema)
        if texts is None:
            continue
        own = [one for one, from_path in slices.items() if call.column.path[0] not in from_path]
        for at in range(0, len(own), _FILTERS_AT_ONCE):
            left_out |= _without(table, index, own[at : at + _FILTERS_AT_ONCE], texts)
    return frozenset(left_out)


def _texts(predicate: Predicate, call: Call, schema: pa.Schema) -> pa.Array | None:
    """The texts of the only values with which a row can pass; None when there may be others."""
    values = exact_values(predicate, call)
    of_times = FUNCTIONS[call.function].depends_on_zone and not pa.types.is_date32(resolve(call.column, schema)[1])
    if values is None or len(values) > MAX_BLOOM_VALUES or of_times:
        return None  # nothing tells in which time zone Spark made the filters
    try:
        return pa.array(values, resolve_operand(call, schema)[1]).cast(pa.string())
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # values that are none of the function's type


def _without(table: MetadataTable, index: str, slices: Sequence[FileSlice], texts: pa.Array) -> set[FileSlice]:
    keys = {
        bloom_filter_key(stored_partition(one.group.partition_path), one.base_file.name): one
        for one in slices
        if one.base_file is not None
    }
    found = table.lookup(index, keys)
    if not found.num_rows:
        return set()
    stored = found.column(_PAYLOAD).to_pylist()
    known = zip(found.column("key").to_pylist(), stored, strict=True)
    return {
        keys[str(key)]
        for key, one in known
        if one is not None
        and not BloomFilter.from_base64(one["bloomFilter"].decode(), one["type"]).might_contain(texts).any()
    }
