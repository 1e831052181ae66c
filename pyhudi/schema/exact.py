"""Lossless casts, for the values of keys and partition paths.

A key is the text of a value, and the text depends on the type: 1 is the key "1", 1.0 is "1.0", "01" is "01". Two types
in one column would make two rows of one value. So values get the column's type before they become text, and a value
that the column can't hold unchanged is refused.

number → number        the same number; a float beyond the whole numbers that it can count is refused
text → number, date    only as the column would write it: "1", not "01"; also text → boolean
whole number, decimal, date, boolean → text
local time → date      at midnight, and back; times to times of another unit, never between UTC and local
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_text
from pyhudi.errors import SchemaMismatch
from pyhudi.java.key_text import text_of
from pyhudi.schema.casts import cast
from pyhudi.schema.projection import project, same_layout

__all__ = ["COUNTS_TO", "can_be_exact", "exactly"]

COUNTS_TO = {pa.float16(): 1 << 11, pa.float32(): 1 << 24, pa.float64(): 1 << 53}  # every whole number up to it


def can_be_exact(source: pa.DataType, target: pa.DataType) -> bool:
    """True if some value of `source` can be one of `target`. `exactly` then checks the values."""
    if pt.is_dictionary(source):
        return can_be_exact(source.value_type, target)
    if pt.is_null(source) or same_layout(source, target):
        return True
    if _is_number(source) and _is_number(target):
        return True
    if is_text(source):
        return is_text(target) or _is_number(target) or pt.is_boolean(target) or pt.is_date(target)
    if is_text(target):
        return pt.is_integer(source) or pt.is_decimal(source) or pt.is_date(source) or pt.is_boolean(source)
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    if _is_local(source) and pt.is_date(target):
        return True
    if pt.is_date(source):
        return bool(pt.is_date(target)) or _is_local(target)
    return bool((is_bytes(source) and is_bytes(target)) or (pt.is_time(source) and pt.is_time(target)))


def exactly(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """Return the array as `target`, each value unchanged.

    Args:    path: the column's name, for the error.
    Raises:  SchemaMismatch for types that have no common values, and for the first value that would change.
    """
    source = array.type
    if source.equals(target):
        return array
    if not can_be_exact(source, target):
        raise _refusal(path, source, target, "")
    if isinstance(array, pa.DictionaryArray):
        return exactly(array.dictionary, target, path).take(array.indices)
    if pt.is_null(source):
        return pa.nulls(len(array), target)
    try:
        made, changed = _convert(array, target)
    except pa.ArrowException:
        made, changed = None, None
    if made is None:
        bad = next((value for value in array if value.is_valid and not _fits(value, target)), None)
        raise _refusal(path, source, target, f", such as {bad.as_py()!r:.100}" if bad is not None else "")
    if changed is not None and pc.any(changed).as_py():
        bad = array[pc.index(changed, True).as_py()]
        raise _refusal(path, source, target, f", such as {bad.as_py()!r:.100}")
    return made


def _convert(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Return the array as `target`, and where values changed (None: nowhere). Raises pa.ArrowException."""
    source = array.type
    if same_layout(source, target):
        return project(pa.record_batch([array], names=["_"]), pa.schema([("_", target)])).column(0), None
    if is_text(target):
        return (array if is_text(source) else text_of(array)).cast(target), None
    if is_text(source):
        made = cast(array, target) if pt.is_decimal(target) else array.cast(target)
        return made, pc.not_equal(text_of(made), array.cast(pa.string()))
    if _is_number(source):
        return _numbers(array, target)
    made = array.cast(target)
    back = pa.timestamp(source.unit, source.tz) if pt.is_timestamp(source) else source
    return made, pc.not_equal(made.cast(back), array)


def _numbers(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    source = array.type
    if pt.is_floating(source) and pt.is_floating(target):
        made = cast(array, target)
        is_wider = COUNTS_TO[target] > COUNTS_TO[source]
        return made, None if is_wider else pc.not_equal(cast(made, source), array)
    if pt.is_floating(source):
        # A float beyond this may stand for several whole numbers, of which a key could be any.
        too_large = _beyond(array, COUNTS_TO[source])
        if pt.is_integer(target):
            return array.cast(target), too_large
        made = cast(array, target)
        return made, pc.or_(too_large, pc.not_equal(made.cast(pa.string()).cast(source), array))
    if pt.is_floating(target) and pt.is_decimal(source):
        made = array.cast(pa.string()).cast(target)
        return made, pc.not_equal(cast(made, source), array)
    return cast(array, target) if pt.is_decimal(target) else array.cast(target), None


def _beyond(array: pa.Array, bound: int) -> pa.Array:
    low, high = (pa.scalar(float(end), array.type) for end in (-bound, bound))
    return pc.or_(pc.less(array, low), pc.greater(array, high))


def _fits(value: pa.Scalar, target: pa.DataType) -> bool:
    try:
        _convert(pa.array([value.as_py()], value.type), target)
    except pa.ArrowException:
        return False
    return True


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _is_local(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is None)


def _refusal(path: str, source: pa.DataType, target: pa.DataType, example: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"Column {path!r} makes keys or partition paths: the table has {target}, and the data {source} with values "
        f"that are none of {target} as they are{example}. Cast the column to {target} in the data. Nothing was written."
    )
