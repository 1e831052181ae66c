"""Parse whole columns of date text at once, for the formats and texts that most data has.

A format of four-digit years and two-digit fields (`yyyy-MM-dd'T'HH:mm:ss.SSSZ`, `yyyyMMdd`) and texts that have exactly
these digits: then Joda-Time's result is plain. All other texts are left to joda_parse.py, so that there is one place
for the irregular rules. Source: docs/formats/keys.md, "Times".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.java.joda import tokenize
from pyhudi.java.time_zones import FIRST_LOCAL_MS, LAST_LOCAL_MS, UTC, Zone

__all__ = ["Longs", "offsets_at", "read_local_times"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DAY_MS = 86_400_000
_WIDTHS = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_RANGES = {"y": (1, 9999), "M": (1, 12), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
_OFFSET = "(?P<Z>Z|[-+](?:[01][0-9]|2[0-3]):?[0-5][0-9])"


def read_local_times(
    texts: pa.Array, pattern: str, input_zone: Zone | None, output_zone: Zone | None
) -> tuple[Longs, Mask]:
    """Return the local milliseconds of texts, as the output zone shows them, and which texts were read.

    Args:    texts: string array without nulls; output_zone: None: the input zone, else the text's own offset.
    Returns: two arrays as long as `texts`; where the second is false, the first has no meaning.
    """
    shape = _shape(pattern)
    if shape is None or not len(texts):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    parts = pc.extract_regex(texts, shape)
    is_read = np.asarray(parts.is_valid(), dtype=np.bool_)
    fields = {part.name: pc.struct_field(parts, part.name) for part in parts.type}
    own_offset = fields.pop("Z", None)
    local, inside = _local_millis(fields, len(texts))
    is_read &= inside
    source = input_zone or UTC
    if own_offset is not None:
        target = output_zone or input_zone
        offsets = _own_offsets(own_offset)
    else:
        target = None if output_zone in (None, source) else output_zone
        is_read &= _even_days(local, source)
        offsets = offsets_at(local, source) if target else local  # constant for the whole day
    if target is None:
        return local, is_read  # shown as it is written
    utc = local - offsets
    shown = utc + offsets_at(utc, target)
    return shown, is_read & (shown >= FIRST_LOCAL_MS) & (shown <= LAST_LOCAL_MS)


def offsets_at(utc_ms: Longs, zone: Zone) -> Longs:
    """Return the offset of each instant: one look-up per day, and one per instant on days when clocks change."""
    if zone.fixed_ms is not None:
        return np.full(len(utc_ms), zone.fixed_ms, np.int64)
    days = pa.array(utc_ms // _DAY_MS).dictionary_encode()
    distinct = cast("list[int]", days.dictionary.to_pylist())
    first = np.array([zone.offset_at(day * _DAY_MS) for day in distinct], np.int64)
    last = np.array([zone.offset_at((day + 1) * _DAY_MS - 1) for day in distinct], np.int64)
    indices = np.asarray(days.indices)
    offsets: Longs = first[indices]
    uneven = (first != last)[indices]
    if uneven.any():
        instants, places = np.unique(utc_ms[uneven], return_inverse=True)
        offsets[uneven] = np.array([zone.offset_at(int(instant)) for instant in instants], np.int64)[places]
    return offsets


@lru_cache(maxsize=256)
def _shape(pattern: str) -> str | None:
    """Return the regular expression of texts that have exactly the pattern's digits; None for other patterns."""
    pieces, letters = [], set()
    for token in tokenize(pattern):
        if not token.letter:
            if any(char.isdigit() for char in token.text):
                return None
            pieces.append(re.escape(token.text))
            continue
        if token.letter in letters:
            return None
        letters.add(token.letter)
        if token.letter == "Z" and token.count < 3:
            pieces.append(_OFFSET)
        elif token.letter == "S":
            pieces.append(f"(?P<S>[0-9]{{{token.count}}})")
        elif token.letter in _WIDTHS and token.count == _WIDTHS[token.letter]:
            pieces.append(f"(?P<{token.letter}>[0-9]{{{token.count}}})")
        else:
            return None
    # Year, month and day, so that every date is whole and needs no defaults.
    return f"^{''.join(pieces)}$" if {"y", "M", "d"} <= letters else None


def _local_millis(texts: dict[str, pa.Array], rows: int) -> tuple[Longs, Mask]:
    """Return local milliseconds from the digits of the fields, and which dates and times there are."""
    if "S" in texts:
        texts["S"] = pc.utf8_slice_codeunits(pc.utf8_rpad(texts["S"], 3, "0"), 0, 3)
    # 1 where the text did not fit.
    fields = {name: np.asarray(text.fill_null("1").cast(pa.int64()), dtype=np.int64) for name, text in texts.items()}
    year, month, day = fields["y"], fields["M"], fields["d"]
    inside = np.ones(rows, np.bool_)
    for name, (low, high) in _RANGES.items():
        if name in fields:
            inside &= (fields[name] >= low) & (fields[name] <= high)
    months = (year - 1970) * 12 + month - 1
    first_day, next_month = _first_days(months), _first_days(months + 1)
    inside &= (day >= 1) & (day <= next_month - first_day)
    days = first_day + day - 1
    zero = np.zeros(rows, np.int64)
    seconds = fields.get("H", zero) * 3600 + fields.get("m", zero) * 60 + fields.get("s", zero)
    return days * _DAY_MS + seconds * 1000 + fields.get("S", zero), inside


def _first_days(months: Longs) -> Longs:
    """Return days since 1970-01-01 on which months begin, counted from January 1970."""
    days: Longs = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def _own_offsets(column: pa.Array) -> Longs:
    """Return milliseconds of `Z`, `+hhmm` and `+hh:mm`."""
    encoded = column.fill_null("Z").dictionary_encode()
    values = []
    for text in cast("list[str]", encoded.dictionary.to_pylist()):
        digits = text.replace(":", "")
        minutes = 0 if digits == "Z" else int(digits[1:3]) * 60 + int(digits[3:5])
        values.append((-minutes if digits[0] == "-" else minutes) * 60_000)
    offsets: Longs = np.array(values, np.int64)[np.asarray(encoded.indices)]
    return offsets


def _even_days(local_ms: Longs, zone: Zone) -> Mask:
    """True for local times around which the zone's clocks are not changed, by more than a day."""
    if zone.fixed_ms is not None:
        return np.ones(len(local_ms), np.bool_)
    days = pa.array(local_ms // _DAY_MS).dictionary_encode()
    even = [
        zone.offset_at((day - 1) * _DAY_MS) == zone.offset_at((day + 2) * _DAY_MS)
        for day in cast("list[int]", days.dictionary.to_pylist())
    ]
    mask: Mask = np.array(even, np.bool_)[np.asarray(days.indices)]
    return mask
