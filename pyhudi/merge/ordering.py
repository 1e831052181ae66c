"""Comparing ordering values column-wise, as Java's `compareTo` does.

Numbers by value over all widths, -0.0 below 0.0 and NaN above all, text by UTF-16 unit, bytes unsigned, false below
true. Null is smaller than everything and equal to null. Source: docs/formats/merging.md, "Ordering values".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.merge.base import Mask

__all__ = ["ordering_keys", "stored_is_greater"]

Key = npt.NDArray[np.int64] | npt.NDArray[np.bool_]

_SIGNLESS = np.int64(0x7FFFFFFFFFFFFFFF)


def stored_is_greater(stored: Sequence[pa.Array], incoming: Sequence[pa.Array]) -> Mask:
    """Return, pair by pair, whether the tuple of stored values is greater. One array per field, all of one length."""
    with _refuse_errors():
        return _stored_is_greater(stored, incoming)


def _stored_is_greater(stored: Sequence[pa.Array], incoming: Sequence[pa.Array]) -> Mask:
    rows = len(stored[0])
    greater = np.zeros(rows, np.bool_)
    undecided = np.ones(rows, np.bool_)
    for left, right in zip(stored, incoming, strict=True):
        both = _one_type(left, right)
        for key in _comparable(both):
            ours, theirs = key[:rows], key[rows:]
            greater |= undecided & (ours > theirs)
            undecided &= ours == theirs
    return greater


def ordering_keys(fields: Sequence[pa.Array]) -> list[Key]:
    """Return arrays to sort by, most significant first, that order rows as the tuple of `fields` does."""
    with _refuse_errors():
        return [key for values in fields for key in _comparable(values)]


@contextmanager
def _refuse_errors() -> Iterator[None]:
    """Refuse values that no type holds, such as timestamps beyond its years or text that is not UTF-8."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise SchemaMismatch(f"Ordering values can't be compared: {str(error)[:500]}.") from error


def _one_type(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return both arrays, one after the other, in a type that holds the values of both."""
    kinds = (left.type, right.type)
    if left.type != right.type:
        if any(pa.types.is_null(kind) for kind in kinds):
            target = kinds[1] if pa.types.is_null(kinds[0]) else kinds[0]
        elif all(pa.types.is_integer(kind) for kind in kinds):
            target = pa.int64()
        elif all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
            target = pa.float64()
        elif all(pa.types.is_decimal(kind) or pa.types.is_integer(kind) for kind in kinds):
            scale = max(kind.scale for kind in kinds if pa.types.is_decimal(kind))
            target = pa.decimal256(76, scale)
        elif all(
            pa.types.is_decimal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds
        ):
            target = pa.float64()
        elif all(pa.types.is_timestamp(kind) for kind in kinds):
            target = pa.timestamp("us", "UTC")
        elif all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
            target = pa.string()
        else:
            raise SchemaMismatch(f"Ordering values of types {kinds[0]} and {kinds[1]} can't be compared.")
        # A long is compared with a double as Java does, through the nearest double.
        is_exact = not pa.types.is_floating(target)
        left, right = left.cast(target, safe=is_exact), right.cast(target, safe=is_exact)
    return pa.concat_arrays([left, right])


def _comparable(values: pa.Array) -> list[Key]:
    """Return arrays that compare, most significant first, as the values do."""
    if pa.types.is_null(values.type):
        return [np.zeros(len(values), np.int64)]
    keys: list[Key] = []
    if values.null_count:
        keys.append(values.is_valid().to_numpy(zero_copy_only=False))
    keys.append(_rank(values))
    return keys


def _rank(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return integers in the order of the values; nulls count 0."""
    kind = values.type
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
        kind = values.type
    if pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and kind != pa.uint64()):
        return _fill(values.cast(pa.int64()))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _fill(values.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return _fill(values.cast(pa.int64()))
    if pa.types.is_floating(kind):
        return _float_ranks(_filled_as(values.cast(pa.float64()), 0.0))
    if pa.types.is_decimal(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.uint64():
        return _ranks(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _ranks(values)
    raise SchemaMismatch(f"Values of type {kind} can't order rows; use a number, text, date, timestamp or boolean.")


def _fill(values: pa.Array) -> npt.NDArray[np.int64]:
    return _filled_as(values, 0).astype(np.int64, copy=False)


def _filled_as(values: pa.Array, null: float) -> npt.NDArray[np.generic]:
    filled: npt.NDArray[np.generic] = pc.fill_null(values, null).to_numpy(zero_copy_only=False)
    return filled


def _float_ranks(values: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Return IEEE bits as integers in `Double.compareTo` order."""
    doubles = np.where(np.isnan(values), np.nan, values).astype(np.float64)  # one NaN for all
    bits = np.ascontiguousarray(doubles).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGNLESS, bits)


def _ranks(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return ranks of values that do not fit 64 bits; through the distinct values."""
    coded = values.dictionary_encode()
    distinct = coded.dictionary
    order = np.asarray(pc.sort_indices(distinct))
    if pa.types.is_string(distinct.type) or pa.types.is_large_string(distinct.type):
        texts = cast("list[str]", distinct.to_pylist())  # a dictionary has no nulls
        if any(max(text, default="") > "\uffff" for text in texts):
            # Java's order differs from that of UTF-8 bytes only for characters beyond U+FFFF.
            java_order = sorted(range(len(texts)), key=lambda index: texts[index].encode("utf-16-be", "surrogatepass"))
            order = np.array(java_order, np.int64)
    rank = np.empty(len(distinct), np.int64)
    rank[order] = np.arange(len(distinct))
    codes = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return rank[codes] if len(distinct) else np.zeros(len(values), np.int64)
