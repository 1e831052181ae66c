"""Expression indexes of the metadata table: ranges and bloom filters for functions of columns.

An expression index belongs to one function of one column, and serves filters with exactly this function:

    from_unixtime(ts, 'yyyy-MM-dd') = '2024-01-01'    an index of exactly this function of this column

`statistics.ColumnStatistics` reads the ranges. PyHudi computes functions of times in UTC, Spark in the time zone of its
session, and no index names its zone. So `in_any_zone` widens the range of such an index to every zone. Where that is
not possible, the index is not used.

`BloomFilters` skips base files by the bloom filters of expression indexes:

    lower(city) = 'bern'    base files without log files whose filter surely lacks the text 'bern'

Source: docs/formats/metadata-table.md, "Expression index", "Bounds".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import pyarrow as pa

from pyhudi.expressions.column_functions import FUNCTIONS, pattern_fields
from pyhudi.expressions.columns import resolve, resolve_operand
from pyhudi.expressions.predicates import Call, Predicate, Value, calls_of, is_opaque
from pyhudi.expressions.statistics.ranges import ValueRange, exact_values
from pyhudi.formats.bloom import BloomFilter
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import bloom_filter_key, stored_partition
from pyhudi.metadata.partitions.expression_index import call_of_definition, is_bloom_index, why_no_expression_index
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.skipper import Answer, SkipRequest

__all__ = ["MAX_BLOOM_VALUES", "BloomFilters", "depends_on_zone", "expression_indexes", "in_any_zone"]


_MAX_OFFSET = timedelta(hours=18)  # of a zone to UTC: java.time has no larger ones
_IN_ORDER = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_CODES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_LONGEST = {
    "yyyy": 366,
    "MM": 31,
    "dd": 1,
    "HH": 1,
    "mm": 1,
    "ss": 1,
}  # days that a text covers whose last part this is
_YEAR_DIGITS = 4


def expression_indexes(table: MetadataTable, predicate: Predicate, *, blooms: bool = False) -> Mapping[Call, str]:
    """Functions in the predicate with a usable index → its partition in the metadata table.

    Args:   blooms: indexes of bloom filters; else those of ranges. Raises CorruptFile.
    """
    calls = set(calls_of(predicate))
    names = [name for name in table.partitions if kind_of(name) is MetadataKind.EXPRESSION_INDEX] if calls else []
    definitions = read_index_definitions(table.data.storage).by_name if names else {}
    indexes: dict[Call, str] = {}
    for name in names:
        if why_no_expression_index(table.data, name) is not None or is_bloom_index(definitions[name]) is not blooms:
            continue
        call = call_of_definition(definitions[name])
        if call in calls:
            indexes[call] = name
    return indexes


def in_any_zone(call: Call, column_type: pa.DataType, stored: ValueRange) -> ValueRange:
    """The range in UTC for a range of an index that was made in any zone."""
    if not depends_on_zone(call, column_type):
        return stored
    widen = _widening(call)
    low = None if stored.low is None or widen is None else widen(stored.low, False)
    high = None if stored.high is None or widen is None else widen(stored.high, True)
    return replace(stored, low=low, high=high)


def depends_on_zone(call: Call, column_type: pa.DataType) -> bool:
    """True if the session's time zone changes the function's result for a column of this type."""
    return FUNCTIONS[call.function].depends_on_zone and not pa.types.is_date32(column_type)


def _widening(call: Call) -> Callable[[Value, bool], Value] | None:
    """A function that widens a bound (True: an upper one) to a bound in UTC; None if that is impossible."""
    if call.function in ("from_unixtime", "date_format"):
        pattern = dict(call.options)["format"]
        return (lambda text, upper: _moved_text(text, pattern, upper)) if _is_ordered(pattern) else None
    if call.function == "to_date":
        return _moved_day
    if call.function == "year":
        return lambda year, upper: year + (1 if upper else -1)
    return None


def _is_ordered(pattern: str) -> bool:
    """True if texts of this pattern sort in the order of their times."""
    parts = tuple(part for part in pattern_fields(pattern) or () if part in _CODES)
    return bool(parts) and parts == _IN_ORDER[: len(parts)]


def _moved_text(text: str, pattern: str, upper: bool) -> str | None:
    parts = pattern_fields(pattern) or ()
    code = "".join(_CODES.get(part, part.strip("'").replace("%", "%%")) for part in parts)
    try:
        moment = datetime.strptime(text, code)
        if _text(moment, parts) != text:
            return None  # a year of more digits, or a text that this pattern can't produce
        longest = timedelta(days=_LONGEST[[part for part in parts if part in _CODES][-1]])
        return _text(moment + longest + _MAX_OFFSET if upper else moment - _MAX_OFFSET, parts)
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


# The limit for values that a query looks up in bloom filters: with more values, nearly every filter seems to have one.
MAX_BLOOM_VALUES = 1000
_FILTERS_AT_ONCE = 64  # in memory; Hudi's own have some 430 kB each
_PAYLOAD = MetadataKind.BLOOM_FILTERS.payloads[0]


class BloomFilters:
    """Skips base files that surely lack the values that the filter compares a function with."""

    name = "bloom filters of expressions"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        predicate = request.predicate
        if not calls_of(predicate) or is_opaque(predicate) or all(read.merges for read in slices):
            return None
        skipped = set[FileSlice]()
        for call, index in expression_indexes(request.table, predicate, blooms=True).items():
            texts = _texts(predicate, call, request.schema)
            if texts is None:
                continue
            column = call.column.path[0]
            base_files = [read.file_slice for read in slices if not read.merges and column not in read.from_path]
            for at in range(0, len(base_files), _FILTERS_AT_ONCE):
                skipped |= _without(request.table, index, base_files[at : at + _FILTERS_AT_ONCE], texts)
        return Answer([read.merges or read.file_slice not in skipped for read in slices])


def _texts(predicate: Predicate, call: Call, schema: pa.Schema) -> pa.Array | None:
    """The texts of the only values with which a row can pass; None if there may be others."""
    values = exact_values(predicate, call)
    of_times = FUNCTIONS[call.function].depends_on_zone and not pa.types.is_date32(resolve(call.column, schema)[1])
    if values is None or len(values) > MAX_BLOOM_VALUES or of_times:
        return None  # the time zone in which Spark made the filters is unknown
    try:
        return pa.array(values, resolve_operand(call, schema)[1]).cast(pa.string())
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # the values are not of the function's type


def _without(table: MetadataTable, index: str, slices: Sequence[FileSlice], texts: pa.Array) -> set[FileSlice]:
    """The slices whose base file surely has none of the texts."""
    keys = {
        bloom_filter_key(stored_partition(one.group.partition_path), one.base_file.name): one
        for one in slices
        if one.base_file is not None
    }
    records = table.lookup(index, keys)
    if not records.num_rows:
        return set()
    blooms = zip(records.column("key").to_pylist(), records.column(_PAYLOAD).to_pylist(), strict=True)
    return {
        keys[str(key)]
        for key, bloom in blooms
        if bloom is not None
        and not BloomFilter.from_base64(bloom["bloomFilter"].decode(), bloom["type"]).might_contain(texts).any()
    }
