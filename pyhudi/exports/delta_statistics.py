"""A file's statistics as Delta's log has them: a JSON text of counts and bounds, from the Parquet footer.

    columns      the first 32 of types whose order all readers share, as they were when the log was made; its property
                 `delta.dataSkippingStatsColumns` names them
    texts        cut after 32 characters; a greatest one that was cut is raised to one above all that begin so
    timestamps   in milliseconds, the greatest rounded up
    floats       none: NaN is outside of Parquet's bounds, and readers differ in where it is
    a column without bounds    none of the file: deltalake's pyarrow datasets then take its bounds for null, and
                 would skip the file whatever the filter is

Source: Delta's protocol, "Per-file Statistics"; "Table properties" for the property.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from pyhudi.exports.footer_bounds import ColumnBounds

__all__ = ["STATISTICS_COLUMNS", "columns_named", "columns_with_statistics", "statistics_text"]

STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
_COLUMNS_MAX = 32  # as in Delta's own writers
# One value in all rows of a file, or values of no use for skipping.
_OF_NO_USE = frozenset(("_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name"))
_NAME = re.compile(r"\w+", re.ASCII)  # others would have to be quoted in the property
_TEXT_CHARACTERS = 32
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
_SURROGATES = range(0xD800, 0xE000)  # code points that are no characters
_LAST = 0x10FFFF


def columns_with_statistics(columns: pa.Schema, partition_columns: Collection[str]) -> dict[str, str]:
    """The property of a new log, none when no column has statistics."""
    names = [
        one.name
        for one in columns
        if _is_ordered(one.type) and _NAME.fullmatch(one.name) and one.name not in {*_OF_NO_USE, *partition_columns}
    ]
    return {STATISTICS_COLUMNS: ",".join(names[:_COLUMNS_MAX])} if names else {}


def columns_named(configuration: Mapping[str, str | None], columns: pa.Schema) -> dict[str, pa.DataType]:
    """The columns that a log's property names, and their types."""
    named = (configuration.get(STATISTICS_COLUMNS) or "").split(",")
    return {one.name: one.type for one in columns if one.name in named}


def statistics_text(row_count: int, found: Iterable[ColumnBounds], types: Mapping[str, pa.DataType]) -> str:
    """The JSON of a file. `types`: of the columns with statistics. A column that the file lacks is null."""
    bounds = {one.name: one for one in found}
    least, greatest, nulls = dict[str, str](), dict[str, str](), dict[str, str]()
    for name, kind in types.items():
        one = bounds.get(name) or ColumnBounds(name, row_count, row_count)
        low, high = _text(one.least, kind), _text(one.greatest, kind, is_upper=True)
        if one.nulls is None or (one.nulls < one.values and (low is None or high is None)):
            return _object({"numRecords": str(row_count)})
        nulls[name] = str(one.nulls)
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    parts = {"minValues": _object(least), "maxValues": _object(greatest), "nullCount": _object(nulls)}
    return _object({"numRecords": str(row_count), **(parts if types else {})})


def _is_ordered(kind: pa.DataType) -> bool:
    """Do all readers take these values in one order?"""
    types = pa.types
    tests = (types.is_signed_integer, types.is_string, types.is_decimal, types.is_date, types.is_timestamp)
    return any(is_one(kind) for is_one in tests)


def _object(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in values.items())}}}"


def _text(value: object, kind: pa.DataType, *, is_upper: bool = False) -> str | None:
    """A bound as JSON; None for one that can't be said."""
    if isinstance(value, str):
        bound = _above(value) if is_upper else value[:_TEXT_CHARACTERS]
        return None if bound is None else json.dumps(bound)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    try:
        if pa.types.is_date(kind):
            return json.dumps((_EPOCH_DAY + timedelta(days=value)).isoformat())
        if pa.types.is_timestamp(kind):
            ms = -(-value // 1000) if is_upper else value // 1000
            text = (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
            return json.dumps(text if kind.tz is None else f"{text}Z")
    except OverflowError:  # outside of the years 1 to 9999
        return None
    return str(value)


def _above(text: str) -> str | None:
    """The text, or a short one that is above all that begin as it does; None when there is none."""
    if len(text) <= _TEXT_CHARACTERS:
        return text
    for end in range(_TEXT_CHARACTERS, 0, -1):
        following = ord(text[end - 1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST:
            return text[: end - 1] + chr(following)
    return None
